"""A pool over the local service's application, for tests of session assignment."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

import httpx

from pytest_device import DeviceClient, Session, SessionRequest, WaitPolicy
from pytest_device.events import Event
from pytest_device.sessions.breaker import Breaker, Permits
from pytest_device.sessions.device_session import (
    DeviceSession,
    ProblemOf,
    SessionConfig,
    WarmSession,
)
from pytest_device.sessions.lifecycle import skip_controller_check
from pytest_device.sessions.pool import Pool
from pytest_device.sessions.quota import Slots
from pytest_device.sessions.reporter import Relay
from pytest_device.sessions.request import DeviceRequirement
from tests.fakes.local_service import APP_ID
from tests.fakes.network import FakeNetwork, Fault
from tests.fakes.reporter import RecordingReporter


def request(**arguments: Any) -> SessionRequest:
    defaults = {
        "app_id": APP_ID,
        "platform": "android",
        "type": "appium",
        "max_duration_minutes": 20,
    }
    return SessionRequest.from_arguments(**(defaults | arguments))


ANDROID = DeviceRequirement(request(), "run", minutes=2)
IOS = DeviceRequirement(request(platform="ios"), "run", minutes=2)


def _policy(timeout_seconds: float) -> WaitPolicy:
    return WaitPolicy(timeout_seconds=timeout_seconds, jitter=0.0)


class PoolHarness(RecordingReporter):
    """A pool over the local service's application, what it works with, and what was reported."""

    def __init__(
        self,
        client: DeviceClient,
        network: FakeNetwork,
        *,
        attempts: int = 1,
        breaker: Breaker | None = None,
        slots: Slots | None = None,
        claim: Callable[
            [DeviceRequirement], WarmSession | None
        ] = lambda _requirement: None,
        keep_warm: Callable[[DeviceSession], str | None] = lambda _session: None,
    ) -> None:
        super().__init__()
        self.network = network
        self.stopping: list[Session] = []
        self.hook: Callable[[Session], None] = self.stopping.append
        self.problem_of: ProblemOf = skip_controller_check
        self.threads: set[str] = set()
        """The threads that reported events."""
        self.keep_warm, self._claim = keep_warm, claim
        relay = Relay(self.event, clock=network.clock)
        permits = Permits(breaker)
        config = SessionConfig(
            client,
            network.clock,
            relay,
            self._problem_of,
            attempts=attempts,
            permits=permits,
        )
        self.pool = Pool(
            config,
            sleep=network.clock.sleep,
            warm=self,
            before_stop=self._before_stop,
            slots=slots,
        )

    def claim(
        self,
        need: DeviceRequirement,
        upcoming: Callable[[], Sequence[DeviceRequirement]],
    ) -> WarmSession | None:
        del upcoming
        return self._claim(need)

    def _before_stop(self, session: DeviceSession) -> None:
        self.hook(session.session)

    def event(self, event: Event) -> None:
        self.threads.add(threading.current_thread().name)
        super().event(event)

    def _problem_of(self, session: Session) -> str | None:
        return self.problem_of(session)

    def acquire(
        self, *needs: DeviceRequirement, timeout_seconds: float = 900.0
    ) -> list[DeviceSession]:
        return self.pool.acquire(needs, _policy(timeout_seconds))

    def prefetch(self, *needs: DeviceRequirement) -> None:
        self.pool.prefetch(needs, _policy(900.0))

    def use(self, need: DeviceRequirement, *, again: bool = True) -> Session:
        """Acquire a session for a test and release it."""
        (held,) = self.acquire(need)
        self.pool.release([held], lambda _need: int(again))
        return held.session


def turns_errored(times: int) -> list[Fault]:
    def fault(
        _request: httpx.Request, carry_out: Callable[[], httpx.Response]
    ) -> httpx.Response:
        data = carry_out().json()["data"] | {"status": "errored", "remoteConfig": None}
        return httpx.Response(200, json={"data": data})

    return [fault] * times
