"""Keys of a test's stash and of pytest-xdist's messages that several rooms of the plugin use."""

import json
from collections import Counter
from collections.abc import Collection, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

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
    from pytest_device.sessions.breaker import Attempted
    from pytest_device.sessions.events import SessionRef
    from pytest_device.sessions.models import Session
    from pytest_device.sessions.requirement import DeviceRequirement

T = TypeVar("T")

LOCAL: Final = "device_local"
"""Key of a worker's input: address, token and log of the run's local service. The token goes through the pipe."""
RUN: Final = "device_run"
"""Key of a worker's input: the name that all processes of the run share."""
SERVICES: Final = "device_services"
"""Key of a worker's input: what lets it use the services that the coordinator holds for the run, a secret."""
SESSION_URL: Final = "device_session_url"
"""The user property of a report with the session page of its test."""
PROBLEMS: Final = "device_problems"
"""Key of a worker's output: its usage errors."""

ARGUMENTS: Final = pytest.StashKey[dict[str, dict[str, Any]]]()
"""The marker arguments of a test's devices, by their names."""
NEEDS: Final = pytest.StashKey[dict[str, "DeviceRequirement"]]()
"""The requirements made of them, as far as they are known at collection."""
NOT_LEFT: Final = pytest.StashKey[bool]()
"""Whether a test does not count as remaining: it is done, or did not request its device at collection."""
DRIVERS: Final = pytest.StashKey[dict[str, "WebDriver"]]()
"""The Appium drivers that a test has, by its devices' names."""
STARTS: Final = pytest.StashKey[dict[str, "Attempted"]]()
"""The starts of drivers that a test is about to come to."""
USES: Final = pytest.StashKey[dict[str, "Use"]]()
"""The agent-device or argent access of a test, by its devices' names."""
PROVIDING: Final = pytest.StashKey[DeviceError]()
"""The last error while a device or a driver was provided to a test."""
FAILED: Final = pytest.StashKey[bool]()
"""Whether the current attempt at a test has failed."""
WAITED: Final = pytest.StashKey[float]()
"""For how many seconds a test waited for its devices, until its next report."""
_HISTORY: Final = pytest.StashKey[History]()


@dataclass(slots=True)
class Use:
    """A test's access to one device; ``client`` is None if it only has the variables."""

    environment: "ControllerEnvironment"
    client: "AgentDevice | Argent | None" = None


def needs_of(item: pytest.Item) -> dict[str, "DeviceRequirement"]:
    """Return what a test needs, by its devices' names, nothing when it needs none."""
    return item.stash.get(NEEDS, None) or {}


def planned(item: pytest.Item) -> Counter["DeviceRequirement"]:
    """Return how often a test has each of its needs."""
    return Counter(needs_of(item).values())


def is_fresh(item: pytest.Item) -> bool:
    """Return whether a test has an unshared device."""
    return any(need.share == Share.TEST for need in needs_of(item).values())


def history_of(config: pytest.Config) -> History:
    """Return the history of this process, empty if pytest's cache is disabled."""
    if _HISTORY not in config.stash:
        config.stash[_HISTORY] = History(getattr(config, "cache", None))
    return config.stash[_HISTORY]


def only(values: Mapping[str, T], fixture: str, instead: str) -> T:
    """Return what a fixture provides for the one device of a test; raise ConfigError if there are several."""
    if ONLY in values:
        return values[ONLY]
    raise ConfigError(several_devices(fixture, instead, values))


def several_devices(fixture: str, instead: str, names: Collection[str]) -> str:
    """Return the error of a test with several devices that uses a fixture of one."""
    return f"{fixture} can't be used with several devices ({', '.join(names)}); use {instead}[{json.dumps(min(names))}]"


def release_starts(item: pytest.Item) -> None:
    """Give up the starts of drivers that a test has not come to."""
    for start in item.stash.setdefault(STARTS, {}).values():
        start.release()


def check_type(session: "Session", fixture: str, needed: SessionType) -> None:
    """Raise ConfigError if a fixture does not fit a session's type."""
    if session.type != needed:
        raise ConfigError(f"{fixture} needs type={needed.value!r}, but the marker has type={str(session.type)!r}")


def note_session(item: pytest.Item, session: "SessionRef") -> None:
    """Add a session to the user properties of a test's reports, of JUnit too; its page is empty where it has none."""
    item.user_properties += [("device_session", session.session_id), (SESSION_URL, session.url)]


@contextmanager
def providing(item: pytest.Item) -> Generator[None]:
    """Note an error while a test's device is provided: it is never the test's fault."""
    try:
        yield
    except DeviceError as error:
        item.stash[PROVIDING] = error
        raise
