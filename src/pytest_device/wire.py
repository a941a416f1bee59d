"""Typed messages between processes: named tuples, one line of JSON each.

Standard library only, and little of it, since the reaper loads this module.
"""

import json
from collections.abc import Iterable
from enum import EnumType
from types import UnionType
from typing import Any, cast, get_args, get_origin


class MessageError(ValueError):
    """A line that is not a valid message here: the two ends have different versions."""


class Codec:
    """Writes and reads messages of these types, all of them named tuples.

    A field is text, a number, a boolean, bytes, None, a member of an enum, a tuple of
    these, a message, or a union in which at most one type is written as text.
    """

    def __init__(self, types: Iterable[Any]) -> None:
        self._types: dict[str, Any] = {kind.__name__: kind for kind in types}

    def encode(self, message: Any) -> bytes:
        """Return a message as one line, with its end."""
        return json.dumps(self._to_json(message)).encode() + b"\n"

    def decode(self, line: bytes, kinds: Any) -> Any:
        """Return the message of a line.

        Raises MessageError if it is no message, or not one of ``kinds``.
        """
        try:
            message = self._from_json(json.loads(line))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise MessageError(
                f"not a message: {type(error).__name__}: {error}"
            ) from None

        if not isinstance(message, get_args(kinds) or kinds):
            raise MessageError(
                f"a message of type {type(message).__name__} is not expected here"
            )

        return message

    def _to_json(self, message: Any) -> dict[str, Any]:
        fields = message._asdict()

        for name, value in fields.items():
            if isinstance(value, bytes):
                fields[name] = value.decode("latin-1")
            elif hasattr(value, "_asdict"):
                fields[name] = self._to_json(value)

        return {"type": type(message).__name__, **fields}

    def _from_json(self, values: dict[str, Any]) -> Any:
        kind = self._types[values.pop("type")]
        types: dict[str, Any] = kind.__annotations__

        if values.keys() != types.keys():
            raise ValueError(
                f"{kind.__name__} with the fields {', '.join(sorted(values))}"
            )

        return kind(
            **{name: self._typed(name, values[name], types[name]) for name in types}
        )

    def _typed(self, name: str, value: Any, kind: Any) -> Any:
        """Convert a field's value to its type: JSON has no bytes, enums, tuples or messages."""
        choices = get_args(kind) if isinstance(kind, UnionType) else (kind,)
        kinds = tuple(get_origin(choice) or choice for choice in choices)

        typed = self._converted(value, kinds)
        if not isinstance(typed, kinds):
            # Its value may be a secret.
            raise TypeError(f"{name}: {type(typed).__name__}")

        return typed

    def _converted(self, value: Any, kinds: tuple[Any, ...]) -> Any:
        if isinstance(value, dict):
            return self._from_json(cast("dict[str, Any]", value))
        if isinstance(value, list):
            return tuple(cast("list[object]", value))
        if isinstance(value, str):
            if bytes in kinds:
                return value.encode("latin-1")

            # A union has one enum at most, and no other text.
            for kind in kinds:
                if isinstance(kind, EnumType):
                    return kind(value)

        return value
