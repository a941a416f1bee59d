"""Clients and environment variables of agent-device and argent for a test."""

from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, TypeVar

import pytest

from pytest_device.controllers.agent_device import AgentDevice
from pytest_device.controllers.argent import Argent
from pytest_device.controllers.environment import ControllerEnvironment, environment_of, session_name
from pytest_device.plugin.provider.devices import providing
from pytest_device.plugin.state import USES, Use, check_type
from pytest_device.sessions.models import Session
from pytest_device.spec import SessionType

T = TypeVar("T", AgentDevice, Argent)


def variables(
    item: pytest.Item, name: str, session: Session, directories: pytest.TempPathFactory
) -> ControllerEnvironment:
    """Return the environment variables of one of a test's devices, always the same."""
    uses = item.stash.setdefault(USES, {})
    if name not in uses:
        with providing(item):
            uses[name] = Use(_environment(item, session, directories))
    return uses[name].environment


@contextmanager
def agent_devices(
    item: pytest.Item, sessions: Mapping[str, Session], directories: pytest.TempPathFactory
) -> Generator[Mapping[str, AgentDevice]]:
    """Provide an agent-device client for each session."""

    def client(name: str, session: Session) -> AgentDevice:
        return AgentDevice(session, variables(item, name, session, directories))

    with _clients(item, sessions, SessionType.AGENT_DEVICE, "device_agent_device", client) as clients:
        yield clients


@contextmanager
def argents(
    item: pytest.Item, sessions: Mapping[str, Session], directories: pytest.TempPathFactory
) -> Generator[Mapping[str, Argent]]:
    """Provide an argent client for each session."""

    def client(name: str, session: Session) -> Argent:
        variables(item, name, session, directories)
        return Argent(session)

    with _clients(item, sessions, SessionType.ARGENT, "device_argent", client) as clients:
        yield clients


@contextmanager
def _clients(
    item: pytest.Item,
    sessions: Mapping[str, Session],
    needed: SessionType,
    fixture: str,
    client: Callable[[str, Session], T],
) -> Generator[Mapping[str, T]]:
    clients: dict[str, T] = {}
    with ExitStack() as stack:
        with providing(item):
            for session in sessions.values():
                check_type(session, fixture, needed)
            for name, session in sessions.items():
                clients[name] = client(name, session)
                stack.callback(clients[name].disconnect)
                item.stash[USES][name].client = clients[name]
        yield clients


def _environment(item: pytest.Item, session: Session, directories: pytest.TempPathFactory) -> ControllerEnvironment:
    if session.type != SessionType.AGENT_DEVICE:
        return environment_of(session)
    given: dict[str, Any] = getattr(item.config, "workerinput", {})
    name = session_name(str(given.get("workerid", "")), item.nodeid)
    return environment_of(session, name=name, state_dir=directories.mktemp("agent-device"))
