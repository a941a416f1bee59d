"""Every type, field and function of the document has its counterpart, and its place in the documentation."""

import json
import re
from dataclasses import fields
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, get_args

import pytest
from pydantic import ValidationError

from pytest_device import notifications
from pytest_device.notifications.content import InterruptionLevel
from pytest_device.notifications.triggers import Trigger
from pytest_device.spelling import in_camel_case
from tests.docs_pages import DOCS

pytestmark = pytest.mark.every_python

DATA: Final = Path(__file__).with_name("data")
NAMES: Final[dict[str, list[str]]] = json.loads(
    DATA.joinpath("document.json").read_text("utf-8")
)
FIELDS: Final[dict[str, str]] = json.loads(
    DATA.joinpath("fields.json").read_text("utf-8")
)


@pytest.mark.parametrize("name", NAMES)
def test_each_documented_name_has_a_row_and_a_counterpart(name: str) -> None:
    page = (DOCS / "notifications.md").read_text("utf-8")

    assert re.search(rf"`{name}`", page)
    for counterpart in NAMES[name]:
        assert attrgetter(counterpart)(notifications)


@pytest.mark.parametrize("name", FIELDS)
def test_each_documented_type_is_frozen_and_has_its_fields(name: str) -> None:
    kind: Any = getattr(notifications, name)
    is_model = issubclass(kind, Trigger)
    names = kind.model_fields if is_model else [one.name for one in fields(kind)]

    assert set(map(in_camel_case, names)) == set(FIELDS[name].split())
    assert is_model or kind.__dataclass_params__.frozen


def test_a_value_cannot_be_changed() -> None:
    trigger = notifications.DailyTrigger(hour=9, minute=0)
    with pytest.raises(ValidationError, match="frozen"):
        trigger.hour = 10


def test_all_documented_values_exist() -> None:
    assert list(notifications.IosAuthorizationStatus) == [
        "NOT_DETERMINED", "DENIED", "AUTHORIZED", "PROVISIONAL", "EPHEMERAL",
    ]  # fmt: skip
    assert get_args(InterruptionLevel) == (
        "passive",
        "active",
        "timeSensitive",
        "critical",
    )


def test_results_for_places_and_other_kinds_have_their_types() -> None:
    circle = notifications.CircularRegion("home", 52.2, 21.0, 100)
    located = notifications.LocationTrigger(region=circle)

    assert (located.type, located.region) == ("location", circle)
    assert (circle.type, notifications.BeaconRegion("door").type) == (
        "circular",
        "beacon",
    )
    assert notifications.UnknownTrigger().native()["type"] == "unknown"
    with pytest.raises(notifications.NotSpecified, match="have no trigger date"):
        notifications.next_trigger_date(
            located, datetime(2026, 1, 1, tzinfo=UTC), "UTC"
        )
