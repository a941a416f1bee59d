"""Starts an Appium driver on a session in progress, with the marker's link open, and quits it within a time limit."""

import logging
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from pytest_device.controllers.appium.connection import (
    DriverPolicy,
    capability,
    client_config,
    client_errors,
    has_no_answer,
    limit,
    limited,
)
from pytest_device.controllers.appium.options import BROWSER, merged_options, sent_by
from pytest_device.controllers.appium.refusal import redacted, refusal
from pytest_device.controllers.client import config_of
from pytest_device.errors import AppError, ConfigError, ControllerError, DeviceError
from pytest_device.escape import escaped
from pytest_device.redact import shown
from pytest_device.sessions.models import Session
from pytest_device.sessions.remote_config import AppiumConfig
from pytest_device.sessions.replies import shown as described
from pytest_device.sessions.request import SessionRequest
from pytest_device.spec import Platform

if TYPE_CHECKING:
    from appium.options.common import AppiumOptions
    from appium.webdriver.webdriver import WebDriver

    from pytest_device.controllers.appium.options import Options
    from pytest_device.trace.recorder import DeviceRecorder

QUIT_SECONDS: Final = 20.0
"""Maximum seconds of a quit, unless all commands have a shorter limit."""

_AFTER_BUILD_SECONDS: Final = 60.0
"""Seconds that a start takes besides building WebDriverAgent."""

_logger = logging.getLogger("pytest_device")


def load_client() -> None:
    """Import what a start needs: that can take longer than a start may exceed its time limit by."""
    import_module("appium.webdriver")
    import_module("pytest_device.trace.appium")


@contextmanager
def driver(
    session: Session,
    options: "Options",
    *,
    request: SessionRequest | None = None,
    policy: DriverPolicy = DriverPolicy(),  # noqa: B008  # frozen
    leave: Callable[[], bool] = lambda: False,
    lost: Callable[[], None] = lambda: None,
    recorder: "DeviceRecorder | None" = None,
) -> "Generator[WebDriver]":
    """Start an Appium session on the device and quit it at the end; a failed quit is logged: the device is stopped anyway.

    Arguments:
        session: The session of the device.
        options: The suite's: a mapping of capabilities, with or without the ``appium:`` prefix, or one of the client's
            option classes. They override the app in ``request`` and the service's ``capabilities``, except for the
            defaults of an option class and the capabilities that identify the device.
        request: The request that the session was created for; its app is installed, and its link opened.
        policy: The time limits.
        leave: Returns at the end whether to leave the Appium session open.
        lost: Called if a start or quit gets no response, because it may still occupy the device.
        recorder: Records its commands, including the start.

    Raises:
        AppError: The app cannot be installed, started or opened.
        ConfigError: The options cannot work.
        ControllerError: Appium does not respond, or rejects the start.
    """
    config = config_of(session, AppiumConfig, "Appium server")
    merged = merged_options(session, config, options, request)
    start_policy = _start_policy(merged, policy)

    started = _start(session, config, merged, start_policy, lost, recorder)
    try:
        limit(started, policy.timeout_seconds)
        _check_responses(started)
        if request is not None and request.open_url is not None:
            _open_link(started, session, sent_by(merged), request.open_url)

        yield started
    finally:
        if leave():
            started.command_executor.close()  # type: ignore[no-untyped-call]  # closes its connections only
        else:
            _quit(started, lost)


def _start_policy(options: "AppiumOptions", policy: DriverPolicy) -> DriverPolicy:
    """Return the policy for the start command."""
    seconds = policy.timeout_seconds
    build_ms = sent_by(options).get("appium:wdaLaunchTimeout")
    if isinstance(build_ms, int | float):  # the start may build WebDriverAgent
        seconds = max(seconds, build_ms / 1000 + _AFTER_BUILD_SECONDS)

    return replace(policy, timeout_seconds=seconds)


def _start(
    session: Session,
    config: AppiumConfig,
    options: "AppiumOptions",
    policy: DriverPolicy,
    lost: Callable[[], None],
    recorder: "DeviceRecorder | None",
) -> "WebDriver":
    from appium.webdriver import Remote

    from pytest_device.trace.appium import recording_connection

    connection = recording_connection(
        client_config(config.appium_url, policy), recorder
    )
    try:
        return Remote(command_executor=connection, options=options)
    # The client raises anything for a response that is not WebDriver's.
    except Exception as error:
        if has_no_answer(error):
            lost()
        raise _start_error(session, options, error, policy) from error


def _check_responses(started: "WebDriver") -> None:
    """Make responses that are not Appium's errors, name an error's command, and escape messages: tracebacks show them.

    The client treats a gateway's page as success: a click on a device that is gone would pass.
    """
    from selenium.common.exceptions import WebDriverException

    from pytest_device.trace.appium import note_response

    check = started.error_handler.check_response

    def checked(response: dict[str, Any]) -> None:
        try:
            check(response)
            if _is_foreign(response):
                excerpt = described(str(response.get("value")).encode())
                raise WebDriverException(  # noqa: TRY301
                    f"not a response of Appium (status {response['status']}): {excerpt}"
                )
        except WebDriverException as error:
            note_response(error, response)
            if error.msg:
                error.msg = escaped(error.msg)
            if error.stacktrace:
                error.stacktrace = [escaped(line) for line in error.stacktrace]
            raise

    started.error_handler.check_response = checked  # type: ignore[method-assign]


def _is_foreign(response: Mapping[str, Any]) -> bool:
    """Return whether a response that the client accepts is not WebDriver's, which has no status."""
    status = response.get("status")
    # Zero with a page is what the client makes of a reply that is not JSON.
    is_page = str(response.get("value")).startswith("<")
    return status is not None and (status != 0 or is_page)


def _start_error(
    session: Session,
    options: "AppiumOptions",
    error: Exception,
    policy: DriverPolicy,
) -> DeviceError:
    from selenium.common.exceptions import WebDriverException
    from urllib3.exceptions import ReadTimeoutError

    if isinstance(error, WebDriverException) and error.msg:
        return refusal(session, sent_by(options), error.msg)

    reason = f"{type(error).__name__}: {error}"
    if isinstance(error, ReadTimeoutError):
        reason = f"no response within {policy.timeout_seconds:g} s"

    return ControllerError(
        f"Appium did not start a driver: {reason.strip()} (session page: {session.url})"
    )


def _open_link(
    started: "WebDriver", session: Session, sent: Mapping[str, Any], url: str
) -> None:
    """Open a link in the started app by ``mobile: deepLink``, or a URL in a browser.

    Raises AppError if it cannot be opened, ConfigError if this kind of device does not support links, ControllerError
    if Appium does not respond.
    """
    try:
        if sent.get(BROWSER) and urlsplit(url).scheme in {"http", "https"}:
            started.get(url)
        else:
            started.execute_script(  # pyright: ignore[reportUnknownMemberType]
                "mobile: deepLink", {"url": url, **_receiver(started, session)}
            )
    except client_errors() as error:
        raise _link_error(session, url, error) from error


def _receiver(started: "WebDriver", session: Session) -> dict[str, str]:
    """Return the app for the link, if Appium returned it: otherwise the system would choose or ask the user."""
    name, argument = (
        ("appPackage", "package")
        if session.platform == Platform.ANDROID
        else ("bundleId", "bundleId")
    )
    application_id = capability(started, name)

    return (
        {argument: application_id}
        if isinstance(application_id, str) and application_id
        else {}
    )


def _link_error(session: Session, url: str, error: Exception) -> DeviceError:
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


def _quit(started: "WebDriver", lost: Callable[[], None]) -> None:
    from selenium.common.exceptions import InvalidSessionIdException

    try:
        with limited(started, QUIT_SECONDS):
            started.quit()
    except InvalidSessionIdException:
        _logger.info("the Appium session had ended before its driver was quit")
    except client_errors() as error:
        lost()
        _logger.warning(
            "the Appium driver did not quit: %s", str(error).partition("\n")[0]
        )
