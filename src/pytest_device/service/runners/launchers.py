"""Which launcher starts the controller of each session type."""

from collections.abc import Mapping
from typing import Final

from pytest_device.service.runners.agent_device import AgentDeviceLauncher
from pytest_device.service.runners.appium import AppiumLauncher
from pytest_device.service.runners.argent import ArgentLauncher
from pytest_device.service.runners.controller import Launcher
from pytest_device.spec import SessionType

LAUNCHERS: Final[Mapping[SessionType, Launcher]] = {
    SessionType.APPIUM: AppiumLauncher(),
    SessionType.AGENT_DEVICE: AgentDeviceLauncher(),
    SessionType.ARGENT: ArgentLauncher(),
}
"""A session of another type has no controller."""
