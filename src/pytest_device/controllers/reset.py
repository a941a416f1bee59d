"""Resets a shared device after a test, as far as its controller can."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from pytest_device.controllers.agent_device import AgentDevice
from pytest_device.controllers.argent import Argent, id_of
from pytest_device.errors import AgentDeviceError

RESET_SECONDS: Final = 30.0
"""Maximum seconds of each step."""

_UNABLE: Final = frozenset({"UNSUPPORTED_OPERATION", "UNSUPPORTED_PLATFORM"})
_NOTHING_OPEN: Final = frozenset({"SESSION_NOT_FOUND", "INVALID_ARGS"})
"""There is no session, or none with an app: the app is already closed, or none was opened."""
_CHROMIUM: Final = "chromium"


def reset_agent_device(device: AgentDevice) -> str:
    """Clear the data of the apps that a test opened and end its session; return the reason if that is impossible.

    Raises ControllerError if the device cannot be reset.
    """
    try:
        return _cleared(device)
    finally:
        device.close(timeout_seconds=RESET_SECONDS)


def reset_argent(argent: Argent, start_url: str) -> str:
    """Clear the page's storage and open ``start_url``; return the reason if that is impossible.

    Raises ControllerError if the device cannot be reset.
    """
    device = argent.device()
    if device.get("platform") != _CHROMIUM:
        return (
            f"argent has no tool that clears an app's data on {device.get('platform')}"
        )

    common: dict[str, Any] = {"udid": id_of(device), "timeout_seconds": RESET_SECONDS}
    last_url = str(device.get("url"))
    if _has_storage(last_url):
        _clear_page(argent, common)

    # Storage can only be cleared on its own page.
    if start_url != last_url and _has_storage(start_url):
        argent.call("open-url", url=start_url, **common)
        _clear_page(argent, common)

    argent.call("open-url", url=start_url or last_url, **common)
    # Measures the page again: a measurement during loading can make the next tap miss.
    argent.call("describe", **common)
    return ""


def _has_storage(url: str) -> bool:
    return urlsplit(url).scheme in {"http", "https"}


def _clear_page(argent: Argent, common: Mapping[str, Any]) -> None:
    for store in ("local", "session"):
        argent.call("chromium-storage", store=store, action="clear", **common)
    argent.call("chromium-cookies", action="clear", **common)


def url_of(argent: Argent) -> str:
    """Return the URL that a browser shows, empty for other devices."""
    device = argent.device()
    if device.get("platform") != _CHROMIUM:
        return ""
    return str(device.get("url", ""))


def _cleared(device: AgentDevice) -> str:
    """Clear the data of the opened apps, without one that of the app in front; return the reason if it is impossible."""
    apps: list[str | None] = [*sorted(device.apps)]
    if not apps:
        apps.append(None)

    for app in apps:
        try:
            device.clear_app_state(app, timeout_seconds=RESET_SECONDS)
        except AgentDeviceError as error:
            if error.code in _UNABLE:
                return f"agent-device cannot clear an app's data on this device ({error.code})"
            if error.code not in _NOTHING_OPEN:
                raise

    return ""
