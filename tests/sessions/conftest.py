"""A client over the local service's application, in this process, on one clock."""

import signal
import threading
from collections.abc import Callable, Generator

import httpx
import pytest

from pytest_device.service.accounts import AccessToken, Account, Accounts, Role
from pytest_device.service.api import create_app
from pytest_device.service.runners.simulated import SimulatedRunner
from pytest_device.service.sessions import Sessions
from pytest_device.sessions.client import DeviceClient
from pytest_device.testing import FakeClock, FaultyService, faulty_service
from tests.in_process import transport_of
from tests.service.world import memory_store
from tests.sessions.world import APP_ID, TOKEN, URL, World


@pytest.fixture
def world() -> World:
    clock = FakeClock(1_800_000_000.0)
    runner = SimulatedRunner(clock=clock, boot_seconds=12)
    return World(
        clock, runner, Sessions(store=memory_store(), runner=runner, clock=clock)
    )


@pytest.fixture
def client(world: World) -> DeviceClient:
    account = Account(frozenset({APP_ID}), (AccessToken.of(TOKEN, Role.ADMIN),))
    app = transport_of(
        create_app(sessions=world.held, accounts=Accounts([account]), base_url=URL)
    )
    # A service has one thread, its clients may have several.
    one_at_a_time = threading.Lock()

    def carry_out(request: httpx.Request) -> httpx.Response:
        with one_at_a_time:
            return app.handle_request(request)

    def handle(request: httpx.Request) -> httpx.Response:
        operation = {"GET": "get"}.get(
            request.method, "stop" if request.url.path.endswith("/stop") else "create"
        )
        world.requests.append(operation)
        faults = world.faults.get(operation, [])
        fault = faults.pop(0) if faults else _none
        reply = fault(request, lambda: carry_out(request))
        world.answered.append(operation)
        return reply

    return DeviceClient(
        URL, TOKEN, transport=httpx.MockTransport(handle), sleep=world.clock.sleep
    )


def _none(
    _request: httpx.Request, carry_out: Callable[[], httpx.Response]
) -> httpx.Response:
    return carry_out()


@pytest.fixture(scope="module")
def running_service() -> Generator[FaultyService]:
    with faulty_service() as service:
        yield service


@pytest.fixture
def service(running_service: FaultyService) -> FaultyService:
    """The local service as a process of its own, without faults of another test."""
    running_service.reset()
    return running_service


@pytest.fixture(autouse=True)
def _interruptible() -> Generator[None]:
    """Let SIGINT interrupt a test, also where the tests are a shell's background job, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
