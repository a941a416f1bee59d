"""Keeps calls out of the reach of plugins that answer or block a suite's own calls, or names the one that does."""

from collections.abc import Generator
from contextlib import contextmanager
from types import MethodType
from typing import Final
from urllib.parse import urlsplit

import httpx

from pytest_device.errors import ServiceError

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


@contextmanager
def culprit_named(url: str) -> Generator[None]:
    """Raise ServiceError with the plugin's name and the fix where one keeps a call in the block from an address."""
    try:
        yield
    except Exception as error:
        package, host = type(error).__module__.partition(".")[0], urlsplit(url).hostname or ""
        if package not in _FIXES:
            raise
        name, fix = package.replace("_", "-"), _FIXES[package].format(host=host)
        raise ServiceError(f"{name} intercepts calls to {host}: {fix}") from None
