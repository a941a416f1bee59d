"""A pool over the local service's application, for tests of who gets which session."""

import threading
from collections.abc import Callable
from typing import Any

import httpx

from pytest_device.sessions.client import DeviceClient
from pytest_device.sessions.device_session import Life, ProblemOf, may_have_created, unasked
from pytest_device.sessions.events import Event
from pytest_device.sessions.lifecycle import WaitPolicy
from pytest_device.sessions.models import Session
from pytest_device.sessions.pool import Held, Need, Pool
from pytest_device.sessions.pool import World as PoolWorld
from pytest_device.sessions.relay import Relay
from pytest_device.sessions.request import SessionRequest
from tests.sessions.world import APP_ID, Fault, World


def request(**arguments: Any) -> SessionRequest:
    defaults = {"app_id": APP_ID, "platform": "android", "type": "appium", "max_duration_minutes": 20}
    return SessionRequest.from_arguments(**(defaults | arguments))


ANDROID = Need(request(), "run", minutes=2)
IOS = Need(request(platform="ios"), "run", minutes=2)


def _policy(timeout_seconds: float) -> WaitPolicy:
    return WaitPolicy(timeout_seconds=timeout_seconds, jitter=0.0)


class House:
    """A pool over the local service's application, and what it was told."""

    def __init__(self, client: DeviceClient, world: World, **more: Any) -> None:
        self.world = world
        self.stopping: list[Session] = []
        self.hook: Callable[[Session], None] = self.stopping.append
        self.problem_of: ProblemOf = unasked
        self.threads: set[str] = set()
        """Those in which events were told."""

        relay = Relay(self._hear, clock=world.clock)

        def begin(asked: SessionRequest, policy: WaitPolicy) -> Life:
            return Life(
                client,
                asked,
                policy=policy,
                clock=world.clock,
                report=relay,
                problem_of=self._problem_of,
            )

        self.pool = Pool(
            PoolWorld(
                begin=begin,
                clock=world.clock,
                sleep=world.clock.sleep,
                leaves_unknown=may_have_created,
                stopping=self._stopping,
                relay=relay,
                **more,
            )
        )

    def _hear(self, event: Event) -> None:
        self.threads.add(threading.current_thread().name)
        self.world.events.append(event)

    def _problem_of(self, session: Session) -> str | None:
        return self.problem_of(session)

    def _stopping(self, held: Held) -> None:
        self.hook(held.session)

    def take(self, *needs: Need, timeout_seconds: float = 900.0) -> list[Held]:
        return self.pool.take(needs, _policy(timeout_seconds))

    def expect(self, *needs: Need) -> None:
        self.pool.expect(needs, _policy(900.0))

    def use(self, need: Need, *, again: bool = True) -> Session:
        """Take a session for a test and give it back."""
        (held,) = self.take(need)
        self.pool.give_back([held], lambda _need: again)
        return held.session


def turns_errored(times: int) -> list[Fault]:
    def fault(_request: httpx.Request, carry_out: Callable[[], httpx.Response]) -> httpx.Response:
        data = carry_out().json()["data"] | {"status": "errored", "remoteConfig": None}
        return httpx.Response(200, json={"data": data})

    return [fault] * times
