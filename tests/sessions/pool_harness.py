"""A pool over the local service's application, for tests of session assignment."""

import threading
from collections.abc import Callable, Iterable
from typing import Any

import httpx

from pytest_device import Session, SessionClient, SessionRequest, WaitPolicy
from pytest_device.events import Event
from pytest_device.report.verdict import verdict_of
from pytest_device.sessions.attempt import ProblemOf, SessionConfig, WarmSession
from pytest_device.sessions.breaker import Breaker, LocalBreaker, Permits
from pytest_device.sessions.device_session import DeviceSession, advance_due
from pytest_device.sessions.lifecycle import skip_controller_check
from pytest_device.sessions.pool import Pool
from pytest_device.sessions.quota import Slots
from pytest_device.sessions.reporter import Relay
from pytest_device.sessions.request import DeviceRequirement
from tests.fakes.clock import FakeClock
from tests.fakes.local_service import APP_ID
from tests.fakes.network import FakeNetwork, Fault
from tests.fakes.reporter import RecordingReporter


def requirement(
    sharing_key: str = "run", *, minutes: int = 2, **arguments: Any
) -> DeviceRequirement:
    """Return what a test needs: the arguments of a request, how long, and with whom it shares."""
    defaults = {
        "app_id": APP_ID,
        "platform": "android",
        "type": "appium",
        "max_duration_minutes": 20,
    }
    request = SessionRequest.from_arguments(**(defaults | arguments))
    return DeviceRequirement(request, sharing_key, minutes)


ANDROID = requirement()
IOS = requirement(platform="ios")


def shared_breaker(network: FakeNetwork) -> Breaker:
    """Return what the processes of a run share: which of their attempts have failed."""
    return LocalBreaker(2, network.clock)


def _policy(timeout_seconds: float) -> WaitPolicy:
    return WaitPolicy(timeout_seconds=timeout_seconds, jitter=0.0)


class PoolHarness(RecordingReporter):
    """A process's pool, what it works with, and what was reported.

    ``left_warm`` are sessions of an earlier run, ``keep_warm`` returns until when a session is kept warm.
    """

    def __init__(
        self,
        client: SessionClient,
        clock: FakeClock,
        *,
        attempts: int = 1,
        breaker: Breaker | None = None,
        slots: Slots | None = None,
        left_warm: Iterable[DeviceSession] = (),
        keep_warm: Callable[[DeviceSession], str | None] = lambda _session: None,
    ) -> None:
        super().__init__()
        self.clock = clock
        self.stopping: list[Session] = []
        self.hook: Callable[[Session], None] = self.stopping.append
        self.problem_of: ProblemOf = skip_controller_check
        self.threads: set[str] = set()
        """The threads that reported events."""
        self.keep_warm = keep_warm
        self._left_warm = list(left_warm)
        self._config = SessionConfig(
            client,
            clock,
            Relay(self.event, clock=clock),
            self._problem_of,
            attempts=attempts,
            permits=Permits(breaker, verdict_of=verdict_of),
        )
        self.pool = Pool(
            self._config,
            sleep=clock.sleep,
            warm=self,
            before_stop=lambda session: self.hook(session.session),
            slots=slots,
        )

    def make_room(self) -> bool:
        """Keep all warm sessions."""
        return False

    def claim(self, requirement: DeviceRequirement) -> WarmSession | None:
        """Take over a session of an earlier run: the pool asks before it creates one."""
        for left in self._left_warm:
            if left.requirement == requirement:
                self._left_warm.remove(left)
                return WarmSession(left.session, left.ready_at or 0.0)
        return None

    def _problem_of(self, session: Session) -> str | None:
        return self.problem_of(session)

    def event(self, event: Event) -> None:
        self.threads.add(threading.current_thread().name)
        super().event(event)

    def acquire(
        self, *requirements: DeviceRequirement, timeout_seconds: float = 900.0
    ) -> list[DeviceSession]:
        return self.pool.acquire(requirements, _policy(timeout_seconds))

    def prefetch(self, *requirements: DeviceRequirement) -> None:
        self.pool.prefetch(requirements, _policy(900.0))

    def use(
        self,
        requirement: DeviceRequirement,
        *,
        again: bool = True,
        timeout_seconds: float = 900.0,
    ) -> Session:
        """Acquire a session for a test and release it; ``again`` if a later test needs it."""
        (held,) = self.acquire(requirement, timeout_seconds=timeout_seconds)
        self.pool.release([held], lambda _requirement: int(again))
        return held.session

    def new_session(
        self,
        requirement: DeviceRequirement,
        *,
        timeout_seconds: float = 900.0,
        poll_interval_seconds: float = 5.0,
    ) -> DeviceSession:
        """Return a session that the pool does not have, and that is not created yet."""
        policy = WaitPolicy(timeout_seconds, poll_interval_seconds, jitter=0.0)
        return DeviceSession(requirement, policy, self._config)

    def wait_for(self, *sessions: DeviceSession) -> None:
        """Advance sessions, each when it is due, until all are ready."""
        while waiting := [session for session in sessions if not session.is_ready]:
            advance_due(waiting, self.clock, self.clock.sleep)


def turns_errored(times: int) -> list[Fault]:
    def fault(
        _request: httpx.Request, carry_out: Callable[[], httpx.Response]
    ) -> httpx.Response:
        data = carry_out().json()["data"] | {"status": "errored", "remoteConfig": None}
        return httpx.Response(200, json={"data": data})

    return [fault] * times
