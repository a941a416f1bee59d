"""Finds out whether the device caused a test's failure."""

from typing import Final

from pytest_device.controllers.appium.refusal import crash
from pytest_device.controllers.health import problem_of
from pytest_device.errors import ControllerError, DeviceError, ServiceError
from pytest_device.sessions.device_session import DeviceSession

_CLIENTS: Final = frozenset(
    {"appium", "selenium", "urllib3", "httpx", "httpcore", "requests", "subprocess"}
)
"""Packages whose errors may mean that a controller is gone."""


def fault_of(session: DeviceSession, error: BaseException) -> DeviceError | None:
    """Return the problem with a session or its app; check its controller if the error may come from its client."""
    used = session.session  # the lookup may return other connection details
    if (over := session.check_alive()) or not _of_client(error):
        return over
    try:
        problem = problem_of(used)
    except ServiceError:  # a plugin blocks the test's calls
        return None
    if problem:
        return ControllerError(
            f"the session is in progress, but {problem} ({used.page})"
        )
    return crash(used, error)


def _of_client(error: BaseException) -> bool:
    return (
        isinstance(error, OSError | ControllerError)
        or type(error).__module__.partition(".")[0] in _CLIENTS
    )
