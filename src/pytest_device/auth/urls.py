"""Encoding and parsing of URLs and forms as in browsers, and checks that URLs are secure."""

from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from pytest_device.auth.secret_values import learn_url
from pytest_device.errors import AuthConfigError, hides_frames
from pytest_device.redact import is_loopback, shown

__tracebackhide__ = hides_frames

MAX_URL_LENGTH: Final = 256 * 1024
"""Maximum length of a returned URL in characters, which limits the parsing time; browsers truncate longer URLs."""

ONCE: Final = ("state", "code", "iss")
"""Parameters that a response must not contain more than once (RFC 6749 section 3.1)."""
_BLANK: Final = " \t\r\n"


def form_encoded(params: Mapping[str, str]) -> str:
    """Encode parameters as ``application/x-www-form-urlencoded`` by the rules of the URL standard."""
    # Python leaves the tilde, which the standard encodes.
    return urlencode(params, safe="*").replace("~", "%7E")


def component(text: str) -> str:
    """Encode a string as a URI component."""
    return quote(text, "!~*'()")


class Returned(NamedTuple):
    """The parameters of a returned URL."""

    params: dict[str, str]
    """Those of the query and the fragment, which takes precedence."""
    error_code: str | None
    repeated: tuple[str, ...]
    """Names in `ONCE` that the query or the fragment contains twice."""


def return_params(url: str) -> Returned:
    """Return the parameters of a returned URL. Raises AuthConfigError if it is too long or malformed."""
    if len(url) > MAX_URL_LENGTH:
        raise AuthConfigError(
            f"the returned URL has {len(url)} characters, more than {MAX_URL_LENGTH}"
        )

    # Browsers drop blanks around a URL.
    url = url.strip(_BLANK)
    learn_url(url)
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise AuthConfigError(f"the returned URL is malformed: {error}") from None

    query = parse_qsl(parts.query, keep_blank_values=True)
    fragment = parse_qsl(parts.fragment.removeprefix("?"), keep_blank_values=True)
    error_codes = [value for name, value in query if name == "errorCode"]
    in_query = {name: value for name, value in query if name != "errorCode"}

    return Returned(
        params=in_query | dict(fragment),
        error_code=error_codes[0] if error_codes else None,
        repeated=tuple(name for name in ONCE if _is_repeated(name, query, fragment)),
    )


def _is_repeated(name: str, *parts: list[tuple[str, str]]) -> bool:
    """Return whether one of the parts of a URL contains a parameter more than once."""
    for pairs in parts:
        names = [pair_name for pair_name, _ in pairs]
        if names.count(name) > 1:
            return True

    return False


def check_secure(url: str, name: str) -> str:
    """Return a URL that is secure for tokens: https, or http on this machine. Raises AuthConfigError for others."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
        port = parts.port
    except ValueError:
        raise AuthConfigError(f"{name} {shown(url)!r} must be a URL") from None

    # Parsers differ in what they do with blanks and control characters.
    is_url = host and port != 0 and url.isprintable() and " " not in url
    if not host or not is_url or parts.scheme not in {"http", "https"}:
        raise AuthConfigError(f"{name} {shown(url)!r} must be an https URL")
    if "#" in url:
        raise AuthConfigError(f"{name} {shown(url)!r} must have no fragment")
    if parts.scheme == "http" and not is_loopback(host):
        raise AuthConfigError(
            f"{name} {shown(url)!r} must use https: http is only allowed on this machine (127.0.0.1)"
        )

    return url


def check_issuer(issuer: str) -> str:
    """Return an issuer that is a secure URL without query and fragment (OpenID Connect Discovery section 3).

    Raises AuthConfigError for others.
    """
    if "?" in issuer or "#" in issuer:
        raise AuthConfigError(
            f"issuer {shown(issuer)!r} must have neither a query nor a fragment"
        )

    return check_secure(issuer, "issuer")
