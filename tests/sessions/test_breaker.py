"""Which attempts a run makes after equal ones have failed."""

from itertools import count

import pytest

from pytest_device.sessions.breaker import (
    CREATE,
    EVERY,
    PAUSE_SECONDS,
    AttemptId,
    Cause,
    LocalBreaker,
    Pause,
)
from pytest_device.testing import FakeClock
from pytest_device.verdict import Verdict

KEY = "a request"
BOOT = Cause(Verdict.INFRASTRUCTURE, "no booted device")
TOKEN = Cause(Verdict.CONFIG, "the access token is not valid")
_numbers = count()


def attempt(process: str = "main") -> AttemptId:
    return AttemptId(process, next(_numbers))


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def breaker(clock: FakeClock) -> LocalBreaker:
    return LocalBreaker(2, clock)


def fail(
    breaker: LocalBreaker,
    cause: Cause = BOOT,
    *,
    key: str = KEY,
    is_final: bool = False,
) -> None:
    one = attempt()
    assert breaker.ask(key, one) is None
    breaker.failed(key, one, cause, is_final=is_final)


def test_without_failures_any_number_of_attempts_can_run_concurrently(
    breaker: LocalBreaker,
) -> None:
    assert {breaker.ask(KEY, attempt()) for _ in range(8)} == {None}


def test_at_the_limit_of_consecutive_failures_nothing_is_attempted(
    breaker: LocalBreaker,
) -> None:
    fail(breaker)
    fail(breaker)

    assert breaker.ask(KEY, attempt()) == BOOT
    assert breaker.ask("another request", attempt()) is None


def test_a_success_resets_the_count_of_failures(breaker: LocalBreaker) -> None:
    fail(breaker)
    one = attempt()
    breaker.ask(KEY, one)
    breaker.ready(KEY, one)
    fail(breaker)

    assert breaker.ask(KEY, attempt()) is None


def test_a_final_failure_opens_the_circuit_permanently(
    breaker: LocalBreaker, clock: FakeClock
) -> None:
    fail(breaker, TOKEN, is_final=True)
    clock.sleep(100 * PAUSE_SECONDS)

    assert breaker.ask(KEY, attempt()) == TOKEN


def test_a_final_failure_takes_precedence_over_a_temporary_one(
    breaker: LocalBreaker,
) -> None:
    fail(breaker)
    fail(breaker, TOKEN, is_final=True)

    assert breaker.ask(KEY, attempt()) == TOKEN


def test_a_failure_that_affects_all_requests_opens_every_circuit(
    breaker: LocalBreaker,
) -> None:
    one = attempt()
    breaker.ask(KEY, one)
    breaker.failed(EVERY, one, TOKEN, is_final=True)

    assert breaker.ask("another request", attempt()) == TOKEN


@pytest.mark.parametrize("end", ["released", "lost"])
def test_a_probe_that_is_abandoned_lets_another_one_be_made(
    breaker: LocalBreaker, clock: FakeClock, end: str
) -> None:
    fail(breaker)
    fail(breaker)
    clock.sleep(PAUSE_SECONDS)
    probe = attempt("gw1")
    breaker.ask(KEY, probe)
    assert breaker.ask(KEY, attempt("gw0")) == BOOT

    if end == "lost":
        breaker.lost("gw1")
    else:
        breaker.released(KEY, probe)

    assert breaker.ask(KEY, attempt("gw0")) is None


def test_after_a_pause_a_single_probe_is_made(
    breaker: LocalBreaker, clock: FakeClock
) -> None:
    fail(breaker)
    fail(breaker)
    clock.sleep(PAUSE_SECONDS - 1)
    assert breaker.ask(KEY, attempt()) == BOOT
    clock.sleep(1)
    probe = attempt()

    assert breaker.ask(KEY, probe) is None
    assert breaker.ask(KEY, attempt()) == BOOT


def test_a_failed_probe_starts_another_pause_and_a_successful_one_closes_the_circuit(
    breaker: LocalBreaker, clock: FakeClock
) -> None:
    fail(breaker)
    fail(breaker)
    clock.sleep(PAUSE_SECONDS)
    fail(breaker)
    assert breaker.ask(KEY, attempt()) == BOOT
    clock.sleep(PAUSE_SECONDS)
    probe = attempt()
    breaker.ask(KEY, probe)
    breaker.ready(KEY, probe)

    assert {breaker.ask(KEY, attempt()) for _ in range(4)} == {None}


def test_a_run_without_start_retries_continues_after_a_single_failure(
    clock: FakeClock,
) -> None:
    breaker = LocalBreaker(1, clock)
    fail(breaker)
    fail(breaker)

    assert breaker.ask(KEY, attempt()) == BOOT


PAGE = Cause(Verdict.INFRASTRUCTURE, "503 Service Unavailable", calls=1)


def outage(
    breaker: LocalBreaker, cause: Cause = PAGE, *, is_final: bool = False
) -> None:
    one = attempt()
    assert breaker.ask(CREATE, one) is None
    breaker.failed(CREATE, one, cause, is_final=is_final)


def test_create_calls_that_fail_in_front_of_the_service_are_paused_before_they_end(
    breaker: LocalBreaker, clock: FakeClock
) -> None:
    outage(breaker)
    assert breaker.ask(CREATE, attempt()) == Pause(15, PAGE)
    clock.sleep(15)
    outage(breaker)
    assert breaker.ask(CREATE, attempt()) == Pause(30, PAGE)
    clock.sleep(30)
    outage(breaker)

    assert breaker.ask(CREATE, attempt()) == PAGE


def test_after_a_minute_an_outage_is_probed(
    breaker: LocalBreaker, clock: FakeClock
) -> None:
    outage(breaker, PAGE._replace(calls=3))  # it has paused itself
    clock.sleep(59)
    assert breaker.ask(CREATE, attempt()) == PAGE._replace(calls=3)
    clock.sleep(1)
    probe = attempt()

    assert breaker.ask(CREATE, probe) is None
    assert breaker.ask(CREATE, attempt()) == PAGE._replace(calls=3)
    breaker.ready(CREATE, probe)
    assert breaker.ask(CREATE, attempt()) is None


def test_calls_that_fail_together_count_as_one_failure(breaker: LocalBreaker) -> None:
    attempts = [attempt(f"gw{number}") for number in range(4)]
    assert {breaker.ask(CREATE, one) for one in attempts} == {None}
    for one in attempts:
        breaker.failed(CREATE, one, PAGE, is_final=False)

    assert breaker.ask(CREATE, attempt()) == Pause(15, PAGE)


def test_after_a_pause_one_call_at_a_time_is_made(
    breaker: LocalBreaker, clock: FakeClock
) -> None:
    outage(breaker)
    clock.sleep(15)
    probe = attempt()

    assert breaker.ask(CREATE, probe) is None
    assert breaker.ask(CREATE, attempt()) == Pause(0.2, PAGE)
    breaker.released(CREATE, probe)
    assert breaker.ask(CREATE, attempt()) is None


def test_an_outage_leaves_drivers_alone(breaker: LocalBreaker) -> None:
    outage(breaker, PAGE._replace(calls=3))

    assert breaker.ask(KEY, attempt()) is None


def test_a_token_that_has_worked_for_any_process_is_tried_again(
    breaker: LocalBreaker, clock: FakeClock
) -> None:
    breaker.ready(CREATE, attempt("gw0"))
    breaker.failed(EVERY, attempt("gw1"), TOKEN, is_final=True)

    assert breaker.ask(KEY, attempt()) is None
    assert breaker.ask(CREATE, attempt()) == Pause(15, TOKEN._replace(calls=1))
    clock.sleep(15)
    assert breaker.ask(CREATE, attempt()) is None


def test_a_token_that_is_refused_again_and_again_is_final_though_it_has_worked(
    breaker: LocalBreaker, clock: FakeClock
) -> None:
    breaker.ready(CREATE, attempt())
    outage(breaker, TOKEN._replace(calls=3), is_final=True)
    clock.sleep(100 * PAUSE_SECONDS)

    assert breaker.ask(CREATE, attempt()) == TOKEN._replace(calls=3)


def test_the_pauses_follow_a_shorter_poll_interval_but_no_longer_one(
    clock: FakeClock,
) -> None:
    for interval, pause in ((0.2, 0.6), (60.0, 15.0)):
        breaker = LocalBreaker(2, clock, interval_seconds=interval)
        outage(breaker)
        asked = breaker.ask(CREATE, attempt())
        assert isinstance(asked, Pause)
        assert asked.seconds == pytest.approx(pause)
