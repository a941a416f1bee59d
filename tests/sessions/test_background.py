"""Sessions that start side by side, each polled when it is due; events that are reported late."""

import os
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_device import DeviceClient
from pytest_device.events import Created, Note, Ready, SessionRef
from pytest_device.sessions.reporter import Deferred, Relay
from tests.fakes.clock import FakeClock
from tests.fakes.network import FakeNetwork
from tests.fakes.reporter import RecordingReporter
from tests.sessions.pool_harness import ANDROID, PoolHarness, requirement
from tests.sessions.slots import slots_in_real_time

OF = SessionRef("ios appium", "one")


@pytest.fixture
def harness(client: DeviceClient, network: FakeNetwork) -> PoolHarness:
    return PoolHarness(client, network.clock)


def test_a_session_taken_over_is_polled_when_it_is_due(
    harness: PoolHarness, network: FakeNetwork
) -> None:
    session = harness.new_session(ANDROID)
    began = network.clock()
    session.advance()
    network.clock.sleep(4)

    harness.wait_for(session)

    assert network.clock() - began == 15
    assert network.requests == ["create", "get", "get", "get"]


def test_each_of_several_sessions_is_polled_at_its_own_pace(
    harness: PoolHarness, network: FakeNetwork
) -> None:
    often = harness.new_session(ANDROID, poll_interval_seconds=2)
    seldom = harness.new_session(ANDROID, poll_interval_seconds=12)

    harness.wait_for(often, seldom)

    assert network.requests.count("get") == 6 + 1


def test_a_ready_session_is_not_polled_again(
    harness: PoolHarness, network: FakeNetwork
) -> None:
    session = harness.new_session(ANDROID)
    harness.wait_for(session)
    requests = list(network.requests)

    harness.wait_for(session)

    assert network.requests == requests


def test_an_idle_background_has_no_thread_and_ends_immediately(
    harness: PoolHarness,
) -> None:
    harness.prefetch()
    harness.pool.close()

    assert "pytest-device-background" not in {
        thread.name for thread in threading.enumerate()
    }


def test_deferred_events_are_reported_once_in_order_with_their_delay() -> None:
    clock, recorder, kept = FakeClock(), RecordingReporter(), Deferred()
    relay = Relay(recorder.event, clock=clock)

    with relay.deferring(kept):
        relay.event(Created(OF))
        clock.sleep(2)
        relay.event(Ready(OF))
    relay.event(Note("one"))
    clock.sleep(3)
    relay.deliver(kept)
    relay.deliver(kept)

    assert recorder.events == [
        Note("one"),
        Created(replace(OF, late_seconds=5)),
        Ready(replace(OF, late_seconds=3)),
    ]


def test_one_thread_does_not_defer_the_events_of_another() -> None:
    recorder, kept = RecordingReporter(), Deferred()
    relay = Relay(recorder.event)

    with relay.deferring(kept):
        other = threading.Thread(target=relay.event, args=[Note("one")])
        other.start()
        other.join()

    assert [type(event) for event in recorder.events] == [Note]
    assert kept == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
# What is tested is what the child does not do.
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_does_not_prefetch(
    harness: PoolHarness, network: FakeNetwork
) -> None:
    if not (child := os.fork()):
        harness.prefetch(ANDROID)
        os._exit(len(threading.enumerate()) - 1 + len(network.requests))

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


class CompetingPools:
    """Pools of several processes, here threads, that each acquire both of the two available sessions."""

    def __init__(self, client: DeviceClient, network: FakeNetwork, slots: Path) -> None:
        self._client, self._network, self._slots = client, network, slots
        self._in_use, self._lock = 0, threading.Lock()
        self.most = self.tests = 0

    def run(self) -> None:
        """Keep one session from test to test, and have another one beside it for each test, booted ahead."""
        slots = slots_in_real_time(
            self._slots, 2, timeout_seconds=300, pause_seconds=0.01
        )
        harness = PoolHarness(self._client, self._network.clock, slots=slots)
        kept = requirement(max_duration_minutes=60)
        for fresh in FRESH:
            held = harness.acquire(kept, fresh)
            self._count(len(held))
            self._count(-len(held))
            harness.pool.release(held, lambda need: int(need == kept))
            harness.prefetch(kept, *FRESH[FRESH.index(fresh) + 1 :])
        harness.pool.close()

    def _count(self, more: int) -> None:
        with self._lock:
            self._in_use += more
            self.most = max(self.most, self._in_use)
            self.tests += more > 0


FRESH = [
    requirement(f"test {number}", platform="ios", max_duration_minutes=60)
    for number in range(3)
]


def test_many_processes_that_need_both_slots_and_reuse_one_do_not_deadlock(
    client: DeviceClient, network: FakeNetwork, tmp_path: Path
) -> None:
    pools = CompetingPools(client, network, tmp_path)
    members = [threading.Thread(target=pools.run, daemon=True) for _ in range(3)]
    for member in members:
        member.start()
    for member in members:
        member.join(60)

    assert pools.tests == 9
    assert pools.most == 2
    assert set(network.statuses()) == {"stopped"}
