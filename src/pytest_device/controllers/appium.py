"""An Appium driver on a session in progress: built, handed over, quit within bounds."""

import logging
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import SplitResult, unquote, urlsplit

from pytest_device.errors import ControllerError
from pytest_device.redact import is_loopback
from pytest_device.sessions.models import AppiumConfig, Session

if TYPE_CHECKING:
    from appium.options.common import AppiumOptions
    from appium.webdriver.client_config import AppiumClientConfig
    from appium.webdriver.webdriver import WebDriver

COMMAND_SECONDS: Final = 180.0
"""How long one command may take; the client itself has no limit."""
QUIT_SECONDS: Final = 20.0

_logger = logging.getLogger("pytest_device")


@contextmanager
def driver(session: Session, options: "AppiumOptions | Mapping[str, Any]") -> "Generator[WebDriver]":
    """Start an Appium session on the device and quit it at the end.

    ``options`` are the suite's: a mapping of capabilities, with or without the ``appium:`` prefix, or one of the
    client's option classes. They win over the service's ``capabilities``. Raises ControllerError when Appium does not
    answer or refuses. A quit that fails is logged: the device is stopped anyway.
    """
    config = session.remote_config
    if not isinstance(config, AppiumConfig):
        raise ControllerError(f"session {session.id} is of type {session.type}: it has no Appium server")
    client_config = _client_config(config)
    started = _start(session, merged_options(session, config, options), client_config)
    try:
        yield started
    finally:
        client_config.timeout = QUIT_SECONDS  # the client reads it anew for each command
        _quit(started)


def _start(session: Session, options: "AppiumOptions", client_config: "AppiumClientConfig") -> "WebDriver":
    from appium.webdriver import Remote
    from selenium.common.exceptions import WebDriverException

    try:
        return Remote(options=options, client_config=client_config)
    except Exception as error:  # of a reply that is none of WebDriver's the client raises whatever it stumbles over
        reason = (
            error.msg if isinstance(error, WebDriverException) and error.msg else f"{type(error).__name__}: {error}"
        )
        raise ControllerError(
            f"Appium on session {session.id} did not start a driver: {reason.strip()} (session page: {session.url})"
        ) from error


def merged_options(
    session: Session, config: AppiumConfig, options: "AppiumOptions | Mapping[str, Any]"
) -> "AppiumOptions":
    """Return the options of the new Appium session: the service's capabilities, then the suite's over them."""
    from appium.options.common import AppiumOptions

    suite: dict[str, Any] = dict(options.to_capabilities() if isinstance(options, AppiumOptions) else options)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]  # the client's own annotation is bare
    # Appium would end a driver that pauses for a minute in mid-test; the session's own idle limit bounds it instead.
    patience = {"appium:newCommandTimeout": (session.max_idle_time_minutes or 0) * 60}
    return AppiumOptions().load_capabilities({**patience, **config.capabilities}).load_capabilities(suite)


def _client_config(config: AppiumConfig) -> "AppiumClientConfig":
    from appium.webdriver.client_config import AppiumClientConfig
    from selenium.webdriver.common.proxy import Proxy, ProxyType

    parts = urlsplit(config.appium_url)
    if parts.query or parts.fragment:
        raise ControllerError("the service's appiumUrl has a query or fragment, which the Appium client cannot carry")
    more: dict[str, Any] = {}
    if parts.username is not None:
        # Given apart, since the client would write them into its debug log as part of the address.
        more |= {"username": unquote(parts.username), "password": unquote(parts.password or "")}
    if is_loopback(parts.hostname or ""):
        more["proxy"] = Proxy({"proxyType": ProxyType.DIRECT})  # pyright: ignore[reportUnknownMemberType]
    return AppiumClientConfig(
        remote_server_addr=_address(parts),
        timeout=COMMAND_SECONDS,
        init_args_for_pool_manager={"init_args_for_pool_manager": {"retries": False}},
        **more,
    )


def _address(parts: SplitResult) -> str:
    """Return the address without credentials and without a slash at its end, which would double in every call."""
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], path=parts.path.rstrip("/")).geturl()


def _quit(started: "WebDriver") -> None:
    from selenium.common.exceptions import InvalidSessionIdException, WebDriverException
    from urllib3.exceptions import HTTPError

    try:
        started.quit()
    except InvalidSessionIdException:
        _logger.info("the Appium session had ended before its driver was quit")
    except (WebDriverException, HTTPError, TypeError, AttributeError, ValueError, RecursionError) as error:
        _logger.warning("the Appium driver did not quit: %s", error)
