"""Balanced shards, identical on every machine."""

import random
from collections import Counter
from collections.abc import Sequence

import pytest

from pytest_device.scheduling.sharding import BOOT, ItemCost, split

SECOND = 1_000


def loads(tests: Sequence[ItemCost], parts: Sequence[int], count: int) -> list[int]:
    """Return the milliseconds of each shard, with a boot for each group that it has."""
    boots = Counter(
        part
        for part, _ in {
            (part, test.group)
            for part, test in zip(parts, tests, strict=True)
            if test.group
        }
    )
    work: Counter[int] = Counter()
    for part, test in zip(parts, tests, strict=True):
        work[part] += test.milliseconds
    return [work[shard] + BOOT * boots[shard] for shard in range(count)]


def suite(seed: int, size: int, groups: int) -> list[ItemCost]:
    chance = random.Random(seed)
    return [
        ItemCost(
            f"test_{n}",
            chance.choice([None, *range(1, groups + 1)]),
            int(chance.lognormvariate(2.5, 0.8) * SECOND),
        )
        for n in range(size)
    ]


def equal(size: int, group: str | None = "a", seconds: int = 30) -> list[ItemCost]:
    return [ItemCost(f"test_{group}_{n}", group, seconds * SECOND) for n in range(size)]


@pytest.mark.parametrize("count", [1, 2, 3, 7, 16])
@pytest.mark.parametrize(
    ("size", "groups"), [(0, 1), (1, 1), (5, 2), (16, 6), (200, 1), (200, 5)]
)
def test_every_test_is_in_one_shard_and_none_is_empty_if_there_are_enough_tests(
    size: int, groups: int, count: int
) -> None:
    parts = split(suite(1, size, groups), count)

    assert len(parts) == size
    assert len(set(parts)) == min(size, count)
    assert set(parts) <= set(range(count))


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_the_tests_makes_no_difference(seed: int) -> None:
    tests = suite(seed, 100, 4)
    found = dict(zip(tests, split(tests, 5), strict=True))
    random.Random(seed).shuffle(tests)

    assert dict(zip(tests, split(tests, 5), strict=True)) == found


def test_equal_tests_of_one_kind_are_spread_evenly() -> None:
    assert Counter(split(equal(20), 4)) == {0: 5, 1: 5, 2: 5, 3: 5}


def test_a_kind_stays_together_if_that_takes_no_longer() -> None:
    tests = [*equal(6, "a"), *equal(4, "b"), *equal(2, "c")]

    parts = split(tests, 2)

    groups = {(part, test.group) for part, test in zip(parts, tests, strict=True)}
    assert len(groups) == 3


def test_a_kind_is_spread_if_a_boot_costs_less_than_it_saves() -> None:
    tests = [*equal(40, "a"), *equal(4, "b")]

    assert {
        part
        for part, test in zip(split(tests, 2), tests, strict=True)
        if test.group == "a"
    } == {0, 1}


def test_a_kind_shorter_than_a_boot_is_not_spread() -> None:
    tests = [*equal(20, "a"), *equal(20, "b"), *equal(5, "c", seconds=2)]

    parts = split(tests, 2)

    assert (
        len(
            {part for part, test in zip(parts, tests, strict=True) if test.group == "c"}
        )
        == 1
    )


def test_kinds_that_fit_into_one_shard_share_it() -> None:
    tests = [
        *equal(3, "a", 100),
        *equal(2, "b", 100),
        *equal(2, "c", 100),
        *equal(1, "d", 100),
    ]

    assert loads(tests, split(tests, 2), 2) == [520 * SECOND, 520 * SECOND]


def test_no_boot_is_spent_to_save_less_than_its_duration() -> None:
    tests = [*equal(4, "a", seconds=10), *equal(1, None, seconds=10)]

    assert sorted(loads(tests, split(tests, 2), 2)) == [10 * SECOND, 100 * SECOND]


def test_a_shard_that_needs_a_boot_anyway_gets_its_share() -> None:
    assert Counter(split(equal(4, seconds=10), 2)) == {0: 2, 1: 2}


def test_tests_without_a_device_go_to_the_shortest_shard() -> None:
    tests = [*equal(1, "a", seconds=200), *equal(26, None, seconds=10)]

    assert loads(tests, split(tests, 2), 2) == [260 * SECOND, 260 * SECOND]


def test_a_long_test_shares_its_shard_with_few_others() -> None:
    tests = [ItemCost("test_long", "a", 300 * SECOND), *equal(30, "a", seconds=10)]

    parts = split(tests, 2)

    assert sorted(loads(tests, parts, 2)) == [360 * SECOND, 360 * SECOND]


@pytest.mark.parametrize("groups", [1, 3, 6])
@pytest.mark.parametrize("count", [2, 4, 8, 16])
def test_two_hundred_tests_are_balanced(groups: int, count: int) -> None:
    tests = suite(groups, 200, groups)
    everything = sum(test.milliseconds for test in tests) + BOOT * max(groups, count)

    assert max(loads(tests, split(tests, count), count)) <= 1.15 * everything / count
