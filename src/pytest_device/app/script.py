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
_BEFORE_VALUES: Final = frozenset((
    "await", "case", "default", "delete", "do", "else", "in", "instanceof",
    "new", "of", "return", "throw", "typeof", "void", "yield",
))  # fmt: skip
"""Keywords before a value: a slash behind them starts a regular expression, behind another name it divides."""

_PATTERNS: Final = {"`": _TEMPLATE, "<": _TAG, ">": _TEXT, "/": _TAG}
"""What ends the text of an open construct: a template, a tag, the text within an element, a closing tag."""


class Scanner:
    """Scanner for one source file; a stack of open constructs determines how the next character is read."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._open: list[str] = []
        """Open constructs: "{" for code, or a key of `_PATTERNS`."""
        self._last = Token("mark", "", 0)
        self._last_closing = {
            match[1]: match.start() for match in _CLOSING.finditer(source)
        }
        """Offset of the last closing tag of each element."""

    def tokens(self) -> Iterator[Token]:
        """Yield the tokens of the code, without blanks and comments."""
        offset = 0
        while offset < len(self._source):
            construct = self._open[-1] if self._open else "{"
            if construct != "{":
                offset = self._after_text(construct, offset)
                continue

            kind, end = self._code(offset)
            if kind != "blank":
                self._last = Token(kind, self._source[offset:end], offset)
                yield self._last
            offset = end

    def _code(self, offset: int) -> tuple[str, int]:
        """Return the kind and end offset of the next code token."""
        mark = self._source[offset]

        if mark == "/" and not self._follows_value():
            limit = offset + _LONGEST_EXPRESSION
            expression = _EXPRESSION.match(self._source, offset, limit)
            if expression:
                return "value", expression.end()

        if mark == "<" and not self._follows_value() and self._is_element(offset):
            self._open.append("<")
            return "mark", offset + 1

        if mark in ("`", "{"):
            self._open.append(mark)
        elif mark == "}" and self._open:
            self._open.pop()

        token = _CODE.match(self._source, offset)
        if token is None:
            return "mark", offset + 1

        return token.lastgroup or "mark", token.end()

    def _follows_value(self) -> bool:
        """Return whether the next token is an operator rather than a regular expression or an element."""
        if self._last.kind == "name":
            return self._last.text not in _BEFORE_VALUES
        if self._last.kind == "mark":
            return self._last.text in (")", "]", "}")

        return True

    def _is_element(self, offset: int) -> bool:
        """Return whether a ``<`` opens an element rather than type parameters."""
        opening = _OPENING.match(self._source, offset)
        if opening is None:
            return False

        ending = opening[2]
        if ending != ">":
            # "<Name/>", or "<Name" with an attribute: type parameters have neither.
            return True

        # "<Name>" may be either, but only an element is closed.
        return self._last_closing.get(opening[1], -1) > offset

    def _after_text(self, construct: str, offset: int) -> int:
        """Skip the text of a template, tag or element, and return the offset of what follows."""
        text = _PATTERNS[construct].match(self._source, offset)
        if text is None:
            return len(self._source)

        self._end_text(construct, text[1])

        return text.end()

    def _end_text(self, construct: str, mark: str) -> None:
        """Update the open constructs: the text of the innermost one ended with a mark."""
        if mark in ("{", "${"):
            self._open.append("{")
        elif construct == ">":
            self._open.append("/" if mark == "</" else "<")
        elif construct == "<" and mark == ">":
            self._open[-1] = ">"
        else:
            self._open.pop()
            # A closing tag ends its element, too.
            if construct == "/" and self._open:
                self._open.pop()
            self._last = Token("value", "", 0)
