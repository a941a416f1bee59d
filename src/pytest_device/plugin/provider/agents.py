"""Clients and environment variables of agent-device and argent for a test."""

from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, Final, TypeVar

import pytest

from pytest_device.controllers.agent_device import AgentDevice
from pytest_device.controllers.argent import Argent
from pytest_device.controllers.environment import (
    ControllerEnvironment,
    environment_of,
    session_name,
)
from pytest_device.plugin.output.recording import device_recorder
from pytest_device.plugin.state import ACCESSES, ControllerAccess, check_type, providing
from pytest_device.sessions.models import Session
from pytest_device.spec import SessionType

T = TypeVar("T", AgentDevice, Argent)

_NEEDED: Final[Mapping[type[AgentDevice | Argent], tuple[str, SessionType]]] = {
    AgentDevice: ("device_agent_device", SessionType.AGENT_DEVICE),
    Argent: ("device_argent", SessionType.ARGENT),
}
"""The fixture of each client, and the session type that it needs."""


def variables(
    item: pytest.Item, name: str, session: Session, directories: pytest.TempPathFactory
) -> ControllerEnvironment:
    """Return the environment variables of one of a test's devices, the same for each call."""
    accesses = item.stash.setdefault(ACCESSES, {})
    if name not in accesses:
        with providing(item):
            accesses[name] = ControllerAccess(_environment(item, session, directories))
    return accesses[name].environment


@contextmanager
def clients(
    kind: type[T],
    item: pytest.Item,
    sessions: Mapping[str, Session],
    directories: pytest.TempPathFactory,
) -> Generator[Mapping[str, T]]:
    """Provide a client of a kind for each session."""
    made: dict[str, T] = {}
    with ExitStack() as stack:
        with providing(item):
            for session in sessions.values():
                check_type(session, *_NEEDED[kind])

            for name, session in sessions.items():
                client = kind(session, variables(item, name, session, directories))
                client.recorder = device_recorder(item.config, name, session)
                opened = stack.enter_context(client)
                item.stash[ACCESSES][name].client = opened
                made[name] = opened

        yield made


def _environment(
    item: pytest.Item, session: Session, directories: pytest.TempPathFactory
) -> ControllerEnvironment:
    if session.type != SessionType.AGENT_DEVICE:
        return environment_of(session)

    worker_input: dict[str, Any] = getattr(item.config, "workerinput", {})
    name = session_name(str(worker_input.get("workerid", "")), item.nodeid)
    return environment_of(
        session, name=name, state_dir=directories.mktemp("agent-device")
    )
