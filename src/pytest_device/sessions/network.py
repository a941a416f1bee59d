"""The network settings of this machine: the proxy and the certificate authorities that calls use."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import certifi

from pytest_device import parsers
from pytest_device.errors import ConfigError
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
    cafile, capath = (
        environ.get("SSL_CERT_FILE") or None,
        environ.get("SSL_CERT_DIR") or None,
    )
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
    base, (cafile, capath) = parsers.address(url), authorities(environ)
    host = urlsplit(base).hostname or ""
    return Endpoint(
        base,
        checked_token(token),
        proxy="" if is_loopback(host) or proxy_bypass(host) else _proxy(getproxies()),
        cafile=cafile,
        capath=capath,
    )


def _proxy(proxies: Mapping[str, str]) -> str:
    proxy = proxies.get("https") or proxies.get("all") or ""
    if not proxy:
        return ""
    address = proxy if "://" in proxy else f"http://{proxy}"
    if urlsplit(address).scheme != "http":
        shown = Redactor().text(address)
        raise ConfigError(
            f"the proxy {shown} cannot be used: {_PROXY_VARIABLES} must name an http:// proxy"
        )
    return address
