"""The snapshot of a screen by agent-device: nodes of the accessibility tree."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self, cast

_FIELDS = frozenset(
    {
        "ref",
        "role",
        "type",
        "label",
        "value",
        "identifier",
        "enabled",
        "focused",
        "selected",
        "depth",
        "rect",
    }
)


@dataclass(frozen=True, slots=True)
class Rect:
    """A node's bounds, in the device's points.

    >>> Rect(16, 163, 380, 44).width
    380
    """

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Node:
    """A node of a snapshot.

    Attributes:
        ref: Its reference, valid until the next action.
        role: What it is, for example ``button``.
        label: Its accessible name.
        value: The text of an input.
        identifier: Its test ID.
        enabled: Whether it accepts actions.
        focused: Whether it has the keyboard's focus.
        selected: Whether it is selected or checked.
        depth: Its depth in the tree, from 0.
        rect: Its bounds, if the device reports them.
        more: The daemon's other fields.

    >>> print(Node("e2", "button", label="Add", enabled=False))
    @e2 [button] "Add" disabled
    """

    ref: str
    role: str
    label: str = ""
    value: str = ""
    identifier: str = ""
    enabled: bool = True
    focused: bool = False
    selected: bool = False
    depth: int = 0
    rect: Rect | None = None
    more: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)

    @classmethod
    def from_wire(cls, fields: Mapping[str, Any]) -> Self:
        depth = fields.get("depth")
        return cls(
            ref=str(fields.get("ref", "")).removeprefix("@"),
            role=str(fields.get("role") or fields.get("type") or ""),
            label=str(fields.get("label") or ""),
            value=str(fields.get("value") or ""),
            identifier=str(fields.get("identifier") or ""),
            enabled=fields.get("enabled") is not False,
            focused=fields.get("focused") is True,
            selected=fields.get("selected") is True,
            depth=depth if isinstance(depth, int) else 0,
            rect=_rect(fields.get("rect")),
            more={name: value for name, value in fields.items() if name not in _FIELDS},
        )

    def __str__(self) -> str:
        indent = "  " * self.depth
        words = [f"{indent}@{self.ref} [{self.role}]"]
        if self.label:
            words.append(f'"{self.label}"')
        if self.value:
            words.append(f"value={self.value!r}")
        if self.identifier:
            words.append(f"id={self.identifier}")
        if not self.enabled:
            words.append("disabled")
        if self.focused:
            words.append("focused")
        if self.selected:
            words.append("selected")

        return " ".join(words)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The nodes on the screen, in the order of the tree.

    Attributes:
        nodes: The nodes.
        is_truncated: Whether there were more than the daemon returned.
        more: The daemon's other fields.

    >>> snapshot = Snapshot((Node("e1", "textbox", label="Text"), Node("e2", "button", label="Add")))
    >>> print(snapshot)
    @e1 [textbox] "Text"
    @e2 [button] "Add"
    >>> [node.role for node in snapshot]
    ['textbox', 'button']
    """

    nodes: tuple[Node, ...]
    is_truncated: bool = False
    more: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)

    @classmethod
    def from_wire(cls, fields: Mapping[str, Any]) -> Self:
        listed = fields.get("nodes")
        items = cast("list[object]", listed) if isinstance(listed, list) else []
        nodes = [
            Node.from_wire(cast("Mapping[str, Any]", item))
            for item in items
            if isinstance(item, dict)
        ]
        more = {
            name: value
            for name, value in fields.items()
            if name not in ("nodes", "truncated")
        }
        return cls(tuple(nodes), fields.get("truncated") is True, more)

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def __str__(self) -> str:
        return "\n".join(map(str, self.nodes))

    def labels(self, role: str | None = None) -> list[str]:
        """Return the labels of all nodes, or of those with a role.

        >>> Snapshot((Node("e1", "textbox", label="Text"), Node("e2", "button", label="Add"))).labels("button")
        ['Add']
        """
        return [
            node.label
            for node in self.nodes
            if node.label and role in {None, node.role}
        ]

    def node(self, label: str, *, role: str | None = None) -> Node:
        """Return the first node with a label, and with a role if given.

        Raises:
            LookupError: There is none; the message shows all nodes.

        >>> Snapshot((Node("e2", "button", label="Add"),)).node("Add").ref
        'e2'
        >>> Snapshot((Node("e2", "button", label="Add"),)).node("Save")
        Traceback (most recent call last):
        LookupError: no node with the label 'Save' among
        @e2 [button] "Add"
        """
        for node in self.nodes:
            if node.label == label and role in {None, node.role}:
                return node

        with_role = f" and role {role!r}" if role else ""
        raise LookupError(f"no node with the label {label!r}{with_role} among\n{self}")


def _rect(bounds: object) -> Rect | None:
    match bounds:
        case {
            "x": int() | float() as x,
            "y": int() | float() as y,
            "width": int() | float() as width,
            "height": int() | float() as height,
        }:
            return Rect(x, y, width, height)
        case _:
            return None
