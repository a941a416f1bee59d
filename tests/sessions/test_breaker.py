"""Which attempts a run makes after equal ones have failed."""

from itertools import count

import pytest

from pytest_device.sessions.breaker import (
    EVERY,
    PAUSE_SECONDS,
    Breaker,
    Cause,
    Ticket,
    Turn,
)
from pytest_device.testing import FakeClock

KEY = "a request"
BOOT = Cause("infrastructure", "no booted device")
TOKEN = Cause("config", "the access token is not valid")
_numbers = count()


def ticket(process: str = "main") -> Ticket:
    return process, next(_numbers)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def breaker(clock: FakeClock) -> Breaker:
    return Breaker(2, clock)


def fail(
    breaker: Breaker, cause: Cause = BOOT, *, key: str = KEY, is_final: bool = False
) -> None:
    one = ticket()
    assert breaker.ask(key, one) is Turn.GO
    breaker.failed(key, one, cause, is_final=is_final)


def test_without_failures_any_number_of_attempts_can_run_concurrently(
    breaker: Breaker,
) -> None:
    assert {breaker.ask(KEY, ticket()) for _ in range(8)} == {Turn.GO}


def test_at_the_limit_of_consecutive_failures_nothing_is_attempted(
    breaker: Breaker,
) -> None:
    fail(breaker)
    fail(breaker)

    assert breaker.ask(KEY, ticket()) == BOOT
    assert breaker.ask("another request", ticket()) is Turn.GO


def test_a_success_resets_the_count_of_failures(breaker: Breaker) -> None:
    fail(breaker)
    one = ticket()
    breaker.ask(KEY, one)
    breaker.ready(KEY, one)
    fail(breaker)

    assert breaker.ask(KEY, ticket()) is Turn.GO


def test_a_final_failure_opens_the_circuit_permanently(
    breaker: Breaker, clock: FakeClock
) -> None:
    fail(breaker, TOKEN, is_final=True)
    clock.sleep(100 * PAUSE_SECONDS)

    assert breaker.ask(KEY, ticket()) == TOKEN


def test_a_final_failure_takes_precedence_over_a_temporary_one(
    breaker: Breaker,
) -> None:
    fail(breaker)
    fail(breaker, TOKEN, is_final=True)

    assert breaker.ask(KEY, ticket()) == TOKEN


def test_a_failure_that_affects_all_requests_opens_every_circuit(
    breaker: Breaker,
) -> None:
    one = ticket()
    breaker.ask(KEY, one)
    breaker.failed(EVERY, one, TOKEN, is_final=True)

    assert breaker.ask("another request", ticket()) == TOKEN


def test_processes_together_never_exceed_the_limit(breaker: Breaker) -> None:
    one, other, third = ticket("gw0"), ticket("gw1"), ticket("gw0")
    assert [breaker.ask(KEY, one), breaker.ask(KEY, other)] == [Turn.GO, Turn.GO]
    breaker.failed(KEY, one, BOOT, is_final=False)

    assert breaker.ask(KEY, third) is Turn.WAIT  # the other may be the second to fail
    breaker.failed(KEY, other, BOOT, is_final=False)
    assert breaker.ask(KEY, third) == BOOT


@pytest.mark.parametrize("end", ["ready", "released", "lost"])
def test_a_waiting_attempt_continues_if_the_other_does_not_fail(
    breaker: Breaker, end: str
) -> None:
    other, third = ticket("gw1"), ticket("gw0")
    breaker.ask(KEY, other)
    fail(breaker)
    assert breaker.ask(KEY, third) is Turn.WAIT

    if end == "lost":
        breaker.lost("gw1")
    else:
        getattr(breaker, end)(KEY, other)

    assert breaker.ask(KEY, third) is Turn.GO


def test_after_a_pause_a_single_probe_is_made(
    breaker: Breaker, clock: FakeClock
) -> None:
    fail(breaker)
    fail(breaker)
    clock.sleep(PAUSE_SECONDS - 1)
    assert breaker.ask(KEY, ticket()) == BOOT
    clock.sleep(1)
    probe = ticket()

    assert breaker.ask(KEY, probe) is Turn.GO
    assert breaker.ask(KEY, ticket()) == BOOT


def test_a_failed_probe_starts_another_pause_and_a_successful_one_closes_the_circuit(
    breaker: Breaker, clock: FakeClock
) -> None:
    fail(breaker)
    fail(breaker)
    clock.sleep(PAUSE_SECONDS)
    fail(breaker)
    assert breaker.ask(KEY, ticket()) == BOOT
    clock.sleep(PAUSE_SECONDS)
    probe = ticket()
    breaker.ask(KEY, probe)
    breaker.ready(KEY, probe)

    assert {breaker.ask(KEY, ticket()) for _ in range(4)} == {Turn.GO}


def test_a_cause_names_the_first_affected_test(breaker: Breaker) -> None:
    fail(breaker)
    breaker.note_affected_test(KEY, "test_a")
    fail(breaker, Cause("infrastructure", "something else"))
    breaker.note_affected_test(KEY, "test_b")

    assert breaker.ask(KEY, ticket()) == BOOT._replace(test="test_a")


def test_a_run_without_start_retries_continues_after_a_single_failure(
    clock: FakeClock,
) -> None:
    breaker = Breaker(1, clock)
    fail(breaker)
    fail(breaker)

    assert breaker.ask(KEY, ticket()) == BOOT
