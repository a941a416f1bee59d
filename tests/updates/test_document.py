"""Every name of the document's part on updates has its counterpart, and its place in the documentation."""

import json
import re
from dataclasses import fields
from operator import attrgetter
from typing import Any, Final, get_args

import pytest

from pytest_device import updates
from pytest_device.app.keys import KEYS
from pytest_device.updates import Code, Constants, UpdatesState
from pytest_device.updates.service import FailureKind
from tests.docs_pages import DOCS
from tests.updates.rows import DATA, SETTINGS

NAMES: Final[dict[str, Any]] = json.loads(
    (DATA / "document.json").read_text(encoding="utf-8")
)
PAGE: Final = (DOCS / "updates.md").read_text(encoding="utf-8")
SERVICE: Final = (DOCS / "update-service.md").read_text(encoding="utf-8")


def snake(name: str) -> str:
    return re.sub(r"[A-Z]", lambda found: f"_{found[0].lower()}", name)


@pytest.mark.parametrize("name", NAMES["operations"])
def test_each_documented_operation_has_a_counterpart(name: str) -> None:
    assert f"`{name}`" in PAGE
    assert callable(attrgetter(NAMES["operations"][name])(updates))


def test_constants_and_state_have_the_documented_names() -> None:
    for kind, names in (
        (Constants, NAMES["constants"]),
        (UpdatesState, NAMES["state"]),
    ):
        assert [one.name for one in fields(kind)] == [*map(snake, names), "extra"]
        assert [name for name in names if f"`{name}`" not in PAGE] == []


@pytest.mark.parametrize("name", NAMES["properties"])
def test_each_property_has_the_documented_default(name: str) -> None:
    assert getattr(SETTINGS, snake(name)) == NAMES["properties"][name]


def test_the_properties_are_listed_with_their_types_and_defaults() -> None:
    section = PAGE.split("\n## Settings\n")[1].split("\n## ")[0]
    rows = re.findall(
        r"^\| `(\w+)` \| (\w+) \| (?:`([^`]*)` )?\|", section, flags=re.MULTILINE
    )
    keys = {
        key.trail[1]: key
        for key in KEYS.values()
        if key.trail[0] == "updates" and len(key.trail) == 2
    }

    assert [name for name, _, _ in rows] == list(keys)
    for name, kind, default in rows:
        assert keys[name].kinds == (kind,)
        assert (json.loads(default) if default else None) == keys[name].default


def test_every_code_and_failure_is_on_the_page() -> None:
    codes = {*Code} - {Code.FAILED_BEFORE, Code.ROLLED_BACK}  # those of the model only

    assert [
        name
        for name in (*codes, *get_args(FailureKind))
        if f"`{name}`" not in PAGE + SERVICE
    ] == []
