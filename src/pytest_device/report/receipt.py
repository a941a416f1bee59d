"""Counts a run's sessions, times and errors from its events."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple, TypeVar

from pytest_device.figures import counted, duration
from pytest_device.report.lines import (
    Incident,
    cause_of,
    color_of,
    group_incidents,
    line_of,
    normalize,
    with_pages,
)
from pytest_device.sessions.events import (
    Created,
    CreateUnknown,
    Event,
    Kept,
    KeptWarm,
    Note,
    Queued,
    Ready,
    SessionEvent,
    StartFailed,
    Stopped,
    TakenOver,
    Unused,
    detail_of,
    outcome_of,
)
from pytest_device.sessions.states import (
    OVER,
    RETRIABLE,
    Outcome,
    final_outcome,
    is_left_by_all,
)

MOST_LISTED: Final = 10
"""Maximum number of listed items of one kind: more would push the test results off the screen."""
_SHOWN_SECONDS: Final = 1.0
"""Minimum queue time to show: shorter times are single lock attempts, not waits."""
_ALWAYS: Final = frozenset({"created", "stopped"})
"""Counts that are shown even if they are 0."""
_WORDS: Final = {
    "taken_over": "taken over",
    "stopped": "stopped (confirmed)",
    "kept_warm": "kept warm",
    "start_failed": "failed to start",
}
_E = TypeVar("_E", bound=SessionEvent)


class Line(NamedTuple):
    """A line of the receipt, and its color if the output has colors."""

    text: str
    color: str = ""


class _Record:
    """The events of one session, in order of arrival."""

    def __init__(self) -> None:
        self.events: list[SessionEvent] = []

    def of(self, kind: type[_E]) -> list[_E]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def outcome(self) -> Outcome | None:
        """Return the session's outcome, None while nothing has tried to end it."""
        return final_outcome(self._outcomes(), self._users())

    def not_stopped(self) -> SessionEvent:
        """Return the event that best explains why it may be running: that of the newest stop, else the newest."""
        tried = [event for event in self.events if outcome_of(event) in RETRIABLE]
        return (tried or self.events)[-1]

    def running_seconds(self) -> float:
        """Return the seconds that the run used it: each process reports its own time, except in the last stop.

        If all processes had kept it warm before, that stop reports the whole time since its creation.
        """
        stopped = [event.running_seconds for event in self.of(Stopped)[-1:]]
        warm = [event.used_seconds for event in self.of(KeptWarm)]
        if not is_left_by_all(self._outcomes(), self._users()):
            return _sum([*warm, *stopped])
        return _sum(stopped if stopped and self.of(Created) else warm)

    def waited_seconds(self) -> float:
        """Return the seconds that the run waited for it, not counting its start in the background."""
        usable = [*self.of(Ready)[-1:], *self.of(TakenOver)[-1:]]
        first, last = self.events[0].session, (usable or self.events[-1:])[0].session
        if self.of(Unused) or (usable and last.late_seconds is not None):
            return 0.0
        ahead = (
            0.0
            if first.late_seconds is None
            else first.waited_seconds + first.late_seconds
        )
        return max(0.0, last.waited_seconds - ahead)

    def _outcomes(self) -> list[Outcome]:
        return [outcome for event in self.events if (outcome := outcome_of(event))]

    def _users(self) -> int:
        """Return how many processes used it."""
        return len(self.of(Created)) + len(self.of(TakenOver))


class Receipt:
    """Sessions created, confirmed as stopped, unknown; seconds waited and run; infrastructure errors.

    A fold over events; ``states`` decides the outcome of each session.
    """

    def __init__(self, *, has_pages: bool = True) -> None:
        self._has_pages = has_pages
        """Whether session pages still exist when the receipt is read."""
        self.incidents: list[Incident] = []
        """Errors that are not the tests' own."""
        self.lost: list[CreateUnknown] = []
        """Create calls whose response was lost."""
        self._records: dict[str, _Record] = {}
        """By session ID."""
        self._earlier: set[str] = set()
        """IDs of sessions that only earlier runs used and this run stopped."""
        self._queued_seconds = 0.0
        """Seconds that tests waited for a slot, before a session was requested."""
        self._not_started: list[StartFailed] = []
        """Sessions that failed to start and were replaced."""
        self._notes: dict[str, None] = {}
        """Notes about the whole run, each once."""

    def add(self, event: Event) -> None:
        match event:
            case Note():
                self._notes[event.text] = None
                self._earlier.add(event.session_id)
            case Queued():
                self._queued_seconds += event.waited_seconds
            case CreateUnknown():
                self.lost.append(event)
            case _:
                self._add(
                    event
                    if self._has_pages
                    else replace(event, session=replace(event.session, url=""))
                )

    def _add(self, event: SessionEvent) -> None:
        if not event.session.session_id:
            return
        self._records.setdefault(event.session.session_id, _Record()).events.append(
            event
        )
        if isinstance(event, StartFailed):
            self._not_started.append(event)

    @property
    def has_sessions(self) -> bool:
        """Return whether a session was created, or may have been."""
        return bool(self._records or self.lost)

    def not_stopped(self) -> list[SessionEvent]:
        """Return the newest event of each session that is neither confirmed as stopped nor deliberately kept."""
        return [
            one.not_stopped()
            for one in self._records.values()
            if one.outcome not in OVER
        ]

    def known(self) -> set[str]:
        """Return the IDs of sessions whose end is known, and the names of those with unknown IDs."""
        over = {key for key, record in self._records.items() if record.outcome in OVER}
        return over | {event.name for event in self.lost}

    def lines(self) -> Iterator[Line]:
        """Yield the receipt, nothing if no session was requested and nothing went wrong."""
        left, kept = self.not_stopped(), self._of_outcome(Outcome.KEPT, Kept)
        if self.has_sessions:
            color = (
                "red"
                if left or self.lost
                else "yellow"
                if kept or self._not_started
                else "green"
            )
            yield Line(self._counted(), color)
        yield from _of_events([*kept, *self._of_outcome(Outcome.WARM, KeptWarm)])
        for event in left:
            yield Line(_not_stopped(event), "red")
        yield from _of_events(self.lost)
        groups = group_incidents(self.incidents, self._not_started)
        failed = [
            with_pages(
                f"failed to start: {e.session.label}: {cause_of(e)}", [e.session.url]
            )
            for e in self._not_started
            if normalize(e.reason) not in groups
        ]
        yield from _listed(failed, "yellow")
        yield from map(Line, self._notes)
        for verdict, count in self._errors().items():
            tests = "not a test failure" if count == 1 else "not test failures"
            yield Line(f"{counted(count, f'{verdict} error')} ({tests})", "red")
            lines = [
                one.line()
                for one in groups.values()
                if one.incidents[0].verdict == verdict
            ]
            yield from _listed(lines, "red")

    def to_json(self) -> dict[str, Any]:
        """Return the receipt as plain values."""
        ran, waited = self._seconds()
        return {
            **self._numbers(),
            "not_stopped": [
                {"id": event.session.session_id, "page": event.session.url}
                for event in self.not_stopped()
            ],
            "device_seconds": ran,
            "waited_seconds": waited,
            "queued_seconds": self._queued_seconds,
            "errors": dict(self._errors()),
        }

    def _counted(self) -> str:
        ran, waited = self._seconds()
        counts = self._numbers().items()
        numbers = [
            f"{number} {_WORDS.get(what, what)}"
            for what, number in counts
            if number or what in _ALWAYS
        ]
        times = [
            f"{duration(ran)} of device time",
            f"{duration(waited)} waiting for devices",
        ]
        times += (
            [f"{duration(self._queued_seconds)} queued"]
            if self._queued_seconds >= _SHOWN_SECONDS
            else []
        )
        return f"devices: {', '.join(numbers)}; {', '.join(times)}"

    def _own(self) -> list[_Record]:
        """Return the records of sessions that this run used."""
        return [
            record
            for session_id, record in self._records.items()
            if session_id not in self._earlier
        ]

    def _numbers(self) -> dict[str, int]:
        own, all_records = self._own(), self._records.values()
        attached = sum(record.outcome is Outcome.ATTACHED for record in own)
        taken_over = sum(
            bool(record.of(TakenOver)) and not record.of(Created)
            for record in all_records
        )
        return {
            "created": len(own) - taken_over - attached,
            "taken_over": taken_over,
            "attached": attached,
            "stopped": sum(record.outcome is Outcome.STOPPED for record in own),
            "gone": sum(record.outcome is Outcome.GONE for record in own),
            "kept": len(self._of_outcome(Outcome.KEPT, Kept)),
            "kept_warm": len(self._of_outcome(Outcome.WARM, KeptWarm)),
            "unknown": len(self.lost),
            "start_failed": len(self._not_started),
            "unused": sum(bool(record.of(Unused)) for record in all_records),
        }

    def _of_outcome(self, outcome: Outcome, kind: type[_E]) -> list[_E]:
        """Return the deciding event of each session with this outcome."""
        return [
            record.of(kind)[-1]
            for record in self._records.values()
            if record.outcome is outcome
        ]

    def _errors(self) -> Counter[str]:
        return Counter(incident.verdict for incident in self.incidents)

    def _seconds(self) -> tuple[float, float]:
        """Return how long the sessions ran by the service's timestamps, and how long the run waited for them."""
        own = self._own()
        return sum(record.running_seconds() for record in own), sum(
            record.waited_seconds() for record in own
        )


def _sum(seconds: Sequence[float | None]) -> float:
    return sum(one or 0.0 for one in seconds)


def _not_stopped(event: SessionEvent) -> str:
    of = event.session
    cost = f"it may be billed for up to {of.minutes} more minutes" if of.minutes else ""
    facts = filter(None, (detail_of(event), cost))
    stop = f"pytest-device stop {of.session_id}"
    return with_pages(
        f"{of.label}: NOT CONFIRMED AS STOPPED: {'; '.join(facts)}", [of.url, stop]
    )


def _of_events(events: Sequence[Event]) -> Iterator[Line]:
    for event in events:
        yield Line(line_of(event), color_of(event))


def _listed(lines: Sequence[str], color: str) -> Iterator[Line]:
    for text in lines[:MOST_LISTED]:
        yield Line(text, color)
    if len(lines) > MOST_LISTED:
        yield Line(f"and {len(lines) - MOST_LISTED} more", color)
