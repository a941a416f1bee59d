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

    >>> inlined_public("fetch(process.env.VENDOR_PUBLIC_API)", {"VENDOR_PUBLIC_API": "/v1"})
    [EnvRead(expression='process.env.VENDOR_PUBLIC_API', name='VENDOR_PUBLIC_API', line=1, column=7, kind='inlined')]
    """
    if "process" not in source:
        return []

    rules = _Rules(
        profile_of(vendor),
        values,
        mode,
        kept_on_server=server or node_module,
        base_url=base_url,
    )
    line_starts = [0, *(newline.end() for newline in re.finditer("\n", source))]
    tokens = tuple(Scanner(source).tokens())

    reads: list[EnvRead] = []
    for read in _reads(tokens):
        kind, value = rules.outcome(read)
        line = bisect.bisect_right(line_starts, read.start)
        column = read.start - line_starts[line - 1] + 1
        expression = source[read.start : read.end]
        reads.append(EnvRead(expression, read.name, line, column, kind, value))

    return reads


@dataclass(frozen=True, slots=True)
class _Read:
    """A read between two offsets; ``plain`` if written as ``process.env.NAME``, the only form that is inlined."""

    start: int
    end: int
    name: str
    plain: bool = False


@dataclass(frozen=True, slots=True)
class _Rules:
    """What the bundler does with a read, in one mode and kind of file."""

    vendor: VendorProfile
    values: Mapping[str, str]
    mode: str
    kept_on_server: bool
    """Whether the file is a package's, or runs on a server, where variables are read at run time."""
    base_url: str

    def outcome(self, read: _Read) -> tuple[Kind, str | None]:
        """Return what becomes of a read and, if it is inlined, the value."""
        is_base_url = read.name == self.vendor.variable("BASE_URL")
        is_public = read.name.startswith(self.vendor.public_prefix)
        if not read.plain or not (is_base_url or is_public):
            return "kept", None
        if self.mode == "test":
            return "undefined", None
        if is_base_url:
            return "inlined", self.base_url

        switch = self.values.get(self.vendor.variable("NO_CLIENT_ENV_VARS"), "")
        is_off = switch.lower() in _ON
        # In development, the running bundler provides the variables.
        if self.kept_on_server or is_off or self.mode != "production":
            return "kept", None

        value = self.values.get(read.name)
        if value is None:
            return "undefined", None

        return "inlined", value


def _reads(tokens: Sequence[Token]) -> Iterator[_Read]:
    """Yield the reads of the environment, in the order of the source."""
    for index, token in enumerate(tokens):
        if token.kind != "name" or token.text != "process":
            continue
        # A member of another object, such as worker.process.
        if _text(tokens, index - 1) in (".", "?."):
            continue

        mark = _text(tokens, index + 1)
        if mark in (".", "?.") and _text(tokens, index + 2) == "env":
            yield from _reads_of_environment(tokens, index, plain=mark == ".")
        elif _gets_environment(tokens, index):
            yield _Read(token.offset, _end(token), "")


def _gets_environment(tokens: Sequence[Token], index: int) -> bool:
    """Return whether the ``process`` at an index is destructured or read with brackets to get its environment."""
    following = _text(tokens, index + 1)
    if following == "[":
        return _text(tokens, index + 2) in ("'env'", '"env"')
    if following == "." or not _is_destructured(tokens, index):
        return False

    return "env" in _destructured(tokens, index - 3)


def _is_destructured(tokens: Sequence[Token], index: int) -> bool:
    """Return whether the value at an index is assigned to a pattern, as in ``{env} = process``."""
    return _text(tokens, index - 2) == "}" and _text(tokens, index - 1) == "="


def _text(tokens: Sequence[Token], index: int) -> str:
    """Return the text of a token, empty before the first one and after the last one."""
    if 0 <= index < len(tokens):
        return tokens[index].text

    return ""


def _end(token: Token) -> int:
    return token.offset + len(token.text)


def _reads_of_environment(
    tokens: Sequence[Token], index: int, *, plain: bool
) -> Iterator[_Read]:
    """Yield the reads of the ``process.env`` that starts at an index."""
    start = tokens[index].offset
    behind = index + 3
    mark = _text(tokens, behind)
    following = _text(tokens, behind + 1)

    if mark == "[":
        yield _bracketed(tokens, start, behind)
    elif mark == "?." and following == "[":
        yield _bracketed(tokens, start, behind + 1)
    elif mark in (".", "?.") and following not in ("[", ""):
        # The bundler leaves assignments to variables alone, also "||=" and "++".
        operator = "".join(_text(tokens, behind + step) for step in range(2, 6))
        is_plain = plain and mark == "." and not _ASSIGNMENT.match(operator)
        yield _Read(start, _end(tokens[behind + 1]), following, is_plain)
    elif _is_destructured(tokens, index):
        for name in _destructured(tokens, index - 3):
            yield _Read(start, _end(tokens[index + 2]), name)
    else:
        yield _Read(start, _end(tokens[index + 2]), "")


def _bracketed(tokens: Sequence[Token], start: int, opening: int) -> _Read:
    """Return the read with the brackets that open at an index; only a single string in them is a name."""
    depth = 0
    closing = opening
    for index in range(opening, min(opening + _LONGEST_INDEX, len(tokens))):
        if tokens[index].text == "[":
            depth += 1
        elif tokens[index].text == "]":
            depth -= 1
        if depth == 0:
            closing = index
            break

    name = ""
    if closing == opening + 2 and tokens[opening + 1].kind == "string":
        name = tokens[opening + 1].text[1:-1]

    return _Read(start, _end(tokens[closing]), name)


def _destructured(tokens: Sequence[Token], index: int) -> list[str]:
    """Return the names read by the destructuring pattern that ends before an index, empty for ``...rest``."""
    names: list[str] = []
    depth = 0
    end = max(index - _LONGEST_PATTERN, -1)
    while index > end:
        token = tokens[index]
        if token.text == "{":
            if depth == 0:
                break
            depth -= 1
        elif token.text == "}":
            depth += 1
        elif depth == 0 and token.text == "...":
            names.append("")
        # A name behind a colon is the variable, one behind a brace or comma is read.
        elif (
            depth == 0
            and token.kind == "name"
            and _text(tokens, index - 1) in ("{", ",")
        ):
            names.append(token.text)
        index -= 1

    names.reverse()

    return names or [""]
