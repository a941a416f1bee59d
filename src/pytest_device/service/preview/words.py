"""The texts of the preview about a session and its device."""

from collections.abc import Mapping
from html import escape

from pytest_device.service.devices.base import Device
from pytest_device.service.lifecycle import TERMINAL, Session
from pytest_device.service.page.parts import PLATFORMS
from pytest_device.spec import SessionType, Status


def of(session: Session, device: Device | None) -> Mapping[str, str]:
    """Return the values for the preview only: the device or why there is none, and how taps affect the session."""
    platform = PLATFORMS[session.platform]
    return {
        "device": escape(f"{device.name} · {platform}" if device else platform),
        "screen": "live" if device else "none ended" if session.status in TERMINAL else "none",
        "absence": escape(absence(session)) if device is None else "",
        "rule": escape(_rule(session)),
        "hidden_without_device": "hidden" if device is None else "",
    }


def absence(session: Session) -> str:
    """Return why a session has no visible device."""
    match session.status:
        case Status.NEW:
            return "The device is starting"
        case Status.IN_PROGRESS:
            return "The device of this session has no screen"
        case Status.STOPPED | Status.ERRORED:
            return "The session has ended"


def _rule(session: Session) -> str:
    if session.status in TERMINAL:
        return ""
    if session.type is SessionType.WEB_PREVIEW_ONLY:
        return "This session has no controller: it ends at its time limit, or when it is stopped."
    idle = session.max_idle_time_minutes
    if idle is None:
        return "Using the preview does not count as use of the controller; a running test will see your taps."
    return (
        f"The session ends when its controller is not used for {idle} min. Using the preview does not count as use; "
        "a running test will see your taps."
    )
