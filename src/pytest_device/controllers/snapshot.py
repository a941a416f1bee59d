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
    """A node's bounds, in the device's points."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Node:
    """One node. ``ref`` is valid until the next action; ``more`` has the daemon's other fields."""

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
    def from_wire(cls, given: Mapping[str, Any]) -> Self:
        return cls(
            ref=str(given.get("ref", "")).removeprefix("@"),
            role=str(given.get("role") or given.get("type") or ""),
            label=str(given.get("label") or ""),
            value=str(given.get("value") or ""),
            identifier=str(given.get("identifier") or ""),
            enabled=given.get("enabled") is not False,
            focused=given.get("focused") is True,
            selected=given.get("selected") is True,
            depth=given["depth"] if isinstance(given.get("depth"), int) else 0,
            rect=_rect(given.get("rect")),
            more={name: value for name, value in given.items() if name not in _FIELDS},
        )

    def __str__(self) -> str:
        words = [f"{'  ' * self.depth}@{self.ref} [{self.role}]"]
        words += [f'"{self.label}"'] if self.label else []
        words += [f"value={self.value!r}"] if self.value else []
        words += [f"id={self.identifier}"] if self.identifier else []
        states = {
            "disabled": not self.enabled,
            "focused": self.focused,
            "selected": self.selected,
        }
        return " ".join([*words, *(name for name, holds in states.items() if holds)])


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The nodes on the screen. ``is_truncated``: there were more than the daemon returned."""

    nodes: tuple[Node, ...]
    is_truncated: bool = False
    more: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)

    @classmethod
    def from_wire(cls, given: Mapping[str, Any]) -> Self:
        nodes = (
            cast("list[object]", given["nodes"])
            if isinstance(given.get("nodes"), list)
            else []
        )
        return cls(
            nodes=tuple(
                Node.from_wire(cast("Mapping[str, Any]", node))
                for node in nodes
                if isinstance(node, dict)
            ),
            is_truncated=given.get("truncated") is True,
            more={
                name: value
                for name, value in given.items()
                if name not in {"nodes", "truncated"}
            },
        )

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def __str__(self) -> str:
        return "\n".join(map(str, self.nodes))

    def labels(self, role: str | None = None) -> list[str]:
        """Return the labels of all nodes, or of those with a role."""
        return [
            node.label
            for node in self.nodes
            if node.label and role in {None, node.role}
        ]

    def node(self, label: str, *, role: str | None = None) -> Node:
        """Return the first node with a label, and a role if given; raise LookupError, which shows all nodes."""
        for node in self.nodes:
            if node.label == label and role in {None, node.role}:
                return node
        raise LookupError(
            f"no node with the label {label!r}{f' and role {role!r}' if role else ''} among\n{self}"
        )


def _rect(given: object) -> Rect | None:
    match given:
        case {
            "x": int() | float() as x,
            "y": int() | float() as y,
            "width": int() | float() as width,
            "height": int() | float() as height,
        }:
            return Rect(x, y, width, height)
        case _:
            return None
