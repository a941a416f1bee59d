"""Tokenizer for JavaScript and TypeScript with JSX, just precise enough to distinguish code from text. No I/O."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple


class Token(NamedTuple):
    """A token; ``kind`` is ``name``, ``string``, ``mark``, or ``value`` for a number, template, regex or element."""

    kind: str
    text: str
    offset: int


_CODE: Final = re.compile(
    r"""(?P<blank>\s++|//[^\n]*+|/\*(?:.*?\*/|.*+)|\#![^\n]*+)
    |(?P<string>"(?:[^"\\\n]++|\\.)*"?|'(?:[^'\\\n]++|\\.)*'?)
    |(?P<value>\.?\d[\w.]*+)
    |(?P<name>[\w$]++)
    |(?P<mark>\?\.(?!\d)|=>|\.\.\.|[=!]==?|[<>]=|\+\+|--|.)""",
    re.VERBOSE | re.DOTALL,
)
_EXPRESSION: Final = re.compile(r"/(?:[^/\\\n\[]++|\\.|\[(?:[^\]\\\n]++|\\.)*\])+/\w*+")
_LONGEST_EXPRESSION: Final = 2_000
"""Maximum length of a regular expression; searching from each slash of a long line would be quadratic."""
_TEMPLATE: Final = re.compile(r"(?:[^`\\$]++|\\.|\$(?!\{))*(`|\$\{|\Z)", re.DOTALL)
_TAG: Final = re.compile(
    r"""(?:[^"'{>/]++|/(?!>)|"[^"]*+"?|'[^']*+'?)*(\{|/>|>|\Z)""", re.DOTALL
)
_TEXT: Final = re.compile(r"[^<{]*+(\{|</|<|\Z)", re.DOTALL)
_CLOSING: Final = re.compile(r"</\s*+([\w$.:-]*+)\s*+>")
_OPENING: Final = re.compile(r"<([\w$.:-]*+)[^<>{}()=;]*?(/?>)|<([\w$.:-]++)[\s/]")
_BEFORE_EXPRESSIONS: Final = frozenset(
    (
        *(
            "return",
            "typeof",
            "case",
            "in",
            "of",
            "delete",
            "void",
            "throw",
            "new",
            "else",
            "do",
            "await",
            "yield",
        ),
        *("instanceof", "default"),
    )
)


class Scanner:
    """Scanner for one source file; a stack of open constructs determines how the next character is read."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._open: list[str] = []
        self._last = Token("mark", "", 0)
        self._closed = {found[1]: found.start() for found in _CLOSING.finditer(source)}

    def tokens(self) -> Iterator[Token]:
        offset = 0
        while offset < len(self._source):
            kind = self._open[-1] if self._open else "{"
            if kind == "{":
                found = self._code(offset)
                token = Token(found[0], self._source[offset : found[1]], offset)
                if token.kind != "blank":
                    self._last = token
                    yield token
                offset = found[1]
            else:
                offset = self._text(kind, offset)

    def _code(self, offset: int) -> tuple[str, int]:
        """Return the kind and end offset of the next code token."""
        sign = self._source[offset]
        if (
            sign == "/"
            and not self._after_value()
            and (
                found := _EXPRESSION.match(
                    self._source, offset, offset + _LONGEST_EXPRESSION
                )
            )
        ):
            return "value", found.end()
        if sign == "<" and not self._after_value() and self._is_element(offset):
            self._open.append("<")
            return "mark", offset + 1
        if sign == "`":
            self._open.append("`")
        elif sign == "{":
            self._open.append("{")
        elif sign == "}" and self._open:
            self._open.pop()
        token = _CODE.match(self._source, offset)
        return (
            (token.lastgroup or "mark", token.end()) if token else ("mark", offset + 1)
        )

    def _after_value(self) -> bool:
        """Return whether the next token is an operator rather than a regular expression or an element."""
        if self._last.kind == "name":
            return self._last.text not in _BEFORE_EXPRESSIONS
        return self._last.kind != "mark" or self._last.text in (")", "]", "}")

    def _is_element(self, offset: int) -> bool:
        """Return whether a ``<`` opens an element rather than type parameters."""
        found = _OPENING.match(self._source, offset)
        if not found:
            return False
        return (
            found[2] == "/>"
            or self._closed.get(found[1] or found[3] or "", -1) > offset
            or not found[2]
        )

    def _text(self, kind: str, offset: int) -> int:
        """Skip the text of a template, tag or element, and return the offset of what follows."""
        pattern = {"`": _TEMPLATE, "<": _TAG, ">": _TEXT, "/": _TAG}[kind]
        found = pattern.match(self._source, offset)
        if not found:
            return len(self._source)
        self._turn(kind, found[1])
        return found.end()

    def _turn(self, kind: str, mark: str) -> None:
        if mark in ("{", "${"):
            self._open.append("{")
        elif kind == ">":
            self._open.append("/" if mark == "</" else "<")
        elif kind == "<" and mark == ">":
            self._open[-1] = ">"
        else:
            del self._open[-2 if kind == "/" else -1 :]
            self._last = Token("value", "", 0)
