"""Collects evidence from a device whose test failed, through agent-device and argent."""

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from pytest_device.controllers.agent_device import AgentDevice
from pytest_device.controllers.appium.evidence import ALL_SECONDS, EVIDENCE_SECONDS
from pytest_device.controllers.argent import Argent
from pytest_device.errors import ControllerError, ControllerLostError
from pytest_device.sessions.models import Session
from pytest_device.spec import SessionType
from pytest_device.trace.screen import Screen
from pytest_device.trace.screen_parsers import from_description, from_response

if TYPE_CHECKING:
    from pytest_device.trace.recorder import DeviceRecorder

_logger: Final = logging.getLogger("pytest_device")

Piece = bytes | Screen
"""A piece of evidence: the content of a file, or the elements of the screen."""


def evidence_on(
    session: Session,
    environment: Mapping[str, str],
    *,
    recorder: "DeviceRecorder | None" = None,
    seconds: float = ALL_SECONDS,
    missing: Callable[[str], object] = _logger.warning,
) -> Iterator[tuple[str, Piece]]:
    """Yield what the device shows now, by file name; ends when the controller is gone.

    Arguments:
        session: The session of the device.
        environment: Names the agent-device session of the test.
        recorder: Records what is read.
        seconds: The maximum time for all pieces.
        missing: Called with a line for each piece that can't be read.
    """
    limit = min(EVIDENCE_SECONDS, seconds)
    device: AgentDevice | Argent
    pieces: Mapping[str, Callable[[], Piece]]
    try:
        match session.type:
            case SessionType.AGENT_DEVICE:
                device = AgentDevice(session, environment, timeout_seconds=limit)
                pieces = _pieces_of_agent_device(device)
            case SessionType.ARGENT:
                device = Argent(session, environment, timeout_seconds=limit)
                pieces = _pieces_of_argent(device)
            case _:
                return
    except ControllerError as error:  # for example an invalid proxy variable
        missing(f"no evidence of the device: {error}")
        return

    with device:
        device.recorder = recorder
        yield from _collected(pieces, seconds, missing)


def _pieces_of_agent_device(
    device: AgentDevice,
) -> Mapping[str, Callable[[], Piece]]:
    return {
        "screenshot.png": device.screenshot,
        "screen.txt": lambda: from_response(device.command("snapshot", is_read=True)),
    }


def _pieces_of_argent(device: Argent) -> Mapping[str, Callable[[], Piece]]:
    return {
        "screenshot.png": device.screenshot,
        "screen.txt": lambda: from_description(device.describe()),
    }


def _collected(
    pieces: Mapping[str, Callable[[], Piece]],
    seconds: float,
    missing: Callable[[str], object],
) -> Iterator[tuple[str, Piece]]:
    deadline = time.monotonic() + seconds
    for name, read in pieces.items():
        if time.monotonic() >= deadline:
            missing(f"no {name} of the device: no time is left")
            continue

        try:
            piece = read()
        except ControllerError as error:
            reason = str(error).partition("\n")[0]
            missing(f"no {name} of the device: {reason}")
            if isinstance(error, ControllerLostError):
                return
        else:
            yield name, piece
