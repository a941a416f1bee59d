"""Events as plain values, for JSON and between processes: what ``docs/events.md`` describes.

``VERSION`` grows with any change after which a reader of the former one would misunderstand.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final, TypeVar, cast, get_args

from pytest_device.sessions.events import Event, SessionRef

VERSION: Final = 1

_T = TypeVar("_T", bound="Event | SessionRef")

_WORDS: Final[Mapping[str, type[Event]]] = {
    "".join(f"-{sign.lower()}" if sign.isupper() else sign for sign in one.__name__).lstrip("-"): one
    for one in get_args(Event)
}
_WORD_OF: Final = {one: word for word, one in _WORDS.items()}


class EventFormatError(ValueError):
    """Plain values that are no event of this version."""


def to_plain(event: Event) -> dict[str, Any]:
    """Return plain values only: the version, the kind of event, its fields."""
    return {"version": VERSION, "event": _WORD_OF[type(event)], **_plain(event)}


def from_plain(values: Mapping[str, Any]) -> Event:
    """Return the event that ``to_plain`` was asked of; raises EventFormatError for anything else."""
    given = dict(values)
    if (version := given.pop("version", None)) != VERSION:
        raise EventFormatError(f"an event of version {version!r}: known is version {VERSION}")
    word = given.pop("event", None)
    if word not in _WORDS:
        raise EventFormatError(f"an event {word!r}: known are {', '.join(_WORDS)}")
    if isinstance(session := given.get("session"), Mapping):
        given["session"] = _built(SessionRef, cast("Mapping[str, Any]", session), "session")
    return _built(_WORDS[word], given, word)


def _plain(value: "Event | SessionRef") -> dict[str, Any]:
    plain = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(session := plain.get("session"), SessionRef):
        plain["session"] = _plain(session)
    return plain


def _built(kind: type[_T], values: Mapping[str, Any], word: str) -> _T:
    """Return a value of this kind; a field without a default has to be given."""
    types = {field.name: field.type for field in fields(kind)}
    for name, value in values.items():
        if name not in types:
            raise EventFormatError(f"{word}: {name!r} is no field of it: known are {', '.join(types)}")
        if not _fits(value, types[name]):
            raise EventFormatError(f"{word}: {name} cannot be {value!r}")
    try:
        return kind(**values)
    except TypeError as error:
        raise EventFormatError(f"{word}: {error}") from None


def _fits(value: object, wanted: Any) -> bool:
    """Return whether a value is of a field's type; JSON knows no difference between 4 and 4.0."""
    if isinstance(value, int) and not isinstance(value, bool) and isinstance(0.0, wanted):
        return True
    return isinstance(value, wanted) and not isinstance(value, bool)
