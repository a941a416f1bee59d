"""Opens the link of the marker after the start of a driver."""

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pytest_device.controllers.appium.connection import capability, client_errors, has_no_answer
from pytest_device.controllers.appium.options import BROWSER
from pytest_device.controllers.appium.refusal import redacted
from pytest_device.errors import AppError, ConfigError, ControllerError, DeviceError
from pytest_device.redact import shown
from pytest_device.sessions.models import Session
from pytest_device.spec import Platform

if TYPE_CHECKING:
    from collections.abc import Mapping

    from appium.webdriver.webdriver import WebDriver


def open_link(started: "WebDriver", session: Session, sent: "Mapping[str, Any]", url: str) -> None:
    """Open a link in the started app by ``mobile: deepLink``, or a URL in a browser.

    Raises AppError if it cannot be opened, ConfigError if this kind of device does not support links, ControllerError
    if Appium does not respond.
    """
    try:
        if sent.get(BROWSER) and urlsplit(url).scheme in {"http", "https"}:
            started.get(url)
        else:
            started.execute_script("mobile: deepLink", {"url": url, **_receiver(started, session)})  # pyright: ignore[reportUnknownMemberType]
    except client_errors() as error:
        raise _error(session, url, error) from error


def _receiver(started: "WebDriver", session: Session) -> dict[str, str]:
    """Return the app for the link, if Appium returned it: otherwise the system would choose or ask the user."""
    name, argument = ("appPackage", "package") if session.platform == Platform.ANDROID else ("bundleId", "bundleId")
    application_id = capability(started, name)
    return {argument: application_id} if isinstance(application_id, str) and application_id else {}


def _error(session: Session, url: str, error: Exception) -> DeviceError:
    from selenium.common.exceptions import UnknownMethodException

    reason = redacted(str(getattr(error, "msg", None) or error).strip(), url)
    what = f"the app on session {session.id} started, but open_url={shown(url)!r} could not be opened: {reason}"
    page = f"(session page: {session.url})"
    if has_no_answer(error):
        return ControllerError(f"{what} {page}")
    if isinstance(error, UnknownMethodException):
        return ConfigError(
            f"{what}\nFix: remove open_url, because this device's Appium driver does not support links {page}"
        )
    return AppError(f"{what} {page}")
