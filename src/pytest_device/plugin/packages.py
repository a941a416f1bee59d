"""Reads ``pytestmark`` from a package's ``__init__.py``, which pytest itself ignores."""

import sys
from typing import Final, cast

import pytest

_READ: Final = pytest.StashKey[bool]()


def adopt_package_marks(node: pytest.Item) -> None:
    """Add the device markers of a test's packages to their nodes, as pytest does for classes and modules."""
    module_node = node.getparent(pytest.Module)
    if module_node is None or _READ in module_node.stash:
        return
    module_node.stash[_READ] = True
    name: str = getattr(module_node.obj, "__name__", "")  # a doctest in a text file has no module
    for package in reversed([parent for parent in module_node.listchain() if isinstance(parent, pytest.Package)]):
        name = name.rpartition(".")[0]
        if _READ in package.stash:
            return  # its parents are done, too
        package.stash[_READ] = True
        marks: object = getattr(sys.modules.get(name), "pytestmark", [])
        for mark in cast("list[object]", marks if isinstance(marks, list) else [marks]):
            if isinstance(mark, pytest.MarkDecorator) and mark.name == "device":  # others are not ours
                package.add_marker(mark)
