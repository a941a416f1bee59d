"""Stash keys and pytest-xdist message keys that several subpackages of the plugin use."""

import json
import time
from collections import Counter
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pytest

from pytest_device.errors import ConfigError, DeviceError
from pytest_device.plugin.markers import SINGLE
from pytest_device.plugin.signals import TERMINATED
from pytest_device.scheduling.history import History
from pytest_device.spec import SessionType, Share

if TYPE_CHECKING:
    from appium.webdriver.webdriver import WebDriver

    from pytest_device.controllers.agent_device import AgentDevice
    from pytest_device.controllers.argent import Argent
    from pytest_device.controllers.environment import ControllerEnvironment
    from pytest_device.sessions.breaker import BreakerPermit
    from pytest_device.sessions.events import SessionRef
    from pytest_device.sessions.models import Session
    from pytest_device.sessions.request import DeviceRequirement
    from pytest_device.settings import Settings

T = TypeVar("T")

LOCAL: Final = "device_local"
"""Key in a worker's input: URL, token and log of the run's local service. The token goes through the pipe."""
RUN: Final = "device_run"
"""Key in a worker's input: the name of the run, the same for all its processes."""
SESSION_URL: Final = "device_session_url"
"""User property of a report: the test's session page."""
PROBLEMS: Final = "device_problems"
"""Key in a worker's output: its usage errors."""

ARGUMENTS: Final = pytest.StashKey[dict[str, dict[str, Any]]]()
"""Marker arguments of a test's devices, by device name."""
REQUIREMENTS: Final = pytest.StashKey[dict[str, "DeviceRequirement"]]()
"""Requirements of a test's devices, as far as they are known at collection."""
NOT_REMAINING: Final = pytest.StashKey[bool]()
"""Whether a test no longer counts as remaining: it is done, or requested no device at collection."""
DRIVERS: Final = pytest.StashKey[dict[str, "WebDriver"]]()
"""A test's Appium drivers, by device name."""
STARTS: Final = pytest.StashKey[dict[str, "BreakerPermit"]]()
"""Driver starts that a test has reserved but not made yet."""
ACCESSES: Final = pytest.StashKey[dict[str, "ControllerAccess"]]()
"""A test's access to agent-device or argent, by device name."""
PROVIDING: Final = pytest.StashKey[DeviceError]()
"""The last error while providing a device or a driver to a test."""
FAILED: Final = pytest.StashKey[bool]()
"""Whether the current attempt at a test has failed."""
ATTEMPTS: Final = pytest.StashKey[int]()
"""How often a test was begun so far: whoever repeats it sets it up again."""
RETRIES: Final = pytest.StashKey[int]()
"""How often a test was run again because its device failed."""
DEVICE_SINCE: Final = pytest.StashKey[float]()
"""When a test got its last device, on the monotonic clock."""
WAITED: Final = pytest.StashKey[float]()
"""Seconds that a test waited for its devices, until its next report."""
_HISTORY: Final = pytest.StashKey[History]()
_EXITED: Final = pytest.StashKey[bool]()
"""Whether ``pytest.exit`` ended the run of this process."""


@dataclass(slots=True)
class ControllerAccess:
    """A test's access to one device; ``client`` is None if it only has the variables."""

    environment: "ControllerEnvironment"
    client: "AgentDevice | Argent | None" = None


def requirements_of(item: pytest.Item) -> dict[str, "DeviceRequirement"]:
    """Return a test's requirements by device name, empty if it has none."""
    return item.stash.get(REQUIREMENTS, None) or {}


def definitions_of(item: pytest.Item) -> Mapping[str, Sequence[Any]]:
    """Return the definitions of each fixture that a test uses, empty for a test without fixtures."""
    info = getattr(item, "_fixtureinfo", None)
    return info.name2fixturedefs if info else {}


def requirement_counts(item: pytest.Item) -> Counter["DeviceRequirement"]:
    """Return how often a test has each of its requirements."""
    return Counter(requirements_of(item).values())


def is_unshared(item: pytest.Item) -> bool:
    """Return whether a test has an unshared device."""
    return any(
        requirement.share == Share.TEST
        for requirement in requirements_of(item).values()
    )


def note_end(
    config: pytest.Config, excinfo: pytest.ExceptionInfo[BaseException]
) -> None:
    """Note what ended a run, for ``ended_by_interrupt``."""
    config.stash[_EXITED] = isinstance(excinfo.value, pytest.exit.Exception)


def ended_by_interrupt(session: pytest.Session) -> bool:
    """Return whether Ctrl-C, a signal or ``pytest.exit`` ended a run.

    ``-x`` and ``--stepwise`` end it as they should, though its exit status may be the same: after ``-x``, too, with
    pytest-xdist.
    """
    # Its caller may choose any status.
    if session.config.stash.get(_EXITED, False):
        return True
    if session.exitstatus != pytest.ExitCode.INTERRUPTED or session.shouldfail:
        return False

    return session.shouldstop in {False, TERMINATED}


def history_of(config: pytest.Config) -> History:
    """Return the history of this process, empty if pytest's cache is disabled."""
    if _HISTORY not in config.stash:
        config.stash[_HISTORY] = History(getattr(config, "cache", None))

    return config.stash[_HISTORY]


def add_durations(config: pytest.Config, settings: "Settings") -> None:
    """Read ``device_durations``, once. Raises ConfigError with the file, the invalid value and the fix."""
    history = history_of(config)
    if settings.durations is None or history.has_earlier:
        return

    from pytest_device.plugin.durations import read_durations

    source = settings.source("durations")
    durations = read_durations(Path(settings.durations), source)
    history.add_earlier(durations.seconds)


def single_value(values: Mapping[str, T], fixture: str, instead: str) -> T:
    """Return the fixture's value for the test's one device; raise ConfigError if it has several."""
    if SINGLE in values:
        return values[SINGLE]

    raise ConfigError(several_devices(fixture, instead, values))


def several_devices(fixture: str, instead: str, names: Collection[str]) -> str:
    """Return the error for a test with several devices that uses a fixture for one."""
    return f"{fixture} can't be used with several devices ({', '.join(names)}); use {instead}[{json.dumps(min(names))}]"


def check_type(session: "Session", fixture: str, needed: SessionType) -> None:
    """Raise ConfigError if a fixture does not fit a session's type."""
    if session.type != needed:
        raise ConfigError(
            f"{fixture} needs type={needed.value!r}, but the marker has type={str(session.type)!r}"
        )


def check_policy(returned: object, fixture: str, needed: type[object]) -> None:
    """Raise ConfigError if a suite's fixture does not return a policy."""
    if not isinstance(returned, needed):
        raise ConfigError(
            f"{fixture} returned {returned!r}; it must return a {needed.__name__}"
        )


def note_session(item: pytest.Item, session: "SessionRef") -> None:
    """Add a session to the user properties of a test's reports, including JUnit XML; its URL is empty if unknown."""
    item.stash[DEVICE_SINCE] = time.monotonic()
    item.user_properties += [
        ("device_session", session.session_id),
        (SESSION_URL, session.url),
    ]


@contextmanager
def providing(item: pytest.Item) -> Generator[None]:
    """Record an error while a test's device is provided: it is never the test's fault."""
    try:
        yield
    except DeviceError as error:
        item.stash[PROVIDING] = error
        raise


def may_be_skipped(item: pytest.Item) -> bool:
    """Return whether a test may be skipped before it uses its devices, or is an expected failure that is not run."""
    skips = [*item.iter_markers("skip"), *item.iter_markers("skipif")]
    return bool(skips or _marks_that_prevent_the_run(item))


def is_skipped(item: pytest.Item) -> bool:
    """Return whether pytest certainly skips a test, or does not run it as an expected failure.

    Of a condition, only ``True`` counts: pytest evaluates strings when the test begins.
    """
    if any(item.iter_markers("skip")):
        return True

    marks = [*item.iter_markers("skipif"), *_marks_that_prevent_the_run(item)]
    for mark in marks:
        conditions = [*mark.args, mark.kwargs.get("condition")]
        is_unconditional = mark.name == "xfail" and conditions == [None]
        if is_unconditional or any(condition is True for condition in conditions):
            return True

    return False


def _marks_that_prevent_the_run(item: pytest.Item) -> list[pytest.Mark]:
    """Return the test's marks ``xfail(run=False)``."""
    if item.config.getoption("runxfail", default=False):
        return []

    return [
        mark for mark in item.iter_markers("xfail") if not mark.kwargs.get("run", True)
    ]
