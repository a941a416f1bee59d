"""Each line of the document's part on project configuration has a test or a reason for having none."""

import ast
import json
from pathlib import Path
from typing import Any, Final

import pytest

from pytest_device.app.keys import KEYS
from tests.app.rows import DATA

pytestmark = pytest.mark.every_python

ROOT: Final = Path(__file__).parents[2]
LINES: Final = json.loads((DATA / "document.json").read_text())
PARTS: Final = {
    "App config": 0, "Package config": 0, "Bundler": 8, "Typed routes": 4, "Runtime version": 0, "Authentication": 0,
}  # fmt: skip
"""The tables and numbered lists, with the last number."""


@pytest.mark.parametrize("line", LINES, ids=lambda line: str(line["line"]))
def test_each_line_has_a_test_or_a_reason(line: Any) -> None:
    if "not_tested" in line:
        assert line["not_tested"]
        return
    path, _, name = line["test"].partition("::")
    tree = ast.parse((ROOT / path).read_text())
    assert name in {
        node.name for node in tree.body if isinstance(node, ast.FunctionDef)
    }


@pytest.mark.parametrize("part", PARTS)
def test_no_number_in_a_list_is_missing(part: str) -> None:
    mine = [
        line["line"].partition(":")[0]
        for line in LINES
        if line["line"].startswith(part)
    ]
    assert mine
    numbers = {
        int(one.removeprefix(part))
        for one in mine
        if one.removeprefix(part).strip().isdecimal()
    }
    assert set(range(1, PARTS[part] + 1)) <= numbers


def test_each_key_has_a_row_of_values() -> None:
    sections = {".".join(key.trail[:-1]) for key in KEYS.values()}
    listed = {row["key"] for row in json.loads((DATA / "keys.json").read_text())}
    ours = {
        "ios.version",
        "ios.runtimeVersion",
        "ios.runtimeVersion.policy",
        "ios.entitlements",
    }
    """Known from elsewhere in the document, or from the reference cases."""
    of_web = {key for key in KEYS if key.startswith("web.config.")}
    """Typed in an object of any name: `test_keys` has their values."""
    assert (
        KEYS.keys()
        - listed
        - sections
        - ours
        - {"ios.icon.light", "ios.icon.dark", "ios.icon.tinted"}
        - of_web
        == set()
    )
