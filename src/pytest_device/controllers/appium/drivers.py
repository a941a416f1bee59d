"""Starts an Appium driver on a session in progress, and quits it within a time limit."""

import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from pytest_device.controllers.appium.connection import (
    DriverPolicy,
    client_config,
    client_errors,
    connect_directly,
    has_no_answer,
    limited,
)
from pytest_device.controllers.appium.launch import open_link
from pytest_device.controllers.appium.options import merged_options, sent_by
from pytest_device.controllers.appium.refusal import refusal
from pytest_device.controllers.client import config_of
from pytest_device.errors import ControllerError, DeviceError
from pytest_device.sessions.models import AppiumConfig, Session
from pytest_device.sessions.request import SessionRequest

if TYPE_CHECKING:
    from appium.options.common import AppiumOptions
    from appium.webdriver.webdriver import WebDriver

    from pytest_device.controllers.appium.options import Options

QUIT_SECONDS: Final = 20.0
"""The limit of a quit, unless all commands have a shorter one."""

_logger = logging.getLogger("pytest_device")


@contextmanager
def driver(
    session: Session,
    options: "Options",
    *,
    request: SessionRequest | None = None,
    policy: DriverPolicy = DriverPolicy(),  # noqa: B008  # frozen
    leave: Callable[[], bool] = lambda: False,
    lost: Callable[[], None] = lambda: None,
) -> "Generator[WebDriver]":
    """Start an Appium session on the device and quit it at the end, unless ``leave`` returns True then.

    ``options`` are the suite's: a mapping of capabilities, with or without the ``appium:`` prefix, or one of the
    client's option classes. They override the app in ``request`` and the service's ``capabilities``, except for the
    defaults of an option class and the capabilities that identify the device. ``lost`` is called if a start or quit
    gets no response, because it may still occupy the device.

    Raises AppError if the app cannot be installed, started or opened, ConfigError if the options cannot work, and
    ControllerError if Appium does not respond or rejects the start. A failed quit is logged: the device is stopped
    anyway.
    """
    config = config_of(session, AppiumConfig, "Appium server")
    wanted = merged_options(session, config, options, request)
    started = _start(session, config, wanted, policy, lost)
    try:
        if policy.direct_connection:
            connect_directly(started, config.appium_url, policy)
        if request is not None and request.open_url is not None:
            open_link(started, session, sent_by(wanted), request.open_url)
        yield started
    finally:
        if leave():
            started.command_executor.close()  # type: ignore[no-untyped-call]  # only its connections
        else:
            _quit(started, lost)


def _start(
    session: Session, config: AppiumConfig, options: "AppiumOptions", policy: DriverPolicy, lost: Callable[[], None]
) -> "WebDriver":
    from appium.webdriver import Remote

    connection = client_config(config.appium_url, policy)
    try:
        return Remote(options=options, client_config=connection)
    except Exception as error:  # the client raises anything for a response that is not WebDriver's
        if has_no_answer(error):
            lost()
        raise _start_error(session, config, options, error, policy) from error


def _start_error(
    session: Session, config: AppiumConfig, options: "AppiumOptions", error: Exception, policy: DriverPolicy
) -> DeviceError:
    from selenium.common.exceptions import WebDriverException
    from urllib3.exceptions import ReadTimeoutError

    if isinstance(error, WebDriverException) and error.msg:
        return refusal(session, config, sent_by(options), error.msg)
    reason = f"{type(error).__name__}: {error}"
    if isinstance(error, ReadTimeoutError):
        reason = f"no response within {policy.timeout_seconds:g} s (device_driver_policy sets the timeout)"
    return ControllerError(
        f"Appium on session {session.id} did not start a driver: {reason.strip()} (session page: {session.url})"
    )


def _quit(started: "WebDriver", lost: Callable[[], None]) -> None:
    from selenium.common.exceptions import InvalidSessionIdException

    try:
        with limited(started, QUIT_SECONDS):
            started.quit()
    except InvalidSessionIdException:
        _logger.info("the Appium session had ended before its driver was quit")
    except client_errors() as error:
        lost()
        _logger.warning("the Appium driver did not quit: %s", str(error).partition("\n")[0])
