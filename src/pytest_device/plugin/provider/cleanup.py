"""Resets devices between tests."""

import logging
from typing import TYPE_CHECKING, Final

from pytest_device.errors import ControllerError
from pytest_device.plugin.state import ControllerAccess
from pytest_device.spec import SessionType

if TYPE_CHECKING:
    from pytest_device.sessions.models import Session

_logger: Final = logging.getLogger("pytest_device")


class Cleanup:
    """Resets the devices of all sessions of a process."""

    def __init__(self) -> None:
        self._start_urls: dict[str, str] = {}
        """Page of each session's browser before its first test, by session ID."""
        self._warned: set[str] = set()

    def note_start(self, session: "Session") -> None:
        """Record the page of a new session's device: a browser that argent drives is reset to it."""
        if session.type == SessionType.ARGENT:
            from pytest_device.controllers.argent import Argent
            from pytest_device.controllers.reset import RESET_SECONDS, url_of

            try:
                with Argent(session, timeout_seconds=RESET_SECONDS) as argent:
                    self._start_urls[str(session.id)] = url_of(argent)
            except ControllerError as error:
                _logger.info("could not read the start page of the device: %s", error)

    def reset(self, session: "Session", access: ControllerAccess) -> bool:
        """Reset a device after a test; False if the next test would not find it clean and available."""
        try:
            unable = self._reset(session, access)
        except ControllerError as error:
            _logger.warning(
                "the device could not be reset and is not used for other tests: %s",
                error,
            )
            return False

        if unable and unable not in self._warned:
            self._warned.add(unable)
            _logger.warning(
                "%s: tests on this device see what earlier tests left behind (share='test' gives each a fresh device)",
                unable,
            )

        return True

    def _reset(self, session: "Session", access: ControllerAccess) -> str:
        from pytest_device.controllers.agent_device import AgentDevice
        from pytest_device.controllers.argent import Argent
        from pytest_device.controllers.reset import (
            RESET_SECONDS,
            reset_agent_device,
            reset_argent,
        )

        match session.type:
            case SessionType.AGENT_DEVICE:
                with AgentDevice(
                    session, access.environment, timeout_seconds=RESET_SECONDS
                ) as device:
                    device.apps = set()
                    if isinstance(access.client, AgentDevice):
                        device.apps = set(access.client.apps)

                    return reset_agent_device(device)
            case SessionType.ARGENT:
                with Argent(session, timeout_seconds=RESET_SECONDS) as argent:
                    return reset_argent(
                        argent, self._start_urls.get(str(session.id), "")
                    )
            case _:  # Appium itself clears app data, controlled by appium:noReset and appium:fullReset
                return ""
