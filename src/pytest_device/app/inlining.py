"""Environment variable reads in source files, and which of them the bundler inlines."""

import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias, cast

from pytest_device.app.vendor import VendorProfile, profile_of
from pytest_device.errors import ConfigError
from pytest_device.spec import VENDOR

if TYPE_CHECKING:
    from tree_sitter import Node, Tree

Kind: TypeAlias = Literal["inlined", "undefined", "kept"]

INSTALL: Final = "pip install 'pytest-device[app]'"

LIMIT_SECONDS: Final = 5.0
"""Limit of the time that parsing a source takes of the processor, in seconds."""

_PIECE: Final = 65_536
_NOT_ASCII: Final = re.compile(r"[^\x00-\x7f]")
_OTHER_MARK: Final = re.compile(r"[?!(\[]")
"""What an expression that the bundler inlines has not."""
_KEYS: Final = ("property_identifier", "shorthand_property_identifier_pattern")
_FIELDS: Final = {
    "object": ("property", "index"),
    "value": ("name", "pattern"),
    "right": ("left",),
}
"""What reads a value of each role: a member, a declaration or parameter, an assignment."""
_WRAPPERS: Final = (
    "as_expression",
    "non_null_expression",
    "parenthesized_expression",
    "satisfies_expression",
)
_ASSIGNED: Final = (
    ("assignment_expression", "left"),
    ("augmented_assignment_expression", "left"),
    ("update_expression", "argument"),
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


def can_parse() -> bool:
    """Return whether the parser, which is in the extra ``app``, is installed."""
    return find_spec("tree_sitter_typescript") is not None


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

    Only ``process.env.NAME`` is inlined; brackets, optional chaining, destructuring and assignments are not. Raises
    ConfigError for a source that takes too long to parse, and without the parser, which is in the extra ``app``.

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

    reads: list[EnvRead] = []
    for read in _reads(source):
        kind, value = rules.outcome(read)
        row, column = read.node.start_point
        expression = source[read.node.start_byte : read.node.end_byte]
        reads.append(EnvRead(expression, read.name, row + 1, column + 1, kind, value))

    return reads


class _Read(NamedTuple):
    """A read; ``is_plain`` if written as ``process.env.NAME``, the only form that is inlined."""

    node: "Node"
    name: str
    is_plain: bool = False


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
        if not read.is_plain or not (is_base_url or is_public):
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


def _reads(source: str) -> Iterator[_Read]:
    """Yield the reads of the environment, in the order of the source."""
    for path in _processes(_tree(source)):
        outwards = reversed(path)
        role, process = next(outwards)
        outer_role, outer = next(outwards)
        if "env" not in _names(role, outer, source):
            continue
        if outer.type != "member_expression":
            yield _Read(process, "")
            continue

        environment, role = outer, outer_role
        outer_role, outer = next(outwards)
        while outer.type in _WRAPPERS:
            role = outer_role
            outer_role, outer = next(outwards)

        names = _names(role, outer, source) or [""]
        if role != "object":
            yield from (_Read(environment, name) for name in names)
            continue

        # The bundler leaves assignments to variables alone, also "||=" and "++".
        is_assigned = (next(outwards)[1].type, outer_role) in _ASSIGNED
        is_chain = _OTHER_MARK.search(source, outer.start_byte, outer.end_byte)
        yield _Read(outer, names[0], not (is_assigned or is_chain))


def _tree(source: str) -> "Tree":
    """Parse a source, with elements or with type assertions in angle brackets, which exclude each other."""
    if not can_parse():
        raise ConfigError(f"source files need a parser: {INSTALL}")

    import tree_sitter_typescript as grammars
    from tree_sitter import Language, Parser

    # The parser counts bytes: one for each character.
    text = _NOT_ASCII.sub(lambda found: " " if found[0].isspace() else "x", source)
    content = text.encode()
    # It takes quadratic time for some mistakes.
    latest = time.thread_time() + LIMIT_SECONDS
    try:
        trees = [
            Parser(Language(grammar())).parse(
                lambda offset, _: content[offset : offset + _PIECE],
                progress_callback=lambda *_: time.thread_time() > latest,
            )
            for grammar in (grammars.language_tsx, grammars.language_typescript)
        ]
    except ValueError:
        raise ConfigError(f"needs more than {LIMIT_SECONDS:g} s to parse") from None

    return min(trees, key=lambda tree: tree.root_node.has_error)


def _processes(tree: "Tree") -> "Iterator[list[tuple[str, Node]]]":
    """Yield the path to each variable ``process``: nodes from the root, each with its role in the one before.

    A query takes minutes for what is nested deeply.
    """
    cursor = tree.walk()
    path: list[tuple[str, Node]] = []
    is_inside = True
    while is_inside:
        node = cast("Node", cursor.node)
        path.append((cursor.field_name or "", node))
        if node.type == "identifier" and node.text == b"process":
            yield path

        # Types are not in the bundle.
        if node.type != "type_query" and cursor.goto_first_child():
            continue
        path.pop()
        while is_inside and not cursor.goto_next_sibling():
            is_inside = cursor.goto_parent()
            del path[-1:]


def _names(role: str, outer: "Node", source: str) -> list[str]:
    """Return the names that an outer node reads of a value with a role in it, empty for those known only at run time."""
    keys: list[Node | None] = []
    for part in _FIELDS.get(role, ()):
        target = outer.child_by_field_name(part)
        if role == "object":
            keys.append(target)
        elif target and target.type == "object_pattern":
            keys += [
                member.child_by_field_name("key")
                or member.child_by_field_name("left")
                or member
                for member in target.named_children
            ]

    return [_name(key, source) for key in keys if key and key.type != "comment"]


def _name(key: "Node", source: str) -> str:
    text = source[key.start_byte : key.end_byte]
    if key.type == "string":
        return text[1:-1]

    return text if key.type in _KEYS else ""
