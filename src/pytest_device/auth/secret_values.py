"""Registers the secrets of a sign-in as soon as this package sees them, before anything can print them."""

from collections.abc import Mapping
from typing import Final, cast
from urllib.parse import parse_qsl, urlsplit

from pytest_device.errors import hides_frames
from pytest_device.redact import named_secrets
from pytest_device.secret_registry import SECRETS

__tracebackhide__ = hides_frames

_SECRET_PARAMETERS: Final = frozenset(
    (
        "access_token",
        "actor_token",
        "assertion",
        "auth_req_id",
        "client_assertion",
        "client_secret",
        "code_verifier",
        "device_code",
        "id_token",
        "id_token_hint",
        "logout_token",
        "refresh_token",
        "registration_access_token",
        "subject_token",
        "token",
        "user_code",
    )
)
"""Names of parameters in requests and responses (RFC 6749, 7009, 7521, 7591, 7636, 8628, 8693; OpenID Connect).

``state`` and ``nonce`` are none: they tie a response to its request, and give access to nothing.
"""
_CODE: Final = "code"
"""A secret in requests and redirects; in other responses it may be the code of an error."""


def learn_sent(params: Mapping[str, object]) -> None:
    """Register the secrets among parameters or headers that are sent or that a redirect returns, also in nested ones.

    Of the header Authorization, the scheme is no secret.
    """
    for name in (_SECRET_PARAMETERS | {_CODE}) & params.keys():
        SECRETS.learn(params[name])
    SECRETS.learn(*named_secrets((str(name), value) for name, value in params.items()))

    for name, value in params.items():
        if isinstance(value, Mapping):
            learn_sent(cast("Mapping[str, object]", value))
        elif str(name).lower() == "authorization" and isinstance(value, str):
            SECRETS.learn(value.rpartition(" ")[2])


def learn_received(reply: object) -> None:
    """Register the tokens in a JSON response, also in nested objects and lists, as some providers return them."""
    pending = [reply]
    while pending:
        value = pending.pop()
        if isinstance(value, list):
            pending += cast("list[object]", value)
        elif isinstance(value, Mapping):
            members = cast("Mapping[str, object]", value)
            for name in _SECRET_PARAMETERS & members.keys():
                SECRETS.learn(members[name])
            pending += members.values()


def learn_url(url: object) -> None:
    """Register the codes and tokens in the query and the fragment of a URL, such as a redirect."""
    if not isinstance(url, str):
        return

    try:
        parts = urlsplit(url)
    except ValueError:
        # No URL: whoever parses it reports the error.
        return

    # One by one: of a repeated parameter, each value is a secret.
    for name, value in parse_qsl(parts.query):
        learn_sent({name: value})
    for name, value in parse_qsl(parts.fragment.removeprefix("?")):
        learn_sent({name: value})
