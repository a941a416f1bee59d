"""The public URLs of controllers: requests count as use and are forwarded to the program.

``routes(runner, keys)`` are the routes below ``/controllers/{session_id}/{key}`` and, for Appium, ``/appium/…``. The
key grants access to the program; agent-device and argent check their own tokens, too. Neither bodies nor headers are
ever logged.
"""

import json
import re
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, Literal

import httpx
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from pytest_device.service import rpc
from pytest_device.service.effects import ConnectionLostError
from pytest_device.service.keys import Keys
from pytest_device.service.programs.isolation import HOST
from pytest_device.service.replies import NOT_FOUND, refusal
from pytest_device.service.runners.base import Record, Runner
from pytest_device.service.runners.controller import Controller, over_socket

UNREACHABLE: Final = "CONTROLLER_UNREACHABLE"
FOREIGN_ORIGIN: Final = "FOREIGN_ORIGIN"
NO_BIDI: Final = "NO_BIDI"
UNREADABLE: Final = "UNREADABLE"

_ERRORS: Final = {
    NOT_FOUND: "invalid session id",
    NO_BIDI: "session not created",
    UNREADABLE: "session not created",
}
"""Error names that Appium's clients know; all others are unknown errors."""
_UTF_8: Final = re.compile(r"(?i)[^;]*(?:;\s*charset\s*=\s*\"?utf-?8\"?\s*)?")
"""The content types of JSON in UTF-8. Appium also reads other encodings, such as UTF-7."""
_BIDI: Final = "webSocketUrl"
"""The capability that requests WebDriver BiDi, for which Appium would return its own URL."""

CONNECT_SECONDS: Final = 5.0
ANSWER_SECONDS: Final = 900.0
"""Maximum seconds without data: a command may wait for something on the device."""

_TIMEOUT: Final = httpx.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS).as_dict()
_LIMITS: Final = httpx.Limits(max_keepalive_connections=4, keepalive_expiry=2.0)
"""No limit of requests at a time. Node.js closes idle connections after 5 seconds: a request must not meet that."""
_SHORT_BYTES: Final = 64 * 1024
"""Maximum length of a response that is read before it is forwarded, which takes half the time."""
_Purpose = Literal["controllers", "appium"]
_PURPOSES: Final[tuple[_Purpose, ...]] = ("controllers", "appium")
_METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_HEALTH_CHECKS: Final = frozenset(
    (("GET", "health"), ("GET", "tools"), ("GET", "status"))
)
"""Requests that check whether a controller is alive: they do not count as use."""
_NEW_SESSION: Final = ("POST", "session")
_HOP_BY_HOP: Final = frozenset(
    (
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    )
)
"""Headers about one connection, which a proxy must not forward (RFC 9110, section 7.6.1)."""


class Connections:
    """Connections to the sockets of controllers, kept open for the next request. A request is sent only once.

    Without httpx's client, which takes longer for a request than the controller: nothing of it is needed here.
    """

    def __init__(self) -> None:
        self._transports: dict[Path, httpx.AsyncHTTPTransport] = {}

    async def send(self, socket: Path, request: httpx.Request) -> httpx.Response:
        """Send a request; return the response, with its body still to be read. Raises httpx.TransportError."""
        transport = self._transports.get(socket)
        if transport is None:
            ended = [path for path in self._transports if not path.exists()]
            # Stored before any wait: requests at the same time share it.
            transport = over_socket(socket, _LIMITS)
            self._transports[socket] = transport
            await self._close(ended)

        return await transport.handle_async_request(request)

    async def close(self) -> None:
        await self._close(list(self._transports))

    async def _close(self, sockets: Sequence[Path]) -> None:
        for transport in [self._transports.pop(socket) for socket in sockets]:
            await transport.aclose()


@asynccontextmanager
async def connections() -> AsyncGenerator[Connections]:
    """Open connections to controllers, as they are needed; they are closed at the end of the block.

    Those of an ended session, whose socket is gone, are closed earlier: with the first request to another one.
    """
    opened = Connections()
    try:
        yield opened
    finally:
        await opened.close()


def routes(runner: Runner, keys: Keys, connections: Connections) -> Sequence[BaseRoute]:
    return [
        Route(
            f"/{purpose}/{{session_id}}/{{key}}/{{path:path}}",
            _Gateway(runner, keys, connections, purpose).pass_on,
            methods=list(_METHODS),
        )
        for purpose in _PURPOSES
    ]


class _Gateway:
    def __init__(
        self,
        runner: Runner,
        keys: Keys,
        connections: Connections,
        purpose: _Purpose,
    ) -> None:
        self._purpose: _Purpose = purpose
        self._runner = runner
        self._keys = keys
        self._connections = connections

    async def pass_on(self, request: Request) -> Response:
        """Forward a request to the program, and its response to the client."""
        if "origin" in request.headers:
            return self._refusal(
                403,
                FOREIGN_ORIGIN,
                "requests with an Origin header are refused: web pages send them",
            )

        session_id = request.path_params["session_id"]
        is_permitted = self._keys.fits(
            self._purpose, session_id, request.path_params["key"]
        )
        record = self._runner.record(session_id) if is_permitted else None
        if record is None or record.controller is None:
            return self._refusal(
                404,
                NOT_FOUND,
                "no controller at this address: its session may have ended",
            )

        controller = record.controller
        if (request.method, request.path_params["path"]) in _HEALTH_CHECKS:
            return await self._forwarded(request, controller, _body(request))

        # Until it is answered, the session is in use: a command may take longer than the idle timeout.
        record.begin_request()
        try:
            response = await self._translated(request, record, controller)
        except BaseException:
            record.end_request()
            raise
        return _ResponseThen(response, record.end_request)

    def _refusal(self, status: int, code: str, message: str) -> Response:
        """Return a refusal in the clients' format: Appium's clients would take any other for success."""
        if self._purpose == "controllers":
            return refusal(status, code, [(message, None)])

        error = {
            "error": _ERRORS.get(code, "unknown error"),
            "message": message,
            "stacktrace": "",
        }
        return JSONResponse({"value": error}, status)

    async def _translated(
        self, request: Request, record: Record, controller: Controller
    ) -> Response:
        """Forward a request; refuse, change or answer those that a program on its own would get wrong."""
        path = request.path_params["path"]

        if self._purpose == "appium" and self._is_new_session(request):
            body = await request.body()
            refused = _refused_capabilities(request, body)
            if refused is not None:
                return self._refusal(500, *refused)
            return await self._forwarded(request, controller, body)

        device = record.device
        if device is None or not rpc.concerns(request.method, path, device):
            return await self._forwarded(request, controller, _body(request))

        body = await request.body()
        translated = await rpc.translated(
            body, request.headers, device, controller.token
        )
        if isinstance(translated, Response):
            return translated
        return await self._forwarded(request, controller, translated)

    def _is_new_session(self, request: Request) -> bool:
        """Return whether Appium takes a request for that of a new session, in any spelling of its path."""
        path = httpx.URL(self._url(request)).path  # without dot segments
        return (request.method, path.strip("/").lower()) == _NEW_SESSION

    async def _forwarded(
        self,
        request: Request,
        controller: Controller,
        content: AsyncIterable[bytes] | bytes | None,
    ) -> Response:
        dropped = {*_HOP_BY_HOP, "host"}
        if isinstance(content, bytes):  # the body may have been changed
            dropped.add("content-length")
        headers = [
            (name, value)
            for name, value in request.headers.items()
            if name not in dropped
        ]

        forwarded = httpx.Request(
            request.method,
            self._url(request),
            headers=headers,
            content=content,
            extensions={"timeout": _TIMEOUT},
        )
        try:
            reply = await self._connections.send(controller.socket, forwarded)
            return await _response(reply)
        except httpx.TransportError as error:
            if self._purpose == "appium":
                raise ConnectionLostError from error  # Appium's clients recognize this as a dead server
            return self._refusal(
                502,
                UNREACHABLE,
                f"{controller.program.title} does not respond: {type(error).__name__}",
            )

    def _url(self, request: Request) -> str:
        """Return the program's URL for the request's path, spelled as received."""
        session_id, key = request.path_params["session_id"], request.path_params["key"]
        path = request.scope["raw_path"].decode("latin-1").partition("?")[0]
        path = path.removeprefix(f"/{self._purpose}/{session_id}/{key}")
        query = request.scope["query_string"].decode("latin-1")
        return f"http://{HOST}{path}{f'?{query}' if query else ''}"


def _refused_capabilities(request: Request, body: bytes) -> tuple[str, str] | None:
    """Return the code of a refusal and its reason, None for capabilities that may be passed on.

    Appium also reads bodies that nobody here can check, such as compressed ones.
    """
    content_type = request.headers.get("content-type", "")
    is_compressed = "content-encoding" in request.headers
    is_readable = not is_compressed and _UTF_8.fullmatch(content_type)

    requests_bidi = _requests_bidi(body) if is_readable else None
    if requests_bidi is None:
        message = "the capabilities must be JSON in UTF-8 that is not compressed"
        return UNREADABLE, message
    if not requests_bidi:
        return None

    reason = "it would name a port of the machine that runs the service"
    return NO_BIDI, f"the capability {_BIDI} is refused: {reason}. Leave it out."


def _requests_bidi(body: bytes) -> bool | None:
    """Return whether capabilities in a body request WebDriver BiDi, wherever they are nested; None if it is unreadable.

    JavaScript reads some bodies that Python does not, such as deeply nested ones.
    """
    values: list[object] = []

    def collect(pairs: list[tuple[str, object]]) -> None:
        for name, value in pairs:
            if name.rpartition(":")[2] == _BIDI:
                values.append(value)

    try:
        json.loads(body or b"{}", object_pairs_hook=collect)
    except (ValueError, RecursionError):
        return None

    return any(values)


def _body(request: Request) -> AsyncIterable[bytes] | None:
    """Return the body as a stream, None if the request has none."""
    has_body = (
        "content-length" in request.headers or "transfer-encoding" in request.headers
    )
    return request.stream() if has_body else None


async def _response(reply: httpx.Response) -> Response:
    """Return a program's response for the client; a short one is read at once. Raises httpx.TransportError."""
    length = reply.headers.get("content-length", "")
    if length.isdecimal() and int(length) <= _SHORT_BYTES:
        body = b"".join([part async for part in reply.aiter_raw()])
        return _with_headers(reply, Response(body, reply.status_code))

    streamed = StreamingResponse(reply.aiter_raw(), reply.status_code)
    return _ResponseThen(_with_headers(reply, streamed), reply.aclose)


def _with_headers(reply: httpx.Response, response: Response) -> Response:
    """Give a response exactly the headers of the program's, including repeated ones."""
    response.raw_headers = [
        (name.lower(), value)
        for name, value in reply.headers.raw
        if name.lower().decode() not in _HOP_BY_HOP
    ]
    return response


class _ResponseThen(Response):
    """A response with a callback that runs after it was sent or aborted."""

    def __init__(
        self, response: Response, callback: Callable[[], Awaitable[None] | None]
    ) -> None:
        self._response = response
        self._callback = callback

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._response(scope, receive, send)
        finally:
            pending = self._callback()
            if pending is not None:
                await pending
