"""The minutes that a budget counts."""

import pytest

from pytest_device.sessions.breaker import AttemptId, RunBreaker
from pytest_device.sessions.budget import Budget
from tests.fakes.clock import FakeClock

pytestmark = pytest.mark.every_python


def test_each_use_of_a_session_counts_from_its_beginning_to_its_end() -> None:
    clock = FakeClock(0.0)
    budget = Budget(8, clock)
    budget.begin("gw0", 1)
    clock.now += 120
    assert budget.used_minutes == 2

    # It had ended unnoticed.
    budget.end("gw0", 1, 60)
    clock.now += 120
    assert budget.used_minutes == 1

    # Another worker takes it over.
    budget.begin("gw1", 1)
    clock.now += 420
    assert budget.used_minutes == 8
    assert budget.refusal()


def test_the_sessions_of_a_crashed_worker_count_until_its_crash() -> None:
    clock = FakeClock(0.0)
    budget = Budget(8, clock)
    breaker = RunBreaker(1, clock, interval_seconds=5, budget=budget)
    for attempt in (("gw0", 0), ("gw0", 1), ("gw1", 0)):
        breaker.used(AttemptId(*attempt), None)
    clock.now += 60

    breaker.lost("gw0")

    clock.now += 60
    assert budget.used_minutes == 1 + 1 + 2
