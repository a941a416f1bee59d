"""What a run did with sessions, counted from its events and told in a few lines."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from pytest_device.sessions.events import Event, Kind

PATIENCE_SECONDS: Final = 5.0
"""A shorter wait is not worth a line of its own, unless all is asked for."""


_LINES: Final = {
    Kind.CREATED: "{label}: {url}",
    Kind.STATUS: "{label}: after {waited_seconds:.0f} s {text}",
    Kind.STOP_DELAYED: "{label}: not stopped yet, still trying: {text}",
    Kind.KEPT: "{label}: kept for up to {minutes} minutes: {where} (pytest-device stop {session_id})",
    Kind.STOP_FAILED: "{label}: COULD NOT BE STOPPED: {text} ({where})",
    Kind.CREATE_UNKNOWN: (
        "{label}: the answer to create was lost, a session named {text!r} may be running, for up to {minutes} minutes"
    ),
    Kind.NOTE: "{text}",
}


def line_of(event: Event, *, verbose: bool = False) -> str | None:
    """Return the line that a watching person reads, None for what needs none."""
    match event.kind:
        case Kind.READY:
            device = f" on {event.text}" if event.text else ""
            slow = verbose or event.waited_seconds > PATIENCE_SECONDS
            return f"{event.label}: in progress after {event.waited_seconds:.1f} s{device}" if slow else None
        case Kind.STOPPED:
            return f"{event.label}: {event.text}" if verbose or event.text != "stopped" else None
        case kind:
            return _LINES[kind].format(where=event.url or event.session_id, **event.to_json())


@dataclass
class Receipt:
    """Sessions created, proven stopped, unknown; seconds waited and run; errors that were not the tests' own."""

    lives: dict[str, list[Event]] = field(default_factory=dict[str, list[Event]])
    """The events of each session that was created, by its id."""
    lost: list[Event] = field(default_factory=list[Event])
    """The create calls whose answer was lost."""
    notes: dict[str, None] = field(default_factory=dict[str, None])
    """What there is to say of the run as a whole, each once."""
    errors: Counter[str] = field(default_factory=Counter[str])
    """How many errors each verdict has."""

    def add(self, event: Event) -> None:
        """Take note of one event."""
        if event.kind is Kind.NOTE:
            self.notes[event.text] = None
        elif event.kind is Kind.CREATE_UNKNOWN:
            self.lost.append(event)
        elif event.session_id:
            self.lives.setdefault(event.session_id, []).append(event)

    def not_stopped(self) -> list[Event]:
        """Return the newest event of each session that was created, not proven stopped, and not kept on purpose."""
        return [life[-1] for life in self.lives.values() if not _of(life, Kind.STOPPED, Kind.KEPT)]

    def known(self) -> set[str]:
        """Return the ids of sessions whose end is known, and the names of those that nobody can know."""
        return {key for key, life in self.lives.items() if _of(life, Kind.STOPPED, Kind.KEPT)} | {
            event.text for event in self.lost
        }

    def lines(self) -> Iterator[str]:
        """Yield the receipt, nothing when no session was asked for and nothing went wrong."""
        left, kept = self.not_stopped(), [event for life in self.lives.values() for event in _of(life, Kind.KEPT)]
        if self.lives or self.lost:
            counted = f"created {len(self.lives)}, proven stopped {len(self.lives) - len(left) - len(kept)}"
            counted += f", kept {len(kept)}" if kept else ""
            yield f"sessions: {counted}, unknown {len(self.lost)}; {self._times()}"
        yield from filter(None, map(line_of, kept))
        for event in left:
            cost = f"it may cost up to {event.minutes} more minutes" if event.minutes else ""
            facts = filter(None, (event.session_id, event.url, event.text, cost))
            yield f"{event.label}: NOT PROVEN STOPPED: {'; '.join(facts)}"
        yield from filter(None, map(line_of, self.lost))
        yield from self.notes
        for verdict, count in self.errors.items():
            yield f"errors of the {verdict}, not of the tests: {count}"

    def _times(self) -> str:
        lives = self.lives.values()
        waited = sum((_of(life, Kind.READY) or life)[-1].waited_seconds for life in lives)
        ran = sum(event.running_seconds or 0.0 for life in lives for event in _of(life, Kind.STOPPED)[-1:])
        return f"device time {_time(ran)}, waited {_time(waited)}"


def _of(life: list[Event], *kinds: Kind) -> list[Event]:
    return [event for event in life if event.kind in kinds]


def _time(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 60 else f"{seconds / 60:.1f} min"  # noqa: PLR2004
