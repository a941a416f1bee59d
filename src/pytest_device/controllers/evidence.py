"""Collects evidence from a device whose test failed, through agent-device and argent."""

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from pytest_device.controllers.agent_device import AgentDevice
from pytest_device.controllers.argent import Argent
from pytest_device.errors import ControllerError
from pytest_device.sessions.models import Session
from pytest_device.spec import SessionType

EVIDENCE_SECONDS: Final = 20.0
"""Maximum seconds for each piece of evidence."""

_CLIENTS: Final[Mapping[str, type[AgentDevice | Argent]]] = {
    SessionType.AGENT_DEVICE: AgentDevice,
    SessionType.ARGENT: Argent,
}
_logger: Final = logging.getLogger("pytest_device")


def evidence_on(session: Session, environment: Mapping[str, str]) -> Iterator[tuple[str, bytes]]:
    """Yield what the device shows now, by file name; failed reads are logged and skipped.

    ``environment`` names the agent-device session of the test.
    """
    if kind := _CLIENTS.get(str(session.type)):
        with kind(session, environment, timeout_seconds=EVIDENCE_SECONDS) as client:
            yield from _collected(client)


def _collected(client: AgentDevice | Argent) -> Iterator[tuple[str, bytes]]:
    pieces: dict[str, Callable[[], object]] = {"screenshot.png": client.screenshot}
    if isinstance(client, AgentDevice):
        pieces["snapshot.txt"] = client.snapshot
    else:
        pieces["describe.txt"] = client.describe
    for name, read in pieces.items():
        try:
            content = read()
        except ControllerError as error:
            _logger.warning("no %s of the device: %s", name, str(error).partition("\n")[0])
        else:
            yield name, content if isinstance(content, bytes) else f"{content}\n".encode()
