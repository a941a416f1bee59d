"""The reaper's network settings: the proxy and certificates that the client uses."""

import os
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import certifi

from pytest_device import parsers
from pytest_device.errors import ConfigError
from pytest_device.redact import Redactor, is_loopback
from pytest_device.sessions.reaper.messages import Endpoint
from pytest_device.settings import checked_token

_PROXY_VARIABLES: Final = "HTTPS_PROXY, ALL_PROXY"


def endpoint_at(url: str, token: str, environ: Mapping[str, str] = os.environ) -> Endpoint:
    """Return the reaper's connection settings for a service.

    Raises ConfigError for an invalid URL or token, and for a proxy that is not an HTTP proxy.
    """
    base = parsers.address(url)
    host = urlsplit(base).hostname or ""
    return Endpoint(
        base,
        checked_token(token),
        proxy="" if is_loopback(host) or proxy_bypass(host) else _proxy(getproxies()),
        cafile=environ.get("SSL_CERT_FILE") or (None if environ.get("SSL_CERT_DIR") else certifi.where()),
        capath=environ.get("SSL_CERT_DIR") or None,
    )


def _proxy(proxies: Mapping[str, str]) -> str:
    proxy = proxies.get("https") or proxies.get("all") or ""
    if not proxy:
        return ""
    address = proxy if "://" in proxy else f"http://{proxy}"
    if urlsplit(address).scheme != "http":
        shown = Redactor().text(address)
        raise ConfigError(f"the proxy {shown} cannot be used: {_PROXY_VARIABLES} must name an http:// proxy")
    return address
