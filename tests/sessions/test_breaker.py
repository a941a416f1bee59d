"""Which attempts a run makes after equal ones have failed."""

from itertools import count

import pytest

from pytest_device.sessions.breaker import EVERY, PAUSE_SECONDS, Breaker, Cause, Ticket, Turn
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


def fail(breaker: Breaker, cause: Cause = BOOT, *, key: str = KEY, is_final: bool = False) -> None:
    one = ticket()
    assert breaker.ask(key, one) is Turn.GO
    breaker.failed(key, one, cause, is_final=is_final)


def test_as_many_may_start_side_by_side_as_like_while_none_has_failed(breaker: Breaker) -> None:
    assert {breaker.ask(KEY, ticket()) for _ in range(8)} == {Turn.GO}


def test_after_as_many_failures_in_a_row_as_the_limit_none_is_attempted(breaker: Breaker) -> None:
    fail(breaker)
    fail(breaker)

    assert breaker.ask(KEY, ticket()) == BOOT
    assert breaker.ask("another request", ticket()) is Turn.GO


def test_a_success_between_failures_begins_a_new_row(breaker: Breaker) -> None:
    fail(breaker)
    one = ticket()
    breaker.ask(KEY, one)
    breaker.ready(KEY, one)
    fail(breaker)

    assert breaker.ask(KEY, ticket()) is Turn.GO


def test_a_final_failure_ends_it_at_once_and_for_good(breaker: Breaker, clock: FakeClock) -> None:
    fail(breaker, TOKEN, is_final=True)
    clock.sleep(100 * PAUSE_SECONDS)

    assert breaker.ask(KEY, ticket()) == TOKEN


def test_a_final_failure_counts_more_than_one_that_may_pass(breaker: Breaker) -> None:
    fail(breaker)
    fail(breaker, TOKEN, is_final=True)

    assert breaker.ask(KEY, ticket()) == TOKEN


def test_a_failure_that_holds_for_all_ends_every_request(breaker: Breaker) -> None:
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
def test_who_waits_goes_on_when_the_other_does_not_fail(breaker: Breaker, end: str) -> None:
    other, third = ticket("gw1"), ticket("gw0")
    breaker.ask(KEY, other)
    fail(breaker)
    assert breaker.ask(KEY, third) is Turn.WAIT

    if end == "lost":
        breaker.lost("gw1")
    else:
        getattr(breaker, end)(KEY, other)

    assert breaker.ask(KEY, third) is Turn.GO


def test_after_a_pause_a_single_probe_is_made(breaker: Breaker, clock: FakeClock) -> None:
    fail(breaker)
    fail(breaker)
    clock.sleep(PAUSE_SECONDS - 1)
    assert breaker.ask(KEY, ticket()) == BOOT
    clock.sleep(1)
    probe = ticket()

    assert breaker.ask(KEY, probe) is Turn.GO
    assert breaker.ask(KEY, ticket()) == BOOT


def test_a_probe_that_fails_is_followed_by_another_pause_and_one_that_succeeds_by_all(
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


def test_a_cause_names_the_first_test_that_met_it(breaker: Breaker) -> None:
    fail(breaker)
    breaker.note_affected_test(KEY, "test_a")
    fail(breaker, Cause("infrastructure", "something else"))
    breaker.note_affected_test(KEY, "test_b")

    assert breaker.ask(KEY, ticket()) == BOOT._replace(test="test_a")


def test_a_run_that_does_not_retry_a_start_goes_on_after_a_single_failure(clock: FakeClock) -> None:
    breaker = Breaker(1, clock)
    fail(breaker)
    fail(breaker)

    assert breaker.ask(KEY, ticket()) == BOOT
