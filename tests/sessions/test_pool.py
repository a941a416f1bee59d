"""Assignment of sessions: shared by equal requirements, replaced when spent or lost, always stopped."""

import threading
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from pytest_device import (
    AppiumConfig,
    DeviceClient,
    LeaseTimeoutError,
    NotAttemptedError,
    Session,
    SessionFailedError,
    SessionTimeoutError,
    StopFailedError,
)
from pytest_device.events import (
    Created,
    Kept,
    Ready,
    StartFailed,
    StateChanged,
    Stopped,
    Unused,
    detail_of,
)
from tests.fakes.network import FakeNetwork, Fault
from tests.sessions.pool_harness import (
    ANDROID,
    IOS,
    PoolHarness,
    requirement,
    shared_breaker,
    turns_errored,
)
from tests.sessions.slots import slots_at


class HookError(Exception):
    """What a suite's hook raises."""


@pytest.fixture
def harness(client: DeviceClient, network: FakeNetwork) -> PoolHarness:
    return PoolHarness(client, network.clock)


def test_equal_requirements_share_a_session_one_after_the_other(
    harness: PoolHarness,
) -> None:
    assert harness.use(ANDROID).id == harness.use(ANDROID).id != harness.use(IOS).id


def _returns(**fields: object) -> Fault:
    def fault(
        _request: httpx.Request, carry_out: Callable[[], httpx.Response]
    ) -> httpx.Response:
        return httpx.Response(200, json={"data": carry_out().json()["data"] | fields})

    return fault


def test_the_next_test_gets_the_current_connection_details_of_a_session(
    harness: PoolHarness, network: FakeNetwork
) -> None:
    first = harness.use(ANDROID)
    rotated = {"appiumUrl": "http://127.0.0.1:2/rotated", "capabilities": {}}
    network.faults["get"] = [_returns(remoteConfig=rotated)]

    second = harness.use(ANDROID)

    assert (second.id, second.remote_config) == (
        first.id,
        AppiumConfig.model_validate(rotated),
    )


def test_the_next_test_keeps_the_connection_details_if_the_service_returns_another_session(
    harness: PoolHarness, network: FakeNetwork
) -> None:
    first = harness.use(ANDROID)
    rotated = {"appiumUrl": "http://127.0.0.1:2/other", "capabilities": {}}
    network.faults["get"] = [
        _returns(id="7d7a1f0e-0f4c-4f2e-9b0a-0c9d6a1f2b3d", remoteConfig=rotated)
    ]

    assert harness.use(ANDROID) == first


def test_sessions_with_another_sharing_key_are_not_shared(harness: PoolHarness) -> None:
    assert harness.use(ANDROID).id != harness.use(requirement("module test_a.py")).id


def test_two_equal_devices_of_one_test_are_two_sessions(harness: PoolHarness) -> None:
    first, second = harness.acquire(ANDROID, ANDROID)

    assert first.session.id != second.session.id


def test_several_devices_boot_concurrently(
    harness: PoolHarness, network: FakeNetwork
) -> None:
    began = network.clock()

    harness.acquire(ANDROID, IOS)

    assert (
        network.clock() - began == 15
    )  # as one does: a boot of 12 s, looked at every 5
    assert network.requests[:2] == ["create", "create"]


def test_a_session_is_stopped_as_soon_as_no_test_needs_it(
    harness: PoolHarness, network: FakeNetwork
) -> None:
    harness.use(ANDROID)
    harness.use(IOS, again=False)

    assert network.statuses() == ["stopped", "stopped"]


def test_a_session_with_too_little_time_left_is_replaced(
    harness: PoolHarness, network: FakeNetwork
) -> None:
    first = harness.use(ANDROID)
    network.clock.sleep(17 * 60)
    assert harness.use(ANDROID).id == first.id

    network.clock.sleep(60)

    assert harness.use(ANDROID).id != first.id
    assert network.statuses() == ["stopped", "in-progress"]


def test_a_new_session_is_used_even_if_it_lasts_no_longer_than_required(
    harness: PoolHarness,
) -> None:
    need = requirement(max_duration_minutes=2)

    assert harness.use(need).id != harness.use(need).id


def test_a_session_stopped_by_someone_else_is_replaced(
    harness: PoolHarness, network: FakeNetwork
) -> None:
    first = harness.use(ANDROID)
    network.service.sessions.stop(str(first.id), "by somebody else")

    assert harness.use(ANDROID).id != first.id


def test_a_session_that_cannot_be_looked_up_is_used(
    harness: PoolHarness, network: FakeNetwork
) -> None:
    first = harness.use(ANDROID)
    network.faults["get"] = [lambda _request, _carry_out: httpx.Response(503)] * 3

    assert harness.use(ANDROID).id == first.id


def test_a_lost_session_is_not_reused(
    harness: PoolHarness, network: FakeNetwork
) -> None:
    (held,) = harness.acquire(ANDROID)
    harness.pool.mark_unusable([held])

    harness.pool.release([held], lambda _need: 1)

    assert network.statuses() == ["stopped"]


def test_a_failed_boot_is_retried_with_a_new_session_and_counted(
    client: DeviceClient, network: FakeNetwork
) -> None:
    harness = PoolHarness(client, network.clock, attempts=2)
    network.faults["get"] = turns_errored(1)

    harness.acquire(ANDROID, IOS)

    assert [
        type(event) for event in harness.events if isinstance(event, StartFailed)
    ] == [StartFailed]
    assert network.requests.count("create") == 3
    assert sum(isinstance(event, Ready) for event in harness.events) == 2
    assert network.requests.count("stop") == 1


def test_a_session_is_ready_when_its_controller_responds(
    harness: PoolHarness, network: FakeNetwork
) -> None:
    problems = ["its daemon does not answer"] * 3
    harness.problem_of = lambda _session: problems.pop() if problems else None

    began = network.clock()

    (held,) = harness.acquire(ANDROID)

    # A boot of 12 s, looked at every 5, and three times for the controller.
    assert network.clock() - began == 18
    assert harness.kinds() == [Created, StateChanged, Ready]
    assert detail_of(harness.events[1]) == "in-progress, but its daemon does not answer"
    assert held.ready_at == began + 10


def test_a_session_with_a_dead_controller_counts_as_failed_and_is_retried(
    client: DeviceClient, network: FakeNetwork
) -> None:
    harness = PoolHarness(client, network.clock, attempts=2)
    dead: list[Session] = []

    def problem_of(session: Session) -> str | None:
        dead[:] = dead or [session]
        return (
            "its daemon answers with status 502" if session.id == dead[0].id else None
        )

    harness.problem_of = problem_of

    harness.acquire(ANDROID, IOS)

    (failed,) = [event for event in harness.events if isinstance(event, StartFailed)]
    assert (
        failed.reason
        == f"the session is in progress, but its daemon answers with status 502 ({dead[0].url})"
    )
    assert sorted(network.statuses()) == ["in-progress", "in-progress", "stopped"]


def test_a_controller_that_is_dead_in_each_attempt_is_reported_with_the_session_page(
    client: DeviceClient, network: FakeNetwork
) -> None:
    harness = PoolHarness(client, network.clock, attempts=2)
    harness.problem_of = lambda _session: "its daemon answers with status 502"

    with pytest.raises(
        SessionFailedError,
        match=r"in progress, but its daemon answers with status 502 \(http",
    ):
        harness.acquire(ANDROID)

    assert network.statuses() == ["stopped", "stopped"]


def test_start_attempts_are_limited(client: DeviceClient, network: FakeNetwork) -> None:
    harness = PoolHarness(client, network.clock, attempts=3)
    network.faults["get"] = turns_errored(3)

    with pytest.raises(SessionFailedError):
        harness.acquire(ANDROID)

    assert network.requests.count("create") == network.requests.count("stop") == 3


def test_a_session_that_times_out_is_not_retried(
    client: DeviceClient, network: FakeNetwork
) -> None:
    harness = PoolHarness(client, network.clock, attempts=3)

    with pytest.raises(SessionTimeoutError):
        harness.acquire(ANDROID, timeout_seconds=5)

    harness.pool.close()
    assert network.statuses() == ["stopped"]
    assert Unused not in harness.kinds()  # a test has waited for it


def test_concurrent_boots_time_out_together(
    client: DeviceClient, network: FakeNetwork
) -> None:
    breaker = shared_breaker(network)
    first, second = (
        PoolHarness(client, network.clock, breaker=breaker),
        PoolHarness(client, network.clock, breaker=breaker),
    )

    for harness in (first, second):
        with pytest.raises(SessionTimeoutError):
            harness.acquire(ANDROID, timeout_seconds=5)
    assert network.statuses()[1] == "stopped"
    with pytest.raises(NotAttemptedError, match="not ready after 5 s"):
        first.acquire(ANDROID, timeout_seconds=5)

    assert network.statuses() == ["stopped", "stopped"]
    assert network.requests.count("create") == 2


@pytest.mark.parametrize("at", ["create", "get", "stop"])
def test_an_interrupt_leaves_nothing(
    harness: PoolHarness, network: FakeNetwork, at: str
) -> None:
    def interrupt(
        _request: httpx.Request, carry_out: Callable[[], httpx.Response]
    ) -> httpx.Response:
        carry_out()
        raise KeyboardInterrupt

    network.faults[at] = [lambda _request, carry_out: carry_out(), interrupt]

    with pytest.raises(KeyboardInterrupt):
        harness.pool.release(harness.acquire(ANDROID, IOS), lambda _need: 0)
    harness.pool.close()

    assert set(network.statuses()) <= {"stopped", "new"}
    # Its answer is lost.
    assert sum(status == "new" for status in network.statuses()) == (
        1 if at == "create" else 0
    )


def test_if_one_of_several_fails_new_sessions_are_stopped_and_existing_ones_stay(
    harness: PoolHarness, network: FakeNetwork
) -> None:
    first = harness.use(ANDROID)
    network.faults["get"] = [lambda _request, carry_out: carry_out(), *turns_errored(1)]

    with pytest.raises(SessionFailedError):
        harness.acquire(ANDROID, IOS, IOS)

    assert sorted(network.statuses()) == ["in-progress", "stopped", "stopped"]
    assert harness.use(ANDROID).id == first.id


def test_all_sessions_are_stopped_even_if_a_hook_raises(
    harness: PoolHarness, network: FakeNetwork
) -> None:
    taken = harness.acquire(ANDROID, IOS)

    def hook(_session: Session) -> None:
        raise HookError

    harness.hook = hook

    with pytest.raises(HookError):
        harness.pool.release(taken, lambda _need: 0)

    assert network.statuses() == ["stopped", "stopped"]


def test_all_sessions_are_stopped_even_if_one_cannot_be(
    harness: PoolHarness, network: FakeNetwork
) -> None:
    taken = harness.acquire(ANDROID, IOS)
    refused = str(taken[0].session.id)

    def refuse(
        request: httpx.Request, carry_out: Callable[[], httpx.Response]
    ) -> httpx.Response:
        return httpx.Response(403) if refused in request.url.path else carry_out()

    network.faults["stop"] = [refuse] * 10

    with pytest.raises(StopFailedError):
        harness.pool.release(taken, lambda _need: 0)

    assert sorted(network.statuses()) == ["in-progress", "stopped"]


def test_several_sessions_are_stopped_concurrently_and_reported_in_order(
    harness: PoolHarness, network: FakeNetwork
) -> None:
    meeting = threading.Barrier(2)

    def meet(
        _request: httpx.Request, carry_out: Callable[[], httpx.Response]
    ) -> httpx.Response:
        meeting.wait(60)
        return carry_out()

    network.faults["stop"] = [meet, meet]

    harness.pool.release(harness.acquire(ANDROID, IOS), lambda _need: 0)

    assert network.statuses() == ["stopped", "stopped"]
    assert harness.kinds()[-2:] == [Stopped, Stopped]
    assert harness.threads == {threading.current_thread().name}


def test_the_hook_is_called_before_the_stop(
    harness: PoolHarness, network: FakeNetwork
) -> None:
    statuses: list[str] = []
    harness.hook = lambda _session: statuses.extend(network.statuses())

    harness.use(ANDROID, again=False)

    assert statuses == ["in-progress"]


def test_a_kept_session_is_reported_and_not_reused(
    harness: PoolHarness, network: FakeNetwork
) -> None:
    (held,) = harness.acquire(ANDROID)

    harness.pool.keep(held)
    harness.pool.close()

    assert network.statuses() == ["in-progress"]
    assert harness.kinds()[-1] is Kept


def test_the_session_limit_is_never_exceeded(
    client: DeviceClient, network: FakeNetwork, tmp_path: Path
) -> None:
    here, there = (
        PoolHarness(
            client, network.clock, slots=slots_at(tmp_path, 2, clock=network.clock)
        )
        for _ in range(2)
    )
    here.use(ANDROID)
    (taken,) = there.acquire(ANDROID)

    here.use(IOS)  # what lies idle here gives way
    with pytest.raises(LeaseTimeoutError):
        there.acquire(IOS)

    assert network.statuses() == ["stopped", "in-progress", "in-progress"]
    here.pool.close()
    there.acquire(IOS)
    there.pool.release([taken], lambda _need: 0)
    here.use(IOS)


def test_each_devices_time_counts_from_when_it_was_ready(
    harness: PoolHarness, network: FakeNetwork
) -> None:
    def still_new(
        _request: httpx.Request, carry_out: Callable[[], httpx.Response]
    ) -> httpx.Response:
        data = carry_out().json()["data"] | {"status": "new", "remoteConfig": None}
        return httpx.Response(200, json={"data": data})

    both = [lambda _request, carry_out: carry_out()] * 5
    # The first one is ready with the third look.
    network.faults["get"] = [
        *both,
        *[still_new] * 120,
    ]

    first, second = harness.acquire(ANDROID, IOS)

    assert not first.has_left(15)
    assert second.has_left(15)
