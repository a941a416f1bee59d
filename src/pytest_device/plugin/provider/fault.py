"""Finds out whether the device of a failed test is to blame."""

from typing import Final

from pytest_device.errors import ControllerError, DeviceError
from pytest_device.sessions.device_session import DeviceSession
from pytest_device.sessions.models import Session

_CLIENTS: Final = frozenset({"appium", "selenium", "urllib3", "httpx", "httpcore", "requests", "subprocess"})
"""Packages whose errors may mean that a controller is gone."""


def fault_of(held: DeviceSession, error: BaseException) -> DeviceError | None:
    """Return what is wrong with a session or its app; check its controller if the error may come from its client."""
    return held.check_alive() or (_of_controller(held.session, error) if _of_client(error) else None)


def _of_controller(session: Session, error: BaseException) -> DeviceError | None:
    from pytest_device.controllers.appium.refusal import crash

    return _dead_controller(session) or crash(session, error)


def _dead_controller(session: Session) -> ControllerError | None:
    from pytest_device.controllers.health import problem_of

    problem = problem_of(session)
    if problem is None:
        return None
    return ControllerError(f"the session is in progress, but {problem} ({session.url})")


def _of_client(error: BaseException) -> bool:
    return isinstance(error, OSError | ControllerError) or type(error).__module__.partition(".")[0] in _CLIENTS
