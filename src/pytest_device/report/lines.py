"""Formats events, and errors that are not the tests' own, as lines for users."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, assert_never

from pytest_device.errors import NOT_STARTED
from pytest_device.figures import counted
from pytest_device.sessions.events import (
    Attached,
    Created,
    CreateUnknown,
    Event,
    Gone,
    Kept,
    KeptWarm,
    Note,
    Queued,
    Ready,
    SessionEvent,
    SessionRef,
    StartFailed,
    StateChanged,
    StopDelayed,
    StopEvent,
    StopFailed,
    Stopped,
    TakenOver,
    Unused,
    detail_of,
)
from pytest_device.spec import STATES
from pytest_device.verdict import Verdict

PATIENCE_SECONDS: Final = 5.0
"""Waits up to this many seconds need no explanation: they get a line only with ``-v``."""
_LONG_BOOT_FACTOR: Final = 1.5
"""Factor by which a boot must exceed the usual time to count as long."""

_PAGE: Final = re.compile(r" \((?:session page: )?https?://[^\s()]+\)")
_COLORS: Final[Mapping[type[Event], str]] = {
    StartFailed: "yellow",
    StopDelayed: "yellow",
    Kept: "yellow",
    StopFailed: "red",
    CreateUnknown: "red",
}


def needs_line(event: Event, usual_seconds: float | None) -> bool:
    """Return whether an event gets a line even without ``-v``: trouble, and long boots."""
    match event:
        # The error of its test says it.
        case StartFailed(attempt=0):
            return False
        case StateChanged() | Ready():
            long_seconds = _LONG_BOOT_FACTOR * (usual_seconds or 0.0)
            return event.session.waited_seconds > max(PATIENCE_SECONDS, long_seconds)
        case StartFailed() | StopDelayed() | StopFailed() | CreateUnknown() | Gone():
            return True
        case _:
            return False


def line_of(event: Event) -> str:
    """Format an event for users who watch the run; each URL gets its own line, so that it does not wrap."""
    match event:
        case Queued():
            return f"queued for {event.waited_seconds:.1f} s"
        case Note():
            return event.text
        case _:
            return f"{event.session.label}: {_start_line(event)}"


def _start_line(event: SessionEvent) -> str:
    """Format the line of a session on its way to a test, without its label; other events use ``_end_line``."""
    session = event.session
    device = f" on {detail_of(event)}" if detail_of(event) else ""

    match event:
        case Created() | Attached():
            text = "session page:" if session.url else "created"
            if isinstance(event, Attached):
                text = "attached to an existing session"

            return with_pages(text, [_page_or_id(session)])
        case StateChanged():
            state = STATES.get(event.state, event.state)
            return f"after {session.waited_seconds:.0f} s: {state}"
        case Ready():
            return f"ready after {session.waited_seconds:.1f} s{device}"
        case TakenOver():
            text = f"taken over from an earlier run{device}"
            return with_pages(text, [_page_or_id(session)])
        case StartFailed():
            failed = "failed to start"
            if event.attempt:
                failed = f"failed to start, retrying with a new session ({event.attempt}/{event.limit})"

            return with_pages(f"{failed}: {cause_of(event)}", [session.url])
        case _:
            return _end_line(event)


def _end_line(event: StopEvent | Kept | KeptWarm | Unused | CreateUnknown) -> str:
    session = event.session

    match event:
        case Stopped() | Gone():
            return STATES.get(event.status, event.status)
        case StopDelayed():
            return f"not stopped yet, still trying: {event.reason}"
        case StopFailed():
            text = f"COULD NOT BE STOPPED: {event.reason}"
            return with_pages(text, [_page_or_id(session)])
        case Kept() | KeptWarm():
            text = f"kept for up to {session.minutes} minutes"
            if isinstance(event, KeptWarm):
                text = f"kept warm until {event.until}"

            stop = f"pytest-device stop {session.session_id}"
            return with_pages(text, [session.url, stop])
        case Unused():
            return "booted in advance, but not used by any test"
        case CreateUnknown():
            return _unknown_line(event)
        case _:
            assert_never(event)


def _unknown_line(event: CreateUnknown) -> str:
    minutes = event.session.minutes
    risk = f"a session named {event.name!r} may be running for up to {minutes} minutes"
    until = event.awaited_until
    if not until:
        return f"the response to the create call was lost: {risk}"

    return (
        f"no response to the create call yet: {risk}. Until {until}, the reaper waits for the response, and stops the "
        "session as soon as it has its ID"
    )


def _page_or_id(session: SessionRef) -> str:
    return session.url or session.session_id


def without_pages(text: str) -> str:
    """Return a text without the URLs in parentheses."""
    return _PAGE.sub("", text)


def with_pages(text: str, pages: Iterable[str]) -> str:
    """Return a text followed by each distinct session page on its own line, to avoid wrapping."""
    distinct = dict.fromkeys(filter(None, pages))
    return "\n".join([without_pages(text), *(f"    {page}" for page in distinct)])


def color_of(event: Event) -> str:
    """Return the color of an event's line, empty for the terminal's default."""
    return _COLORS.get(type(event), "")


def cause_of(event: StartFailed) -> str:
    """Return why a session failed to start, without the words that only repeat that it did."""
    return event.reason.removeprefix(NOT_STARTED).lstrip(",: ")


@dataclass(frozen=True, slots=True)
class Incident:
    """An error that is not the test's own, and the session pages of the test.

    ``cause`` is the error of an earlier test because of which this test was not attempted.
    """

    verdict: Verdict
    test: str
    error: str
    pages: Sequence[str] = ()
    cause: str = ""

    @property
    def text(self) -> str:
        return self.cause or self.error.removeprefix(f"{self.verdict}: ")


class IncidentGroup(NamedTuple):
    """All incidents with one cause, and the pages of other sessions that failed alike."""

    incidents: Sequence[Incident]
    pages: Sequence[str]

    def line(self, *, with_cause: bool = True) -> str:
        """Return a line with the tests; ``with_cause`` is False if the output already has the error of the first one."""
        # Pytest shows no error of a test that was not attempted.
        attempted = [incident for incident in self.incidents if not incident.cause]
        first = attempted[0] if attempted else self.incidents[0]
        with_cause = with_cause or not attempted

        # A test that is run again may meet the cause again.
        tests = {incident.test for incident in self.incidents}
        affected = f"{counted(len(tests), 'test')} affected, first {first.test}"

        if len(tests) == 1:
            parts = [first.verdict, first.test, first.text if with_cause else ""]
        else:
            cause = without_pages(first.text).removesuffix(".") if with_cause else ""
            parts = [first.verdict, cause, affected]

        pages = [page for incident in self.incidents for page in incident.pages]
        return with_pages(": ".join(filter(None, parts)), [*pages, *self.pages])


def group_incidents(
    incidents: Iterable[Incident], not_started: Sequence[StartFailed]
) -> Mapping[str, IncidentGroup]:
    """Group incidents by the common part of their errors, with the sessions that failed alike."""
    by_cause: dict[str, list[Incident]] = {}
    for incident in incidents:
        by_cause.setdefault(normalize(incident.text), []).append(incident)

    pages: dict[str, list[str]] = {}
    for event in not_started:
        pages.setdefault(normalize(event.reason), []).append(event.session.url)

    return {
        cause: IncidentGroup(group, pages.get(cause, []))
        for cause, group in by_cause.items()
    }


def normalize(text: str) -> str:
    """Return an error without the parts that differ between sessions: URLs, IDs, times.

    >>> normalize("no answer within 30.5 s (https://devices.example/sessions/7)")
    'no answer within …'
    """
    return re.sub(
        r"https?://[^\s)]+|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?<!\d)\d++(\.\d++)? s\b",
        "…",
        without_pages(text),
    )
