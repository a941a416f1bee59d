"""Handling of a request to the provider: parsing, failure injection, recording and response."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import (
    JSONResponse,
    PlainTextResponse,
    Response,
    StreamingResponse,
)

from pytest_device.auth.provider.model import (
    Endpoint,
    FailureKind,
    Journal,
    SeenRequest,
)
from pytest_device.auth.provider.page import Page
from pytest_device.auth.provider.state import OAuthError
from pytest_device.serving import Failure, body_of

MAX_BODY_BYTES: Final = 64 * 1024
_TRICKLE_SECONDS: Final = 0.02
_OVERSIZED: Final = b" " * (10 * 1024 * 1024)
_EVERYWHERE: Final[tuple[FailureKind, ...]] = (
    "delay",
    "hang",
    "server_error",
    "redirect",
    "oversized",
    "trickle",
)
SESSION: Final = "pytest-device-session"
"""Name of the session cookie, unique because browsers share cookies between all ports of a host."""
NO_STORE: Final = {"Cache-Control": "no-store", "Pragma": "no-cache"}


@dataclass(frozen=True, slots=True)
class Exchange:
    """Parsed request; ``params`` are the parameters of query and form, ``form`` only those of the form."""

    params: Mapping[str, str] = field(repr=False)
    form: Mapping[str, str] = field(repr=False)
    authorization: str = field(repr=False)
    session: str = field(repr=False)


Respond = Callable[[Exchange], Response]


@dataclass(frozen=True, slots=True)
class Door:
    """Endpoint that wraps a response function."""

    endpoint: Endpoint
    journal: Journal
    respond: Respond

    async def answer(self, request: Request) -> Response:
        """Parse a request, record it and return the response."""
        seen = SeenRequest(self.endpoint, request.method, {})
        try:
            exchange = await _read(request)
            seen = replace(seen, params=exchange.params)
            early = await _failed(
                self.journal.take_failure(self.endpoint, *_EVERYWHERE), request
            )
            response = self.respond(exchange) if early is None else early
            if isinstance(response, Page):
                seen = replace(seen, error=response.problem)
        except OAuthError as error:
            seen = replace(seen, error=error.code)
            response = _refusal(error)
        self.journal.add(replace(seen, status=response.status_code))
        return response


async def _read(request: Request) -> Exchange:
    body = await body_of(request, MAX_BODY_BYTES)
    if body is None:
        raise OAuthError(
            "invalid_request", f"the request is larger than {MAX_BODY_BYTES} bytes", 413
        )
    try:
        form = parse_qsl(body.decode("ascii"), True, max_num_fields=100)
    except ValueError:
        raise OAuthError("invalid_request", "the form is malformed") from None
    pairs = [*parse_qsl(request.url.query, True), *form]
    if len(params := dict(pairs)) < len(pairs):
        raise OAuthError("invalid_request", "a parameter is repeated")
    authorization, session = (
        request.headers.get("authorization", ""),
        request.cookies.get(SESSION, ""),
    )
    return Exchange(params, dict(form), authorization, session)


async def _failed(failure: Failure | None, request: Request) -> Response | None:
    """Apply a failure and return its response, or None if the endpoint responds itself."""
    match failure:
        case Failure(kind="delay"):
            await asyncio.sleep(failure.seconds)
        case Failure(kind="hang"):
            await (
                request.receive()
            )  # returns when the client disconnects or the provider stops
        case Failure(kind="server_error"):
            return PlainTextResponse("failure requested by the test", 500)
        case Failure(kind="redirect"):
            return Response(status_code=307, headers={"Location": "attacker:/collect"})
        case Failure(kind="oversized"):
            return Response(_OVERSIZED, media_type="application/json")
        case Failure(kind="trickle"):
            return StreamingResponse(_trickle(), media_type="application/json")
        case _:
            pass
    return None


async def _trickle() -> AsyncIterator[bytes]:
    while True:
        yield b" "
        await asyncio.sleep(_TRICKLE_SECONDS)


def _refusal(error: OAuthError) -> Response:
    headers = dict(NO_STORE)
    if error.status == 401:  # noqa: PLR2004  # requires WWW-Authenticate
        scheme = "Bearer" if error.code == "invalid_token" else "Basic"
        headers["WWW-Authenticate"] = f'{scheme} error="{error.code}"'
    content = {"error": error.code, "error_description": error.description}
    return JSONResponse(content, error.status, headers=headers)
