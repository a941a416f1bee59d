"""Controllers: small ones with the replies of a test, and the real Appium of the local service."""

from collections.abc import Callable, Generator
from uuid import UUID

import psutil
import pytest

from pytest_device.controllers.health import problem_of
from pytest_device.sessions.client import DeviceClient
from pytest_device.sessions.models import Session
from pytest_device.sessions.request import SessionRequest
from pytest_device.spec import Platform, SessionType
from pytest_device.testing import FaultyService, faulty_service
from tests.fakes.http_server import ScriptedServer, scripted_server
from tests.waiting import eventually


@pytest.fixture
def controller() -> Generator[ScriptedServer]:
    with scripted_server() as server:
        yield server


@pytest.fixture(scope="module")
def appium_service() -> Generator[FaultyService]:
    with faulty_service(runner="real") as service:
        yield service


@pytest.fixture(scope="module")
def booted(appium_service: FaultyService) -> Generator[Callable[[], Session]]:
    """Provide a factory of a session in progress with a real Appium, which it reuses while it lives."""
    service, sessions = appium_service, list[Session]()

    def boot() -> Session:
        if sessions and problem_of(sessions[-1]) is None:
            return sessions[-1]
        session_id = client.create(request).id
        assert eventually(lambda: client.get(session_id).remote_config is not None)
        sessions.append(client.get(session_id))
        return sessions[-1]

    with DeviceClient(service.url, service.token) as client:
        request = SessionRequest(
            app_id=UUID(service.app_id),
            platform=Platform.ANDROID,
            type=SessionType.APPIUM,
            device_identifier="fake",
        )
        yield boot
        for session in sessions:
            client.stop(session.id)


@pytest.fixture
def appium(booted: Callable[[], Session]) -> Session:
    """Provide a session in progress with a real Appium behind it."""
    return booted()


@pytest.fixture
def kill_appium(appium: Session) -> Callable[[], None]:
    """Kill the Appium server of the session."""

    def kill() -> None:
        servers = [
            p
            for p in psutil.process_iter(["cwd"])
            if str(appium.id) in (p.info["cwd"] or "")
        ]
        assert servers
        for server in servers:
            server.kill()
        psutil.wait_procs(servers)

    return kill
