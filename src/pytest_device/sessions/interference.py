"""Protects calls from plugins that mock or block HTTP calls of a suite, or names the plugin that intercepts them."""

from collections.abc import Generator
from contextlib import contextmanager
from types import MethodType
from typing import Final
from urllib.parse import urlsplit

import httpx

from pytest_device.errors import ServiceError

_HANDLE: Final = httpx.HTTPTransport.handle_request
"""The original method, saved before any test; pytest-httpx replaces it in the class."""
_FIXES: Final = {
    "pytest_socket": "allow it with --allow-hosts={host}, or mark the test with @pytest.mark.enable_socket",
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
    """Raise ServiceError with the plugin's name and the fix if a plugin blocks a call to ``url`` in the block."""
    try:
        yield
    except Exception as error:
        package = type(error).__module__.partition(".")[0]
        if package not in _FIXES:
            raise
        raise _intercepted(package, url) from None


def check_sent(reply: httpx.Response, url: str) -> None:
    """Raise ServiceError with the plugin's name and the fix for a reply that no connection delivered."""
    if "network_stream" not in reply.extensions:
        import httpcore

        raise _intercepted(
            httpcore.ConnectionPool.handle_request.__module__.partition(".")[0], url
        )


def _intercepted(package: str, url: str) -> ServiceError:
    host = urlsplit(url).hostname or ""
    fix = _FIXES.get(package, "let them pass").format(host=host)
    return ServiceError(
        f"{package.replace('_', '-')} intercepts calls to {host}: {fix}"
    )
