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

_logger: Final = logging.getLogger("pytest_device")


def evidence_on(
    session: Session, environment: Mapping[str, str]
) -> Iterator[tuple[str, bytes]]:
    """Yield what the device shows now, by file name; failed reads are logged and skipped.

    ``environment`` names the agent-device session of the test.
    """
    match session.type:
        case SessionType.AGENT_DEVICE:
            with AgentDevice(
                session, environment, timeout_seconds=EVIDENCE_SECONDS
            ) as device:
                yield from _collected(
                    {
                        "screenshot.png": device.screenshot,
                        "snapshot.txt": device.snapshot,
                    }
                )
        case SessionType.ARGENT:
            with Argent(
                session, environment, timeout_seconds=EVIDENCE_SECONDS
            ) as argent:
                yield from _collected(
                    {
                        "screenshot.png": argent.screenshot,
                        "describe.txt": argent.describe,
                    }
                )
        case _:
            pass


def _collected(
    pieces: Mapping[str, Callable[[], object]],
) -> Iterator[tuple[str, bytes]]:
    for name, read in pieces.items():
        try:
            content = read()
        except ControllerError as error:
            _logger.warning(
                "no %s of the device: %s", name, str(error).partition("\n")[0]
            )
        else:
            yield (
                name,
                content if isinstance(content, bytes) else f"{content}\n".encode(),
            )
