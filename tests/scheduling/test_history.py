"""Durations of tests and boots, remembered between runs."""

import json
from pathlib import Path

import pytest

from pytest_device.scheduling.history import History


class FakeCache:
    """The part of pytest's cache in use; values pass through JSON."""

    def __init__(self, **values: object) -> None:
        self.files = {
            f"device/{name}": json.dumps(value) for name, value in values.items()
        }

    def get(self, key: str, default: object) -> object:
        return json.loads(self.files[key]) if key in self.files else default

    def set(self, key: str, value: object) -> None:
        self.files[key] = json.dumps(value)


def later(cache: FakeCache, history: History) -> History:
    history.save()
    return History(cache)


def test_the_mean_of_old_and_new_durations_is_remembered() -> None:
    cache = FakeCache()
    first = History(cache)
    assert first.test_seconds("test_a.py::test") is None
    first.add_test("test_a.py::test", 4.0)
    second = later(cache, first)
    assert second.test_seconds("test_a.py::test") == 4.0
    second.add_test("test_a.py::test", 2.0)

    assert later(cache, second).test_seconds("test_a.py::test") == 3.0


def test_the_newest_twenty_thousand_tests_are_remembered() -> None:
    cache = FakeCache(test_seconds={str(number): 1.0 for number in range(20_000)})
    history = History(cache)
    history.add_test("0", 1.0)
    history.add_test("new", 1.0)

    known = later(cache, history)

    assert [known.test_seconds(test) for test in ("0", "new", "1", "2")] == [
        1.0,
        1.0,
        None,
        1.0,
    ]


def test_the_newest_fifty_boots_are_remembered() -> None:
    cache = FakeCache(
        boot_seconds={"ios appium": [float(number) for number in range(60)]}
    )
    history = History(cache)
    assert history.boots("ios appium") == tuple(range(10, 60))
    history.add_boot("ios appium", 60.0)

    assert later(cache, history).boots("ios appium") == tuple(range(11, 61))


def test_the_usual_boot_time_is_the_median_or_that_of_similar_devices() -> None:
    history = History(
        FakeCache(
            boot_seconds={
                "ios appium": [1, 2, 90],
                "ios appium 0f": [40, 60],
                "android appium": [7],
                "ios argent": [],
            }
        )
    )

    assert history.usual_boot("ios appium") == 2
    assert history.usual_boot("ios appium 0f") == 50
    assert history.usual_boot("ios appium 3c") == 40
    assert history.usual_boot("ios argent") is None


def test_without_a_cache_the_history_is_empty() -> None:
    history = History(None)
    history.add_test("test", 2.0)
    history.add_boot("ios appium", 3.0)
    history.save()

    assert (history.test_seconds("test"), history.usual_boot("ios appium")) == (
        2.0,
        3.0,
    )
    assert History(None).test_seconds("test") is None


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf"), 1e9])
def test_an_impossible_time_is_not_remembered(seconds: float) -> None:
    cache = FakeCache()
    history = History(cache)
    history.add_test("test", seconds)
    history.add_boot("ios appium", seconds)
    history.save()

    assert cache.files == {}


DAMAGED = (
    "{",
    "[3]",
    "3",
    '{"test": "4"}',
    '{"test": [NaN, -1]}',
    '{"test": 1e9}',
    "[" * 9**5,
)


def test_a_damaged_cache_counts_as_empty(pytester: pytest.Pytester) -> None:
    cache = pytester.parseconfigure().cache
    assert cache is not None

    for damaged in DAMAGED:
        for name in ("test_seconds", "boot_seconds"):
            cache.set(f"device/{name}", None)
            Path(f".pytest_cache/v/device/{name}").write_text(damaged)

        assert_counts_as_empty(cache)


def assert_counts_as_empty(cache: pytest.Cache) -> None:
    history = History(cache)

    assert history.test_seconds("test") is None
    assert history.usual_boot("test") is None
    history.add_test("test", 2.0)
    history.add_boot("test", 2.0)
    history.save()
    assert (
        History(cache).test_seconds("test") == History(cache).usual_boot("test") == 2.0
    )
