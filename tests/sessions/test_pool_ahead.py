"""Prefetched sessions: started, used, given up, and stopped if no test needs them."""

import signal
import threading
from collections.abc import Callable, Generator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from pytest_device.errors import InvalidRequestError, LeaseTimeoutError, StopFailedError
from pytest_device.sessions.client import DeviceClient
from pytest_device.sessions.device_session import WarmSession
from pytest_device.sessions.events import (
    Created,
    Ready,
    StartFailed,
    StateChanged,
    StopFailed,
    Stopped,
    Unused,
)
from pytest_device.sessions.quota import Slots
from pytest_device.sessions.reporter import SilentReporter
from pytest_device.sessions.request import DeviceRequirement
from tests.sessions.house import ANDROID, IOS, House, request, turns_errored
from tests.sessions.world import Fault, World, ref_of
from tests.waiting import eventually

FRESH = [DeviceRequirement(request(), f"test {number}") for number in range(4)]
"""The requirement of tests with unshared devices."""


MakeHouse = Callable[..., House]


@pytest.fixture
def house_of(client: DeviceClient, world: World) -> Generator[MakeHouse]:
    with ExitStack() as houses:

        def make(**more: Any) -> House:
            house = House(client, world, **more)
            houses.callback(house.pool.close)
            return house

        yield make


@pytest.fixture
def house(house_of: MakeHouse) -> House:
    return house_of()


def answered(world: World, operation: str, count: int) -> bool:
    return eventually(lambda: world.answered.count(operation) == count)


def boot_on(house: House, until: Callable[[], bool]) -> bool:
    """Advance the time from test to test, each of which only prefetches."""

    def is_so() -> bool:
        house.world.clock.sleep(5)
        house.prefetch()
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


class BlockedCall:
    """A fault that holds a call back from the service until the test lets it go."""

    def __init__(self) -> None:
        self.reached, self.may_go = threading.Event(), threading.Event()

    def __call__(
        self, _request: httpx.Request, carry_out: Callable[[], httpx.Response]
    ) -> httpx.Response:
        self.reached.set()
        self.may_go.wait(60)
        return carry_out()


def slots_at(
    directory: Path,
    world: World,
    most: int,
    sleep: Callable[[float], None] | None = None,
) -> Slots:
    return Slots(
        directory,
        most,
        holder="a run",
        timeout_seconds=60,
        clock=world.clock,
        sleep=sleep or world.clock.sleep,
        reporter=SilentReporter(),
    )


def test_a_prefetched_session_is_available_immediately(
    house: House, world: World
) -> None:
    house.prefetch(ANDROID)
    assert boot_on(house, nothing_boots)
    began = world.clock()

    (held,) = house.acquire(ANDROID)

    assert world.clock() == began
    assert str(held.session.status) == "in-progress"
    assert world.requests.count("create") == 1
    assert held.assignment.is_new


def test_a_test_waits_for_a_prefetched_session_that_still_boots(
    house: House, world: World
) -> None:
    house.prefetch(ANDROID)
    assert answered(world, "create", 1)
    began = world.clock()

    house.acquire(ANDROID)

    assert world.clock() - began == 15
    assert world.requests == ["create", "get", "get", "get"]


def test_background_events_are_reported_in_the_tests_thread_with_their_delay(
    house: House, world: World
) -> None:
    house.prefetch(ANDROID)
    assert boot_on(house, nothing_boots)
    world.clock.sleep(5)
    assert world.events == []

    house.acquire(ANDROID)

    created, *_, ready = world.events
    assert (type(created), type(ready)) == (Created, Ready)
    assert (ref_of(created).late_seconds or 0) > (ref_of(ready).late_seconds or 0) >= 5
    assert house.threads == {threading.current_thread().name}


def test_existing_and_starting_sessions_are_not_prefetched_again(
    house: House, world: World
) -> None:
    house.acquire(ANDROID)
    house.prefetch(ANDROID, IOS)
    assert answered(world, "create", 2)

    house.prefetch(IOS, ANDROID, IOS)

    assert answered(world, "create", 3)
    assert [session.platform for session in world.held] == ["android", "ios", "ios"]


def test_a_session_that_would_expire_before_its_use_is_not_prefetched(
    house: House, world: World
) -> None:
    whole = DeviceRequirement(request(max_duration_minutes=10), "run", minutes=10)

    house.prefetch(whole, IOS)

    assert answered(world, "create", 1)
    assert [session.platform for session in world.held] == ["ios"]


def test_prefetching_starts_at_most_as_many_sessions_as_slots_in_order(
    house_of: MakeHouse, world: World, tmp_path: Path
) -> None:
    house = house_of(slots=slots_at(tmp_path, world, 2))
    (taken,) = house.acquire(ANDROID)

    house.prefetch(IOS, *FRESH)
    assert answered(world, "create", 2)
    house.pool.release([taken], lambda need: need == IOS)
    house.prefetch(IOS, *FRESH)

    assert answered(world, "create", 3)
    assert [session.platform for session in world.held] == ["android", "ios", "android"]


def test_an_error_is_raised_at_acquire_and_the_slot_is_free(
    house_of: MakeHouse, world: World, tmp_path: Path
) -> None:
    house = house_of(slots=slots_at(tmp_path, world, 1))
    world.faults["create"] = [
        lambda _request, _carry_out: httpx.Response(
            400, json={"message": "no such app"}
        )
    ]
    house.prefetch(ANDROID)
    assert answered(world, "create", 1)

    with pytest.raises(InvalidRequestError, match="no such app"):
        house.acquire(ANDROID)

    house.prefetch(ANDROID)
    assert answered(world, "create", 2)


def test_a_failed_background_boot_is_retried_and_reported(
    house_of: MakeHouse, world: World
) -> None:
    house = house_of(attempts=2)
    world.faults["get"] = turns_errored(1)
    house.prefetch(ANDROID)
    assert boot_on(house, lambda: world.answered.count("create") == 2)

    house.acquire(ANDROID)

    assert [
        type(event) for event in world.events if not isinstance(event, StateChanged)
    ] == [
        Created,
        StartFailed,
        Stopped,
        Created,
        Ready,
    ]


def test_a_session_refused_for_lack_of_capacity_is_retried_in_the_background(
    house: House, world: World
) -> None:
    busy = httpx.Response(
        429, headers={"Retry-After": "3"}, json={"error": {"code": "BUSY"}}
    )
    world.faults["create"] = [lambda _request, _carry_out: busy]
    house.prefetch(ANDROID)

    assert boot_on(house, lambda: world.answered.count("create") == 2)

    assert str(house.acquire(ANDROID)[0].session.status) == "in-progress"


def test_a_background_timeout_is_not_an_error_of_a_test_that_has_not_waited(
    house: House, world: World
) -> None:
    world.faults["create"] = [busy] * 50
    house.prefetch(ANDROID)
    assert boot_on(house, nothing_boots)
    assert world.clock() > 900
    world.faults.clear()

    assert str(house.acquire(ANDROID)[0].session.status) == "in-progress"


def test_the_wait_for_capacity_counts_from_when_a_test_wants_it(
    house: House, world: World
) -> None:
    world.faults["create"] = [busy] * 99
    house.prefetch(ANDROID)
    assert boot_on(house, lambda: world.clock() > 600)

    began = world.clock()
    with pytest.raises(
        LeaseTimeoutError, match="the service had no capacity for 900 s"
    ):
        house.acquire(ANDROID)

    assert world.clock() - began == pytest.approx(900)


def test_a_failed_stop_to_make_room_is_not_the_error_of_the_new_session(
    house_of: MakeHouse, world: World, tmp_path: Path
) -> None:
    house = house_of(slots=slots_at(tmp_path, world, 1))
    house.prefetch(ANDROID)
    assert answered(world, "create", 1)
    world.faults["stop"] = [lambda _request, _carry_out: httpx.Response(403)] * 3
    with pytest.raises(StopFailedError):
        house.acquire(IOS)

    house.prefetch(ANDROID)

    assert answered(world, "create", 2)


def test_a_starting_session_that_is_no_longer_needed_is_stopped_and_counted(
    house: House, world: World
) -> None:
    house.prefetch(ANDROID, IOS)
    assert answered(world, "create", 2)

    house.pool.release([], lambda need: need == IOS)

    assert answered(world, "stop", 1)
    assert sorted(world.statuses()) == ["new", "stopped"]
    assert world.events == []  # they concern no test
    house.pool.close()
    assert world.kinds() == [Created, Unused, Stopped] * 2


def test_a_session_with_a_create_call_in_progress_is_stopped_without_waiting(
    house: House, world: World
) -> None:
    blocked = BlockedCall()
    world.faults["create"] = [blocked]
    house.prefetch(ANDROID)
    assert blocked.reached.wait(60)

    house.pool.release([], lambda _need: False)

    assert world.statuses() == []
    blocked.may_go.set()
    assert answered(world, "stop", 1)
    assert world.statuses() == ["stopped"]


def test_a_ready_session_that_is_no_longer_needed_is_stopped_and_counted(
    house: House, world: World
) -> None:
    house.prefetch(ANDROID)
    assert boot_on(house, nothing_boots)

    house.pool.release([], lambda _need: False)

    assert world.statuses() == ["stopped"]
    assert world.events == []
    house.pool.close()
    assert world.kinds()[-3:] == [Ready, Unused, Stopped]


def test_closing_stops_starting_sessions_and_waits_for_a_create_call_in_progress(
    house: House, world: World
) -> None:
    blocked = BlockedCall()
    world.faults["create"] = [lambda _request, carry_out: carry_out(), blocked]
    house.prefetch(ANDROID, IOS)
    assert blocked.reached.wait(60)
    threading.Timer(0.1, blocked.may_go.set).start()

    house.pool.close()

    assert world.statuses() == ["stopped", "stopped"]
    assert world.kinds().count(Stopped) == 2


def test_a_failed_stop_in_the_background_is_reported(
    house: House, world: World
) -> None:
    world.faults["stop"] = [lambda _request, _carry_out: httpx.Response(403)] * 3
    house.prefetch(ANDROID)
    assert answered(world, "create", 1)

    house.pool.release([], lambda _need: False)
    house.pool.close()

    assert world.kinds()[-1] is StopFailed


def test_the_thread_exists_only_while_something_boots(
    house: House, world: World
) -> None:
    house.prefetch(ANDROID)
    assert answered(world, "create", 1)
    assert not nothing_boots()

    house.acquire(ANDROID)

    house.prefetch()
    assert eventually(nothing_boots)


def test_an_interrupt_ends_the_wait_for_a_background_call_and_leaves_nothing(
    house: House, world: World
) -> None:
    blocked = BlockedCall()
    world.faults["create"] = [blocked]
    house.prefetch(ANDROID)
    assert blocked.reached.wait(60)
    main = threading.main_thread().ident
    assert main is not None
    threading.Timer(0.1, signal.pthread_kill, [main, signal.SIGINT]).start()

    with pytest.raises(KeyboardInterrupt):
        house.acquire(ANDROID)

    assert not blocked.may_go.is_set()
    blocked.may_go.set()
    assert answered(world, "stop", 1)  # by the thread: nobody else has it
    house.use(ANDROID, again=False)
    assert world.statuses() == ["stopped", "stopped"]


def test_a_prefetched_session_replaces_a_spent_one(house: House, world: World) -> None:
    first = house.use(ANDROID)
    world.clock.sleep(19 * 60)
    house.prefetch(ANDROID)
    assert boot_on(house, nothing_boots)

    second = house.use(ANDROID)

    assert second.id != first.id
    assert world.requests.count("create") == 2
    assert world.statuses() == ["stopped", "in-progress"]


def test_a_session_that_is_being_stopped_is_not_used(
    house: House, world: World
) -> None:
    blocked = BlockedCall()
    world.faults["create"] = [blocked]
    house.prefetch(ANDROID)
    assert blocked.reached.wait(60)
    house.pool.release([], lambda _need: False)

    house.acquire(ANDROID)

    blocked.may_go.set()
    assert answered(world, "stop", 1)
    assert world.statuses() == ["in-progress", "stopped"]


def test_unused_sessions_make_room_before_used_ones(
    house_of: MakeHouse, world: World, tmp_path: Path
) -> None:
    house = house_of(slots=slots_at(tmp_path, world, 2))
    house.use(ANDROID)
    house.prefetch(ANDROID, *FRESH)
    assert boot_on(house, nothing_boots)

    house.acquire(IOS)

    assert world.statuses() == ["in-progress", "stopped", "in-progress"]


def test_idle_sessions_make_room_before_those_of_the_same_test(
    house_of: MakeHouse, world: World, tmp_path: Path
) -> None:
    house = house_of(slots=slots_at(tmp_path, world, 2))
    android = house.use(ANDROID)
    house.use(FRESH[0])

    first, _second = house.acquire(ANDROID, IOS)

    assert first.session.id == android.id


def test_prefetched_sessions_make_room_for_those_needed_now(
    house_of: MakeHouse, world: World, tmp_path: Path
) -> None:
    house = house_of(slots=slots_at(tmp_path, world, 2))
    idle = house.use(ANDROID)
    house.prefetch(*FRESH)
    assert answered(world, "create", 2)

    house.acquire(IOS)

    assert world.statuses() == ["in-progress", "stopped", "in-progress"]
    assert house.use(ANDROID).id == idle.id


def one_that_waits_for_another(
    house_of: MakeHouse, world: World, tmp_path: Path
) -> tuple[House, House, list[list[str]]]:
    """Return two that share two slots, the other of which ends when the one waits; and what there is by then."""
    seen: list[list[str]] = []

    def wait(seconds: float) -> None:
        world.clock.sleep(seconds)
        seen.append(world.statuses())
        there.pool.close()

    here = house_of(slots=slots_at(tmp_path, world, 2, wait))
    there = house_of(slots=slots_at(tmp_path, world, 2))
    return here, there, seen


def test_a_process_that_waits_for_slots_holds_none_not_even_for_reuse(
    house_of: MakeHouse, world: World, tmp_path: Path
) -> None:
    here, there, seen = one_that_waits_for_another(house_of, world, tmp_path)
    here.use(ANDROID)
    there.acquire(IOS)

    here.acquire(ANDROID, IOS)

    assert seen[0] == ["stopped", "in-progress"]
    assert world.statuses() == ["stopped", "stopped", "in-progress", "in-progress"]


def test_one_of_two_prefetched_sessions_is_stopped_before_waiting_for_slots(
    house_of: MakeHouse, world: World, tmp_path: Path
) -> None:
    here, there, seen = one_that_waits_for_another(house_of, world, tmp_path)
    there.acquire(IOS)
    here.prefetch(ANDROID)
    assert answered(world, "create", 2)

    here.acquire(ANDROID, IOS)

    assert seen[0] == ["in-progress", "stopped"]


def test_a_warm_session_is_used_instead_of_a_boot(house_of: MakeHouse) -> None:
    earlier = house_of()
    (left,) = earlier.acquire(ANDROID)
    found = {ANDROID: WarmSession(left.session, left.ready_at or 0.0)}
    house = house_of(claim=lambda requirement: found.pop(requirement, None))

    first, second = house.acquire(ANDROID, ANDROID)

    assert first.session.id == left.session.id != second.session.id


def test_a_session_kept_warm_leaves_the_pool_and_frees_its_slot(
    house_of: MakeHouse, world: World, tmp_path: Path
) -> None:
    house = house_of(
        slots=slots_at(tmp_path, world, 1), keep_warm=lambda _held: "12:34"
    )

    house.use(ANDROID, again=False)
    house.acquire(IOS)
    house.pool.close()

    assert world.statuses() == ["in-progress", "stopped"]


@pytest.mark.parametrize("how", ["lost", "spent"])
def test_an_unusable_session_is_not_kept_warm(
    house_of: MakeHouse, world: World, how: str
) -> None:
    house = house_of(keep_warm=lambda _held: "12:34")
    (held,) = house.acquire(ANDROID)
    house.pool.mark_unusable([held] if how == "lost" else [])
    world.clock.sleep(19 * 60)

    house.pool.release([held], lambda _need: False)

    assert world.statuses() == ["stopped"]


def test_an_error_of_one_device_stops_the_others_that_still_boot_for_the_test(
    house: House, world: World
) -> None:
    refused: Fault = lambda _request, _carry_out: httpx.Response(400)  # noqa: E731  # a word for it
    house.prefetch(ANDROID)
    assert answered(world, "create", 1)
    world.faults["create"] = [refused]

    with pytest.raises(InvalidRequestError):
        house.acquire(ANDROID, IOS)

    assert world.statuses() == ["stopped"]


def test_an_unused_session_that_cannot_be_stopped_is_an_error(
    house: House, world: World
) -> None:
    house.prefetch(ANDROID)
    assert boot_on(house, nothing_boots)
    world.faults["stop"] = [lambda _request, _carry_out: httpx.Response(403)] * 3

    with pytest.raises(StopFailedError):
        house.pool.release([], lambda _need: False)


class Full:
    """A fault of every create call: a service that has no more than so many devices."""

    def __init__(self, world: World, most: int) -> None:
        self.seen: list[list[str]] = []
        """What there was at each call."""
        self._world, self._most = world, most
        world.faults["create"] = [self] * 50

    def __call__(
        self, request: httpx.Request, carry_out: Callable[[], httpx.Response]
    ) -> httpx.Response:
        statuses = self._world.statuses()
        self.seen.append(statuses)
        if len(statuses) - statuses.count("stopped") < self._most:
            return carry_out()
        return busy(request, carry_out)


def test_idle_sessions_make_room_if_the_service_has_no_capacity(
    house: House, world: World
) -> None:
    Full(world, 2)
    kept, idle = house.acquire(ANDROID, FRESH[0])
    house.pool.release([idle], lambda _need: True)

    house.acquire(IOS)

    # Asked once more before anything is given up.
    assert world.requests.count("create") == 5
    assert world.statuses() == ["in-progress", "stopped", "in-progress"]
    assert str(kept.session.status) == "in-progress"


def test_a_process_that_waits_for_capacity_holds_no_session(
    house: House, world: World
) -> None:
    full = Full(world, 2)
    other = house.acquire(FRESH[0])[0].session

    def end_other(
        request: httpx.Request, carry_out: Callable[[], httpx.Response]
    ) -> httpx.Response:
        world.held.stop(str(other.id), "its run has ended")
        return full(request, carry_out)

    world.faults["create"][5] = end_other
    taken = house.acquire(ANDROID, IOS)

    # What was to be used beside what is refused again.
    assert full.seen[4] == [
        "in-progress",
        "stopped",
    ]
    assert [str(held.session.status) for held in taken] == [
        "in-progress",
        "in-progress",
    ]
    assert len({held.session.id for held in taken}) == 2


def test_a_wait_for_capacity_that_times_out_leaves_nothing(
    house: House, world: World
) -> None:
    Full(world, 2)
    other = house.acquire(FRESH[0])[0]
    began = world.clock()

    with pytest.raises(
        LeaseTimeoutError, match="the service had no capacity for 120 s"
    ):
        house.acquire(ANDROID, IOS, timeout_seconds=120)

    assert world.clock() - began == pytest.approx(120)
    assert world.requests.count("create") < 15
    house.pool.release([other], lambda _need: False)
    assert set(world.statuses()) == {"stopped"}
