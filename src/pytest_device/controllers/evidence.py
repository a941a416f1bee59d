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
    try:
        yield from _read_from(session, environment, recorder, seconds, missing)
    except ControllerError as error:  # for example an invalid proxy variable
        missing(f"no evidence of the device: {error}")


def _read_from(
    session: Session,
    environment: Mapping[str, str],
    recorder: "DeviceRecorder | None",
    seconds: float,
    missing: Callable[[str], object],
) -> Iterator[tuple[str, Piece]]:
    limit = min(EVIDENCE_SECONDS, seconds)
    match session.type:
        case SessionType.AGENT_DEVICE:
            with AgentDevice(session, environment, timeout_seconds=limit) as device:
                device.recorder = recorder
                pieces: Mapping[str, Callable[[], Piece]] = {
                    "screenshot.png": device.screenshot,
                    "screen.txt": lambda: _snapshot(device),
                }
                yield from _collected(pieces, seconds, missing)
        case SessionType.ARGENT:
            with Argent(session, environment, timeout_seconds=limit) as argent:
                argent.recorder = recorder
                pieces = {
                    "screenshot.png": argent.screenshot,
                    "screen.txt": lambda: from_description(argent.describe()),
                }
                yield from _collected(pieces, seconds, missing)
        case _:
            pass


def _snapshot(device: AgentDevice) -> Screen:
    return from_response(device.command("snapshot", is_read=True))


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
