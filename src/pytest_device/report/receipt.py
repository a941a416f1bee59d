"""What a run did with sessions, counted from its events and told in a few lines."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from pytest_device.sessions.events import Event, Kind

PATIENCE_SECONDS: Final = 5.0
"""A shorter wait is not worth a line of its own, unless all is asked for."""
MOST_LISTED: Final = 10
"""So many things of one kind are told one by one."""


_LINES: Final = {
    Kind.CREATED: "{label}: {url}",
    Kind.STATUS: "{label}: after {waited_seconds:.0f} s {text}",
    Kind.START_FAILED: "{label}: did not start, another session is tried: {text}",
    Kind.STOP_DELAYED: "{label}: not stopped yet, still trying: {text}",
    Kind.KEPT: "{label}: kept for up to {minutes} minutes: {where} (pytest-device stop {session_id})",
    Kind.WARM: "{label}: kept warm until {text}: {where} (pytest-device stop {session_id})",
    Kind.UNUSED: "{label}: booted ahead, and no test has had it",
    Kind.STOP_FAILED: "{label}: COULD NOT BE STOPPED: {text} ({where})",
    Kind.CREATE_UNKNOWN: (
        "{label}: the answer to create was lost, a session named {text!r} may be running, for up to {minutes} minutes"
    ),
    Kind.NOTE: "{text}",
}
_TOLD_SECONDS: Final = 1.0
"""Shorter times in the queue are not worth a word."""
_UNPROVEN: Final = (Kind.STOP_DELAYED, Kind.STOP_FAILED)
"""What came of a stop that is no proof."""
_COLOURS: Final = {
    Kind.START_FAILED: "yellow",
    Kind.STOP_DELAYED: "yellow",
    Kind.KEPT: "yellow",
    Kind.STOP_FAILED: "red",
    Kind.CREATE_UNKNOWN: "red",
}


class Line(NamedTuple):
    """A line of the receipt, and the colour it has where there are colours."""

    text: str
    colour: str = ""


def line_of(event: Event, *, verbose: bool = False) -> str | None:
    """Return the line that a watching person reads, None for what needs none."""
    match event.kind:
        case Kind.READY:
            device = f" on {event.text}" if event.text else ""
            slow = verbose or event.waited_seconds > PATIENCE_SECONDS
            return f"{event.label}: in progress after {event.waited_seconds:.1f} s{device}" if slow else None
        case Kind.TAKEN_OVER:
            device = f" on {event.text}" if event.text else ""
            return f"{event.label}: taken over from an earlier run{device}: {event.url or event.session_id}"
        case Kind.QUEUED:
            return f"queued for {event.waited_seconds:.1f} s" if verbose else None  # which was told while it lasted
        case Kind.STOPPED:
            return f"{event.label}: {event.text}" if verbose or event.text != "stopped" else None
        case kind:
            return _LINES[kind].format(where=event.url or event.session_id, **event.to_json())


def colour_of(event: Event) -> str:
    """Return the colour of an event's line, nothing for the terminal's own."""
    return _COLOURS.get(event.kind, "")


@dataclass(frozen=True, slots=True)
class Incident:
    """An error that is not the test's own, and the pages of the sessions that the test had."""

    verdict: str
    test: str
    error: str
    pages: Sequence[str] = ()

    def told(self) -> str:
        """Return it in one line."""
        return f"{self.verdict}: {self.test}: {_with_pages(self.error.removeprefix(f'{self.verdict}: '), self.pages)}"


@dataclass
class Receipt:
    """Sessions created, proven stopped, unknown; seconds waited and run; errors that were not the tests' own."""

    lives: dict[str, list[Event]] = field(default_factory=dict[str, list[Event]])
    """The events of each session that was created, by its id."""
    earlier: set[str] = field(default_factory=set[str])
    """The ids of sessions that only earlier runs have had, and that this one has stopped: notes tell of them."""
    queued_seconds: float = 0.0
    """For how long tests waited until there might be sessions for them, before any was asked for."""
    lost: list[Event] = field(default_factory=list[Event])
    """The create calls whose answer was lost."""
    not_started: list[Event] = field(default_factory=list[Event])
    """The boots that failed and were tried again."""
    notes: dict[str, None] = field(default_factory=dict[str, None])
    """What there is to say of the run as a whole, each once."""
    incidents: list[Incident] = field(default_factory=list[Incident])
    """The errors that were not the tests' own."""

    def add(self, event: Event) -> None:
        """Take note of one event."""
        if event.kind is Kind.NOTE:
            self.notes[event.text] = None
            self.earlier.add(event.session_id)
        elif event.kind is Kind.QUEUED:
            self.queued_seconds += event.waited_seconds
        elif event.kind is Kind.CREATE_UNKNOWN:
            self.lost.append(event)
        elif event.session_id:
            self.lives.setdefault(event.session_id, []).append(event)
            self.not_started += [event] if event.kind is Kind.START_FAILED else []

    def not_stopped(self) -> list[Event]:
        """Return the newest event of each session that is not proven stopped, and not kept on purpose."""
        return [(_of(life, *_UNPROVEN) or life)[-1] for life in self.lives.values() if not _has_end(life)]

    def known(self) -> set[str]:
        """Return the ids of sessions whose end is known, and the names of those that nobody can know."""
        return {key for key, life in self.lives.items() if _has_end(life)} | {event.text for event in self.lost}

    def lines(self) -> Iterator[Line]:
        """Yield the receipt, nothing when no session was asked for and nothing went wrong."""
        left, kept, warm = self.not_stopped(), self._kept(), self._warm()
        if self.lives or self.lost:
            trouble = "red" if left or self.lost else "yellow" if kept or self.not_started else "green"
            yield Line(self._counted(), trouble)
        yield from _of_events([*kept, *warm])
        for event in left:
            cost = f"it may cost up to {event.minutes} more minutes" if event.minutes else ""
            facts = filter(None, (event.session_id, event.url, event.text, cost))
            yield Line(f"{event.label}: NOT PROVEN STOPPED: {'; '.join(facts)}", "red")
        yield from _of_events(self.lost)
        yield from _listed(
            [f"did not start: {e.label}: {_with_pages(e.text, [e.url])}" for e in self.not_started], "yellow"
        )
        yield from map(Line, self.notes)
        for verdict, count in self._errors().items():
            yield Line(f"errors of the {verdict}, not of the tests: {count}", "red")
            yield from _listed([one.told() for one in self.incidents if one.verdict == verdict], "red")

    def to_json(self) -> dict[str, Any]:
        """Return plain values only."""
        left, kept, warm, (ran, waited) = self.not_stopped(), self._kept(), self._warm(), self._seconds()
        taken_over = self._taken_over()
        return {
            "created": len(self._own()) - taken_over,
            "taken_over": taken_over,
            "stopped": self._stopped(),
            "kept": len(kept),
            "kept_warm": len(warm),
            "unknown": len(self.lost),
            "not_stopped": [{"id": event.session_id, "page": event.url} for event in left],
            "start_failed": len(self.not_started),
            "unused": self._unused(),
            "device_seconds": ran,
            "waited_seconds": waited,
            "queued_seconds": self.queued_seconds,
            "errors": dict(self._errors()),
        }

    def _counted(self) -> str:
        kept, warm, (ran, waited) = self._kept(), self._warm(), self._seconds()
        taken_over = self._taken_over()
        parts = [f"created {len(self._own()) - taken_over}"]
        parts += [f"taken over {taken_over}"] if taken_over else []
        parts += [f"proven stopped {self._stopped()}"]
        parts += [f"kept {len(kept)}"] if kept else []
        parts += [f"kept warm {len(warm)}"] if warm else []
        parts += [f"unknown {len(self.lost)}; device time {_time(ran)}", f"waited {_time(waited)}"]
        parts += [f"queued {_time(self.queued_seconds)}"] if self.queued_seconds >= _TOLD_SECONDS else []
        parts += [f"{len(self.not_started)} did not start"] if self.not_started else []
        parts += [f"booted ahead and unused {unused}"] if (unused := self._unused()) else []
        return f"sessions: {', '.join(parts)}"

    def _own(self) -> list[list[Event]]:
        """Return the events of each session that this run has had."""
        return [life for session_id, life in self.lives.items() if session_id not in self.earlier]

    def _stopped(self) -> int:
        return sum(bool(_of(life, Kind.STOPPED)) for life in self._own())

    def _kept(self) -> list[Event]:
        """Return for each session that was left running on purpose, and not stopped since, the event that says so."""
        return [_of(life, Kind.KEPT)[-1] for life in self.lives.values() if _ends_kept(life)]

    def _warm(self) -> list[Event]:
        """Return for each session that was left up for the next run the event that says so."""
        return [_of(life, Kind.WARM)[-1] for life in self.lives.values() if _ends_warm(life)]

    def _taken_over(self) -> int:
        """Return how many sessions an earlier run has created."""
        return sum(bool(_of(life, Kind.TAKEN_OVER)) and not _of(life, Kind.CREATED) for life in self.lives.values())

    def _unused(self) -> int:
        """Return how many sessions were booted ahead, and no test has had them."""
        return sum(bool(_of(life, Kind.UNUSED)) for life in self.lives.values())

    def _errors(self) -> Counter[str]:
        return Counter(incident.verdict for incident in self.incidents)

    def _seconds(self) -> tuple[float, float]:
        """Return how long the sessions ran by the service's own times, and how long the run waited for them."""
        lives = self._own()
        return sum(map(_ran, lives)), sum(map(_waited, lives))


def _of(life: list[Event], *kinds: Kind) -> list[Event]:
    return [event for event in life if event.kind in kinds]


def _ran(life: list[Event]) -> float:
    """Return for how many seconds the run had a session: each process tells of its own time, but for the last stop.

    Where all have left it up before, that one tells the whole time since it was created.
    """
    warm, stopped = _of(life, Kind.WARM), _of(life, Kind.STOPPED)[-1:]
    ends = [*warm, *stopped]
    if _is_left_by_all(life):
        ends = stopped if stopped and _of(life, Kind.CREATED) else warm
    return sum(event.running_seconds or 0.0 for event in ends)


def _waited(life: list[Event]) -> float:
    """Return how many seconds the run waited for a session: not while it booted behind the tests."""
    last = (_of(life, Kind.READY) or _of(life, Kind.TAKEN_OVER) or life)[-1]
    if last.late_seconds is not None or _of(life, Kind.UNUSED):
        return 0.0
    ahead = 0.0 if life[0].late_seconds is None else life[0].waited_seconds + life[0].late_seconds
    return max(0.0, last.waited_seconds - ahead)


def _has_end(life: list[Event]) -> bool:
    return bool(_of(life, Kind.STOPPED, Kind.KEPT)) or _ends_warm(life)


def _ends_warm(life: list[Event]) -> bool:
    return _is_left_by_all(life) and not _of(life, Kind.STOPPED, *_UNPROVEN)


def _is_left_by_all(life: list[Event]) -> bool:
    """Tell whether it was left up as often as somebody had it; the events of several workers come in any order."""
    left, had = len(_of(life, Kind.WARM)), len(_of(life, Kind.CREATED, Kind.TAKEN_OVER))
    return left >= max(had, 1)


def _ends_kept(life: list[Event]) -> bool:
    return bool(_of(life, Kind.KEPT)) and not _of(life, Kind.STOPPED)


def _of_events(events: list[Event]) -> Iterator[Line]:
    for event in events:
        if text := line_of(event):
            yield Line(text, colour_of(event))


def _listed(lines: Sequence[str], colour: str) -> Iterator[Line]:
    for text in lines[:MOST_LISTED]:
        yield Line(text, colour)
    if len(lines) > MOST_LISTED:
        yield Line(f"and {len(lines) - MOST_LISTED} more", colour)


def _with_pages(text: str, pages: Sequence[str]) -> str:
    """Return a text with the pages behind it; most errors that have a page name the right one themselves."""
    pages = list(filter(None, dict.fromkeys(pages)))
    return text if not pages or any(page in text for page in pages) else f"{text} ({' '.join(pages)})"


def _time(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 60 else f"{seconds / 60:.1f} min"  # noqa: PLR2004
