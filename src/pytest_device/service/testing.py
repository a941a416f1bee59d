"""The routes of the test interface, in addition to the REST paths; faults.py documents them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from pytest_device.service.accounts import Caller
from pytest_device.service.effects import EFFECTS
from pytest_device.service.faults import BOOT, BOOT_EFFECTS, CONTROLLER, DEAD, Fault, Faults
from pytest_device.service.replies import NOT_FOUND, RefusalError, invalid, object_in
from pytest_device.service.sessions import Sessions

OPERATIONS: Final = ("create", "get", "stop", CONTROLLER)
_NEVER: Final = frozenset(
    (
        ("create", "expire"),  # no session to expire yet
        *((operation, DEAD) for operation in ("create", "get", "stop")),
        *((CONTROLLER, effect) for effect in ("change", "expire")),
    )
)

_KINDS: Final[Mapping[str, tuple[type, ...]]] = {
    "operation": (str,),
    "effect": (str,),
    "times": (int, type(None)),
    "skip": (int,),
    "seconds": (int, float),
    "status": (int,),
    "body": (str,),
    "headers": (dict,),
    "carried_out": (bool,),
    "fields": (dict,),
    "reason": (str,),
}


def testing_routes(faults: Faults, sessions: Sessions, authenticate: Callable[[Request], Caller]) -> Sequence[Route]:
    """Return the routes; each needs a valid token."""

    async def add(request: Request) -> Response:
        authenticate(request)
        faults.add(_fault(object_in(await request.body() or b"{}")))
        return _done()

    async def reset(request: Request) -> Response:
        authenticate(request)
        faults.reset()
        return _done()

    async def requests(request: Request) -> Response:
        authenticate(request)
        return JSONResponse({"data": [{"operation": seen.operation, "status": seen.status} for seen in faults.seen]})

    async def held(request: Request) -> Response:
        authenticate(request)
        sessions.sweep()
        facts = [{"id": one.id, "name": one.name, "status": one.status, "reason": one.reason} for one in sessions]
        return JSONResponse({"data": facts})

    async def happen(request: Request) -> Response:
        authenticate(request)
        session_id, what = request.path_params["session_id"], request.path_params["what"]
        session = sessions.get(session_id)
        if session is None or what not in {"expire", "fail"}:
            raise RefusalError(404, NOT_FOUND, f"no session {session_id}, or nothing called {what} can happen to it")
        if what == "expire":
            sessions.expire(session_id)
        else:
            faults.failed[session_id] = str(
                (object_in(await request.body() or b"{}")).get("reason", "a fault of the test interface")
            )
        return _done()

    return (
        Route("/testing/faults", add, methods=["POST"]),
        Route("/testing/reset", reset, methods=["POST"]),
        Route("/testing/requests", requests, methods=["GET"]),
        Route("/testing/sessions", held, methods=["GET"]),
        Route("/testing/sessions/{session_id}/{what}", happen, methods=["POST"]),
    )


def _fault(options: Mapping[str, Any]) -> Fault:
    for name, value in options.items():
        if type(value) not in _KINDS.get(name, ()):
            raise invalid(f"invalid field of a fault, {name} {value!r}: its fields are {', '.join(_KINDS)}")
    operation, effect = options.get("operation"), options.get("effect")
    if not _can_strike(effect, operation):
        known = f"{', '.join(OPERATIONS)}: {', '.join(EFFECTS)}; {BOOT}: {', '.join(BOOT_EFFECTS)}"
        raise invalid(
            f"no effect {effect!r} for the operation {operation!r}; the effects of each operation are {known}"
        )
    return Fault(**options)


def _can_strike(effect: str | None, operation: str | None) -> bool:
    if operation == BOOT:
        return effect in BOOT_EFFECTS
    return operation in OPERATIONS and effect in EFFECTS and (operation, effect) not in _NEVER


def _done() -> Response:
    return JSONResponse({"data": None})
