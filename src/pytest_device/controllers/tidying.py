"""What a test leaves on a device that the next one shares: forgotten, as far as the controller can."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from pytest_device.controllers.agent_device import AgentDevice
from pytest_device.controllers.argent import Argent, id_of
from pytest_device.errors import AgentDeviceError

TIDY_SECONDS: Final = 30.0
"""How long each step may take."""

_UNABLE: Final = frozenset({"UNSUPPORTED_OPERATION", "UNSUPPORTED_PLATFORM"})
_NOTHING_OPEN: Final = frozenset({"SESSION_NOT_FOUND", "INVALID_ARGS"})
"""No session, or none of an app: what was open is closed already, or was no app."""
_CHROMIUM: Final = "chromium"


def tidy_agent_device(device: AgentDevice) -> str:
    """Clear the state of the apps that a test had open and end its session; return what could not be done, if anything.

    Raises ControllerError when the device cannot be had clean and free.
    """
    try:
        return _cleared(device)
    finally:
        device.close(timeout_seconds=TIDY_SECONDS)


def tidy_argent(argent: Argent, start_url: str) -> str:
    """Clear what the page has stored and go to ``start_url``; return what could not be done, if anything.

    Raises ControllerError when the device cannot be had clean.
    """
    device = argent.device()
    if device.get("platform") != _CHROMIUM:
        return f"argent has no tool that clears an app's data on {device.get('platform')}"
    at: dict[str, Any] = {"udid": id_of(device), "timeout_seconds": TIDY_SECONDS}
    last_url = str(device.get("url"))
    if _has_storage(last_url):
        _forget_page(argent, at)
    if start_url != last_url and _has_storage(start_url):  # what the first page has stored can be forgotten only there
        argent.call("open-url", url=start_url, **at)
        _forget_page(argent, at)
    argent.call("open-url", url=start_url or last_url, **at)
    return ""


def _has_storage(url: str) -> bool:
    return urlsplit(url).scheme in {"http", "https"}


def _forget_page(argent: Argent, at: Mapping[str, Any]) -> None:
    for store in ("local", "session"):
        argent.call("chromium-storage", store=store, action="clear", **at)
    argent.call("chromium-cookies", action="clear", **at)


def page_of(argent: Argent) -> str:
    """Return the address of the page that a browser shows, empty for a device that is none."""
    device = argent.device()
    return str(device.get("url", "")) if device.get("platform") == _CHROMIUM else ""


def _cleared(device: AgentDevice) -> str:
    opened: list[str | None] = [*sorted(device.apps)]
    for app in opened or [None]:
        try:
            device.clear_app_state(app, timeout_seconds=TIDY_SECONDS)
        except AgentDeviceError as error:
            if error.code in _UNABLE:
                return f"agent-device cannot clear an app's data on this device ({error.code})"
            if error.code not in _NOTHING_OPEN:
                raise
    return ""
