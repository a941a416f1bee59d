"""An Appium driver on a session in progress: built, handed over, asked for evidence, quit, all within bounds."""

import logging
from collections.abc import Callable, Generator, Iterator, Mapping
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
EVIDENCE_SECONDS: Final = 20.0
"""How long each piece of evidence may take."""

_PNG: Final = b"\x89PNG\r\n\x1a\n"

_logger = logging.getLogger("pytest_device")


@contextmanager
def driver(
    session: Session, options: "AppiumOptions | Mapping[str, Any]", *, leave: Callable[[], bool] = lambda: False
) -> "Generator[WebDriver]":
    """Start an Appium session on the device and quit it at the end, unless ``leave`` says then that it shall go on.

    ``options`` are the suite's: a mapping of capabilities, with or without the ``appium:`` prefix, or one of the
    client's option classes. They win over the service's ``capabilities``, but for what an option class sets by itself.
    Raises ControllerError when Appium does not answer or refuses. A quit that fails is logged: the device is stopped
    anyway.
    """
    config = session.remote_config
    if not isinstance(config, AppiumConfig):
        raise ControllerError(f"session {session.id} is of type {session.type}: it has no Appium server")
    client_config = _client_config(config)
    started = _start(session, merged_options(session, config, options), client_config)
    try:
        yield started
    finally:
        if leave():
            started.command_executor.close()  # type: ignore[no-untyped-call]  # its connections only
        else:
            with _limited(started, QUIT_SECONDS):
                _quit(started)


def evidence_of(started: "WebDriver") -> Iterator[tuple[str, bytes]]:
    """Yield what the device shows now, by file name; what cannot be had is logged and left out."""
    for name, read in (("screenshot.png", _screenshot), ("source.xml", _source)):
        try:
            with _limited(started, EVIDENCE_SECONDS):
                content = read(started)
        except _client_errors() as error:
            _logger.warning("no %s of the device: %s", name, _first_line(error))
        else:
            yield name, content


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
    # The platform and the automation that a class brings along are no wish of the suite: the service knows its device.
    class_s_own: dict[str, Any] = dict(options.default_capabilities) if isinstance(options, AppiumOptions) else {}  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    wishes = {name: value for name, value in suite.items() if name not in class_s_own or class_s_own[name] != value}
    # Appium would end a driver that pauses for a minute in mid-test; the session's own idle limit bounds it instead.
    patience = {"appium:newCommandTimeout": (session.max_idle_time_minutes or 0) * 60}
    return (
        AppiumOptions().load_capabilities({**patience, **class_s_own, **config.capabilities}).load_capabilities(wishes)
    )


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


@contextmanager
def _limited(started: "WebDriver", seconds: float) -> Generator[None]:
    """Bound the commands of a block; the client reads its limit anew for each."""
    config: Any = started.command_executor._client_config  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  # public from selenium 4.32 on
    before, config.timeout = config.timeout, seconds
    try:
        yield
    finally:
        config.timeout = before


def _screenshot(started: "WebDriver") -> bytes:
    picture = started.get_screenshot_as_png()
    if not picture.startswith(_PNG):
        raise ValueError("the answer is no picture")
    return picture


def _source(started: "WebDriver") -> bytes:
    return started.page_source.encode()


def _quit(started: "WebDriver") -> None:
    from selenium.common.exceptions import InvalidSessionIdException

    try:
        started.quit()
    except InvalidSessionIdException:
        _logger.info("the Appium session had ended before its driver was quit")
    except _client_errors() as error:
        _logger.warning("the Appium driver did not quit: %s", _first_line(error))


def _client_errors() -> tuple[type[Exception], ...]:
    """Return what the client raises, with what it stumbles over in an answer that is none of WebDriver's."""
    from selenium.common.exceptions import WebDriverException
    from urllib3.exceptions import HTTPError

    return (WebDriverException, HTTPError, TypeError, AttributeError, ValueError, RecursionError)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
