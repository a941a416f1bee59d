"""The ``pytestmark`` of a package's ``__init__.py``, which pytest itself does not read."""

import sys
from typing import Final, cast

import pytest

_READ: Final = pytest.StashKey[bool]()


def adopt_package_marks(node: pytest.Item) -> None:
    """Give the packages of a test the device markers that their modules name, as classes and modules have theirs."""
    module_node = node.getparent(pytest.Module)
    if module_node is None or _READ in module_node.stash:
        return
    module_node.stash[_READ] = True
    name: str = getattr(module_node.obj, "__name__", "")  # a doctest in a text file is in no module
    for package in reversed([parent for parent in module_node.listchain() if isinstance(parent, pytest.Package)]):
        name = name.rpartition(".")[0]
        if _READ in package.stash:
            return  # with all those above it
        package.stash[_READ] = True
        marks: object = getattr(sys.modules.get(name), "pytestmark", [])
        for mark in cast("list[object]", marks if isinstance(marks, list) else [marks]):
            if isinstance(mark, pytest.MarkDecorator) and mark.name == "device":  # others don't belong to this plugin
                package.add_marker(mark)
