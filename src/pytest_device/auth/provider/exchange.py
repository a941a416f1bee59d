"""Handling of a request to the provider: parsing, failure injection, recording and response."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import (
    JSONResponse,
    PlainTextResponse,
    Response,
)

from pytest_device.auth.http import FORM_TYPE
from pytest_device.auth.provider.model import Endpoint, FailureKind, SeenRequest
from pytest_device.auth.provider.page import Page
from pytest_device.auth.provider.state import OAuthError
from pytest_device.body_limit import BodyLimitError, read_body_async
from pytest_device.errors import hides_frames
from pytest_device.serving import Failure, Journal, wait_for_disconnect

__tracebackhide__ = hides_frames

MAX_BODY_BYTES: Final = 64 * 1024
_EVERYWHERE: Final[tuple[FailureKind, ...]] = (
    "delay",
    "hang",
    "server_error",
)
SESSION: Final = "pytest-device-session"
"""Name of the session cookie, unique because browsers share cookies between all ports of a host."""
NO_STORE: Final = {"Cache-Control": "no-store", "Pragma": "no-cache"}


@dataclass(frozen=True, slots=True)
class Exchange:
    """Parsed request; ``params`` are the parameters of query and form, ``form`` only those of a POST."""

    params: Mapping[str, str] = field(repr=False)
    form: Mapping[str, str] = field(repr=False)
    authorization: str = field(repr=False)
    session: str = field(repr=False)


Respond = Callable[[Exchange], Response]


@dataclass(frozen=True, slots=True)
class RecordedEndpoint:
    """Endpoint that records its requests, fails on demand, and else calls a response function."""

    endpoint: Endpoint
    journal: Journal
    respond: Respond

    async def answer(self, request: Request) -> Response:
        """Parse a request, record it and return the response."""
        seen = SeenRequest(self.endpoint, request.method, {})
        try:
            exchange = await _read(request)
            seen = replace(seen, params=exchange.params)
            failure = self.journal.take_failure(self.endpoint, *_EVERYWHERE)
            if failure and failure.kind == "hang":
                # Before the wait, which may be long: a test waits for the request.
                self.journal.add(seen)
                await wait_for_disconnect(request.receive)
                return Response()

            response = await _failed(failure, request)
            if response is None:
                response = self.respond(exchange)
            if isinstance(response, Page):
                seen = replace(seen, error=response.problem)
        except OAuthError as error:
            seen = replace(seen, error=error.code)
            response = _refusal(error)

        self.journal.add(replace(seen, status=response.status_code))

        return response


async def _read(request: Request) -> Exchange:
    try:
        body = await read_body_async(request.stream(), MAX_BODY_BYTES)
    except BodyLimitError:
        raise OAuthError(
            "invalid_request", f"the request is larger than {MAX_BODY_BYTES} bytes", 413
        ) from None

    media_type, _, _ = request.headers.get("content-type", "").partition(";")
    if body and media_type.strip().lower() != FORM_TYPE:
        raise OAuthError("invalid_request", f"the body must be a form ({FORM_TYPE})")

    try:
        form = parse_qsl(body.decode("ascii"), True, max_num_fields=100)
    except ValueError:
        raise OAuthError("invalid_request", "the form is malformed") from None

    if request.method != "POST":
        form = []

    pairs = [*parse_qsl(request.url.query, True), *form]
    params = dict(pairs)
    # RFC 6749 section 3.1: a request that repeats one is invalid.
    if len(params) < len(pairs):
        raise OAuthError("invalid_request", "a parameter is repeated")

    return Exchange(
        params,
        dict(form),
        authorization=request.headers.get("authorization", ""),
        session=_session(request.headers.get("cookie", "")),
    )


def _session(cookies: str) -> str:
    """Return the value of the session cookie.

    It is never quoted: older versions of Python take time that grows with the square of a quoted value's length.
    """
    for cookie in cookies.split(";"):
        name, _, value = cookie.partition("=")
        if name.strip() == SESSION:
            return value.strip()

    return ""


async def _failed(failure: Failure | None, request: Request) -> Response | None:
    """Apply a failure and return its response, or None if the endpoint responds itself."""
    match failure:
        case Failure(kind="delay"):
            await wait_for_disconnect(request.receive, failure.seconds)
        case Failure(kind="server_error"):
            return PlainTextResponse("failure requested by the test", 500)
        case _:
            pass
    return None


def _refusal(error: OAuthError) -> Response:
    headers = dict(NO_STORE)
    # RFC 6750 section 3, RFC 7617 section 2.
    if error.code in ("invalid_token", "insufficient_scope"):
        headers["WWW-Authenticate"] = f'Bearer error="{error.code}"'
    elif error.code == "invalid_client":
        headers["WWW-Authenticate"] = 'Basic realm="pytest-device"'
    content = {"error": error.code, "error_description": error.description}

    return JSONResponse(content, error.status, headers=headers)
