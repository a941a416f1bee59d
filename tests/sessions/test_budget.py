"""The minutes that a budget counts, from events of sessions."""

import pytest

from pytest_device.events import (
    Created,
    KeptWarm,
    Ready,
    SessionRef,
    Stopped,
    TakenOver,
    Unused,
)
from pytest_device.sessions.breaker import CREATE, UNUSED, AttemptId, RunBreaker
from pytest_device.sessions.budget import Budget
from tests.fakes.clock import FakeClock

pytestmark = pytest.mark.every_python

SESSION = SessionRef("android appium", "a")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(0.0)


@pytest.fixture
def budget(clock: FakeClock) -> Budget:
    return Budget(8, clock)


@pytest.fixture
def breaker(clock: FakeClock, budget: Budget) -> RunBreaker:
    return RunBreaker(1, clock, interval_seconds=5, retry_quota=0, budget=budget)


@pytest.mark.parametrize("process", ["", "gw0"])
def test_a_session_counts_once_from_its_create_call_on(
    process: str, clock: FakeClock, budget: Budget, breaker: RunBreaker
) -> None:
    breaker.ready(CREATE, AttemptId(process, 1))
    clock.now += 60
    assert budget.used_minutes == 1

    # With the report of the test that got it.
    budget.add(Created(SESSION), process)
    clock.now += 60
    assert budget.used_minutes == 2


@pytest.mark.parametrize("process", ["", "gw0"])
def test_a_session_that_no_test_used_counts_until_its_end(
    process: str, clock: FakeClock, budget: Budget, breaker: RunBreaker
) -> None:
    breaker.ready(CREATE, AttemptId(process, 1))
    clock.now += 60

    breaker.released(UNUSED, AttemptId(process, 2))

    clock.now += 60
    assert budget.used_minutes == 1
    # At the end of the process.
    for event in (
        Created(SESSION),
        Unused(SESSION),
        Stopped(SESSION, "stopped", running_seconds=60),
    ):
        budget.add(event, process)
    assert budget.used_minutes == 1


def test_the_sessions_of_a_crashed_worker_count_until_its_crash(
    clock: FakeClock, budget: Budget, breaker: RunBreaker
) -> None:
    for number in range(2):
        breaker.ready(CREATE, AttemptId("gw0", number))
    breaker.ready(CREATE, AttemptId("gw1", 0))
    budget.add(Created(SESSION), "gw0")
    clock.now += 60

    breaker.lost("gw0")

    clock.now += 60
    assert budget.used_minutes == 1 + 1 + 2
    # Found out at the end of the run.
    budget.add(Stopped(SESSION, "stopped", running_seconds=90))
    assert budget.used_minutes == 1.5 + 1 + 2


def test_a_session_that_workers_pass_on_counts_for_each_of_them() -> None:
    clock = FakeClock(0.0)
    budget = Budget(8, clock)
    budget.begin("gw0")
    budget.add(Created(SESSION), "gw0")
    budget.add(Ready(SESSION, boot_seconds=60), "gw0")
    budget.add(KeptWarm(SESSION, "", used_seconds=240), "gw0")
    assert budget.used_minutes == 5

    clock.now += 300
    budget.add(TakenOver(SESSION), "gw1")
    clock.now += 120
    assert budget.used_minutes == 7

    budget.add(Stopped(SESSION, "stopped", running_seconds=180), "gw1")
    assert budget.used_minutes == 8
    assert budget.is_used_up
