"""Counts what a run did with sessions, from its events."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple, TypeVar

from pytest_device.figures import counted, duration
from pytest_device.report.incidents import Incident, alike, troubles_of
from pytest_device.report.lines import cause_of, colour_of, line_of, with_pages
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
from pytest_device.sessions.states import OVER, RETRIABLE, Outcome, final_outcome, is_left_by_all

MOST_LISTED: Final = 10
"""So many things of one kind are listed: more would push the test results off the screen."""
_SHOWN_SECONDS: Final = 1.0
"""Shorter times in the queue are those of one attempt at a lock, not of a wait."""
_ALWAYS: Final = frozenset({"created", "stopped"})
"""What is counted in the receipt even where there is none."""
_WORDS: Final = {
    "taken_over": "taken over",
    "stopped": "stopped (confirmed)",
    "kept_warm": "kept warm",
    "start_failed": "failed to start",
}
_E = TypeVar("_E", bound=SessionEvent)


class Line(NamedTuple):
    """A line of the receipt, and the colour it has where there are colours."""

    text: str
    colour: str = ""


class _Record:
    """The events of one session, in the order in which they came."""

    def __init__(self) -> None:
        self.events: list[SessionEvent] = []

    def of(self, kind: type[_E]) -> list[_E]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def outcome(self) -> Outcome | None:
        """Return what came of it, None while nobody has tried to end it."""
        return final_outcome(self._outcomes(), self._users())

    def not_stopped(self) -> SessionEvent:
        """Return the event that says best why it may be running: that of the newest stop, else the newest."""
        tried = [event for event in self.events if outcome_of(event) in RETRIABLE]
        return (tried or self.events)[-1]

    def running_seconds(self) -> float:
        """Return for how many seconds the run had it: each process reports its own time, but for the last stop.

        Where all have left it up before, that one reports the whole time since it was created.
        """
        stopped = [event.running_seconds for event in self.of(Stopped)[-1:]]
        warm = [event.used_seconds for event in self.of(KeptWarm)]
        if not is_left_by_all(self._outcomes(), self._users()):
            return _sum([*warm, *stopped])
        return _sum(stopped if stopped and self.of(Created) else warm)

    def waited_seconds(self) -> float:
        """Return how many seconds the run waited for it: not while it started behind the tests."""
        last = next(iter([*self.of(Ready)[-1:], *self.of(TakenOver)[-1:], self.events[-1]])).session
        if last.late_seconds is not None or self.of(Unused):
            return 0.0
        first = self.events[0].session
        ahead = 0.0 if first.late_seconds is None else first.waited_seconds + first.late_seconds
        return max(0.0, last.waited_seconds - ahead)

    def _outcomes(self) -> list[Outcome]:
        return [outcome for event in self.events if (outcome := outcome_of(event))]

    def _users(self) -> int:
        """Return how many processes had it."""
        return len(self.of(Created)) + len(self.of(TakenOver))


class Receipt:
    """Sessions created, confirmed stopped, unknown; seconds waited and run; infrastructure errors.

    A fold over events: what came of a session is decided by ``states``.
    """

    def __init__(self, *, has_pages: bool = True) -> None:
        self._has_pages = has_pages
        """Whether session pages are still there when it is read."""
        self.incidents: list[Incident] = []
        """The errors that were not the tests' own."""
        self.lost: list[CreateUnknown] = []
        """The create calls whose answer was lost."""
        self._records: dict[str, _Record] = {}
        """By the ids of their sessions."""
        self._earlier: set[str] = set()
        """The ids of sessions that only earlier runs have had, and that this one has stopped."""
        self._queued_seconds = 0.0
        """How long tests waited for a slot, before a session was requested."""
        self._not_started: list[StartFailed] = []
        """The sessions that failed to start and were tried again."""
        self._notes: dict[str, None] = {}
        """Notes about the run as a whole, each once."""

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
                self._add(event if self._has_pages else replace(event, session=replace(event.session, url="")))

    def _add(self, event: SessionEvent) -> None:
        if not event.session.session_id:
            return
        self._records.setdefault(event.session.session_id, _Record()).events.append(event)
        if isinstance(event, StartFailed):
            self._not_started.append(event)

    @property
    def has_sessions(self) -> bool:
        """Return whether a session was created, or may have been."""
        return bool(self._records or self.lost)

    def not_stopped(self) -> list[SessionEvent]:
        """Return the newest event of each session that is neither confirmed stopped nor kept on purpose."""
        return [one.not_stopped() for one in self._records.values() if one.outcome not in OVER]

    def known(self) -> set[str]:
        """Return the ids of sessions whose end is known, and the names of those that nobody can know."""
        over = {key for key, record in self._records.items() if record.outcome in OVER}
        return over | {event.name for event in self.lost}

    def lines(self) -> Iterator[Line]:
        """Yield the receipt, nothing when no session was requested and nothing went wrong."""
        left, kept = self.not_stopped(), self._of_outcome(Outcome.KEPT, Kept)
        if self.has_sessions:
            trouble = "red" if left or self.lost else "yellow" if kept or self._not_started else "green"
            yield Line(self._counted(), trouble)
        yield from _of_events([*kept, *self._of_outcome(Outcome.WARM, KeptWarm)])
        for event in left:
            yield Line(_not_stopped(event), "red")
        yield from _of_events(self.lost)
        troubles = troubles_of(self.incidents, self._not_started)
        failed = [
            with_pages(f"failed to start: {e.session.label}: {cause_of(e)}", [e.session.url])
            for e in self._not_started
            if alike(e.reason) not in troubles
        ]
        yield from _listed(failed, "yellow")
        yield from map(Line, self._notes)
        for verdict, count in self._errors().items():
            tests = "not a test failure" if count == 1 else "not test failures"
            yield Line(f"{counted(count, f'{verdict} error')} ({tests})", "red")
            lines = [one.line() for one in troubles.values() if one.incidents[0].verdict == verdict]
            yield from _listed(lines, "red")

    def to_json(self) -> dict[str, Any]:
        """Return plain values only."""
        ran, waited = self._seconds()
        return {
            **self._numbers(),
            "not_stopped": [
                {"id": event.session.session_id, "page": event.session.url} for event in self.not_stopped()
            ],
            "device_seconds": ran,
            "waited_seconds": waited,
            "queued_seconds": self._queued_seconds,
            "errors": dict(self._errors()),
        }

    def _counted(self) -> str:
        ran, waited = self._seconds()
        counts = self._numbers().items()
        numbers = [f"{number} {_WORDS.get(what, what)}" for what, number in counts if number or what in _ALWAYS]
        times = [f"{duration(ran)} of device time", f"{duration(waited)} waiting for devices"]
        times += [f"{duration(self._queued_seconds)} queued"] if self._queued_seconds >= _SHOWN_SECONDS else []
        return f"devices: {', '.join(numbers)}; {', '.join(times)}"

    def _own(self) -> list[_Record]:
        """Return the records of the sessions that this run has had."""
        return [record for session_id, record in self._records.items() if session_id not in self._earlier]

    def _numbers(self) -> dict[str, int]:
        own, all_records = self._own(), self._records.values()
        attached = sum(record.outcome is Outcome.ATTACHED for record in own)
        taken_over = sum(bool(record.of(TakenOver)) and not record.of(Created) for record in all_records)
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
        return [record.of(kind)[-1] for record in self._records.values() if record.outcome is outcome]

    def _errors(self) -> Counter[str]:
        return Counter(incident.verdict for incident in self.incidents)

    def _seconds(self) -> tuple[float, float]:
        """Return how long the sessions ran by the service's own times, and how long the run waited for them."""
        own = self._own()
        return sum(record.running_seconds() for record in own), sum(record.waited_seconds() for record in own)


def _sum(seconds: Sequence[float | None]) -> float:
    return sum(one or 0.0 for one in seconds)


def _not_stopped(event: SessionEvent) -> str:
    of = event.session
    cost = f"it may be billed for up to {of.minutes} more minutes" if of.minutes else ""
    facts = filter(None, (detail_of(event), cost))
    stop = f"pytest-device stop {of.session_id}"
    return with_pages(f"{of.label}: NOT CONFIRMED AS STOPPED: {'; '.join(facts)}", [of.url, stop])


def _of_events(events: Sequence[Event]) -> Iterator[Line]:
    for event in events:
        yield Line(line_of(event), colour_of(event))


def _listed(lines: Sequence[str], colour: str) -> Iterator[Line]:
    for text in lines[:MOST_LISTED]:
        yield Line(text, colour)
    if len(lines) > MOST_LISTED:
        yield Line(f"and {len(lines) - MOST_LISTED} more", colour)
