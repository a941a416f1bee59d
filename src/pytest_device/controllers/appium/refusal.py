"""What a start that Appium refused tells of: the app under test, the suite's options, or the server."""

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from pytest_device.controllers.appium.options import APP
from pytest_device.errors import AppError, ConfigError, ControllerError, DeviceError
from pytest_device.redact import shown
from pytest_device.sessions.models import AppiumConfig, Session

_AUTOMATION: Final = "appium:automationName"
_FAKE: Final = "fake"


class _Sign(NamedTuple):
    """Words by which Appium and its drivers say that the app is at fault, and what helps."""

    words: re.Pattern[str]
    fix: str


def _sign(words: str, fix: str) -> _Sign:
    return _Sign(re.compile(words, re.IGNORECASE), fix)


_NOT_THERE: Final = (
    "Appium looks for it on its own machine: give the address of an archive (application_archive_url, or appium:app), "
    "or a path that is there"
)
_SIGNS: Final = (
    _sign(
        r"application at '.*' does not exist or is not accessible|could not find app apk at|protocol '.*' used in '.*' "
        "is not supported",
        _NOT_THERE,
    ),
    _sign(
        r"cannot download the app from|cannot fetch the (application|remote file)|response data cannot be unzipped",
        "Appium's own machine fetches it: the address must be right, and reachable from there",
    ),
    _sign(
        r"did not have extensions?:|did not have any matching|does not contain any valid|cannot prepare the "
        r"application for testing|is it a valid application bundle|not a valid list|INSTALL_PARSE_FAILED",
        "give what the platform installs: an .apk for Android, an archive of a Simulator's .app for iOS",
    ),
    _sign(
        r"architecture is not supported by the .* application|application does not support the .* architecture|"
        r"INSTALL_FAILED_(NO_MATCHING_ABIS|CPU_ABI_INCOMPATIBLE|OLDER_SDK|NEWER_SDK|MISSING_SHARED_LIBRARY)",
        "build it for this kind of device, system version and processor",
    ),
    _sign(
        r"app with bundle (identifier|id) '.*' (is )?unknown",
        "it is not on the device: give appium:app or application_archive_url as well",
    ),
    _sign(
        r"used to start the app doesn't exist or cannot be launched|never started\. current",
        "look at appium:appActivity, appium:appWaitActivity, and at whether the app ends when it starts",
    ),
    _sign(r"INSTALL_FAILED_(?!INSUFFICIENT_STORAGE|MEDIA_UNAVAILABLE)", "the device's own word says why"),
    _sign(r"app under test cannot be", "its cause stands above"),
)
_OWN_APPS: Final = re.compile(r"io\.appium\.|WebDriverAgent")
"""What Appium's drivers put on a device themselves: that it cannot be installed is no fault of the app under test."""
_NO_DRIVER: Final = re.compile(r"could not find a driver for automationName", re.IGNORECASE)
_WRONG_OPTIONS: Final = re.compile(
    r"capabilities( object| argument)? (was|were) not valid for the following reason|should have a vendor prefix|"
    r"could not be created\. Details: '[^']+' (must|is required)",
    re.IGNORECASE,
)
_ADVERTISEMENT: Final = re.compile(r"; For documentation on this error, please visit: \S+")


def refusal(session: Session, config: AppiumConfig, sent: Mapping[str, Any], reason: str) -> DeviceError:
    """Return the error for what Appium answered to a start: AppError, ConfigError, or else ControllerError."""
    app = str(sent.get(APP, ""))
    where, page = f"Appium on session {session.id}", f"(session page: {session.url})"
    told = told_without(_ADVERTISEMENT.sub("", reason).strip(), app)
    if fix := _fix_of_app(config, app, reason):
        name = f"the app {shown(app)}" if app else "the app"
        return AppError(f"{where} could not install and start {name}: {told}\nFix: {fix} {page}")
    if fix := _fix_of_options(config, sent, reason):
        return ConfigError(f"{where} does not take the options: {told}\nFix: {fix} {page}")
    return ControllerError(f"{where} did not start a driver: {told} {page}")


def told_without(text: str, address: str) -> str:
    """Return what Appium says without what an address may hide: credentials, and the query that signs it."""
    for hidden in {address, re.sub(r"//[^/@]*@", "//", address)} - {""}:
        text = text.replace(hidden, shown(hidden))
    return text


def _fix_of_app(config: AppiumConfig, app: str, reason: str) -> str:
    """Return what helps when the app is at fault, empty when it is not."""
    is_named = app and (("ENOENT" in reason and app in reason) or f"Details: {shown(app)} " in reason)
    sign = next((sign for sign in _SIGNS if sign.words.search(reason)), None)
    if _OWN_APPS.search(reason) or not (sign or is_named):
        return ""
    if _is_fake(config):
        return "this is Appium's fake device, whose apps are XML files on its own machine"
    return sign.fix if sign else _NOT_THERE


def _fix_of_options(config: AppiumConfig, sent: Mapping[str, Any], reason: str) -> str:
    """Return what helps when the suite's options are at fault, empty when they are not."""
    if _WRONG_OPTIONS.search(reason):
        return "change them in device_appium_options"
    given = _automation_of(config)
    if not _NO_DRIVER.search(reason) or given.casefold() in {"", str(sent.get(_AUTOMATION)).casefold()}:
        return ""
    fix = f"leave automationName out of device_appium_options: the service says {given!r} of its device"
    if _is_fake(config):
        fix += ", Appium's fake one (`pytest-device doctor` tells what a better one needs)"
    return fix


def _is_fake(config: AppiumConfig) -> bool:
    return _automation_of(config).casefold() == _FAKE


def _automation_of(config: AppiumConfig) -> str:
    return str(config.capabilities.get(_AUTOMATION, config.capabilities.get("automationName", "")))
