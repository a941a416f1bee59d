"""Environment variable reads in source files, and which of them the bundler inlines."""

import bisect
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from pytest_device.app.script import Scanner, Token
from pytest_device.app.vendor import VendorProfile, profile_of
from pytest_device.spec import VENDOR

Kind: TypeAlias = Literal["inlined", "undefined", "kept"]

_LONGEST_PATTERN: Final = 1_000
"""Maximum number of tokens scanned backwards in a destructuring pattern."""
_LONGEST_INDEX: Final = 50
"""Maximum number of tokens between brackets that a read's expression includes."""
_ASSIGNMENT: Final = re.compile(
    r"(?:\*\*|<<|>>>?|&&|\|\||\?\?|[-+*/%&|^])?=(?![=>])|\+\+|--"
)
_ON: Final = frozenset(("1", "true"))


@dataclass(frozen=True, slots=True)
class EnvRead:
    """A read of a variable; ``name`` is empty if computed at run time, ``value`` is set for inlined reads."""

    expression: str
    name: str
    line: int
    column: int
    kind: Kind
    value: str | None = field(default=None, repr=False)


def inlined_public(
    source: str,
    values: Mapping[str, str],
    *,
    mode: str = "production",
    server: bool = False,
    node_module: bool = False,
    base_url: str = "",
    vendor: VendorProfile | str = VENDOR,
) -> list[EnvRead]:
    """Return the reads of ``process.env``: ``inlined`` with the value, ``undefined`` or ``kept``.

    Only ``process.env.NAME`` is inlined; brackets, optional chaining, destructuring and assignments are not.
    """
    if "process" not in source:
        return []
    rules = _Rules(profile_of(vendor), values, mode, server or node_module, base_url)
    starts = [0, *(found.end() for found in re.finditer("\n", source))]
    reads: list[EnvRead] = []
    for read in _reads(tuple(Scanner(source).tokens())):
        line = bisect.bisect_right(starts, read.start)
        kind, value = rules.outcome(read)
        expression = source[read.start : read.end]
        reads.append(
            EnvRead(
                expression,
                read.name,
                line,
                read.start - starts[line - 1] + 1,
                kind,
                value,
            )
        )
    return reads


@dataclass(frozen=True, slots=True)
class _Read:
    start: int
    end: int
    name: str
    plain: bool = False


@dataclass(frozen=True, slots=True)
class _Rules:
    vendor: VendorProfile
    values: Mapping[str, str]
    mode: str
    elsewhere: bool
    base_url: str

    def outcome(self, read: _Read) -> tuple[Kind, str | None]:
        is_base = read.name == self.vendor.variable("BASE_URL")
        if not read.plain or not (
            is_base or read.name.startswith(self.vendor.public_prefix)
        ):
            return "kept", None
        if self.mode == "test":
            return "undefined", None
        if is_base:
            return "inlined", self.base_url
        turned_off = (
            self.values.get(self.vendor.variable("NO_CLIENT_ENV_VARS"), "").lower()
            in _ON
        )
        if self.elsewhere or turned_off or self.mode != "production":
            return "kept", None
        value = self.values.get(read.name)
        return ("undefined", None) if value is None else ("inlined", value)


def _reads(tokens: Sequence[Token]) -> Iterator[_Read]:
    for index, token in enumerate(tokens):
        if (
            token.text == "process"
            and token.kind == "name"
            and _text(tokens, index - 1) not in (".", "?.")
        ):
            following = [_text(tokens, index + step) for step in (1, 2)]
            if following[0] in (".", "?.") and following[1] == "env":
                yield from _of_environment(tokens, index, plain=following[0] == ".")
            elif _takes_environment(tokens, index):
                yield _Read(token.offset, _end(token), "")


def _takes_environment(tokens: Sequence[Token], index: int) -> bool:
    """Return whether the ``process`` at an index is taken apart or read with brackets to get its environment."""
    if _text(tokens, index + 1) == "[":
        return _text(tokens, index + 2) in ("'env'", '"env"')
    before = [_text(tokens, index - step) for step in (2, 1)]
    return (
        before == ["}", "="]
        and _text(tokens, index + 1) != "."
        and "env" in _taken_apart(tokens, index - 3)
    )


def _text(tokens: Sequence[Token], index: int) -> str:
    return tokens[index].text if 0 <= index < len(tokens) else ""


def _end(token: Token) -> int:
    return token.offset + len(token.text)


def _of_environment(
    tokens: Sequence[Token], index: int, *, plain: bool
) -> Iterator[_Read]:
    """Yield the reads of the ``process.env`` that starts at an index."""
    start, behind = tokens[index].offset, index + 3
    mark = _text(tokens, behind)
    if mark in (".", "?.") and _text(tokens, behind + 1) != "[":
        following = "".join(_text(tokens, behind + step) for step in range(2, 6))
        plain = plain and mark == "." and not _ASSIGNMENT.match(following)
        yield _Read(start, _end(tokens[behind + 1]), _text(tokens, behind + 1), plain)
    elif "[" in (mark, _text(tokens, behind + 1)) and mark in ("[", "?."):
        yield _bracketed(tokens, start, behind + (mark == "?."))
    elif _text(tokens, index - 1) == "=" and _text(tokens, index - 2) == "}":
        for name in _taken_apart(tokens, index - 3):
            yield _Read(start, _end(tokens[index + 2]), name)
    else:
        yield _Read(start, _end(tokens[index + 2]), "")


def _bracketed(tokens: Sequence[Token], start: int, opening: int) -> _Read:
    depth = 0
    closing = opening
    for index in range(opening, min(opening + _LONGEST_INDEX, len(tokens))):
        depth += (tokens[index].text == "[") - (tokens[index].text == "]")
        if depth == 0:
            closing = index
            break
    inner = tokens[opening + 1] if closing == opening + 2 else None
    name = inner.text[1:-1] if inner and inner.kind == "string" else ""
    return _Read(start, _end(tokens[closing]), name)


def _taken_apart(tokens: Sequence[Token], index: int) -> list[str]:
    """Return the names read by the destructuring pattern that ends before an index."""
    names: list[str] = []
    depth = 0
    end = max(index - _LONGEST_PATTERN, -1)
    while index > end and not (depth == 0 and tokens[index].text == "{"):
        depth += (tokens[index].text == "}") - (tokens[index].text == "{")
        if (
            depth == 0
            and tokens[index].kind == "name"
            and _text(tokens, index - 1) in ("{", ",")
        ):
            names.append(tokens[index].text)
        elif depth == 0 and tokens[index].text == "...":
            names.append("")
        index -= 1
    return names[::-1] or [""]
