"""The way to an Appium server: its address, the limits of its calls, and the shorter way that it may offer."""

import logging
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import SplitResult, unquote, urlsplit

from pytest_device.errors import ControllerError
from pytest_device.redact import is_loopback

if TYPE_CHECKING:
    from appium.webdriver.client_config import AppiumClientConfig
    from appium.webdriver.webdriver import WebDriver

COMMAND_SECONDS: Final = 180.0
"""How long one command may take; the client itself has no limit."""

_DIRECT: Final = ("directConnectProtocol", "directConnectHost", "directConnectPort", "directConnectPath")

_logger = logging.getLogger("pytest_device")


@dataclass(frozen=True, slots=True)
class DriverPolicy:
    """How a driver talks to its Appium server.

    A command, the start with the installation of the app included, may take ``timeout_seconds``. With
    ``direct_connection`` all commands after the start go straight to the host that the server names, if it names one.
    """

    timeout_seconds: float = COMMAND_SECONDS
    direct_connection: bool = True


def client_config(url: str, policy: DriverPolicy) -> "AppiumClientConfig":
    """Return what the client needs to know of a server; raises ControllerError for an address it cannot carry."""
    from appium.webdriver.client_config import AppiumClientConfig
    from selenium.webdriver.common.proxy import Proxy, ProxyType

    parts = urlsplit(url)
    if parts.query or parts.fragment:
        raise ControllerError("the service's appiumUrl has a query or fragment, which the Appium client cannot carry")
    more: dict[str, Any] = {}
    if parts.username is not None:
        # Given apart, since the client would write them into its debug log as part of the address.
        more |= {"username": unquote(parts.username), "password": unquote(parts.password or "")}
    if is_loopback(parts.hostname or ""):
        more["proxy"] = Proxy({"proxyType": ProxyType.DIRECT})  # pyright: ignore[reportUnknownMemberType]
    return AppiumClientConfig(
        remote_server_addr=_plain(parts),
        timeout=policy.timeout_seconds,
        init_args_for_pool_manager={"init_args_for_pool_manager": {"retries": False}},
        **more,
    )


def connect_directly(started: "WebDriver", url: str, policy: DriverPolicy) -> None:
    """Send further commands straight to the host that the server names in its reply, if it names one.

    By our own hand: of the versions of the client some forget limits and credentials on the way. ``url`` is where the
    driver was started; what it protects by TLS never goes on without.
    """
    from appium.webdriver.appium_connection import AppiumConnection

    direct = _direct_address([capability(started, name) for name in _DIRECT], urlsplit(url))
    if direct is None:
        return
    before = started.command_executor
    started.command_executor = AppiumConnection(client_config=client_config(direct, policy))
    before.close()  # type: ignore[no-untyped-call]
    _logger.info("the Appium driver goes on at the address that its server names")


def capability(started: "WebDriver", name: str) -> object:
    """Return what the server said of its session, None when it said nothing; ``name`` is without a prefix."""
    told = cast("dict[str, object]", started.capabilities)  # pyright: ignore[reportUnknownMemberType]  # the client's own annotation is bare
    return told.get(name, told.get(f"appium:{name}"))


def address_of(started: "WebDriver") -> str:
    """Return where the commands of a driver go, without credentials."""
    return str(_config_of(started).remote_server_addr)


@contextmanager
def limited(started: "WebDriver", seconds: float) -> Generator[None]:
    """Bound the commands of a block closer than they are; the client reads its limit anew for each."""
    config = _config_of(started)
    before, config.timeout = config.timeout, min(config.timeout, seconds)
    try:
        yield
    finally:
        config.timeout = before


def client_errors() -> tuple[type[Exception], ...]:
    """Return what the client raises, with what it stumbles over in an answer that is none of WebDriver's."""
    from selenium.common.exceptions import WebDriverException
    from urllib3.exceptions import HTTPError

    return (WebDriverException, HTTPError, TypeError, AttributeError, ValueError, RecursionError)


def has_no_answer(error: Exception) -> bool:
    """Tell whether a call ended without any answer of the server, which may or may not have done what it was told."""
    from urllib3.exceptions import HTTPError

    return isinstance(error, HTTPError | OSError)


def _config_of(started: "WebDriver") -> Any:
    return started.command_executor._client_config  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  # public from selenium 4.32 on


def _plain(parts: SplitResult) -> str:
    """Return the address without credentials and without a slash at its end, which would double in every call."""
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], path=parts.path.rstrip("/")).geturl()


def _direct_address(named: list[object], origin: SplitResult) -> str | None:
    """Return the address of these parts, with the credentials of the first one; None where it is none to go on at."""
    if None in named:
        return None
    protocol, host, port, path = map(str, named)
    user = f"{origin.netloc.rpartition('@')[0]}@" if "@" in origin.netloc else ""
    address = f"{protocol}://{user}{host}:{port}{path}"
    if protocol not in {"https", origin.scheme} or not _is_base(address, host):
        _logger.warning("the Appium server names an address that its driver cannot go on at: it stays where it is")
        return None
    return address


def _is_base(address: str, host: str) -> bool:
    try:
        parts = urlsplit(address)
        return parts.hostname == host.strip("[]").lower() and bool(parts.port) and not (parts.query or parts.fragment)
    except ValueError:
        return False
