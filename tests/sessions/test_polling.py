"""Polls follow the durations of past boots, if these are informative."""

import math
from random import Random

import pytest

from pytest_device.sessions.polling import MIN_BOOTS, schedule_of

BASE = 5.0


def lognormal(
    count: int, median: float = 60.0, spread: float = 0.25, *, seed: int = 1
) -> list[float]:
    random = Random(seed)
    return [median * math.exp(random.gauss(0, spread)) for _ in range(count)]


def looks(past: list[float], boot: float, base: float = BASE) -> list[float]:
    """Return when a session with this boot time is polled."""
    pause, at = schedule_of(past, base), [0.0]
    while at[-1] < boot:
        at.append(at[-1] + pause(at[-1]))
    return at[1:]


def cost(
    past: list[float], boots: list[float], base: float = BASE
) -> tuple[float, float]:
    """Return mean delay and polls as a share of those with the fixed pause."""
    learned, fixed = (
        [looks(past, boot, base) for boot in boots],
        [looks([], boot, base) for boot in boots],
    )

    def delay(times: list[list[float]]) -> float:
        return math.fsum(one[-1] - boot for one, boot in zip(times, boots, strict=True))

    return delay(learned) / delay(fixed), sum(map(len, learned)) / sum(map(len, fixed))


@pytest.mark.parametrize(
    "past",
    [[], [60.0], lognormal(MIN_BOOTS - 1), [-1.0, math.nan, math.inf, 1e300] * 9],
)
def test_with_few_boots_the_pause_is_the_fixed_one(past: list[float]) -> None:
    assert looks(past, 100) == looks([], 100)


def test_pauses_are_long_before_most_boots_end_short_while_they_do_and_fixed_after_all() -> (
    None
):
    pause = schedule_of(lognormal(50), BASE)

    assert pause(0) == 10
    assert 1 <= pause(60) < 4
    assert pause(500) == 5


@pytest.mark.parametrize(
    "past",
    [[60.0] * 50, lognormal(50), [20.0, 90.0] * 25, [0.0] * 10, [1e-9, 80_000.0] * 9],
)
def test_every_pause_is_between_a_fifth_and_twice_the_fixed_one(
    past: list[float],
) -> None:
    pause = schedule_of(past, BASE)

    assert all(1 <= pause(tenth / 10) <= 10 for tenth in range(3000))


@pytest.mark.parametrize("base", [0.2, 5.0, 60.0])
def test_pauses_grow_with_the_fixed_one(base: float) -> None:
    learned = schedule_of([one * base / BASE for one in lognormal(20)], base)
    pause = schedule_of(lognormal(20), BASE)

    assert learned(12 * base) / base == pytest.approx(pause(60) / BASE)


@pytest.mark.parametrize("median", [15.0, 60.0, 150.0])
def test_twenty_boots_save_delay_without_more_polls(median: float) -> None:
    costs = [
        cost(lognormal(20, median, seed=seed), lognormal(40, median, seed=-seed))
        for seed in range(1, 11)
    ]

    assert sum(delay for delay, _ in costs) / 10 < 0.72
    assert sum(requests for _, requests in costs) / 10 <= 1.0


@pytest.mark.parametrize("count", [0, 1, 4, 5, 10])
def test_fewer_boots_never_make_polling_worse(count: int) -> None:
    costs = [
        cost(lognormal(count, seed=seed), lognormal(40, seed=-seed))
        for seed in range(1, 11)
    ]

    assert sum(delay for delay, _ in costs) / 10 <= 1.05
    assert sum(requests for _, requests in costs) / 10 <= 1.05


def test_with_two_typical_boot_times_polls_are_frequent_at_both() -> None:
    pause = schedule_of(
        [*lognormal(25, 20, 0.1), *lognormal(25, 90, 0.1, seed=2)], BASE
    )

    assert max(pause(20), pause(90)) < 4 < pause(50)


def test_a_service_that_became_slower_is_polled_at_the_fixed_interval() -> None:
    delay, requests = cost(lognormal(50, 40), lognormal(40, 160, 0.1, seed=2))

    assert delay < 1.1
    assert requests < 1.5


def test_newer_boots_weigh_more_than_older_ones() -> None:
    old, new, boots = (
        lognormal(25, 80),
        lognormal(25, 20, seed=2),
        lognormal(40, 20, seed=3),
    )

    assert cost([*old, *new], boots)[0] < cost([*new, *old], boots)[0]
    assert cost([*old, *new], boots)[0] < 0.8


def test_only_the_newest_fifty_boots_count() -> None:
    newest = lognormal(50)

    assert looks([*lognormal(30, 10), *newest], 70) == looks(newest, 70)
