"""What a run did with sessions, counted from its events and told in a few lines."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from pytest_device.sessions.events import Event, Kind

PATIENCE_SECONDS: Final = 5.0
"""A shorter wait is not worth a line of its own, unless all is asked for."""


def line_of(event: Event, *, verbose: bool = False) -> str | None:
    """Return the line that a watching person reads, None for what needs none."""
    match event.kind:
        case Kind.CREATED:
            return f"{event.label}: {event.url}"
        case Kind.STATUS:
            return f"{event.label}: after {event.waited_seconds:.0f} s {event.text}"
        case Kind.READY:
            device = f" on {event.text}" if event.text else ""
            slow = verbose or event.waited_seconds > PATIENCE_SECONDS
            return f"{event.label}: in progress after {event.waited_seconds:.1f} s{device}" if slow else None
        case Kind.STOPPED:
            return f"{event.label}: {event.text}" if verbose or event.text != "stopped" else None
        case Kind.STOP_FAILED:
            return f"{event.label}: COULD NOT BE STOPPED: {event.text} ({event.url or event.session_id})"
        case Kind.CREATE_UNKNOWN:
            return f"{event.label}: the answer to create was lost, a session named {event.text!r} may be running"


@dataclass
class Receipt:
    """Sessions created, proven stopped, unknown; seconds waited and run; errors that were not the tests' own."""

    lives: dict[str, list[Event]] = field(default_factory=dict[str, list[Event]])
    """The events of each session that was created, by its id."""
    lost: list[Event] = field(default_factory=list[Event])
    """The create calls whose answer was lost."""
    errors: Counter[str] = field(default_factory=Counter[str])
    """How many errors each verdict has."""

    def add(self, event: Event) -> None:
        """Take note of one event."""
        if event.kind is Kind.CREATE_UNKNOWN:
            self.lost.append(event)
        elif event.session_id:
            self.lives.setdefault(event.session_id, []).append(event)

    def not_stopped(self) -> list[Event]:
        """Return the newest event of each session that was created and not proven stopped."""
        return [life[-1] for life in self.lives.values() if not _of(life, Kind.STOPPED)]

    def lines(self) -> Iterator[str]:
        """Yield the receipt, nothing when no session was asked for and nothing went wrong."""
        left = self.not_stopped()
        if self.lives or self.lost:
            yield (
                f"sessions: created {len(self.lives)}, proven stopped {len(self.lives) - len(left)}, "
                f"unknown {len(self.lost)}; {self._times()}"
            )
        for event in left:
            yield f"{event.label}: NOT PROVEN STOPPED: {event.url or event.session_id} {event.text}".rstrip()
        yield from filter(None, map(line_of, self.lost))
        for verdict, count in self.errors.items():
            yield f"errors of the {verdict}, not of the tests: {count}"

    def _times(self) -> str:
        lives = self.lives.values()
        waited = sum((_of(life, Kind.READY) or life)[-1].waited_seconds for life in lives)
        ran = sum(event.running_seconds or 0.0 for life in lives for event in _of(life, Kind.STOPPED)[-1:])
        return f"device time {_time(ran)}, waited {_time(waited)}"


def _of(life: list[Event], kind: Kind) -> list[Event]:
    return [event for event in life if event.kind is kind]


def _time(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 60 else f"{seconds / 60:.1f} min"  # noqa: PLR2004
