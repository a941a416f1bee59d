"""The connection to an Appium server: its URL and time limits."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import unquote, urlsplit

from pytest_device.errors import ControllerError
from pytest_device.redact import is_loopback
from pytest_device.sessions.network import authorities

if TYPE_CHECKING:
    from appium.webdriver.client_config import AppiumClientConfig
    from appium.webdriver.webdriver import WebDriver

COMMAND_SECONDS: Final = 180.0
"""Maximum seconds of one command; the client itself has no limit."""


@dataclass(frozen=True, slots=True)
class DriverPolicy:
    """How a driver connects to its Appium server.

    Attributes:
        timeout_seconds: The maximum duration of each command, including the start, which installs the app.

    >>> DriverPolicy(timeout_seconds=60)
    DriverPolicy(timeout_seconds=60)
    """

    timeout_seconds: float = COMMAND_SECONDS


def client_config(url: str, policy: DriverPolicy) -> "AppiumClientConfig":
    """Return the client's configuration for a server; raise ControllerError if the client does not support its URL."""
    from appium.webdriver.client_config import AppiumClientConfig
    from selenium.webdriver.common.proxy import Proxy, ProxyType

    parts = urlsplit(url)
    if parts.query or parts.fragment:
        raise ControllerError(
            "the service's appiumUrl has a query or fragment, which the Appium client does not support"
        )

    optional: dict[str, Any] = {}
    if parts.username is not None:
        # Passed separately: the client would log them as part of the URL.
        optional["username"] = unquote(parts.username)
        optional["password"] = unquote(parts.password or "")

    if is_loopback(parts.hostname or ""):
        optional["proxy"] = Proxy({"proxyType": ProxyType.DIRECT})  # pyright: ignore[reportUnknownMemberType]

    # A repeated command could act twice.
    pool: dict[str, Any] = {"retries": False}
    # The client's own variable, and the only one that it reads.
    if "REQUESTS_CA_BUNDLE" not in os.environ:
        optional["ca_certs"], directory = authorities()
        if directory:
            pool["ca_cert_dir"] = directory

    # The client would double a trailing slash in every call.
    address = parts._replace(
        netloc=parts.netloc.rpartition("@")[2], path=parts.path.rstrip("/")
    ).geturl()
    return AppiumClientConfig(
        remote_server_addr=address,
        timeout=policy.timeout_seconds,
        init_args_for_pool_manager={"init_args_for_pool_manager": pool},
        **optional,
    )


def capability(started: "WebDriver", name: str) -> object:
    """Return a capability of the started session, None if the server did not return it; ``name`` has no prefix."""
    returned = cast("dict[str, object]", started.capabilities)  # pyright: ignore[reportUnknownMemberType]  # the client's own annotation is bare
    return returned.get(name, returned.get(f"appium:{name}"))


def limit(started: "WebDriver", seconds: float) -> None:
    """Set the time limit of all further commands."""
    _config_of(started).timeout = seconds


@contextmanager
def limited(started: "WebDriver", seconds: float) -> Generator[None]:
    """Lower the time limit of the commands in a block; the client reads it for each command."""
    config = _config_of(started)
    previous = config.timeout
    config.timeout = min(config.timeout, seconds)
    try:
        yield
    finally:
        config.timeout = previous


def client_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions of the client, including those from responses that are not WebDriver's."""
    from selenium.common.exceptions import WebDriverException
    from urllib3.exceptions import HTTPError

    return (
        WebDriverException,
        HTTPError,
        TypeError,
        AttributeError,
        ValueError,
        RecursionError,
    )


def has_no_answer(error: Exception) -> bool:
    """Return whether a call ended without a response, so that the server may or may not have executed it."""
    from urllib3.exceptions import HTTPError

    return isinstance(error, HTTPError | OSError)


def _config_of(started: "WebDriver") -> Any:
    return started.command_executor._client_config  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  # public from selenium 4.32 on
