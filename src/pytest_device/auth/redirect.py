"""Redirect URIs for each environment in which an app runs."""

import re
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, cast, get_args
from urllib.parse import parse_qsl, quote, urlsplit

from pytest_device.app.vendor import VendorProfile, profile_of
from pytest_device.auth.config import Environment, RedirectUriOptions, read
from pytest_device.auth.urls import form_encoded
from pytest_device.errors import AuthConfigError, hides_frames
from pytest_device.redact import shown
from pytest_device.spec import VENDOR

__tracebackhide__ = hides_frames

_IP_ADDRESS: Final = re.compile(r"\b(?:[0-9]{1,3}\.){3}[0-9]{1,3}\b")
_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]*")
_KEPT: Final = ";,/?:@&=+$-_.!~*'()#%"
"""Characters that `encodeURI` does not escape, and ``%`` of sequences that are already escaped."""


def make_redirect_uri(
    options: RedirectUriOptions | Mapping[str, Any] | None = None,
    *,
    environment: Environment,
    platform: str = "ios",
    config: Mapping[str, Any] | None = None,
    host_uri: str | None = None,
    current_url: str | None = None,
    vendor: VendorProfile | str = VENDOR,
) -> str:
    """Return the redirect URI of an app.

    >>> make_redirect_uri({"path": "redirect"}, environment="standalone", config={"scheme": "myapp"})
    'myapp://redirect'

    Args:
        options: The options of the URI.
        environment: How the app runs.
        platform: The platform; on ``web``, the environment does not matter.
        config: The content of the app config, with ``scheme``, ``ios.bundleIdentifier`` and ``android.package``.
        host_uri: The URI of the development server, for ``store_client`` (default: ``hostUri`` of the app config).
        current_url: The URL of the page, for ``web``.
        vendor: The vendor's profile, or only its word; it has the scheme of the development client.

    Raises:
        AuthConfigError: An argument is invalid, or a value that the environment requires is missing.
    """
    if environment not in get_args(Environment):
        raise AuthConfigError(
            f"environment {environment!r} must be one of {', '.join(get_args(Environment))}"
        )
    uri_options = read(RedirectUriOptions, options or {})
    app_config = config or {}
    if environment == "web" or platform == "web":
        url = _web_url(uri_options, current_url)
    elif environment == "store_client":
        scheme = profile_of(vendor).client_scheme
        host = host_uri or app_config.get("hostUri") or ""
        url = _app_url(uri_options, scheme, host)
    elif uri_options.native:
        return uri_options.native
    else:
        scheme = _scheme(uri_options.scheme, app_config, platform)
        url = _app_url(uri_options, scheme)

    if uri_options.prefer_localhost:
        url = _IP_ADDRESS.sub("localhost", url, count=1)

    return url


def get_redirect_url(
    path: str | None = None, *, environment: Environment, **app: Any
) -> str:
    """Return the redirect URI for a path. Raises AuthConfigError in the environment ``bare``."""
    if environment == "bare":
        raise AuthConfigError(
            "get_redirect_url is not for existing native projects: use make_redirect_uri with native"
        )

    return make_redirect_uri({"path": path}, environment=environment, **app)


def get_default_return_url(
    url_path: str | None = None,
    options: RedirectUriOptions | Mapping[str, Any] | None = None,
    **app: Any,
) -> str:
    """Return the redirect URI for a path. Deprecated: use `make_redirect_uri`."""
    warnings.warn(
        "get_default_return_url is deprecated: use make_redirect_uri",
        DeprecationWarning,
        stacklevel=2,
    )
    uri_options = replace(read(RedirectUriOptions, options or {}), path=url_path or "")

    return make_redirect_uri(uri_options, **app)


def _web_url(options: RedirectUriOptions, current_url: str | None) -> str:
    try:
        page = urlsplit(current_url or "")
    except ValueError:
        raise AuthConfigError(
            f"current_url {shown(current_url or '')!r} must be a URL"
        ) from None
    if not page.netloc:
        raise AuthConfigError(
            "the redirect URI of a web app needs current_url, the URL of its page"
        )

    path = f"/{options.path.removeprefix('/')}" if options.path else ""
    return _encoded(f"{page.scheme}://{page.netloc}{path}", options.query_params)


def _app_url(options: RedirectUriOptions, scheme: str, host_uri: str = "") -> str:
    host, _, own_query = host_uri.partition("?")
    path = options.path
    if path and host:
        # At this mark, the development client splits its address from the app's path.
        path = f"/--/{path.removeprefix('/')}"
    elif path and options.is_triple_slashed and not path.startswith("/"):
        path = f"/{path}"

    address = f"{scheme}://{host.rstrip('/')}{path}"
    query = {**options.query_params, **dict(parse_qsl(own_query))}

    return _encoded(address, query)


def _scheme(scheme: str | None, config: Mapping[str, Any], platform: str) -> str:
    """Return the scheme from the options, or else the app config's first one. Raises AuthConfigError."""
    if not config:
        raise AuthConfigError(
            "the redirect URI needs the app config: pass it as config"
        )

    section: object = config.get(platform)
    native: Mapping[str, Any] = {}
    if isinstance(section, Mapping):
        native = cast("Mapping[str, Any]", section)

    schemes = [*_texts(config.get("scheme")), *_texts(native.get("scheme"))]
    if not scheme:
        scheme = schemes[0] if schemes else None
    if scheme is not None and not _SCHEME.fullmatch(scheme):
        raise AuthConfigError(
            f"scheme {scheme!r} must be a lowercase letter, then only lowercase letters, digits, '+', '.' or '-'"
        )
    if scheme:
        return scheme

    # Builds also register their identifier as a scheme.
    identifier = native.get("bundleIdentifier" if platform == "ios" else "package")
    if isinstance(identifier, str) and identifier:
        return identifier

    raise AuthConfigError(
        "the app config has no scheme, which a built app needs: set scheme, such as 'myapp'"
    )


def _texts(value: object) -> list[str]:
    """Return the strings in a value, which is a string or a list."""
    values = cast("list[object]", value) if isinstance(value, list) else [value]

    return [text for text in values if isinstance(text, str)]


def _encoded(address: str, query: Mapping[str, str]) -> str:
    url = quote(address, safe=_KEPT)

    return f"{url}?{form_encoded(query)}" if query else url
