"""The service, a network in front of it, a clock and a reporter, for tests of a session's lifecycle."""

from collections.abc import Callable
from dataclasses import dataclass, field

import httpx

from pytest_device.service.runners.simulated import SimulatedRunner
from pytest_device.service.sessions import Sessions
from pytest_device.sessions.events import Event, Note, Queued, SessionRef
from pytest_device.testing import FakeClock

APP_ID = "7d7a1f0e-0f4c-4f2e-9b0a-0c9d6a1f2b3c"
TOKEN = "open-sesame-open"
URL = "http://127.0.0.1:1"

Fault = Callable[[httpx.Request, Callable[[], httpx.Response]], httpx.Response]
"""What the network does to one request: forward it or not, and return any response."""


@dataclass
class World:
    clock: FakeClock
    runner: SimulatedRunner
    held: Sessions
    faults: dict[str, list[Fault]] = field(default_factory=dict[str, list[Fault]])
    requests: list[str] = field(default_factory=list[str])
    answered: list[str] = field(default_factory=list[str])
    events: list[Event] = field(default_factory=list[Event])

    def statuses(self) -> list[str]:
        self.held.sweep()
        return [session.status for session in self.held]

    def kinds(self) -> list[type[Event]]:
        return [type(event) for event in self.events]


def ref_of(event: Event) -> SessionRef:
    """Return the session of an event that has one."""
    assert not isinstance(event, Note | Queued)
    return event.session
