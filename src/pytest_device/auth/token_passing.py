"""Passing the tokens of a signed-in user to the app under test, in a deep link or as launch arguments."""

from typing import Literal, TypeAlias, get_args

from pytest_device.auth.token import TokenResponse
from pytest_device.auth.urls import form_encoded
from pytest_device.errors import AuthConfigError, hides_frames

__tracebackhide__ = hides_frames

LinkPart: TypeAlias = Literal["fragment", "query"]


def link_with_tokens(
    link: str, tokens: TokenResponse, *, part: LinkPart = "fragment"
) -> str:
    """Return a deep link with the tokens in its fragment, which is never sent to a server, or in its query.

    The parameters are those of RFC 6749 section 4.2.2, which `TokenResponse.from_query_params` parses.

    >>> link_with_tokens("myapp://home", TokenResponse(access_token="t", issued_at=1000))
    'myapp://home#access_token=t&token_type=bearer&issued_at=1000'

    Raises AuthConfigError for any other part.
    """
    if part not in get_args(LinkPart):
        raise AuthConfigError(f"part {part!r} must be 'fragment' or 'query'")

    # A link may have a fragment already, which its app also parses.
    start, hash_sign, fragment = link.partition("#")
    added = form_encoded(_params(tokens))
    if part == "query":
        separator = "&" if "?" in start else "?"
        return f"{start}{separator}{added}{hash_sign}{fragment}"

    if fragment:
        added = f"{fragment}&{added}"

    return f"{start}#{added}"


def launch_arguments(tokens: TokenResponse, *, prefix: str = "--") -> list[str]:
    """Return the tokens as launch arguments such as ``--access_token=…``, named as in `link_with_tokens`."""
    return [f"{prefix}{name}={value}" for name, value in _params(tokens).items()]


def _params(tokens: TokenResponse) -> dict[str, str]:
    params = {
        "access_token": tokens.access_token,
        "token_type": tokens.token_type,
        "expires_in": tokens.expires_in,
        "issued_at": tokens.issued_at,
        "refresh_token": tokens.refresh_token,
        "scope": tokens.scope,
        "id_token": tokens.id_token,
    }

    return {name: str(value) for name, value in params.items() if value is not None}
