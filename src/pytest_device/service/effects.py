"""The test interface: its routes, and the effects of faults on other requests; faults.py documents both."""

import json
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pytest_device.service.accounts import AccessToken, Account, Accounts, Caller, Role
from pytest_device.service.config import json_types
from pytest_device.service.faults import (
    BOOT,
    BOOT_EFFECTS,
    CONTROLLER,
    DEAD,
    Fault,
    Faults,
    Seen,
)
from pytest_device.service.replies import NOT_FOUND, RefusalError, invalid, object_in
from pytest_device.service.runners.simulated import PATH as CONTROLLERS_PATH
from pytest_device.service.sessions import Sessions
from pytest_device.spec import SESSIONS_PATH

_TYPES: Final = json_types(Fault)


def testing_routes(
    faults: Faults,
    sessions: Sessions,
    accounts: Accounts,
    authenticate: Callable[[Request], Caller],
) -> Sequence[Route]:
    """Return the routes; each needs a valid token."""

    async def add(request: Request) -> None:
        faults.add(_fault(object_in(await request.body() or b"{}")))

    async def remove(_request: Request) -> None:
        faults.remove()

    async def reset(_request: Request) -> None:
        faults.reset()
        accounts.forget_added()

    async def add_token(request: Request) -> None:
        options = object_in(await request.body() or b"{}")
        accounts.add(*_token(options, authenticate(request).account))

    async def list_requests(_request: Request) -> object:
        return [asdict(seen) for seen in faults.seen]

    async def list_sessions(_request: Request) -> object:
        sessions.sweep()
        return [
            {
                "id": session.id,
                "name": session.name,
                "status": session.status,
                "reason": session.reason,
            }
            for session in sessions
        ]

    async def end_session(request: Request) -> None:
        options = object_in(await request.body() or b"{}")
        session_id = request.path_params["session_id"]
        end = request.path_params["end"]
        _end_session(sessions, faults, session_id, end, options)

    route = partial(_route, authenticate)
    return (
        route("POST", "faults", add),
        route("DELETE", "faults", remove),
        route("POST", "reset", reset),
        route("POST", "tokens", add_token),
        route("GET", "requests", list_requests),
        route("GET", "sessions", list_sessions),
        route("POST", "sessions/{session_id}/{end}", end_session),
    )


def _route(
    authenticate: Callable[[Request], Caller],
    method: str,
    path: str,
    carry_out: Callable[[Request], Awaitable[object]],
) -> Route:
    async def endpoint(request: Request) -> Response:
        authenticate(request)
        return JSONResponse({"data": await carry_out(request)})

    return Route(f"/testing/{path}", endpoint, methods=[method])


def _end_session(
    sessions: Sessions,
    faults: Faults,
    session_id: str,
    end: str,
    options: Mapping[str, Any],
) -> None:
    if sessions.get(session_id) is None or end not in {"expire", "fail"}:
        raise RefusalError(
            404, NOT_FOUND, f"no session {session_id}, or no effect called {end}"
        )

    if end == "expire":
        sessions.expire(session_id)
    else:
        faults.failed[session_id] = str(
            options.get("reason", "a fault of the test interface")
        )


def _token(options: Mapping[str, Any], own: Account) -> tuple[AccessToken, Account]:
    token, is_foreign = options.get("token"), options.get("is_foreign", False)
    if not (isinstance(token, str) and token.strip()) or type(is_foreign) is not bool:
        raise invalid(
            "a token to add has the fields token and, for one of another account, is_foreign"
        )

    account = Account(frozenset(), ()) if is_foreign else own
    return AccessToken.of(token, Role.DEVELOPER), account


def _fault(options: Mapping[str, Any]) -> Fault:
    for name, value in options.items():
        if type(value) not in _TYPES.get(name, ()):
            raise invalid(
                f"invalid field of a fault, {name} {value!r}: its fields are {', '.join(_TYPES)}"
            )

    operation, effect = options.get("operation"), options.get("effect")
    if effect not in _EFFECTS_OF.get(str(operation), ()):
        effects_of_each = "; ".join(
            f"{name}: {', '.join(sorted(effects))}"
            for name, effects in _EFFECTS_OF.items()
        )
        raise invalid(
            f"no effect {effect!r} for the operation {operation!r}; the effects of each operation are {effects_of_each}"
        )

    return Fault(**options)


class ConnectionLostError(Exception):
    """Signals that the connection must be closed, with or without a reset, before the response is complete.

    An ASGI application cannot do that itself: the server closes its socket, and a test that calls the application
    in-process raises an error in its client.
    """

    def __init__(self, *, reset: bool = False) -> None:
        super().__init__("the connection was closed")
        self.reset = reset


class FaultyApp:
    """The service with faults injected."""

    def __init__(self, app: ASGIApp, faults: Faults, sessions: Sessions) -> None:
        self._app = app
        self._faults = faults
        self._sessions = sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        operation = _operation(scope)
        if operation is None:
            await self._app(scope, receive, send)
            return

        seen = Seen(operation, _session_id(scope))
        if operation != CONTROLLER:
            self._faults.seen.append(seen)

        async def send_noted(message: Message) -> None:
            if message["type"] == "http.response.start":
                seen.status = message["status"]
            await send(message)

        fault = self._faults.take(operation)
        if fault is None:
            await self._app(scope, receive, send_noted)
            return

        applied = _AppliedFault(
            fault,
            self._app,
            scope,
            receive,
            send_noted,
            self._sessions,
            self._faults.delay,
        )
        await EFFECTS[fault.effect](applied)


@dataclass(frozen=True, slots=True)
class _Answer:
    """A response, complete before it is sent."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class _AppliedFault:
    """A fault that applies to a request."""

    fault: Fault
    app: ASGIApp
    scope: Scope
    receive: Receive
    send: Send
    sessions: Sessions
    delay: Callable[[float], Awaitable[object]]

    async def pass_on(self) -> None:
        await self.app(self.scope, self.receive, self.send)

    async def receive_all(self) -> None:
        """Receive the whole request: closing a connection with unread data would reset it."""
        while (await self.receive()).get("more_body"):
            pass

    async def carry_out(self) -> _Answer:
        """Let the service process the request; return its response instead of sending it."""
        messages: list[Message] = []

        async def keep(message: Message) -> None:
            messages.append(message)

        await self.app(self.scope, self.receive, keep)
        start, *parts = messages
        headers = {
            name.decode("latin-1"): value.decode("latin-1")
            for name, value in start["headers"]
        }
        return _Answer(
            start["status"], headers, b"".join(part.get("body", b"") for part in parts)
        )

    async def answer(self, answer: _Answer, *, length: int | None = None) -> None:
        """Send a response, or only the first ``length`` bytes of its body."""
        headers = {**answer.headers, "content-length": str(len(answer.body))}
        raw_headers = [
            (name.lower().encode("latin-1"), value.encode("latin-1"))
            for name, value in headers.items()
        ]

        await self.send(
            {
                "type": "http.response.start",
                "status": answer.status,
                "headers": raw_headers,
            }
        )
        await self.send(
            {
                "type": "http.response.body",
                "body": answer.body[:length],
                "more_body": length is not None,
            }
        )


async def _delay(applied: _AppliedFault) -> None:
    await applied.delay(applied.fault.seconds)
    await applied.pass_on()


def _lost(
    *, carried_out: bool, reset: bool
) -> Callable[[_AppliedFault], Awaitable[None]]:
    async def lose(applied: _AppliedFault) -> None:
        if carried_out:
            await applied.carry_out()
        else:
            await applied.receive_all()
        raise ConnectionLostError(reset=reset)

    return lose


async def _truncate(applied: _AppliedFault) -> None:
    answer = await applied.carry_out()
    await applied.answer(answer, length=len(answer.body) // 2)
    raise ConnectionLostError


async def _reply(applied: _AppliedFault) -> None:
    fault = applied.fault
    if fault.carried_out:
        await applied.carry_out()
    await applied.answer(_Answer(fault.status, fault.headers, fault.body.encode()))


async def _change(applied: _AppliedFault) -> None:
    answer = await applied.carry_out()
    envelope: dict[str, Any] = json.loads(answer.body)
    if "data" in envelope:
        envelope["data"] |= applied.fault.fields
    await applied.answer(replace(answer, body=json.dumps(envelope).encode()))


async def _dead(applied: _AppliedFault) -> None:
    page = b"<html><body><h1>502 Bad Gateway</h1></body></html>"
    await applied.answer(_Answer(502, {"content-type": "text/html"}, page))


async def _expire(applied: _AppliedFault) -> None:
    session_id = _session_id(applied.scope)
    if session_id and applied.sessions.get(session_id) is not None:
        applied.sessions.expire(session_id)
    await applied.pass_on()


EFFECTS: Final[Mapping[str, Callable[[_AppliedFault], Awaitable[None]]]] = {
    "delay": _delay,
    "lose-request": _lost(carried_out=False, reset=False),
    "lose-answer": _lost(carried_out=True, reset=False),
    "reset-request": _lost(carried_out=False, reset=True),
    "reset-answer": _lost(carried_out=True, reset=True),
    "truncate": _truncate,
    "reply": _reply,
    "change": _change,
    "expire": _expire,
    DEAD: _dead,
}

_EFFECTS_OF: Final[Mapping[str, Collection[str]]] = {
    "create": EFFECTS.keys() - {DEAD, "expire"},  # no session to expire yet
    "get": EFFECTS.keys() - {DEAD},
    "stop": EFFECTS.keys() - {DEAD},
    CONTROLLER: EFFECTS.keys() - {"change", "expire"},
    BOOT: BOOT_EFFECTS,
}
"""By operation."""


def _parts(scope: Scope) -> list[str]:
    """Return what follows the path of the sessions: empty, ``/ID`` or ``/ID/stop``, split at slashes."""
    path: str = scope["path"]
    return path.removeprefix(SESSIONS_PATH).split("/")


def _session_id(scope: Scope) -> str | None:
    parts = _parts(scope)
    return parts[1] if len(parts) > 1 else None


def _operation(scope: Scope) -> str | None:
    """Return the document's operation that a request calls, None for any other request."""
    if scope["type"] != "http":
        return None
    path: str = scope["path"]
    if not path.startswith(SESSIONS_PATH):
        return CONTROLLER if path.startswith(f"{CONTROLLERS_PATH}/") else None

    match scope["method"], _parts(scope):
        case "POST", [""]:
            return "create"
        case "GET", ["", _]:
            return "get"
        case "POST", ["", _, "stop"]:
            return "stop"
        case _:
            return None
