"""JSON and JSON5 documents that keep the source position of each value."""

import bisect
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final, TypeAlias, TypeVar, cast

from pytest_device.app.files import read_text
from pytest_device.errors import ConfigError, ProjectError

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Object: TypeAlias = "dict[str, Json]"
Trail: TypeAlias = "tuple[str | int, ...]"
"""Path to a value: keys and indexes."""

MAX_BYTES: Final = 1024 * 1024
MAX_JSON5_LENGTH: Final = 64 * 1024
"""Maximum length of JSON5, in characters, which takes up to 5 s to parse."""

# An unterminated string or comment matches to the end of the file: searching from each quote would be quadratic.
_TOKEN: Final = re.compile(
    r"""(?P<blank>[\s\ufeff]++|//[^\n]*+|/\*(?:.*?\*/|.*+))
    |(?P<string>"(?:[^"\\]++|\\.)*"?|'(?:[^'\\]++|\\.)*'?)
    |(?P<mark>[\[\]{}:,])
    |(?P<word>[^\s\[\]{}:,"'/]++|.)""",
    re.VERBOSE | re.DOTALL,
)
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Position:
    """A line and a column, both 1-based."""

    line: int
    column: int


@dataclass(frozen=True)
class Document:
    """A parsed JSON or JSON5 file with its source text."""

    path: Path
    text: str = field(repr=False)
    value: Json = field(repr=False)

    @classmethod
    def read(cls, path: Path) -> "Document":
        """Read and parse a file. Raises FileNotFoundError, or ProjectError with the position of a syntax error."""
        text = read_text(path, MAX_BYTES)

        return cls(path, text, _parsed(text, path))

    @property
    def object(self) -> Object:
        """The top-level object. Raises ProjectError if the value is not an object."""
        if not isinstance(self.value, dict):
            raise ProjectError(
                "must be an object: { … }", path=self.path, line=1, column=1
            )

        return self.value

    def position(self, *trail: str | int) -> Position | None:
        """Return the position of a key or element, or None if the document doesn't contain it."""
        offset = self._offsets.get(trail)
        if offset is None:
            return None

        return self._lines.position(offset)

    def inside(self, *trail: str | int) -> int:
        """Return the offset just after the opening bracket of an existing array or object."""
        start = self._offsets[trail] if trail else 0
        marks = _marks(self.text, start)

        return next(offset + 1 for mark, offset in marks if mark in "[{")

    @cached_property
    def _lines(self) -> "Lines":
        return Lines(self.text)

    @property
    def duplicates(self) -> list[Trail]:
        """Paths of duplicate keys; the last value wins."""
        _offsets, duplicates = self._scan

        return duplicates

    @property
    def _offsets(self) -> "dict[Trail, int]":
        offsets, _duplicates = self._scan

        return offsets

    @cached_property
    def _scan(self) -> "tuple[dict[Trail, int], list[Trail]]":
        offsets: dict[Trail, int] = {}
        duplicates: dict[Trail, None] = {}
        for trail, offset in _trails(self.text):
            if trail in offsets:
                duplicates[trail] = None
            offsets[trail] = offset

        return offsets, list(duplicates)


@dataclass(frozen=True)
class Lines:
    """The lines of a text; ``position`` is fast for many offsets, since a file can have a hundred thousand findings."""

    text: str = field(repr=False)

    def position(self, offset: int) -> Position:
        """Return the line and column of an offset."""
        line = bisect.bisect_right(self._starts, offset)

        return Position(line, offset - self._starts[line - 1] + 1)

    @cached_property
    def _starts(self) -> "list[int]":
        return [0, *(match.end() for match in re.finditer("\n", self.text))]


def at(value: Json, *trail: str | int) -> Json:
    """Return the value at a path, or None if there is none."""
    for step in trail:
        if isinstance(step, str):
            value = value.get(step) if isinstance(value, dict) else None
        elif isinstance(value, list) and step < len(value):
            value = value[step]
        else:
            return None

    return value


def object_at(value: Json, *trail: str) -> Object:
    """Return the object at a path, or an empty one if there is none."""
    inner = at(value, *trail)

    return inner if isinstance(inner, dict) else {}


def text_at(value: Json, *trail: str) -> str | None:
    """Return the string at a path, or None if there is none."""
    inner = at(value, *trail)

    return inner if isinstance(inner, str) else None


def _parsed(text: str, path: Path) -> Json:
    """Parse a text as JSON, or else as JSON5, which takes much longer. Raises ProjectError."""
    if not text.strip():
        raise ProjectError(
            "is empty, must be an object: { … }", code="EJSONEMPTY", path=path
        )

    try:
        return cast("Json", json.loads(text))
    except json.JSONDecodeError as error:
        no_json_from = Position(error.lineno, error.colno)
    except ValueError:
        # An integer of more digits than Python converts.
        no_json_from = Position(0, 0)
    except RecursionError:
        raise _mistake("is nested too deeply", path, Position(0, 0)) from None

    return _parsed_json5(text, path, no_json_from)


def _parsed_json5(text: str, path: Path, no_json_from: Position) -> Json:
    """Parse a text as JSON5. Raises ProjectError, or ConfigError without the parser."""
    try:
        import json5
    except ImportError:
        raise ConfigError(
            f"{path}: JSON5 needs an extra: pip install 'pytest-device[app]'"
        ) from None

    if len(text) > MAX_JSON5_LENGTH:
        raise _mistake(
            f"is larger than {MAX_JSON5_LENGTH // 1024} kB and is not JSON",
            path,
            no_json_from,
        )

    try:
        return cast("Json", json5.loads(text))
    except ValueError as error:
        raise _explained(str(error), path, no_json_from) from None
    except RecursionError:
        raise _mistake("is nested too deeply", path, Position(0, 0)) from None


def _explained(problem: str, path: Path, no_json_from: Position) -> ProjectError:
    """Convert a JSON5 parser error, keeping its position but not the source text, which may contain secrets."""
    match = re.match(r"[^:]*+:(\d+) .*?column (\d+)", problem, re.DOTALL)
    position = Position(int(match[1]), int(match[2])) if match else no_json_from
    if "end of" in problem:
        return _mistake("ends unexpectedly", path, position)

    return _mistake("is not valid JSON or JSON5", path, position)


def _mistake(problem: str, path: Path, position: Position) -> ProjectError:
    return ProjectError(
        problem,
        code="EJSONPARSE",
        path=path,
        line=position.line,
        column=position.column,
    )


def _marks(text: str, start: int) -> Iterator[tuple[str, int]]:
    """Yield the punctuation marks outside of strings and comments, with their offsets."""
    for match in _TOKEN.finditer(text, start):
        if match.lastgroup == "mark":
            yield match[0], match.start()


def _trails(text: str) -> "Iterator[tuple[Trail, int]]":
    """Yield the path and offset of each key and element of a valid document."""
    trail: list[str | int] = []
    key = ""
    key_offset = 0
    is_element_next = False
    for match in _TOKEN.finditer(text):
        if match.lastgroup == "blank":
            continue

        offset = match.start()
        mark = match[0] if match.lastgroup == "mark" else ""
        if is_element_next and mark != "]":
            yield tuple(trail), offset
        if mark == ":":
            trail[-1] = key
            yield tuple(trail), key_offset
        if not mark:
            # A key, if a colon follows.
            key, key_offset = _unquoted(match[0]), offset

        is_element_next = _moved(trail, mark)


def _moved(trail: list[str | int], mark: str) -> bool:
    """Update the path for a punctuation mark, and return whether an array element follows it."""
    if mark == "[":
        trail.append(0)
        return True
    if mark == "{":
        trail.append("")
    elif mark in ("]", "}"):
        trail.pop()
    elif mark == "," and isinstance(trail[-1], int):
        trail[-1] += 1
        return True

    return False


def _unquoted(token: str) -> str:
    if token[0] not in "\"'":
        return token

    try:
        return cast("str", json.loads(f'"{token[1:-1]}"'))
    except ValueError:
        return token[1:-1]


def first(values: Iterable[_T | None]) -> _T | None:
    """Return the first value that is not None, or None."""
    for value in values:
        if value is not None:
            return value

    return None
