"""Parser for environment files: assignments, quotes, comments and variable expansion. No I/O."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from pytest_device.errors import ConfigError

MAX_UNCLOSED: Final = 3
"""Maximum number of unclosed references; matching time grows exponentially with their number."""

_BLANK: Final = " \t"


@dataclass(frozen=True, slots=True)
class Assignment:
    name: str
    value: str
    line: int


def assignments(text: str) -> Iterator[Assignment]:
    """Yield the unexpanded assignments of a file; lines without ``=`` or with an empty name are skipped."""
    text = text.replace("\r", "")
    start = 0
    line = 1
    while start < len(text):
        end = _line_end(text, start)
        name = _name(text[start:end])
        if name:
            # A quoted value may end on another line.
            value, end = _value(text, text.index("=", start) + 1, end)
            yield Assignment(name, value, line)

        line += text.count("\n", start, end + 1)
        start = end + 1


def _line_end(text: str, start: int) -> int:
    end = text.find("\n", start)

    return len(text) if end < 0 else end


def _name(line: str) -> str:
    name, equals, _ = line.strip(_BLANK).partition("=")
    if not equals or name.startswith("#"):
        return ""

    return re.sub(rf"^export[{_BLANK}]+", "", name.strip(_BLANK))


def _value(text: str, start: int, end: int) -> tuple[str, int]:
    """Return the value that starts on a line, and the offset where its last line ends."""
    value = text[start:end].strip(_BLANK)
    if not value.startswith(('"', "'", "`")):
        return value.partition("#")[0].strip(_BLANK), end

    quote = value[0]
    opening = text.index(quote, start)
    closing = text.find(quote, opening + 1)
    if closing < 0:
        return value, end

    quoted = text[opening + 1 : closing]
    if quote == '"':
        quoted = quoted.replace("\\n", "\n")

    return quoted, _line_end(text, closing)


_NESTED: Final = r"\$\{(?:\$\{(?:\$\{[^}]*\}|[^}])*\}|[^}])*\}"
_REFERENCE: Final = re.compile(
    rf"""(?P<escaped>\\)?
    \$(?!\()                                        # a command's output is no reference
    \{{?(?P<name>[A-Za-z0-9_.]+)
    (?: :?- (?P<default>(?:{_NESTED}|[^}}])+) )?    # with up to three references within each other
    \}}?""",
    re.VERBOSE,
)


def expanded(parsed: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """Return the values with their references expanded: from the environment, else the files, else the default.

    Raises ConfigError for circular or unclosed references.
    """
    values = dict(parsed)
    # What a reference finds.
    referenced = dict(parsed)
    for name, value in parsed.items():
        own = environ.get(name)
        if own is None:
            text = _Expansion(referenced, environ).of(value, (name,))
            values[name] = text.replace("\\$", "$")
            referenced[name] = values[name]
        else:
            # As it is, also if it is empty or contains a $.
            values[name] = own
            # An empty variable hides its value in the files, but not from references.
            referenced[name] = own or value

    return values


def _unclosed(text: str) -> int:
    """Return the number of references left unclosed at the end of a string."""
    depth = 0
    for mark in re.findall(r"\$\{|\}", text):
        depth = max(depth - 1, 0) if mark == "}" else depth + 1

    return depth


@dataclass(frozen=True, slots=True)
class _Expansion:
    values: Mapping[str, str]
    environ: Mapping[str, str]

    def of(self, text: str, trail: tuple[str, ...]) -> str:
        """Return a string with its references expanded; ``trail`` lists the variables being expanded."""
        if _unclosed(text) > MAX_UNCLOSED:
            raise ConfigError(f"{trail[0]} has unclosed references: close each ${{")

        return _REFERENCE.sub(lambda match: self._replacement(match, trail), text)

    def _replacement(self, match: re.Match[str], trail: tuple[str, ...]) -> str:
        """Return the text for a reference: from the environment, else the files, else the default."""
        if match["escaped"]:
            return match[0].removeprefix("\\")

        name = match["name"]
        in_files = self.values.get(name)
        in_environment = self.environ.get(name)
        if in_environment:
            # Already expanded.
            if in_environment == in_files:
                return in_environment
            return self._of_variable(name, in_environment, trail)
        # A variable that refers to itself means that of the environment.
        if in_files and name != trail[-1]:
            return self._of_variable(name, in_files, trail)

        default = match["default"] or ""
        if default.startswith("$"):
            return self.of(default, (*trail, name))

        return default

    def _of_variable(self, name: str, value: str, trail: tuple[str, ...]) -> str:
        if name in trail:
            raise ConfigError(
                f"{' -> '.join((*trail, name))}: circular reference between variables"
            )

        return self.of(value, (*trail, name))
