"""Events of sessions as values: one frozen type for each kind of event.

``Event`` is their union; end each ``match`` with ``assert_never``. docs/development/events.md shows their plain form.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Final,
    TypeVar,
    assert_never,
    cast,
    get_args,
)

from pytest_device.errors import ServiceError, SessionGoneError, StopDelayedError
from pytest_device.sessions.partial import is_same
from pytest_device.sessions.states import PROVEN, State
from pytest_device.spec import TERMINAL

if TYPE_CHECKING:
    # Loads pydantic, which reporting does not need.
    from pytest_device.sessions.models import (
        Session,
    )

VERSION: Final = 3
"""Incremented with each change that would make readers of an older version misread the plain form."""
_T = TypeVar("_T", bound="Event | SessionRef")


@dataclass(frozen=True, slots=True)
class SessionRef:
    """The session of an event, and the event's time. Holds no connection details.

    ``session_id`` and ``url`` are empty until the service has created the session. ``minutes`` is the maximum remaining
    running time. ``waited_seconds`` counts from the request in this process, ``late_seconds`` from the event. ``at`` is
    when the event happened, in seconds since the epoch by the clock of the process that reports it.
    """

    label: str
    session_id: str = ""
    url: str = ""
    minutes: int = 0
    waited_seconds: float = 0.0
    late_seconds: float | None = None
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class _OfSession:
    session: SessionRef


@dataclass(frozen=True, slots=True)
class Created(_OfSession):
    """The service created a session."""


@dataclass(frozen=True, slots=True)
class StateChanged(_OfSession):
    """A session that a test waits for changed its state, or its state was last reported long ago."""

    state: str


@dataclass(frozen=True, slots=True)
class Ready(_OfSession):
    """A session is ready for use.

    Sessions with the same ``boot_key`` boot equally long; ``boot_seconds`` is by the service's timestamps, or None.
    """

    device: str = ""
    boot_key: str = ""
    boot_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class StartFailed(_OfSession):
    """A session failed to start; ``attempt`` is the number of the attempt that replaces it, 0 if none does."""

    reason: str
    attempt: int = 0
    limit: int = 0


@dataclass(frozen=True, slots=True)
class Stopped(_OfSession):
    """The service reports that a session has ended, stopped or errored.

    ``running_seconds`` is this run's share of the running time by the service's timestamps. Where these do not say when
    it ended, it is None, and ``max_running_seconds`` is an upper bound, or None without one.
    """

    status: str
    running_seconds: float | None = None
    max_running_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Gone(_OfSession):
    """The service has returned 404 for a minute for a session that it knew."""

    status: ClassVar[str] = "the service no longer knows it"


@dataclass(frozen=True, slots=True)
class StopDelayed(_OfSession):
    """A session is not stopped yet; the stop is being retried."""

    reason: str


@dataclass(frozen=True, slots=True)
class StopFailed(_OfSession):
    """A session could not be stopped and may be running."""

    reason: str


@dataclass(frozen=True, slots=True)
class Kept(_OfSession):
    """A session was deliberately left running."""


@dataclass(frozen=True, slots=True)
class KeptWarm(_OfSession):
    """A session was kept warm for the next run, until a time of day.

    ``used_seconds`` is how long this process used it, or None if unknown.
    """

    until: str
    used_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class TakenOver(_OfSession):
    """A session that an earlier run kept warm now belongs to this run."""

    device: str = ""


@dataclass(frozen=True, slots=True)
class Attached(_OfSession):
    """Tests run on a session that already existed and will not be stopped."""


@dataclass(frozen=True, slots=True)
class Unused(_OfSession):
    """A prefetched session was never used by a test."""


@dataclass(frozen=True, slots=True)
class CreateUnknown(_OfSession):
    """The response to a create call was lost: a session with this name may be running, but cannot be looked up.

    ``awaited_until`` is the time of day until which the reaper waits for it, empty if the call has ended.
    """

    name: str
    awaited_until: str = ""


@dataclass(frozen=True, slots=True)
class Queued:
    """A test waited for a free slot."""

    waited_seconds: float


@dataclass(frozen=True, slots=True)
class Note:
    """A note on the whole run, or on a session that only an earlier run used."""

    text: str
    session_id: str = ""


StopEvent = Stopped | Gone | StopDelayed | StopFailed
"""Result of a stop call."""
StartEvent = Created | StateChanged | Ready | StartFailed | TakenOver | Attached
SessionEvent = StartEvent | StopEvent | Kept | KeptWarm | Unused | CreateUnknown
Event = SessionEvent | Queued | Note

_WORDS: Final[Mapping[str, type[Event]]] = {
    "".join(
        f"-{sign.lower()}" if sign.isupper() else sign for sign in kind.__name__
    ).lstrip("-"): kind
    for kind in get_args(Event)
}
_WORD_OF: Final = {kind: word for word, kind in _WORDS.items()}
_ENDS: Final[Mapping[type[Event], State]] = {
    Stopped: State.STOPPED,
    Gone: State.GONE,
    StopDelayed: State.DELAYED,
    StopFailed: State.REFUSED,
    CreateUnknown: State.UNKNOWN,
    Kept: State.KEPT,
    KeptWarm: State.WARM,
    Attached: State.ATTACHED,
}


def session_id_of(event: Event) -> str:
    """Return the ID of the event's session, empty if there is none."""
    of = event if isinstance(event, Note | Queued) else event.session
    return "" if isinstance(of, Queued) else of.session_id


def end_of(event: Event) -> State | None:
    """Return how the session ended by this event, None if it continues."""
    return _ENDS.get(type(event))


def is_proof(event: Event) -> bool:
    """Return whether an event proves that its session is no longer running."""
    return end_of(event) in PROVEN


def detail_of(event: Event) -> str:
    """Return the event's detail text, empty if it has none."""
    match event:
        case (
            StateChanged(state=text)
            | Ready(device=text)
            | TakenOver(device=text)
            | KeptWarm(until=text)
        ):
            return text
        case (
            StartFailed(reason=text)
            | StopDelayed(reason=text)
            | StopFailed(reason=text)
        ):
            return text
        case (
            CreateUnknown(name=text)
            | Note(text=text)
            | Stopped(status=text)
            | Gone(status=text)
        ):
            return text
        case Created() | Kept() | Attached() | Unused() | Queued():
            return ""
        case _:
            assert_never(event)


def late(event: Event, seconds: float) -> Event:
    """Return an event marked as reported ``seconds`` after it happened."""
    if isinstance(event, Queued | Note):
        return event
    return replace(event, session=replace(event.session, late_seconds=seconds))


def timed(event: Event, now: float) -> Event:
    """Return an event with the time at which it happened, if it is reported now, unless it has one."""
    if isinstance(event, Queued | Note) or event.session.at:
        return event
    at = now - (event.session.late_seconds or 0.0)
    return replace(event, session=replace(event.session, at=at))


def masked(event: Event, mask: Callable[[str], str]) -> Event:
    """Return an event with all texts masked that may hold secrets: all but ``session_id`` and ``boot_key``."""
    changes: dict[str, Any] = {
        field.name: mask(value)
        for field in fields(event)
        if isinstance(value := getattr(event, field.name), str)
        and field.name not in {"session_id", "boot_key"}
    }
    if not isinstance(event, Queued | Note):
        changes["session"] = replace(event.session, url=mask(event.session.url))

    return replace(event, **changes)


def stop_event(of: SessionRef, stop: Callable[[], "Session"]) -> StopEvent:
    """Make a stop call and return its result as an event."""
    try:
        return stop_event_of(of, stop())
    except ServiceError as error:
        return stop_event_of(of, error)


def stop_event_of(of: SessionRef, answer: "Session | ServiceError") -> StopEvent:
    """Return the event for the response to a stop call, or for its error."""
    match answer:
        case SessionGoneError():
            return Gone(of)
        case StopDelayedError():
            return StopDelayed(of, str(answer))
        case ServiceError():
            return StopFailed(of, str(answer))
        case _ if not is_same(str(answer.id), of.session_id):
            return StopFailed(of, f"the service returned session {answer.id}")
        case _ if answer.status not in TERMINAL:
            return StopFailed(of, f"its status is {answer.described_status}")
        case _:
            return Stopped(
                of,
                str(answer.status),
                answer.running_seconds,
                answer.max_running_seconds,
            )


class EventFormatError(ValueError):
    """Plain values that are not an event of this version."""


def to_plain(event: Event) -> dict[str, Any]:
    """Return an event as plain values: the version, the kind of event, its fields."""
    return {"version": VERSION, "event": _WORD_OF[type(event)], **asdict(event)}


def from_plain(values: Mapping[str, Any]) -> Event:
    """Return the event that ``to_plain`` converted; raises EventFormatError for anything else."""
    rest = dict(values)
    if (version := rest.pop("version", None)) != VERSION:
        raise EventFormatError(
            f"events of version {version!r} are not supported (only {VERSION})"
        )

    if (word := rest.pop("event", None)) not in _WORDS:
        raise EventFormatError(
            f"unknown event {word!r}: the events are {', '.join(_WORDS)}"
        )

    if isinstance(session := rest.get("session"), Mapping):
        rest["session"] = _built(
            SessionRef, cast("Mapping[str, Any]", session), "session"
        )

    return _built(_WORDS[word], rest, word)


def _built(kind: type[_T], values: Mapping[str, Any], word: str) -> _T:
    """Build a value of this kind; fields without a default are required."""
    types = {field.name: field.type for field in fields(kind)}

    for name, value in values.items():
        if name not in types:
            raise EventFormatError(
                f"{word}: unknown field {name!r}: the fields are {', '.join(types)}"
            )

        if not _fits(value, types[name]):
            raise EventFormatError(f"{word}: {name} cannot be {value!r}")

    try:
        return kind(**values)
    except TypeError as error:
        raise EventFormatError(f"{word}: {error}") from None


def _fits(value: object, field_type: Any) -> bool:
    """Return whether a value has a field's type; JSON does not distinguish 4 from 4.0."""
    is_number = isinstance(value, int) and isinstance(0.0, field_type)
    return not isinstance(value, bool) and (is_number or isinstance(value, field_type))
