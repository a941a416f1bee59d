"""Classifies a start that Appium rejected as the fault of the app, the suite's options or the server."""

import re
from collections.abc import Mapping
from typing import Any, Final

from pytest_device.controllers.appium.options import APP
from pytest_device.errors import AppError, ConfigError, ControllerError, DeviceError
from pytest_device.redact import shown
from pytest_device.sessions.models import Session

_CLIENT: Final = ("appium", "selenium")

_NOT_THERE: Final = (
    "Appium looks for it on its own machine: set the URL of an archive (application_archive_url, or appium:app), or a "
    "path that exists there"
)
_NOT_DOWNLOADED: Final = (
    "Appium's machine downloads it: the URL must be correct and reachable from there"
)
_CRASHED: Final = r"is not running, possibly crashed|the page has crashed"
"""XCUITest's message about a crashed app, and that of the local device about a web app."""
_CRASHED_IN_TEST: Final = re.compile(rf"{_CRASHED}|\b(tab crashed|page crash)\b")
"""Includes chromedriver's messages about a web view; at a start, its browser may be the cause."""
_SERVER_GONE: Final = re.compile(
    r"cannot be proxied to|could not proxy command to", re.IGNORECASE
)
"""Appium's messages after its own program on the device, such as WebDriverAgent, has died."""
_SIGNS: Final[tuple[tuple[str, str], ...]] = (
    (
        (
            r"application at '.{0,1000}' does not exist or is not accessible|could not find app apk at|"
            "protocol '.{0,100}' used in '.{0,1000}' is not supported"
        ),
        _NOT_THERE,
    ),
    (
        r"cannot download the app from|cannot fetch the (application|remote file)|response data cannot be unzipped",
        _NOT_DOWNLOADED,
    ),
    (
        (
            r"did not have extensions?:|did not have any matching|does not contain any valid|cannot prepare the "
            r"application for testing|is it a valid application bundle|not a valid list|INSTALL_PARSE_FAILED|"
            r"architecture is not supported by the .{0,100} application|"
            r"application does not support the .{0,100} architecture|"
            r"INSTALL_FAILED_(?!INSUFFICIENT_STORAGE|MEDIA_UNAVAILABLE)|app under test cannot be"
        ),
        "build it for this device and OS: an .apk for Android, an archive of a Simulator .app for iOS",
    ),
    (
        r"used to start the app doesn't exist or cannot be launched|never started\. current",
        "check appium:appActivity, appium:appWaitActivity, and whether the app exits at startup",
    ),
    (_CRASHED, "check the app's log to see why it exited at startup"),
)
"""Messages of Appium or its drivers that blame the app, each with the fix.

The parts that vary have a limit: without one, a long message would take minutes.
"""
_MAX_REASON: Final = 64 * 1024
"""Maximum length of a message that is searched, in characters."""
_NOT_INSTALLED: Final = re.compile(
    r"the app \S{1,1000} is not installed on this device|app with bundle (identifier|id) '.{0,1000}' (is )?unknown|"
    r"'.{0,1000}'\. (Is it installed on the device|Are you sure it is installed)\?",
    re.IGNORECASE,
)
"""Messages of the local device, XCUITest and UiAutomator2 about an app that the suite names but does not provide."""
_OWN_APPS: Final = re.compile(r"io\.appium\.|WebDriverAgent")
"""Apps that Appium's drivers install: if they fail, the app under test is not at fault."""
_WRONG_OPTIONS: Final = re.compile(
    r"capabilities( object| argument)? (was|were) not valid for the following reason|should have a vendor prefix|"
    r"could not be created\. Details: '[^']+' (must|is required)",
    re.IGNORECASE,
)
ADVERTISEMENT: Final = re.compile(
    r"; For documentation on this error, please visit: \S+"
)
"""Text that Selenium appends to many messages."""


def refusal(session: Session, sent: Mapping[str, Any], reason: str) -> DeviceError:
    """Return the error for a rejected start: AppError, ConfigError, otherwise ControllerError."""
    app = str(sent.get(APP, ""))
    page = f"(session page: {session.url})"
    message = redacted(ADVERTISEMENT.sub("", reason).strip(), app)

    fix = _fix_of_app(app, reason)
    if fix:
        name = f"the app {shown(app)}" if app else "the app"
        return AppError(
            f"Appium could not install and start {name}: {message}\nFix: {fix} {page}"
        )

    fix = _fix_of_options(reason)
    if fix:
        return ConfigError(
            f"Appium rejected the capabilities: {message}\nFix: {fix} {page}"
        )

    return ControllerError(f"Appium did not start a driver: {message} {page}")


def crash(session: Session, error: BaseException) -> AppError | ControllerError | None:
    """Return the error for a driver's report in a test that the app or its own server crashed, None for any other."""
    reason = str(error).partition("\n")[0]
    if type(error).__module__.partition(".")[0] not in _CLIENT:
        return None

    message = f"{reason.removeprefix('Message: ')} (session page: {session.url})"
    if _CRASHED_IN_TEST.search(reason):
        return AppError(f"the app crashed: {message}")
    if _SERVER_GONE.search(reason):
        return ControllerError(f"Appium lost the device: {message}")
    return None


def redacted(text: str, address: str) -> str:
    """Return a message of Appium without the credentials and the signed query of a URL."""
    if not address:
        return text

    # Messages of Appium may quote it with or without the credentials.
    without_credentials = re.sub(r"//[^/@]*@", "//", address)
    for quoted in (address, without_credentials):
        text = text.replace(quoted, shown(quoted))
    return text


def _fix_of_app(app: str, reason: str) -> str:
    """Return the fix if the app is at fault, otherwise an empty text."""
    if _OWN_APPS.search(reason):
        return ""

    is_missing = "ENOENT" in reason and app in reason
    is_named = app != "" and (is_missing or f"Details: {shown(app)} " in reason)
    fix = _fix_of_sign(reason[:_MAX_REASON])
    if not fix and not is_named:
        return ""

    if fix:
        return fix
    return _NOT_DOWNLOADED if app.startswith(("http://", "https://")) else _NOT_THERE


def _fix_of_sign(reason: str) -> str:
    for pattern, fix in _SIGNS:
        if re.search(pattern, reason, re.IGNORECASE):
            return fix
    return ""


def _fix_of_options(reason: str) -> str:
    """Return the fix if the suite's options are at fault, otherwise an empty text."""
    if _NOT_INSTALLED.search(reason[:_MAX_REASON]) and not _OWN_APPS.search(reason):
        return (
            "set appium:app or application_archive_url as well, which installs it, or correct its ID (appium:appPackage, "
            "appium:bundleId)"
        )

    if _WRONG_OPTIONS.search(reason):
        return "change them in device_appium_options"

    return ""
