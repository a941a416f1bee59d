"""Assignment of sessions: shared by equal requirements, replaced when spent or lost, always stopped."""

import threading
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from pytest_device.errors import (
    LeaseTimeoutError,
    NotAttemptedError,
    SessionFailedError,
    SessionTimeoutError,
    StopFailedError,
)
from pytest_device.sessions.breaker import LocalBreaker
from pytest_device.sessions.client import DeviceClient
from pytest_device.sessions.events import (
    Created,
    Kept,
    Ready,
    StartFailed,
    StateChanged,
    Stopped,
    detail_of,
)
from pytest_device.sessions.models import Session
from pytest_device.sessions.quota import Slots
from pytest_device.sessions.remote_config import AppiumConfig
from pytest_device.sessions.reporter import SilentReporter
from pytest_device.sessions.request import DeviceRequirement
from tests.sessions.house import ANDROID, IOS, House, request, turns_errored
from tests.sessions.world import Fault, World


class HookError(Exception):
    """What a suite's hook raises."""


@pytest.fixture
def house(client: DeviceClient, world: World) -> House:
    return House(client, world)


def test_equal_requirements_share_a_session_one_after_the_other(house: House) -> None:
    assert house.use(ANDROID).id == house.use(ANDROID).id != house.use(IOS).id


def _returns(**fields: object) -> Fault:
    def fault(
        _request: httpx.Request, carry_out: Callable[[], httpx.Response]
    ) -> httpx.Response:
        return httpx.Response(200, json={"data": carry_out().json()["data"] | fields})

    return fault


def test_the_next_test_gets_the_current_connection_details_of_a_session(
    house: House, world: World
) -> None:
    first = house.use(ANDROID)
    rotated = {"appiumUrl": "http://127.0.0.1:2/rotated", "capabilities": {}}
    world.faults["get"] = [_returns(remoteConfig=rotated)]

    second = house.use(ANDROID)

    assert (second.id, second.remote_config) == (
        first.id,
        AppiumConfig.model_validate(rotated),
    )


def test_the_next_test_keeps_the_connection_details_if_the_service_returns_another_session(
    house: House, world: World
) -> None:
    first = house.use(ANDROID)
    rotated = {"appiumUrl": "http://127.0.0.1:2/other", "capabilities": {}}
    world.faults["get"] = [
        _returns(id="7d7a1f0e-0f4c-4f2e-9b0a-0c9d6a1f2b3d", remoteConfig=rotated)
    ]

    assert house.use(ANDROID) == first


def test_sessions_with_another_sharing_key_are_not_shared(house: House) -> None:
    assert (
        house.use(ANDROID).id
        != house.use(DeviceRequirement(ANDROID.request, "module test_a.py")).id
    )


def test_two_equal_devices_of_one_test_are_two_sessions(house: House) -> None:
    first, second = house.acquire(ANDROID, ANDROID)

    assert first.session.id != second.session.id


def test_several_devices_boot_concurrently(house: House, world: World) -> None:
    began = world.clock()

    house.acquire(ANDROID, IOS)

    assert world.clock() - began == 15  # as one does: a boot of 12 s, looked at every 5
    assert world.requests[:2] == ["create", "create"]


def test_a_session_is_stopped_as_soon_as_no_test_needs_it(
    house: House, world: World
) -> None:
    house.use(ANDROID)
    house.use(IOS, again=False)

    assert world.statuses() == ["stopped", "stopped"]


def test_a_session_with_too_little_time_left_is_replaced(
    house: House, world: World
) -> None:
    first = house.use(ANDROID)
    world.clock.sleep(17 * 60)
    assert house.use(ANDROID).id == first.id

    world.clock.sleep(60)

    assert house.use(ANDROID).id != first.id
    assert world.statuses() == ["stopped", "in-progress"]


def test_a_new_session_is_used_even_if_it_lasts_no_longer_than_required(
    house: House,
) -> None:
    need = DeviceRequirement(request(max_duration_minutes=2), "run", minutes=2)

    assert house.use(need).id != house.use(need).id


def test_a_session_stopped_by_someone_else_is_replaced(
    house: House, world: World
) -> None:
    first = house.use(ANDROID)
    world.held.stop(str(first.id), "by somebody else")

    assert house.use(ANDROID).id != first.id


def test_a_session_that_cannot_be_looked_up_is_used(house: House, world: World) -> None:
    first = house.use(ANDROID)
    world.faults["get"] = [lambda _request, _carry_out: httpx.Response(503)] * 3

    assert house.use(ANDROID).id == first.id


def test_a_lost_session_is_not_reused(house: House, world: World) -> None:
    (held,) = house.acquire(ANDROID)
    house.pool.mark_unusable([held])

    house.pool.release([held], lambda _need: True)

    assert world.statuses() == ["stopped"]


def test_a_failed_boot_is_retried_with_a_new_session_and_counted(
    client: DeviceClient, world: World
) -> None:
    house = House(client, world, attempts=2)
    world.faults["get"] = turns_errored(1)

    house.acquire(ANDROID, IOS)

    assert [
        type(event) for event in world.events if isinstance(event, StartFailed)
    ] == [StartFailed]
    assert world.requests.count("create") == 3
    assert sum(isinstance(event, Ready) for event in world.events) == 2
    assert world.requests.count("stop") == 1


def test_a_session_is_ready_when_its_controller_responds(
    house: House, world: World
) -> None:
    problems = ["its daemon does not answer"] * 3
    house.problem_of = lambda _session: problems.pop() if problems else None

    began = world.clock()

    (held,) = house.acquire(ANDROID)

    # A boot of 12 s, looked at every 5, and three times for the controller.
    assert world.clock() - began == 18
    assert world.kinds() == [Created, StateChanged, Ready]
    assert detail_of(world.events[1]) == "in-progress, but its daemon does not answer"
    assert held.ready_at == began + 10


def test_a_session_with_a_dead_controller_counts_as_failed_and_is_retried(
    client: DeviceClient, world: World
) -> None:
    house = House(client, world, attempts=2)
    dead: list[Session] = []

    def problem_of(session: Session) -> str | None:
        dead[:] = dead or [session]
        return (
            "its daemon answers with status 502" if session.id == dead[0].id else None
        )

    house.problem_of = problem_of

    house.acquire(ANDROID, IOS)

    (failed,) = [event for event in world.events if isinstance(event, StartFailed)]
    assert (
        failed.reason
        == f"the session is in progress, but its daemon answers with status 502 ({dead[0].url})"
    )
    assert sorted(world.statuses()) == ["in-progress", "in-progress", "stopped"]


def test_a_controller_that_is_dead_in_each_attempt_is_reported_with_the_session_page(
    client: DeviceClient, world: World
) -> None:
    house = House(client, world, attempts=2)
    house.problem_of = lambda _session: "its daemon answers with status 502"

    with pytest.raises(
        SessionFailedError,
        match=r"in progress, but its daemon answers with status 502 \(http",
    ):
        house.acquire(ANDROID)

    assert world.statuses() == ["stopped", "stopped"]


def test_start_attempts_are_limited(client: DeviceClient, world: World) -> None:
    house = House(client, world, attempts=3)
    world.faults["get"] = turns_errored(3)

    with pytest.raises(SessionFailedError):
        house.acquire(ANDROID)

    assert world.requests.count("create") == world.requests.count("stop") == 3


def test_a_session_that_times_out_is_not_retried(
    client: DeviceClient, world: World
) -> None:
    house = House(client, world, attempts=3)

    with pytest.raises(SessionTimeoutError):
        house.acquire(ANDROID, timeout_seconds=5)

    house.pool.close()
    assert world.statuses() == ["stopped"]


def test_concurrent_boots_time_out_together(client: DeviceClient, world: World) -> None:
    breaker = LocalBreaker(2, world.clock)
    first, second = (
        House(client, world, breaker=breaker),
        House(client, world, breaker=breaker),
    )

    for house in (first, second):
        with pytest.raises(SessionTimeoutError):
            house.acquire(ANDROID, timeout_seconds=5)
    assert world.statuses()[1] == "stopped"
    with pytest.raises(NotAttemptedError, match="not ready after 5 s"):
        first.acquire(ANDROID, timeout_seconds=5)

    assert world.statuses() == ["stopped", "stopped"]
    assert world.requests.count("create") == 2


@pytest.mark.parametrize("at", ["create", "get", "stop"])
def test_an_interrupt_leaves_nothing(house: House, world: World, at: str) -> None:
    def interrupt(
        _request: httpx.Request, carry_out: Callable[[], httpx.Response]
    ) -> httpx.Response:
        carry_out()
        raise KeyboardInterrupt

    world.faults[at] = [lambda _request, carry_out: carry_out(), interrupt]

    with pytest.raises(KeyboardInterrupt):
        house.pool.release(house.acquire(ANDROID, IOS), lambda _need: False)
    house.pool.close()

    assert set(world.statuses()) <= {"stopped", "new"}
    # Its answer is lost.
    assert sum(status == "new" for status in world.statuses()) == (
        1 if at == "create" else 0
    )


def test_if_one_of_several_fails_new_sessions_are_stopped_and_existing_ones_stay(
    house: House, world: World
) -> None:
    first = house.use(ANDROID)
    world.faults["get"] = [lambda _request, carry_out: carry_out(), *turns_errored(1)]

    with pytest.raises(SessionFailedError):
        house.acquire(ANDROID, IOS, IOS)

    assert sorted(world.statuses()) == ["in-progress", "stopped", "stopped"]
    assert house.use(ANDROID).id == first.id


def test_all_sessions_are_stopped_even_if_a_hook_raises(
    house: House, world: World
) -> None:
    taken = house.acquire(ANDROID, IOS)

    def hook(_session: Session) -> None:
        raise HookError

    house.hook = hook

    with pytest.raises(HookError):
        house.pool.release(taken, lambda _need: False)

    assert world.statuses() == ["stopped", "stopped"]


def test_all_sessions_are_stopped_even_if_one_cannot_be(
    house: House, world: World
) -> None:
    taken = house.acquire(ANDROID, IOS)
    refused = str(taken[0].session.id)

    def refuse(
        request: httpx.Request, carry_out: Callable[[], httpx.Response]
    ) -> httpx.Response:
        return httpx.Response(403) if refused in request.url.path else carry_out()

    world.faults["stop"] = [refuse] * 10

    with pytest.raises(StopFailedError):
        house.pool.release(taken, lambda _need: False)

    assert sorted(world.statuses()) == ["in-progress", "stopped"]


def test_several_sessions_are_stopped_concurrently_and_reported_in_order(
    house: House, world: World
) -> None:
    meeting = threading.Barrier(2)

    def meet(
        _request: httpx.Request, carry_out: Callable[[], httpx.Response]
    ) -> httpx.Response:
        meeting.wait(60)
        return carry_out()

    world.faults["stop"] = [meet, meet]

    house.pool.release(house.acquire(ANDROID, IOS), lambda _need: False)

    assert world.statuses() == ["stopped", "stopped"]
    assert world.kinds()[-2:] == [Stopped, Stopped]
    assert house.threads == {threading.current_thread().name}


def test_the_hook_is_called_before_the_stop(house: House, world: World) -> None:
    statuses: list[str] = []
    house.hook = lambda _session: statuses.extend(world.statuses())

    house.use(ANDROID, again=False)

    assert statuses == ["in-progress"]


def test_a_kept_session_is_reported_and_not_reused(house: House, world: World) -> None:
    (held,) = house.acquire(ANDROID)

    house.pool.keep(held)
    house.pool.close()

    assert world.statuses() == ["in-progress"]
    assert world.kinds()[-1] is Kept


def test_the_session_limit_is_never_exceeded(
    client: DeviceClient, world: World, tmp_path: Path
) -> None:
    def slots() -> Slots:
        clock = world.clock
        return Slots(
            tmp_path,
            2,
            holder="a run",
            timeout_seconds=60,
            clock=clock,
            sleep=clock.sleep,
            reporter=SilentReporter(),
        )

    here, there = (
        House(client, world, slots=slots()),
        House(client, world, slots=slots()),
    )
    here.use(ANDROID)
    (taken,) = there.acquire(ANDROID)

    here.use(IOS)  # what lies idle here gives way
    with pytest.raises(LeaseTimeoutError):
        there.acquire(IOS)

    assert world.statuses() == ["stopped", "in-progress", "in-progress"]
    here.pool.close()
    there.acquire(IOS)
    there.pool.release([taken], lambda _need: False)
    here.use(IOS)


def test_each_devices_time_counts_from_when_it_was_ready(
    house: House, world: World
) -> None:
    def still_new(
        _request: httpx.Request, carry_out: Callable[[], httpx.Response]
    ) -> httpx.Response:
        data = carry_out().json()["data"] | {"status": "new", "remoteConfig": None}
        return httpx.Response(200, json={"data": data})

    both = [lambda _request, carry_out: carry_out()] * 5
    # The first one is ready with the third look.
    world.faults["get"] = [
        *both,
        *[still_new] * 120,
    ]

    first, second = house.acquire(ANDROID, IOS)

    assert not first.has_left(15)
    assert second.has_left(15)
