"""Prefetched sessions: started, used, given up, and stopped if no test needs them."""

import signal
import threading
from collections.abc import Callable, Generator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from pytest_device import (
    DeviceClient,
    InvalidRequestError,
    LeaseTimeoutError,
    SessionTimeoutError,
    StopFailedError,
)
from pytest_device.events import (
    Created,
    Ready,
    StartFailed,
    StateChanged,
    StopFailed,
    Stopped,
    Unused,
)
from pytest_device.sessions.breaker import RunBreaker
from pytest_device.sessions.budget import Budget
from tests.fakes.network import FakeNetwork, Fault
from tests.sessions.pool_harness import (
    ANDROID,
    IOS,
    PoolHarness,
    requirement,
    turns_errored,
)
from tests.sessions.references import ref_of
from tests.sessions.slots import slots_at
from tests.waiting import Checkpoint, eventually

FRESH = [requirement(f"test {number}") for number in range(4)]
"""The requirement of tests with unshared devices."""


MakeHarness = Callable[..., PoolHarness]


@pytest.fixture
def harness_of(client: DeviceClient, network: FakeNetwork) -> Generator[MakeHarness]:
    with ExitStack() as houses:

        def make(**more: Any) -> PoolHarness:
            harness = PoolHarness(client, network.clock, **more)
            houses.callback(harness.pool.close)
            return harness

        yield make


@pytest.fixture
def harness(harness_of: MakeHarness) -> PoolHarness:
    return harness_of()


def answered(network: FakeNetwork, operation: str, count: int) -> bool:
    return eventually(lambda: network.answered.count(operation) == count)


def boot_on(harness: PoolHarness, until: Callable[[], bool]) -> bool:
    """Advance the time from test to test, each of which only prefetches."""

    def is_so() -> bool:
        harness.clock.sleep(5)
        harness.prefetch()
        return until()

    return eventually(is_so)


def nothing_boots() -> bool:
    return "pytest-device-background" not in {
        thread.name for thread in threading.enumerate()
    }


def busy(
    _request: httpx.Request, _carry_out: Callable[[], httpx.Response]
) -> httpx.Response:
    """Refuse for lack of capacity."""
    return httpx.Response(429, json={"error": {"code": "BUSY"}})


def held_at(checkpoint: Checkpoint) -> Fault:
    """Hold a call back from the service until the test lets it go."""

    def fault(
        _request: httpx.Request, carry_out: Callable[[], httpx.Response]
    ) -> httpx.Response:
        checkpoint.wait()
        return carry_out()

    return fault


def test_a_prefetched_session_is_available_immediately(
    harness: PoolHarness, network: FakeNetwork
) -> None:
    harness.prefetch(ANDROID)
    assert boot_on(harness, nothing_boots)
    began = network.clock()

    (held,) = harness.acquire(ANDROID)

    assert network.clock() == began
    assert str(held.session.status) == "in-progress"
    assert network.requests.count("create") == 1
    assert held.assignment.is_new


def test_a_test_waits_for_a_prefetched_session_that_still_boots(
    harness: PoolHarness, network: FakeNetwork
) -> None:
    harness.prefetch(ANDROID)
    assert answered(network, "create", 1)
    began = network.clock()

    harness.acquire(ANDROID)

    assert network.clock() - began == 15
    assert network.requests == ["create", "get", "get", "get"]


def test_background_events_are_reported_in_the_tests_thread_with_their_delay(
    harness: PoolHarness, network: FakeNetwork
) -> None:
    harness.prefetch(ANDROID)
    assert boot_on(harness, nothing_boots)
    network.clock.sleep(5)
    assert harness.events == []

    harness.acquire(ANDROID)

    created, *_, ready = harness.events
    assert (type(created), type(ready)) == (Created, Ready)
    assert (ref_of(created).late_seconds or 0) > (ref_of(ready).late_seconds or 0) >= 5
    assert harness.threads == {threading.current_thread().name}


def test_existing_and_starting_sessions_are_not_prefetched_again(
    harness: PoolHarness, network: FakeNetwork
) -> None:
    harness.acquire(ANDROID)
    harness.prefetch(ANDROID, IOS)
    assert answered(network, "create", 2)

    harness.prefetch(IOS, ANDROID, IOS)

    assert answered(network, "create", 3)
    assert [session.platform for session in network.service.sessions] == [
        "android",
        "ios",
        "ios",
    ]


def test_a_session_that_would_expire_before_its_use_is_not_prefetched(
    harness: PoolHarness, network: FakeNetwork
) -> None:
    whole = requirement(max_duration_minutes=10, minutes=10)

    harness.prefetch(whole, IOS)

    assert answered(network, "create", 1)
    assert [session.platform for session in network.service.sessions] == ["ios"]


def test_prefetching_starts_at_most_as_many_sessions_as_slots_in_order(
    harness_of: MakeHarness, network: FakeNetwork, tmp_path: Path
) -> None:
    harness = harness_of(slots=slots_at(tmp_path, 2, clock=network.clock))
    (taken,) = harness.acquire(ANDROID)

    harness.prefetch(IOS, *FRESH)
    assert answered(network, "create", 2)
    harness.pool.release([taken], lambda need: int(need == IOS))
    harness.prefetch(IOS, *FRESH)

    assert answered(network, "create", 3)
    assert [session.platform for session in network.service.sessions] == [
        "android",
        "ios",
        "android",
    ]


def test_an_error_is_raised_at_acquire_and_the_slot_is_free(
    harness_of: MakeHarness, network: FakeNetwork, tmp_path: Path
) -> None:
    harness = harness_of(slots=slots_at(tmp_path, 1, clock=network.clock))
    network.faults["create"] = [
        lambda _request, _carry_out: httpx.Response(
            400, json={"message": "no such app"}
        )
    ]
    harness.prefetch(ANDROID)
    assert answered(network, "create", 1)

    with pytest.raises(InvalidRequestError, match="no such app"):
        harness.acquire(ANDROID)

    harness.prefetch(ANDROID)
    assert answered(network, "create", 2)


def test_a_failed_background_boot_is_retried_and_reported(
    harness_of: MakeHarness, network: FakeNetwork
) -> None:
    harness = harness_of(attempts=2)
    network.faults["get"] = turns_errored(1)
    harness.prefetch(ANDROID)
    assert boot_on(harness, lambda: network.answered.count("create") == 2)

    harness.acquire(ANDROID)

    assert [
        type(event) for event in harness.events if not isinstance(event, StateChanged)
    ] == [
        Created,
        StartFailed,
        Stopped,
        Created,
        Ready,
    ]


def test_a_session_refused_for_lack_of_capacity_is_retried_in_the_background(
    harness: PoolHarness, network: FakeNetwork
) -> None:
    busy = httpx.Response(
        429, headers={"Retry-After": "3"}, json={"error": {"code": "BUSY"}}
    )
    network.faults["create"] = [lambda _request, _carry_out: busy]
    harness.prefetch(ANDROID)

    assert boot_on(harness, lambda: network.answered.count("create") == 2)

    assert str(harness.acquire(ANDROID)[0].session.status) == "in-progress"


def test_a_background_timeout_is_not_an_error_of_a_test_that_has_not_waited(
    harness: PoolHarness, network: FakeNetwork
) -> None:
    network.faults["create"] = [busy] * 50
    harness.prefetch(ANDROID)
    assert boot_on(harness, nothing_boots)
    assert network.clock() > 900
    network.faults.clear()

    assert str(harness.acquire(ANDROID)[0].session.status) == "in-progress"


def test_the_wait_for_capacity_counts_from_when_a_test_wants_it(
    harness: PoolHarness, network: FakeNetwork
) -> None:
    network.faults["create"] = [busy] * 99
    harness.prefetch(ANDROID)
    assert boot_on(harness, lambda: network.clock() > 600)

    began = network.clock()
    with pytest.raises(
        LeaseTimeoutError, match="the service had no capacity for 900 s"
    ):
        harness.acquire(ANDROID)

    assert network.clock() - began == pytest.approx(900)


def test_a_failed_stop_to_make_room_is_not_the_error_of_the_new_session(
    harness_of: MakeHarness, network: FakeNetwork, tmp_path: Path
) -> None:
    harness = harness_of(slots=slots_at(tmp_path, 1, clock=network.clock))
    harness.prefetch(ANDROID)
    assert answered(network, "create", 1)
    network.faults["stop"] = [lambda _request, _carry_out: httpx.Response(403)] * 3
    with pytest.raises(StopFailedError):
        harness.acquire(IOS)

    harness.prefetch(ANDROID)

    assert answered(network, "create", 2)


def test_a_starting_session_that_is_no_longer_needed_is_stopped_and_counted(
    harness: PoolHarness, network: FakeNetwork
) -> None:
    harness.prefetch(ANDROID, IOS)
    assert answered(network, "create", 2)

    harness.pool.release([], lambda need: int(need == IOS))

    assert answered(network, "stop", 1)
    assert sorted(network.statuses()) == ["new", "stopped"]
    assert harness.events == []  # they concern no test
    harness.pool.close()
    assert harness.kinds() == [Created, Unused, Stopped] * 2


def test_a_session_with_a_create_call_in_progress_is_stopped_without_waiting(
    harness: PoolHarness, network: FakeNetwork
) -> None:
    checkpoint = Checkpoint()
    network.faults["create"] = [held_at(checkpoint)]
    harness.prefetch(ANDROID)
    assert checkpoint.reached.wait(60)

    harness.pool.release([], lambda _need: 0)

    assert network.statuses() == []
    checkpoint.may_go.set()
    assert answered(network, "stop", 1)
    assert network.statuses() == ["stopped"]


def test_a_ready_session_that_is_no_longer_needed_is_stopped_and_counted(
    harness: PoolHarness, network: FakeNetwork
) -> None:
    harness.prefetch(ANDROID)
    assert boot_on(harness, nothing_boots)

    harness.pool.release([], lambda _need: 0)

    assert network.statuses() == ["stopped"]
    assert harness.events == []
    harness.pool.close()
    assert harness.kinds()[-3:] == [Ready, Unused, Stopped]


def test_closing_stops_starting_sessions_and_waits_for_a_create_call_in_progress(
    harness: PoolHarness, network: FakeNetwork
) -> None:
    checkpoint = Checkpoint()
    network.faults["create"] = [
        lambda _request, carry_out: carry_out(),
        held_at(checkpoint),
    ]
    harness.prefetch(ANDROID, IOS)
    assert checkpoint.reached.wait(60)
    threading.Timer(0.1, checkpoint.may_go.set).start()

    harness.pool.close()

    assert network.statuses() == ["stopped", "stopped"]
    assert harness.kinds().count(Stopped) == 2


def test_a_failed_stop_in_the_background_is_reported(
    harness: PoolHarness, network: FakeNetwork
) -> None:
    network.faults["stop"] = [lambda _request, _carry_out: httpx.Response(403)] * 3
    harness.prefetch(ANDROID)
    assert answered(network, "create", 1)

    harness.pool.release([], lambda _need: 0)
    harness.pool.close()

    assert harness.kinds()[-1] is StopFailed


def test_the_thread_exists_only_while_something_boots(
    harness: PoolHarness, network: FakeNetwork
) -> None:
    harness.prefetch(ANDROID)
    assert answered(network, "create", 1)
    assert not nothing_boots()

    harness.acquire(ANDROID)

    harness.prefetch()
    assert eventually(nothing_boots)


@pytest.fixture
def budget(network: FakeNetwork) -> Budget:
    return Budget(100, network.clock)


@pytest.fixture
def budgeted(
    harness_of: MakeHarness, network: FakeNetwork, budget: Budget
) -> PoolHarness:
    """A process whose sessions the budget counts."""
    clock = network.clock
    breaker = RunBreaker(2, clock, interval_seconds=5, budget=budget)
    return harness_of(breaker=breaker)


def test_a_prefetched_session_uses_the_budget_until_it_is_stopped_unused(
    budgeted: PoolHarness, network: FakeNetwork, budget: Budget
) -> None:
    budgeted.prefetch(ANDROID)
    assert boot_on(budgeted, lambda: budget.used_minutes > 0)

    budgeted.pool.release([], lambda _requirement: 0)

    assert eventually(nothing_boots)
    assert network.statuses() == ["stopped"]
    used = budget.used_minutes
    network.clock.sleep(600)
    assert budget.used_minutes == used


def test_a_session_that_fails_in_the_background_uses_the_budget_until_then(
    budgeted: PoolHarness, network: FakeNetwork, budget: Budget
) -> None:
    network.faults["get"] = turns_errored(1)
    budgeted.prefetch(ANDROID)
    # Time passes only from here on.
    assert answered(network, "create", 1)
    assert boot_on(budgeted, nothing_boots)
    used = budget.used_minutes
    assert used > 0

    network.clock.sleep(600)

    assert budget.used_minutes == used


def test_a_session_that_is_stopped_after_a_timeout_uses_the_budget_until_then(
    budgeted: PoolHarness, network: FakeNetwork, budget: Budget
) -> None:
    with pytest.raises(SessionTimeoutError):
        budgeted.acquire(ANDROID, timeout_seconds=0)
    budgeted.pool.release([], lambda _requirement: 0)
    assert eventually(nothing_boots)
    assert network.statuses() == ["stopped"]
    used = budget.used_minutes

    network.clock.sleep(600)

    assert budget.used_minutes == used


def test_prefetching_begins_once_the_system_has_room_for_a_thread(
    harness: PoolHarness, network: FakeNetwork
) -> None:
    # No address space has room for such a stack: the system refuses the thread.
    before = threading.stack_size(1 << 46)
    try:
        harness.prefetch(ANDROID)
    finally:
        threading.stack_size(before)
    assert network.requests == []

    harness.prefetch()

    assert answered(network, "create", 1)


def test_an_interrupt_ends_the_wait_for_a_background_call_and_leaves_nothing(
    harness: PoolHarness, network: FakeNetwork
) -> None:
    checkpoint = Checkpoint()
    network.faults["create"] = [held_at(checkpoint)]
    harness.prefetch(ANDROID)
    assert checkpoint.reached.wait(60)
    main = threading.main_thread().ident
    assert main is not None
    interrupting = threading.Timer(0.1, signal.pthread_kill, [main, signal.SIGINT])

    def acquire() -> None:
        interrupting.start()  # here, where an early interrupt is caught, too
        harness.acquire(ANDROID)

    with pytest.raises(KeyboardInterrupt):
        acquire()

    assert not checkpoint.may_go.is_set()
    checkpoint.may_go.set()
    assert answered(network, "stop", 1)  # by the thread: nobody else has it
    harness.use(ANDROID, again=False)
    assert network.statuses() == ["stopped", "stopped"]


def test_a_prefetched_session_replaces_a_spent_one(
    harness: PoolHarness, network: FakeNetwork
) -> None:
    first = harness.use(ANDROID)
    network.clock.sleep(19 * 60)
    harness.prefetch(ANDROID)
    assert boot_on(harness, nothing_boots)

    second = harness.use(ANDROID)

    assert second.id != first.id
    assert network.requests.count("create") == 2
    assert network.statuses() == ["stopped", "in-progress"]


def test_a_session_that_gets_ready_while_a_spent_one_is_stopped_is_used(
    harness: PoolHarness, network: FakeNetwork
) -> None:
    harness.use(ANDROID)
    network.clock.sleep(19 * 60)
    harness.prefetch(ANDROID)
    assert answered(network, "create", 2)

    def is_slow(
        _request: httpx.Request, carry_out: Callable[[], httpx.Response]
    ) -> httpx.Response:
        assert boot_on(harness, nothing_boots)
        return carry_out()

    network.faults["stop"] = [is_slow]

    harness.acquire(ANDROID)

    assert network.requests.count("create") == 2
    assert network.statuses() == ["stopped", "in-progress"]


def test_a_session_that_is_being_stopped_is_not_used(
    harness: PoolHarness, network: FakeNetwork
) -> None:
    checkpoint = Checkpoint()
    network.faults["create"] = [held_at(checkpoint)]
    harness.prefetch(ANDROID)
    assert checkpoint.reached.wait(60)
    harness.pool.release([], lambda _need: 0)

    harness.acquire(ANDROID)

    checkpoint.may_go.set()
    assert answered(network, "stop", 1)
    assert network.statuses() == ["in-progress", "stopped"]


def test_unused_sessions_make_room_before_used_ones(
    harness_of: MakeHarness, network: FakeNetwork, tmp_path: Path
) -> None:
    harness = harness_of(slots=slots_at(tmp_path, 2, clock=network.clock))
    harness.use(ANDROID)
    harness.prefetch(ANDROID, *FRESH)
    assert boot_on(harness, nothing_boots)

    harness.acquire(IOS)

    assert network.statuses() == ["in-progress", "stopped", "in-progress"]


def test_idle_sessions_make_room_before_those_of_the_same_test(
    harness_of: MakeHarness, network: FakeNetwork, tmp_path: Path
) -> None:
    harness = harness_of(slots=slots_at(tmp_path, 2, clock=network.clock))
    android = harness.use(ANDROID)
    harness.use(FRESH[0])

    first, _second = harness.acquire(ANDROID, IOS)

    assert first.session.id == android.id


def test_prefetched_sessions_make_room_for_those_needed_now(
    harness_of: MakeHarness, network: FakeNetwork, tmp_path: Path
) -> None:
    harness = harness_of(slots=slots_at(tmp_path, 2, clock=network.clock))
    idle = harness.use(ANDROID)
    harness.prefetch(*FRESH)
    assert answered(network, "create", 2)

    harness.acquire(IOS)

    assert network.statuses() == ["in-progress", "stopped", "in-progress"]
    assert harness.use(ANDROID).id == idle.id


def one_that_waits_for_another(
    harness_of: MakeHarness, network: FakeNetwork, tmp_path: Path
) -> tuple[PoolHarness, PoolHarness, list[list[str]]]:
    """Return two that share two slots, the other of which ends when the one waits; and what there is by then."""
    seen: list[list[str]] = []

    def wait(_seconds: float) -> None:
        seen.append(network.statuses())
        there.pool.close()

    here = harness_of(slots=slots_at(tmp_path, 2, clock=network.clock, on_pause=wait))
    there = harness_of(slots=slots_at(tmp_path, 2, clock=network.clock))
    return here, there, seen


def test_a_process_that_waits_for_slots_holds_none_not_even_for_reuse(
    harness_of: MakeHarness, network: FakeNetwork, tmp_path: Path
) -> None:
    here, there, seen = one_that_waits_for_another(harness_of, network, tmp_path)
    here.use(ANDROID)
    there.acquire(IOS)

    here.acquire(ANDROID, IOS)

    assert seen[0] == ["stopped", "in-progress"]
    assert network.statuses() == ["stopped", "stopped", "in-progress", "in-progress"]


def test_one_of_two_prefetched_sessions_is_stopped_before_waiting_for_slots(
    harness_of: MakeHarness, network: FakeNetwork, tmp_path: Path
) -> None:
    here, there, seen = one_that_waits_for_another(harness_of, network, tmp_path)
    there.acquire(IOS)
    here.prefetch(ANDROID)
    assert answered(network, "create", 2)

    here.acquire(ANDROID, IOS)

    assert seen[0] == ["in-progress", "stopped"]


def test_a_warm_session_is_used_instead_of_a_boot(harness_of: MakeHarness) -> None:
    earlier = harness_of()
    (left,) = earlier.acquire(ANDROID)
    harness = harness_of(left_warm=[left])

    first, second = harness.acquire(ANDROID, ANDROID)

    assert first.session.id == left.session.id != second.session.id


def test_a_session_kept_warm_leaves_the_pool_and_frees_its_slot(
    harness_of: MakeHarness, network: FakeNetwork, tmp_path: Path
) -> None:
    harness = harness_of(
        slots=slots_at(tmp_path, 1, clock=network.clock),
        keep_warm=lambda _held: "12:34",
    )

    harness.use(ANDROID, again=False)
    harness.acquire(IOS)
    harness.pool.close()

    assert network.statuses() == ["in-progress", "stopped"]


@pytest.mark.parametrize("how", ["lost", "spent"])
def test_an_unusable_session_is_not_kept_warm(
    harness_of: MakeHarness, network: FakeNetwork, how: str
) -> None:
    harness = harness_of(keep_warm=lambda _held: "12:34")
    (held,) = harness.acquire(ANDROID)
    harness.pool.mark_unusable([held] if how == "lost" else [])
    network.clock.sleep(19 * 60)

    harness.pool.release([held], lambda _need: 0)

    assert network.statuses() == ["stopped"]


def test_an_error_of_one_device_stops_the_others_that_still_boot_for_the_test(
    harness: PoolHarness, network: FakeNetwork
) -> None:
    refused: Fault = lambda _request, _carry_out: httpx.Response(400)  # noqa: E731  # a word for it
    harness.prefetch(ANDROID)
    assert answered(network, "create", 1)
    network.faults["create"] = [refused]

    with pytest.raises(InvalidRequestError):
        harness.acquire(ANDROID, IOS)

    assert network.statuses() == ["stopped"]


def test_an_unused_session_that_cannot_be_stopped_is_an_error(
    harness: PoolHarness, network: FakeNetwork
) -> None:
    harness.prefetch(ANDROID)
    assert boot_on(harness, nothing_boots)
    network.faults["stop"] = [lambda _request, _carry_out: httpx.Response(403)] * 3

    with pytest.raises(StopFailedError):
        harness.pool.release([], lambda _need: 0)


class LimitedCapacity:
    """A fault of every create call: a service that has no more than so many devices."""

    def __init__(self, network: FakeNetwork, most: int) -> None:
        self.seen: list[list[str]] = []
        """What there was at each call."""
        self._network, self._most = network, most
        network.faults["create"] = [self] * 50

    def __call__(
        self, request: httpx.Request, carry_out: Callable[[], httpx.Response]
    ) -> httpx.Response:
        statuses = self._network.statuses()
        self.seen.append(statuses)
        if len(statuses) - statuses.count("stopped") < self._most:
            return carry_out()
        return busy(request, carry_out)


def test_idle_sessions_make_room_if_the_service_has_no_capacity(
    harness: PoolHarness, network: FakeNetwork
) -> None:
    LimitedCapacity(network, 2)
    kept, idle = harness.acquire(ANDROID, FRESH[0])
    harness.pool.release([idle], lambda _need: 1)

    harness.acquire(IOS)

    # Asked once more before anything is given up.
    assert network.requests.count("create") == 5
    assert network.statuses() == ["in-progress", "stopped", "in-progress"]
    assert str(kept.session.status) == "in-progress"


def test_a_process_that_waits_for_capacity_holds_no_session(
    harness: PoolHarness, network: FakeNetwork
) -> None:
    limited = LimitedCapacity(network, 2)
    other = harness.acquire(FRESH[0])[0].session

    def end_other(
        request: httpx.Request, carry_out: Callable[[], httpx.Response]
    ) -> httpx.Response:
        network.service.sessions.stop(str(other.id), "its run has ended")
        return limited(request, carry_out)

    network.faults["create"][5] = end_other
    taken = harness.acquire(ANDROID, IOS)

    # What was to be used beside what is refused again.
    assert limited.seen[4] == [
        "in-progress",
        "stopped",
    ]
    assert [str(held.session.status) for held in taken] == [
        "in-progress",
        "in-progress",
    ]
    assert len({held.session.id for held in taken}) == 2


def test_a_wait_for_capacity_that_times_out_leaves_nothing(
    harness: PoolHarness, network: FakeNetwork
) -> None:
    LimitedCapacity(network, 2)
    other = harness.acquire(FRESH[0])[0]
    began = network.clock()

    with pytest.raises(
        LeaseTimeoutError, match="the service had no capacity for 120 s"
    ):
        harness.acquire(ANDROID, IOS, timeout_seconds=120)

    assert network.clock() - began == pytest.approx(120)
    # For each of the two, 9 at the shortest pauses, which are spread: half of 5, 10, 20 and then 40 s.
    assert network.requests.count("create") <= 1 + 2 * 9
    harness.pool.release([other], lambda _need: 0)
    assert set(network.statuses()) == {"stopped"}
