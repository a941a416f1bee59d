"""The minutes that a budget counts, from events of sessions."""

import pytest

from pytest_device.events import (
    Created,
    KeptWarm,
    Ready,
    SessionRef,
    Stopped,
    TakenOver,
)
from pytest_device.sessions.budget import Budget
from tests.fakes.clock import FakeClock

pytestmark = pytest.mark.every_python

SESSION = SessionRef("android appium", "a")


def test_a_session_that_workers_pass_on_counts_for_each_of_them() -> None:
    clock = FakeClock(0.0)
    budget = Budget(8, clock)
    budget.begin()
    budget.add(Created(SESSION))
    budget.add(Ready(SESSION, boot_seconds=60))
    budget.add(KeptWarm(SESSION, "", used_seconds=240))
    assert budget.used_minutes == 5

    clock.now += 300
    budget.add(TakenOver(SESSION))
    clock.now += 120
    assert budget.used_minutes == 7

    budget.add(Stopped(SESSION, "stopped", running_seconds=180))
    assert budget.used_minutes == 8
    assert budget.is_used_up
