"""An Appium driver on a session in progress: started with what is asked of it, quit at the end within bounds."""

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
from pytest_device.errors import ControllerError, DeviceError
from pytest_device.sessions.models import AppiumConfig, Session
from pytest_device.sessions.request import SessionRequest

if TYPE_CHECKING:
    from appium.options.common import AppiumOptions
    from appium.webdriver.webdriver import WebDriver

    from pytest_device.controllers.appium.options import Options

QUIT_SECONDS: Final = 20.0
"""How long a quit may take, where no shorter limit holds for all commands."""

_logger = logging.getLogger("pytest_device")


@contextmanager
def driver(
    session: Session,
    options: "Options",
    *,
    asked: SessionRequest | None = None,
    policy: DriverPolicy = DriverPolicy(),  # noqa: B008  # frozen
    leave: Callable[[], bool] = lambda: False,
    lost: Callable[[], None] = lambda: None,
) -> "Generator[WebDriver]":
    """Start an Appium session on the device and quit it at the end, unless ``leave`` says then that it shall go on.

    ``options`` are the suite's: a mapping of capabilities, with or without the ``appium:`` prefix, or one of the
    client's option classes. They win over the app that ``asked`` names and over the service's ``capabilities``, but for
    what an option class sets by itself, and for what says which device it is. ``lost`` is told when a start or a quit
    got no answer, so that the device may still be held by it.

    Raises AppError when the app cannot be installed, started or opened, ConfigError when the options cannot work, and
    ControllerError when Appium does not answer or refuses. A quit that fails is logged: the device is stopped anyway.
    """
    config = session.remote_config
    if not isinstance(config, AppiumConfig):
        raise ControllerError(f"session {session.id} is of type {session.type}: it has no Appium server")
    wanted = merged_options(session, config, options, asked)
    started = _start(session, config, wanted, policy, lost)
    try:
        if policy.direct_connection:
            connect_directly(started, config.appium_url, policy)
        if asked is not None and asked.open_url is not None:
            open_link(started, session, sent_by(wanted), asked.open_url)
        yield started
    finally:
        if leave():
            started.command_executor.close()  # type: ignore[no-untyped-call]  # its connections only
        else:
            _quit(started, lost)


def _start(
    session: Session, config: AppiumConfig, options: "AppiumOptions", policy: DriverPolicy, lost: Callable[[], None]
) -> "WebDriver":
    from appium.webdriver import Remote

    way = client_config(config.appium_url, policy)
    try:
        return Remote(options=options, client_config=way)
    except Exception as error:  # of a reply that is none of WebDriver's the client raises whatever it stumbles over
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
        reason = f"no answer within {policy.timeout_seconds:g} s (device_driver_policy says how long a start may take)"
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
