"""Durations of sessions, from test durations in earlier runs."""

from collections.abc import Mapping

import pytest

from pytest_device import SessionRequest
from pytest_device.scheduling.sizing import DeviceUsage, needed_minutes, sized
from pytest_device.sessions.request import DeviceRequirement

APP = "11111111-2222-4333-8444-555555555555"


@pytest.mark.parametrize(
    ("seconds", "minutes", "limit", "needed"),
    [
        (None, 2, 30, 2),
        (10, 2, 30, 2),
        (96, 2, 30, 2),
        (97, 2, 30, 3),  # with a quarter more
        (480, 2, 30, 10),
        (480, 12, 30, 12),
        (3600, 2, 30, 29),  # what a new session has
        (3600, 30, 30, 30),
        (480, 1, 1, 1),
    ],
)
def test_the_required_remaining_time_follows_from_known_durations(
    seconds: float | None, minutes: int, limit: int, needed: int
) -> None:
    assert needed_minutes(seconds, minutes, limit) == needed


def requirement(
    platform: str = "ios", minutes: int = 2, limit: int = 30, idle: int | None = 10
) -> DeviceRequirement:
    request = SessionRequest.from_arguments(
        app_id=APP,
        platform=platform,
        max_duration_minutes=limit,
        max_idle_time_minutes=idle,
    )
    return DeviceRequirement(request, "run", minutes)


def duration(known: Mapping[str, float], *usages: DeviceUsage) -> int | None:
    """Return the size of the only requirement."""
    (request,) = sized(usages, known.get, unknown_minutes=2).values()
    return request.max_duration_minutes


def test_a_session_is_requested_for_the_duration_of_its_tests_plus_a_margin() -> None:
    usages = [
        DeviceUsage("test_a", requirement(), is_fixed=False),
        DeviceUsage("test_b", requirement(), is_fixed=False),
    ]

    # 3 minutes with the margin, and 2 left for the last.
    assert duration({"test_a": 120, "test_b": 24}, *usages) == 5
    assert duration({"test_a": 120, "test_b": 25}, *usages) == 10
    assert duration({"test_a": 120}, *usages) == 10  # 4 minutes
    assert duration({"test_a": 9000}, *usages) == 30


def test_the_longest_test_has_the_time_it_needs() -> None:
    assert (
        duration(
            {"test": 60}, DeviceUsage("test", requirement(minutes=9), is_fixed=False)
        )
        == 15
    )


def test_without_earlier_runs_nothing_is_sized() -> None:
    known: dict[str, float] = {}

    assert (
        sized(
            [DeviceUsage("test", requirement(), is_fixed=False)],
            known.get,
            unknown_minutes=2,
        )
        == {}
    )


def test_an_explicit_duration_applies_to_all_tests_that_share_the_session() -> None:
    usages = [
        DeviceUsage("test_a", requirement(), is_fixed=False),
        DeviceUsage("test_b", requirement(), is_fixed=True),
    ]

    assert sized(usages, {"test_a": 1, "test_b": 1}.get, unknown_minutes=2) == {}


@pytest.mark.parametrize(("idle", "left"), [(10, 4), (3, 3), (None, None)])
def test_the_idle_limit_stays_below_the_duration(
    idle: int | None, left: int | None
) -> None:
    (request,) = sized(
        [DeviceUsage("test", requirement(idle=idle), is_fixed=False)],
        {"test": 1}.get,
        unknown_minutes=2,
    ).values()

    assert (request.max_duration_minutes, request.max_idle_time_minutes) == (5, left)
