"""Redirect URIs for each environment in which an app runs."""

import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, cast, get_args
from urllib.parse import parse_qsl, quote, urlsplit

from pytest_device.app.vendor import VendorProfile, profile_of
from pytest_device.auth.config import Environment, RedirectUriOptions, read
from pytest_device.auth.urls import form_encoded
from pytest_device.errors import AuthConfigError, hides_frames
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

    ``config`` is the content of the app config, with ``scheme``, ``ios.bundleIdentifier`` and ``android.package``;
    ``host_uri`` is the URI of the development server (``store_client``; default: ``hostUri`` of the app config),
    ``current_url`` the URL of the page (``web``). ``vendor`` is the vendor's profile, or only its word; it has the scheme
    of the development client.
    Raises AuthConfigError if the configuration and the options lack a value that the environment requires.
    """
    if environment not in get_args(Environment):
        raise AuthConfigError(
            f"environment {environment!r} must be one of {', '.join(get_args(Environment))}"
        )
    if not isinstance(cast("object", config), Mapping | None):
        raise AuthConfigError(
            f"config must be the content of the app config, not {type(config).__name__}"
        )
    given, app = read(RedirectUriOptions, options or {}), config or {}
    if given.native and platform != "web" and environment in {"standalone", "bare"}:
        return given.native
    if environment == "web" or platform == "web":
        url = _web_url(given, current_url)
    elif environment == "store_client":
        scheme = profile_of(vendor).client_scheme
        url = _app_url(given, scheme, host_uri or app.get("hostUri") or "")
    else:
        url = _app_url(given, _scheme(given.scheme, app, platform))
    return _IP_ADDRESS.sub("localhost", url, count=1) if given.prefer_localhost else url


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
    return make_redirect_uri(
        replace(read(RedirectUriOptions, options or {}), path=url_path or ""), **app
    )


def _web_url(options: RedirectUriOptions, current_url: str | None) -> str:
    page = urlsplit(current_url or "")
    if not page.netloc:
        raise AuthConfigError(
            "the redirect URI of a web app needs current_url, the URL of its page"
        )
    path = f"/{options.path.removeprefix('/')}" if options.path else ""
    return _encoded(f"{page.scheme}://{page.netloc}{path}", options.query_params)


def _app_url(options: RedirectUriOptions, scheme: str, host_uri: str = "") -> str:
    host, _, own_query = host_uri.partition("?")
    path = (
        f"/--/{options.path.removeprefix('/')}"
        if options.path and host
        else options.path
    )
    if path and options.is_triple_slashed and not path.startswith("/"):
        path = f"/{path}"
    return _encoded(
        f"{scheme}://{host.rstrip('/')}{path}",
        {**options.query_params, **dict(parse_qsl(own_query))},
    )


def _scheme(wanted: str | None, config: Mapping[str, Any], platform: str) -> str:
    if not config:
        raise AuthConfigError(
            "the redirect URI needs the app config: pass it as config"
        )
    found: object = config.get(platform)
    native: Mapping[str, Any] = (
        cast("Mapping[str, Any]", found) if isinstance(found, Mapping) else {}
    )
    scheme = wanted or next(_texts(config.get("scheme"), native.get("scheme")), None)
    if scheme is not None and not _SCHEME.fullmatch(scheme):
        raise AuthConfigError(
            f"scheme {scheme!r} must be a lowercase letter, then only lowercase letters, digits, '+', '.' or '-'"
        )
    # Builds also register their identifier as a scheme.
    identifier = native.get("bundleIdentifier" if platform == "ios" else "package")
    if usable := scheme or next(_texts(identifier), None):
        return usable
    raise AuthConfigError(
        "the app config has no scheme, which a built app needs: set scheme, such as 'myapp'"
    )


def _texts(*values: object) -> Iterator[str]:
    for value in values:
        many = cast("list[object]", value) if isinstance(value, list) else [value]
        yield from (one for one in many if isinstance(one, str))


def _encoded(address: str, query: Mapping[str, str]) -> str:
    return quote(address, safe=_KEPT) + (f"?{form_encoded(query)}" if query else "")
