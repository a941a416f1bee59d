"""Keeps calls out of the reach of plugins that answer or block a suite's own calls, or names the one that does."""

from types import MethodType
from typing import Final
from urllib.parse import urlsplit

import httpx

_HANDLE: Final = httpx.HTTPTransport.handle_request
"""As it was before any test; pytest-httpx replaces it in the class."""
_FIXES: Final = {
    "pytest_socket": "allow it with --allow-hosts={host}, or mark the test with @pytest.mark.enable_socket",
    "respx": 'let it pass with respx.route(host="{host}").pass_through()',
}
"""By the package whose errors say that a call was not sent."""


def shielded(client: httpx.Client) -> httpx.Client:
    """Return a client that goes on sending when a plugin replaces the method of httpx that sends."""
    held = vars(client)  # there is no public way that keeps the proxies of the environment
    for transport in (held.get("_transport"), *held.get("_mounts", {}).values()):
        if isinstance(transport, httpx.HTTPTransport):
            vars(transport)["handle_request"] = MethodType(_HANDLE, transport)
    return client


def interference(error: Exception, url: str) -> str | None:
    """Return which plugin has kept a call from an address, and what to do about that; None for any other error."""
    host = urlsplit(url).hostname or ""
    package = type(error).__module__.partition(".")[0]
    if package not in _FIXES:
        return None
    return f"{package.replace('_', '-')} intercepts calls to {host}: {_FIXES[package].format(host=host)}"
