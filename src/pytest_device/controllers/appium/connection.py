"""The connection to an Appium server: its URL, time limits, and direct connections."""

import logging
import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import SplitResult, unquote, urlsplit

from pytest_device.errors import ControllerError
from pytest_device.redact import is_loopback
from pytest_device.sessions.network import authorities

if TYPE_CHECKING:
    from appium.webdriver.client_config import AppiumClientConfig
    from appium.webdriver.webdriver import WebDriver

COMMAND_SECONDS: Final = 180.0
"""Maximum seconds of one command; the client itself has no limit."""

_DIRECT: Final = (
    "directConnectProtocol",
    "directConnectHost",
    "directConnectPort",
    "directConnectPath",
)

_logger = logging.getLogger("pytest_device")


@dataclass(frozen=True, slots=True)
class DriverPolicy:
    """How a driver connects to its Appium server.

    Attributes:
        timeout_seconds: The maximum duration of each command, including the start, which installs the app.
        direct_connection: Whether all commands after the start are sent to the host that the server returns, if it returns
            one.

    >>> DriverPolicy(timeout_seconds=60).direct_connection
    True
    """

    timeout_seconds: float = COMMAND_SECONDS
    direct_connection: bool = True


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


def connect_directly(started: "WebDriver", url: str, policy: DriverPolicy) -> None:
    """Send further commands to the host that the server returned, if it returned one.

    Done here because some versions of the client lose time limits and credentials. ``url`` is where the driver was
    started; a connection with TLS never continues without.
    """
    from pytest_device.trace.appium import recording_connection

    returned = [capability(started, name) for name in _DIRECT]
    direct = _direct_url(returned, urlsplit(url))
    if direct is None:
        return

    previous = started.command_executor
    started.command_executor = recording_connection(
        client_config(direct, policy), getattr(previous, "recorder", None)
    )
    previous.close()  # type: ignore[no-untyped-call]
    _logger.info("the Appium driver continues at the URL that its server returned")


def capability(started: "WebDriver", name: str) -> object:
    """Return a capability of the started session, None if the server did not return it; ``name`` has no prefix."""
    returned = cast("dict[str, object]", started.capabilities)  # pyright: ignore[reportUnknownMemberType]  # the client's own annotation is bare
    return returned.get(name, returned.get(f"appium:{name}"))


def url_of(started: "WebDriver") -> str:
    """Return the URL that a driver sends commands to, without credentials."""
    return str(_config_of(started).remote_server_addr)


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


def _direct_url(returned: list[object], origin: SplitResult) -> str | None:
    """Return the URL of these capabilities, with the credentials of ``origin``; None if it is not usable."""
    if None in returned:
        return None

    protocol, host, port, path = (str(value) for value in returned)
    credentials = origin.netloc.rpartition("@")[0]
    user = f"{credentials}@" if credentials else ""
    url = f"{protocol}://{user}{host}:{port}{path}"
    if protocol not in {"https", origin.scheme} or not _is_base(url, host):
        _logger.warning(
            "the Appium server returned an unusable URL for direct connections: the driver keeps the first one"
        )
        return None

    return url


def _is_base(url: str, host: str) -> bool:
    try:
        parts = urlsplit(url)
        return (
            parts.hostname == host.strip("[]").lower()
            and bool(parts.port)
            and not (parts.query or parts.fragment)
        )
    except ValueError:
        return False
