"""HTTP requests to identity providers, limited in duration and response size."""

import json
import math
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from pytest_device.auth.secret_values import learn_received, learn_sent
from pytest_device.auth.urls import check_secure, form_encoded
from pytest_device.body_limit import BodyLimitError, read_body
from pytest_device.call_limit import Sockets
from pytest_device.errors import (
    AuthConfigError,
    TransportError,
    UnexpectedReplyError,
    hides_frames,
)
from pytest_device.redact import shown, uses_tls

if TYPE_CHECKING:
    import httpx

__tracebackhide__ = hides_frames

MAX_BYTES: Final = 1024 * 1024
"""Maximum response size, far larger than any token response, key set or metadata."""
TIMEOUT_SECONDS: Final = 30.0
"""Timeout for a complete response if the client has no read timeout.

A timeout per read would never expire for a response that trickles in.
"""

FORM_TYPE: Final = "application/x-www-form-urlencoded"
ACCEPT_JSON: Final = "application/json, text/javascript; q=0.01"


@dataclass(frozen=True, slots=True)
class Reply:
    """Complete response of an identity provider."""

    url: str
    status: int
    body: bytes = field(repr=False)

    def json(self) -> dict[str, Any]:
        """Parse the body as a JSON object. Raises UnexpectedReplyError."""
        try:
            value: object = json.loads(self.body)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise UnexpectedReplyError(
                f"{shown(self.url)} returned {self.status} without a JSON object"
            )

        content = cast("dict[str, Any]", value)
        learn_received(content)

        return content


def get_json(
    url: str, headers: Mapping[str, str], client: "httpx.Client | None"
) -> dict[str, Any]:
    """Fetch a JSON object. Raises UnexpectedReplyError for any status other than 200; TransportError."""
    reply = send("GET", url, {"Accept": ACCEPT_JSON, **headers}, client)
    if reply.status != 200:  # noqa: PLR2004  # the only status with the requested object
        raise UnexpectedReplyError(
            f"{shown(url)} returned {reply.status} (expected 200)", status=reply.status
        )

    return reply.json()


def text_of(params: Mapping[str, Any], name: str) -> str | None:
    """Return a string parameter of a response, or None if it is absent. Raises UnexpectedReplyError."""
    value: object = params.get(name)
    if value is None or isinstance(value, str):
        return value

    raise UnexpectedReplyError(
        f"{name} in the identity provider's reply must be a string, not {type(value).__name__}"
    )


def seconds_of(params: Mapping[str, Any], name: str) -> float | None:
    """Return a parameter of a response in seconds, or None if it is absent or empty. Raises UnexpectedReplyError."""
    value: object = params.get(name)
    if value is None or value == "":
        return None

    seconds = finite_number(value)
    if seconds is None:
        raise UnexpectedReplyError(
            f"{name} {value!r} in the identity provider's reply must be a number of seconds"
        )

    # Whole numbers stay as they are.
    return int(seconds) if seconds.is_integer() else seconds


def finite_number(value: object) -> float | None:
    """Return a number, also one that is written as a string, which some providers send, or None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None

    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None

    return number if math.isfinite(number) else None


def send(
    method: str,
    url: str,
    headers: Mapping[str, str],
    client: "httpx.Client | None",
    *,
    form: Mapping[str, str] | None = None,
) -> Reply:
    """Send a request without following redirects, which could send secrets to another server.

    Raises:
        AuthConfigError: The URL is insecure.
        TransportError: No complete response arrives in time.
        UnexpectedReplyError: The response is a redirect, or larger than 1 MB.
    """
    import httpx

    # Before any error: a traceback shows what was given.
    learn_sent(headers)
    learn_sent(form or {})
    check_secure(url, "endpoint")
    content = None if form is None else form_encoded(form)
    sockets = Sockets()
    try:
        with _client_for(url, client) as http:
            seconds = http.timeout.read or TIMEOUT_SECONDS
            unfinished = partial(_unfinished, url, seconds)
            with (
                # A connection that the caller's client kept open is not known here, and so not closed.
                sockets.ending_late_calls(seconds, httpx.TransportError, unfinished),
                http.stream(
                    method,
                    url,
                    headers=dict(headers),
                    content=content,
                    follow_redirects=False,
                    extensions={"trace": sockets.note},
                ) as response,
            ):
                body = _body_of(response, url, seconds)
    except (httpx.InvalidURL, UnicodeError):
        raise AuthConfigError(f"endpoint {shown(url)!r} must be a URL") from None
    except httpx.DecodingError:
        raise UnexpectedReplyError(
            f"{shown(url)} returned a body that is not compressed as announced"
        ) from None
    except httpx.TransportError as error:
        sent = not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
        raise TransportError(
            f"no reply from {shown(url)}: {str(error) or type(error).__name__}",
            sent=sent,
        ) from None

    if response.is_redirect:
        raise UnexpectedReplyError(
            f"{shown(url)} returned a redirect, which is not followed: use the final URL"
        )

    return Reply(url, response.status_code, body)


def _client_for(
    url: str, client: "httpx.Client | None"
) -> "AbstractContextManager[httpx.Client]":
    """Return a context manager with the caller's client, which stays open, or with one of its own."""
    import httpx

    if client is not None:
        return nullcontext(client)

    # Loading certificates takes longer than a request to a provider on this machine, which needs none.
    return httpx.Client(timeout=TIMEOUT_SECONDS, verify=uses_tls(url))


def _unfinished(url: str, seconds: float) -> TransportError:
    return TransportError(
        f"the reply of {shown(url)} took more than {seconds:g} s", sent=True
    )


def _body_of(response: "httpx.Response", url: str, seconds: float) -> bytes:
    deadline = time.monotonic() + seconds
    try:
        return read_body(response.iter_bytes(), MAX_BYTES, deadline=deadline)
    except BodyLimitError as error:
        if error.is_late:
            raise _unfinished(url, seconds) from None

        raise UnexpectedReplyError(
            f"the reply of {shown(url)} is larger than {MAX_BYTES // 1024 // 1024} MB"
        ) from None
