"""What a run did with sessions, counted from its events and told in a few lines."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from pytest_device.sessions.events import Event, Kind


def line_of(event: Event) -> str | None:
    """Return the line that a watching person reads, None for what needs none."""
    match event.kind:
        case Kind.CREATED:
            return f"{event.label}: waiting for {event.url}"
        case Kind.STATUS:
            return f"{event.label}: after {event.waited_seconds:.1f} s {event.text}"
        case Kind.READY:
            return f"{event.label}: in progress after {event.waited_seconds:.1f} s"
        case Kind.STOPPED:
            return f"{event.label}: stopped" if event.text == "stopped" else f"{event.label}: ended ({event.text})"
        case Kind.STOP_FAILED:
            return f"{event.label}: session {event.session_id} COULD NOT BE STOPPED: {event.text}"
        case Kind.CREATE_UNKNOWN:
            return f"{event.label}: the answer to create was lost, a session named {event.text!r} may be running"


@dataclass
class Receipt:
    """Sessions created, proven stopped, not stopped, unknown; seconds waited and run."""

    created: int = 0
    stopped: int = 0
    running_seconds: float = 0.0
    waited_seconds: float = 0.0
    doubtful: list[Event] = field(default_factory=list[Event])
    """Sessions that could not be stopped, and create calls whose answer was lost."""
    blamed: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])
    """Verdict, test and message of each error that was not the test's own."""

    def add(self, event: Event) -> None:
        """Count one event."""
        match event.kind:
            case Kind.CREATED:
                self.created += 1
            case Kind.READY:
                self.waited_seconds += event.waited_seconds
            case Kind.STOPPED:
                self.stopped += 1
                self.running_seconds += event.running_seconds or 0.0
            case Kind.STOP_FAILED | Kind.CREATE_UNKNOWN:
                self.doubtful.append(event)
            case Kind.STATUS:
                pass

    def lines(self) -> Iterator[str]:
        """Yield the receipt, nothing when no session was asked for and nothing went wrong."""
        if not (self.created or self.doubtful or self.blamed):
            return
        unknown = sum(event.kind is Kind.CREATE_UNKNOWN for event in self.doubtful)
        yield (
            f"sessions: created {self.created}, proven stopped {self.stopped}, unknown {unknown}; "
            f"device time {_time(self.running_seconds)}, waited {_time(self.waited_seconds)}"
        )
        yield from filter(None, map(line_of, self.doubtful))
        for verdict, test, message in self.blamed:
            yield f"{verdict}: {test}: {message}"


def _time(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 60 else f"{seconds / 60:.1f} min"  # noqa: PLR2004
