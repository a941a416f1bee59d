"""Durations of sessions, from test durations in earlier runs."""

import pytest

from pytest_device.scheduling.sizing import needed_minutes


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
