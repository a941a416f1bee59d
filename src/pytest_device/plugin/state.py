"""What rooms of the plugin know of a test in common: the keys of its stash, and of what pytest-xdist hands around."""

import json
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pytest

from pytest_device.errors import ConfigError, DeviceError
from pytest_device.plugin.markers import ONLY
from pytest_device.scheduling.history import History
from pytest_device.spec import SessionType, Share

if TYPE_CHECKING:
    from appium.webdriver.webdriver import WebDriver

    from pytest_device.controllers.agent_device import AgentDevice
    from pytest_device.controllers.argent import Argent
    from pytest_device.controllers.environment import ControllerEnvironment
    from pytest_device.sessions.models import Session
    from pytest_device.sessions.requirement import DeviceRequirement

LOCAL: Final = "device_local"
"""Key of a worker's input: address, token and log of the run's local service. The token goes through the pipe."""
RUN: Final = "device_run"
"""Key of a worker's input: the name that all processes of the run share."""
PROBLEMS: Final = "device_problems"
"""Key of a worker's output: what is wrong with the configuration."""

ARGUMENTS: Final = pytest.StashKey[dict[str, dict[str, Any]]]()
"""What a test asks of each of its devices, by their names."""
NEEDS: Final = pytest.StashKey[dict[str, "DeviceRequirement"]]()
"""The same as needs, as far as they are known before the test runs."""
NOT_LEFT: Final = pytest.StashKey[bool]()
"""Whether a test is not to be counted among those that are left: it is done, or nobody knew that it needs a device."""
DRIVERS: Final = pytest.StashKey[dict[str, "WebDriver"]]()
"""The Appium drivers that a test has, by its devices' names."""
USES: Final = pytest.StashKey[dict[str, "Use"]]()
"""What a test was given of agent-device or argent, by its devices' names."""
PROVIDING: Final = pytest.StashKey[DeviceError]()
"""The error that was met last while a device or a driver was provided to a test."""
FAILED: Final = pytest.StashKey[bool]()
"""Whether the attempt at a test that is at hand has failed."""
WAITED: Final = pytest.StashKey[float]()
"""For how many seconds a test waited for its devices, until its next report."""
_HISTORY: Final = pytest.StashKey[History]()


@dataclass(slots=True)
class Use:
    """What a test was given of one device; ``client`` is None where it has the variables alone."""

    environment: "ControllerEnvironment"
    client: "AgentDevice | Argent | None" = None


def needs_of(item: pytest.Item) -> dict[str, "DeviceRequirement"]:
    """Return what a test needs, by its devices' names, nothing when it needs none."""
    return item.stash.get(NEEDS, None) or {}


def planned(item: pytest.Item) -> Counter["DeviceRequirement"]:
    """Return how often a test has each of its needs."""
    return Counter(needs_of(item).values())


def is_fresh(item: pytest.Item) -> bool:
    """Return whether a test has a device of its own."""
    return any(need.sharing_key.startswith(Share.TEST) for need in needs_of(item).values())


def history_of(config: pytest.Config) -> History:
    """Return what this process remembers, empty where pytest's cache is switched off."""
    if _HISTORY not in config.stash:
        config.stash[_HISTORY] = History(getattr(config, "cache", None))
    return config.stash[_HISTORY]


def session_of(sessions: "Mapping[str, Session]") -> "Session":
    """Return the session of a test with one device."""
    if ONLY in sessions:
        return sessions[ONLY]
    raise ConfigError(several_devices("device_session", "device_sessions", sessions))


def several_devices(fixture: str, instead: str, names: Collection[str]) -> str:
    """Return the error of a test with several devices that uses a fixture of one."""
    return f"{fixture} can't be used with several devices ({', '.join(names)}); use {instead}[{json.dumps(min(names))}]"


def check_type(session: "Session", fixture: str, needed: SessionType) -> None:
    """Raise ConfigError when a fixture does not go with a session's type."""
    if session.type != needed:
        raise ConfigError(f"{fixture} needs type={needed.value!r}, but the marker has type={str(session.type)!r}")
