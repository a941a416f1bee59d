"""How calls leave this machine: through which proxy, and past plugins that intercept them."""

import os
import socket
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from traceback import walk_tb
from types import MethodType
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import certifi
import httpx

from pytest_device import parsers
from pytest_device.errors import ConfigError, ServiceError
from pytest_device.redact import Redactor, is_loopback, uses_tls
from pytest_device.sessions.reaper.messages import Endpoint
from pytest_device.settings import checked_token

if TYPE_CHECKING:
    import ssl


_PROXY_VARIABLES: Final = "HTTPS_PROXY, ALL_PROXY"


class Authorities(NamedTuple):
    """The trusted certificate authorities: a file, a directory, or both."""

    cafile: str | None
    capath: str | None


def authorities(environ: Mapping[str, str] = os.environ) -> Authorities:
    """Return those of SSL_CERT_FILE and SSL_CERT_DIR, else certifi's."""
    cafile = environ.get("SSL_CERT_FILE") or None
    capath = environ.get("SSL_CERT_DIR") or None
    return Authorities(cafile or (None if capath else certifi.where()), capath)


def verification(url: str) -> "ssl.SSLContext | bool":
    """Return what httpx verifies a server with, also on this machine, where it reads no variables itself.

    False without TLS. Raises OSError for unusable certificates.
    """
    if not uses_tls(url):
        return False

    import ssl

    cafile, capath = authorities()
    return ssl.create_default_context(cafile=cafile, capath=capath)


def endpoint_at(
    url: str, token: str, environ: Mapping[str, str] = os.environ
) -> Endpoint:
    """Return the reaper's connection settings for a service: the proxy and certificates that the client uses.

    Raises ConfigError for an invalid URL or token, and for a proxy that is not an HTTP proxy.
    """
    return checked_endpoint(parsers.address(url), checked_token(token), environ)


def checked_endpoint(
    url: str, token: str, environ: Mapping[str, str] = os.environ
) -> Endpoint:
    """Return the same for a URL and a token that were checked with the settings."""
    cafile, capath = authorities(environ)
    return Endpoint(
        url,
        token,
        proxy=_proxy_to(urlsplit(url).hostname or ""),
        cafile=cafile,
        capath=capath,
    )


def _proxy_to(host: str) -> str:
    """Return the URL of the proxy for a host, empty if there is none. Raises ConfigError."""
    if is_loopback(host) or proxy_bypass(host):
        return ""

    proxies = getproxies()
    proxy = proxies.get("https") or proxies.get("all") or ""
    if not proxy:
        return ""

    address = proxy if "://" in proxy else f"http://{proxy}"
    try:
        parts = urlsplit(address)
        is_usable = parts.scheme == "http" and bool(parts.hostname)
        # The port is checked when it is read: that of a password with a slash, for example, is no number.
        is_usable = is_usable and parts.port != 0
    except ValueError:
        raise ConfigError(
            f"{_PROXY_VARIABLES}: the proxy must be a URL such as http://user:password@proxy.example:8080, with "
            "characters such as / in the password percent-encoded"
        ) from None

    if not is_usable:
        shown = Redactor().text(address)
        raise ConfigError(
            f"the proxy {shown} cannot be used: {_PROXY_VARIABLES} must name an http:// proxy"
        )

    return address


class InterceptedError(ServiceError):
    """A plugin blocks or answers the calls of the test that runs now: that says nothing about the service."""


class BlockedError(ConfigError):
    """A plugin blocks the connections of the test that runs now, so that nothing was requested."""


_BLOCKER: Final = "pytest_socket"
_CONNECT_SECONDS: Final = 10.0
_BLOCKS_ALL: Final = (
    "pytest-socket blocks the connection to {host} (--disable-socket, or disable_socket of the test): allow it with "
    "--allow-hosts={host}, or with @pytest.mark.enable_socket instead of disable_socket. No device was requested"
)
_BLOCKS_HOST: Final = (
    "pytest-socket blocks the connection to {host}, which is missing in --allow-hosts or @pytest.mark.allow_hosts: "
    "add {host}. No device was requested"
)


def check_not_blocked(url: str) -> None:
    """Raise BlockedError if pytest-socket blocks connections of this process to a service.

    The call that creates a session would succeed all the same, since the reaper sends it: the device would be paid for,
    and no other call would reach the service.
    """
    if not any(map(_is_of_blocker, (socket.socket, socket.socket.connect))):
        return

    service = urlsplit(url)
    target = urlsplit(_proxy_to(service.hostname or "") or url)
    host = target.hostname or ""
    port = target.port or {"https": 443}.get(target.scheme, 80)
    try:
        socket.create_connection((host, port), _CONNECT_SECONDS).close()
    except OSError:
        return  # it is not blocked, and the calls report it
    except Exception as error:
        if _package_of(error) != _BLOCKER:
            raise

        is_host_blocked = "connect()" in str(error)
        message = _BLOCKS_HOST if is_host_blocked else _BLOCKS_ALL
        raise BlockedError(message.format(host=host)) from None


def _is_of_blocker(value: object) -> bool:
    """Return whether a class or function is one of pytest-socket."""
    module: str | None = getattr(value, "__module__", None)
    return (module or "").partition(".")[0] == _BLOCKER


def _package_of(error: Exception) -> str:
    """Return the package that an error comes from: pytest-socket warns first, and a suite may make that an error."""
    module = type(error).__module__
    if isinstance(error, Warning):
        for frame, _line in walk_tb(error.__traceback__):
            module = str(frame.f_globals.get("__name__"))

    return module.partition(".")[0]


_HANDLE: Final = httpx.HTTPTransport.handle_request
"""The original method, saved before any test; pytest-httpx replaces it in the class."""
_FIXES: Final = {
    _BLOCKER: "allow it with --allow-hosts={host}, or mark the test with @pytest.mark.enable_socket",
    "respx": 'let it pass with respx.route(host="{host}").pass_through()',
}
"""Fixes, by the package whose errors mean that a call was not sent."""


def protect_from_mocks(client: httpx.Client) -> httpx.Client:
    """Return a client that keeps sending when a plugin replaces httpx's sending method."""
    held = vars(client)  # no public way keeps the proxies of the environment
    for transport in (held.get("_transport"), *held.get("_mounts", {}).values()):
        if isinstance(transport, httpx.HTTPTransport):
            vars(transport)["handle_request"] = MethodType(_HANDLE, transport)
    return client


@contextmanager
def naming_intercepting_plugin(url: str) -> Generator[None]:
    """Raise InterceptedError with the plugin's name and the fix if a plugin blocks a call to ``url`` in the block."""
    try:
        yield
    except Exception as error:
        package = _package_of(error)
        if package not in _FIXES:
            raise
        raise _intercepted(package, url) from None


def check_sent(reply: httpx.Response, url: str) -> None:
    """Raise InterceptedError with the plugin's name and the fix for a reply that no connection delivered."""
    if "network_stream" not in reply.extensions:
        import httpcore

        raise _intercepted(
            httpcore.ConnectionPool.handle_request.__module__.partition(".")[0], url
        )


def _intercepted(package: str, url: str) -> InterceptedError:
    host = urlsplit(url).hostname or ""
    fix = _FIXES.get(package, "let them pass").format(host=host)
    return InterceptedError(
        f"{package.replace('_', '-')} intercepts calls to {host}: {fix}"
    )
