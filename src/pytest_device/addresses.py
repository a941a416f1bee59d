"""Checks the URLs of services."""

from urllib.parse import urlsplit

from pytest_device.errors import ConfigError
from pytest_device.redact import MASK, Redactor, is_loopback


def checked_url(url: str) -> str:
    """Return the service's base URL without a trailing slash.

    Raises ConfigError unless it is ``https://`` (``http://`` on loopback only, since the token travels with every
    request) and contains nothing but host, port and path.
    """
    shown = Redactor().text(url).partition("?")[0]
    try:
        parts = urlsplit(url.strip())
        host, _port = parts.hostname, parts.port
    except ValueError as error:
        raise ConfigError(f"service URL {shown!r}: {error}") from None
    if parts.scheme not in {"http", "https"} or not host:
        raise ConfigError(f"service URL {shown!r} must look like https://host or https://host/path")
    if parts.scheme == "http" and not is_loopback(host):
        raise ConfigError(f"service URL {shown!r} would send the access token unencrypted: use https://")
    if parts.username or parts.password:
        raise ConfigError(
            f"service URL {shown!r} must not contain credentials: remove them, the access token is passed separately"
        )
    if not url.strip().isprintable() or " " in url.strip() or not _encodes(host):
        raise ConfigError(f"service URL {shown!r} contains invalid characters")
    if "?" in url or "#" in url:
        raise ConfigError(f"service URL {shown!r} must end with its path: remove the ?query or #fragment")
    base = url.strip().rstrip("/")
    if parts.path.rstrip("/").endswith("/v2"):
        raise ConfigError(f"service URL {shown!r} must end before /v2, which is added to each request")
    return base


def _encodes(host: str) -> bool:
    try:
        return bool(host.encode("idna"))
    except UnicodeError:
        return False


def checked_slots_url(url: str) -> str:
    """Return the URL of a Redis server: ``redis://host:port/number``, or ``rediss://`` for an encrypted connection.

    Raises ConfigError, without showing credentials, if it contains anything else, or credentials that would cross a
    network unencrypted.
    """
    scheme, sign, rest = url.strip().partition("://") if "://" in url else ("", "", url.strip())
    credentials, at, place = rest.rpartition("@")  # a slash or blank in a password must not end it here
    shown = f"{scheme}{sign}{MASK if credentials else ''}{at}{place.partition('?')[0]}"
    try:
        parts = urlsplit(url.strip())
        host, _port = parts.hostname, parts.port
    except ValueError:
        host, parts = None, urlsplit("")
    number = parts.path.strip("/")
    if parts.scheme not in {"redis", "rediss"} or not host or "/" in number or (number and not number.isdecimal()):
        raise ConfigError(
            f"Redis URL {shown!r} must look like rediss://host, rediss://host:port or rediss://host:port/number"
        )
    if not url.strip().isprintable() or any(sign in url.strip() for sign in " '\"?#"):
        raise ConfigError(f"Redis URL {shown!r} must end with its database number, and contain no blank, quote, ? or #")
    if "@" in parts.netloc and parts.scheme == "redis" and not is_loopback(host):
        raise ConfigError(f"Redis URL {shown!r} would send its credentials unencrypted: use rediss://")
    return url.strip()
