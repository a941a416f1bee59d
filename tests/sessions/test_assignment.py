"""The pool owns the assignments of its sessions; a test's view of them is in ``test_pool``."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest_device
from pytest_device.sessions.assignment import Assignment

SOURCE = Path(pytest_device.__file__).parent
POOL = {"sessions/pool.py", "sessions/roster.py", "sessions/background.py"}
"""The pool, and the parts that only it has."""
METHODS = {name for name in vars(Assignment) if not name.startswith("_")}


def test_only_the_pool_writes_the_assignment_of_a_session() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")}
    writers = {
        path.relative_to(SOURCE).as_posix()
        for path, text in texts.items()
        if "assignment" in text and any(_writes(ast.parse(text)))
    }

    assert writers == POOL


def _writes(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield calls of the methods of an ``assignment``, and writes of its attributes."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute):
            continue

        owner = node.value
        name = (
            owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
        )
        if name == "assignment" and (
            node.attr in METHODS or isinstance(node.ctx, ast.Store)
        ):
            yield node
