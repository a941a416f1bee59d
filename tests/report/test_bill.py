"""Where the minutes of sessions went, added up from events and phases of tests."""

import pytest

from pytest_device.events import (
    Attached,
    Created,
    Ready,
    SessionRef,
    StartFailed,
    TakenOver,
)
from pytest_device.report.bill import Bill, Minutes
from pytest_device.report.phase import TestPhase
from pytest_device.report.receipt import DeviceTime

pytestmark = pytest.mark.every_python

ANDROID = "android appium"


def phase(
    test: str, session_id: str, minutes: float, owner: str = "", outcome: str = "passed"
) -> TestPhase:
    return TestPhase(
        test, "call", outcome, seconds=60 * minutes, sessions=(session_id,), owner=owner
    )


def created(session_id: str, boot_minutes: float, bill: Bill) -> None:
    of = SessionRef(ANDROID, session_id)
    bill.add_event(Created(of))
    bill.add_event(Ready(of, boot_seconds=60 * boot_minutes))


def minutes_of(bill: Bill, **running: float) -> Minutes:
    times = {name: DeviceTime(60 * value) for name, value in running.items()}
    return bill.minutes(times, "exactly", waited_seconds=30)


@pytest.fixture
def bill() -> Bill:
    return Bill()


def test_the_time_around_tests_is_idle_and_that_of_repeated_attempts_is_wasted(
    bill: Bill,
) -> None:
    created("a", 1, bill)
    bill.add_attempt([phase("t", "a", 2, outcome="retried")], is_retried=True)
    bill.add_attempt([phase("t", "a", 3)], is_retried=False)

    minutes = minutes_of(bill, a=10)

    assert (minutes.paid, minutes.boot, minutes.retried, minutes.idle) == (11, 1, 2, 5)
    assert minutes.paid - minutes.wasted == 3
    assert minutes.waited == 0.5


def test_a_session_that_no_test_used_is_left_over(bill: Bill) -> None:
    created("a", 1, bill)

    minutes = minutes_of(bill, a=4)

    assert (minutes.left_over, minutes.boot, minutes.idle) == (4, 1, 0)


def test_the_boot_of_a_session_that_failed_to_start_is_paid(bill: Bill) -> None:
    bill.add_event(Created(SessionRef(ANDROID, "a")))
    failed = SessionRef(ANDROID, "a", waited_seconds=90)
    bill.add_event(StartFailed(failed, "no device"))

    minutes = minutes_of(bill, a=0)

    assert (minutes.paid, minutes.boot) == (1.5, 1.5)


def test_the_boot_of_a_session_that_workers_of_the_run_passed_on_is_paid(
    bill: Bill,
) -> None:
    bill.add_event(TakenOver(SessionRef(ANDROID, "a")))
    created("a", 1, bill)

    minutes = minutes_of(bill, a=4)

    assert (minutes.paid, minutes.boot) == (5, 1)
    assert list(bill.paid_by_session({"a": DeviceTime(240)})) == [5]


def test_an_attached_session_costs_nothing(bill: Bill) -> None:
    bill.add_event(Attached(SessionRef(ANDROID, "a")))

    assert minutes_of(bill).paid == 0
    assert list(bill.paid_by_session({})) == []


def test_a_session_is_divided_among_the_owners_of_its_tests(bill: Bill) -> None:
    created("a", 2, bill)
    bill.add_attempt([phase("t", "a", 1, "checkout")], is_retried=False)
    bill.add_attempt([phase("u", "a", 3, "login")], is_retried=False)

    minutes = minutes_of(bill, a=6)

    assert minutes.by_owner == {"checkout": 2, "login": 6}
    assert minutes.by_platform == {"android": 8}
