"""The REST interface of the document as an ASGI application."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pytest_device.body_limit import BodyLimit, BodyLimitError
from pytest_device.service import page, replies
from pytest_device.service.accounts import (
    MAY_CREATE_AND_STOP,
    MAY_GET,
    Account,
    Accounts,
    Caller,
    Role,
)
from pytest_device.service.devices.base import BusyError
from pytest_device.service.effects import ConnectionLostError, FaultyApp, testing_routes
from pytest_device.service.faults import Faults
from pytest_device.service.lifecycle import Session
from pytest_device.service.openapi import DOCUMENT
from pytest_device.service.replies import RefusalError, refusal, success
from pytest_device.service.rules import (
    CreateBody,
    InvalidBodyError,
    check,
    check_limit,
    is_uuid,
)
from pytest_device.service.sessions import Sessions
from pytest_device.service.web import LoopbackOnly
from pytest_device.spec import SESSIONS_PATH, UNAUTHORIZED_ERROR

MAX_BODY_BYTES: Final = 64 * 1024
"""Not in the document; chosen here: far more than the options of a request need."""
MAX_TESTING_BODY_BYTES: Final = 32 * 1024 * 1024
"""A fault may hold a large response."""
MAX_CONTROLLER_BODY_BYTES: Final = 1024 * 1024
"""agent-device accepts no more, and closes the connection before its refusal can be read."""
MAX_APPIUM_BODY_BYTES: Final = 256 * 1024 * 1024
"""A test may push files and images; they are streamed."""
_MAX_BYTES_BY_PREFIX: Final = {
    "/testing/": MAX_TESTING_BODY_BYTES,
    "/controllers/": MAX_CONTROLLER_BODY_BYTES,
    "/appium/": MAX_APPIUM_BODY_BYTES,
}
_RETRY_SECONDS: Final = "5"
"""Sent while ``max_sessions`` are running: the interval that the document recommends for polls."""
_RETRY_BUSY_SECONDS: Final = "1"
"""Sent while every matching device of this machine is in use."""


Refuses = Callable[[CreateBody], Awaitable[str | None]]
"""Returns the reason why a session cannot be created for a body, None if it can."""


def create_app(
    *,
    sessions: Sessions,
    accounts: Accounts,
    base_url: str,
    any_host: bool = False,
    faults: Faults | None = None,
    more: Sequence[BaseRoute] = (),
    refuses: Refuses | None = None,
    max_sessions: int | None = None,
) -> ASGIApp:
    """Return the service as an application that needs no lifespan and no background task.

    Arguments:
        sessions: The sessions that the requests create, read and stop.
        accounts: The projects and the access tokens.
        base_url: The URL of the service and of its session pages.
        any_host: Whether to accept requests whose Host header does not name this machine. By default they are refused:
            a web page must not reach the service under its own host name. With it there are no session pages: they
            need no token, and other machines could reach them.
        faults: Adds the test interface.
        more: Further routes, which check keys of their own and see no access token.
        refuses: Called before a session is created.
        max_sessions: The maximum number of active sessions.
    """
    api = _Api(sessions, accounts, base_url, refuses, max_sessions)
    routes: list[BaseRoute] = [
        Route(SESSIONS_PATH, api.create, methods=["POST"]),
        Route(f"{SESSIONS_PATH}/{{session_id}}", api.get, methods=["GET"]),
        Route(f"{SESSIONS_PATH}/{{session_id}}/stop", api.stop, methods=["POST"]),
        Route("/openapi.json", _document, methods=["GET"]),
        *(() if any_host else page.routes(sessions, base_url, api.session)),
        *more,
    ]
    if faults:
        routes += testing_routes(faults, sessions, accounts, api.authenticate)

    handler = _refusal if any_host else _page_or_refusal
    starlette = Starlette(
        routes=routes, exception_handlers=dict.fromkeys(_HANDLED, handler)
    )
    # The document has no redirects, and clients must not resend a token to another URL.
    starlette.router.redirect_slashes = False

    app: ASGIApp = _Bounded(starlette)
    if faults:
        app = FaultyApp(app, faults, sessions)
    return app if any_host else LoopbackOnly(app, _foreign_host)


_HANDLED: Final = (
    RefusalError,
    InvalidBodyError,
    HTTPException,
    ClientDisconnect,
    Exception,
)


class _Api:
    def __init__(
        self,
        sessions: Sessions,
        accounts: Accounts,
        base_url: str,
        refuses: Refuses | None,
        max_sessions: int | None,
    ) -> None:
        self._sessions = sessions
        self._accounts = accounts
        self._base_url = base_url
        self._refuses = refuses
        self._max_sessions = max_sessions

    async def create(self, request: Request) -> Response:
        caller = self.authenticate(request)
        body = check(await replies.json_of(request))

        owner = self._owner(body["appId"])
        _check_permission(caller, MAY_CREATE_AND_STOP, owner)
        _check_account(owner, body)
        await self._check_device(body)

        # No await from here on: another request could take the last slot in between.
        self._check_capacity()
        session = self._sessions.create(
            body, default_minutes=owner.max_duration_minutes
        )
        return self._success(session)

    async def _check_device(self, body: CreateBody) -> None:
        if self._refuses is None:
            return

        try:
            reason = await self._refuses(body)
        except BusyError as busy:
            raise _no_capacity(str(busy), _RETRY_BUSY_SECONDS) from busy
        if reason:
            raise RefusalError(400, replies.NO_DEVICE, reason)

    def _check_capacity(self) -> None:
        limit = self._max_sessions
        if limit is not None and self._sessions.count_active() >= limit:
            message = f"{limit} sessions are running, as many as this service allows (max_sessions)"
            raise _no_capacity(message, _RETRY_SECONDS)

    async def get(self, request: Request) -> Response:
        return self._success(self._permitted(request, MAY_GET))

    async def stop(self, request: Request) -> Response:
        session = self._permitted(request, MAY_CREATE_AND_STOP)
        return self._success(self._sessions.stop(session.id))

    def authenticate(self, request: Request) -> Caller:
        """Return the sender of a request.

        Raises RefusalError with status 400 without an Authorization header, as the document says, and with 401 for
        an invalid token.
        """
        header = request.headers.get("authorization")
        if header is None:
            message = "the Authorization header is missing: send 'Authorization: Bearer <ACCESS_TOKEN>'"
            raise RefusalError(400, UNAUTHORIZED_ERROR, message)

        scheme, _, token = header.partition(" ")
        is_bearer = scheme.lower() == "bearer"
        caller = self._accounts.caller(token.strip()) if is_bearer else None
        if caller is None:
            # RFC 9110, 15.5.2: a 401 has to name the scheme.
            raise RefusalError(
                401,
                replies.INVALID_TOKEN,
                "the bearer token is invalid",
                headers={"WWW-Authenticate": "Bearer"},
            )

        return caller

    def session(self, session_id: str) -> Session:
        """Return a session's current state, for every caller that knows its ID."""
        if not is_uuid(session_id):
            raise replies.invalid(
                f"the session ID must be a UUID, not {session_id[:80]!r}"
            )

        # A UUID is the same in either case, and stored in lower case.
        session = self._sessions.get(session_id.lower())
        if session is None:
            raise RefusalError(404, replies.NOT_FOUND, f"no session {session_id}")
        return session

    def _permitted(self, request: Request, required: Role) -> Session:
        """Return the session of a path if the caller has at least this role on its project."""
        caller = self.authenticate(request)
        session = self.session(request.path_params["session_id"])
        _check_permission(caller, required, self._owner(session.app_id))
        return session

    def _owner(self, app_id: str) -> Account:
        owner = self._accounts.owner(app_id)
        if owner is None:
            raise RefusalError(
                404, replies.NOT_FOUND, f"no project with the appId {app_id}"
            )
        return owner

    def _success(self, session: Session) -> Response:
        return success(session, self._base_url, self._sessions.remote_config(session))


async def _document(_request: Request) -> Response:
    return JSONResponse(DOCUMENT)


def _check_permission(caller: Caller, required: Role, owner: Account) -> None:
    if not caller.may(required, owner):
        message = f"the token lacks permission: this requires at least the role {required.name.lower()} on the project's account"
        raise RefusalError(403, replies.FORBIDDEN, message)


def _check_account(owner: Account, body: CreateBody) -> None:
    if not owner.simulator_access:
        message = (
            "simulator access is not enabled for the account that owns the project"
        )
        raise RefusalError(400, replies.SIMULATOR_ACCESS_ERROR, message)
    check_limit(body, owner.max_duration_minutes)


def _no_capacity(message: str, retry_seconds: str) -> RefusalError:
    headers = {"Retry-After": retry_seconds}
    return RefusalError(429, replies.NO_CAPACITY, message, headers=headers)


def _page_or_refusal(request: Request, error: Exception) -> Response:
    """Respond as `_refusal` does, but to a browser at an unknown address with a page that links to the others."""
    is_unknown = isinstance(error, HTTPException) and error.status_code == 404  # noqa: PLR2004
    if is_unknown and page.document.wants_page(request):
        missing = RefusalError(404, replies.NOT_FOUND, "no page at this address")
        return page.document.error_page(missing, root="/")
    return _refusal(request, error)


def _refusal(_request: Request, error: Exception) -> Response:
    """Turn an exception into a response; only the log has the details of an unexpected one."""
    match error:
        case RefusalError(status=status, code=code, headers=headers):
            return refusal(status, code, [(str(error), None)], headers)
        case InvalidBodyError(problems=problems):
            return refusal(
                400,
                replies.VALIDATION_ERROR,
                [(problem.message, problem.option) for problem in problems],
            )
        case HTTPException(status_code=405, headers=headers):
            return refusal(
                405,
                replies.METHOD_NOT_ALLOWED,
                [("method not allowed on this path", None)],
                headers,
            )
        # Nobody receives the response, but the service did not fail.
        case ClientDisconnect():
            return refusal(
                400, replies.VALIDATION_ERROR, [("the request was aborted", None)]
            )
        # The server closes the connection.
        case ConnectionLostError():
            raise error
        case HTTPException(status_code=status):
            return refusal(status, replies.NOT_FOUND, [("no such path", None)])
        case _:
            return refusal(
                500, replies.INTERNAL_ERROR, [("the service failed: see its log", None)]
            )


def _foreign_host(host: str) -> Response:
    message = f"the Host header {host[:80]!r} does not name this machine: use 127.0.0.1 or localhost"
    return refusal(421, replies.FOREIGN_HOST, [(message, None)])


class _Bounded:
    """Refuses bodies that are too large while they arrive, whatever their Content-Length says."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        limit = BodyLimit(_max_bytes(scope["path"]))

        async def bounded() -> Message:
            message = await receive()
            try:
                limit.count(message.get("body", b""))
            except BodyLimitError as error:
                raise RefusalError(413, replies.BODY_TOO_LARGE, str(error)) from None
            return message

        await self._app(scope, bounded, send)


def _max_bytes(path: str) -> int:
    for prefix, limit in _MAX_BYTES_BY_PREFIX.items():
        if path.startswith(prefix):
            return limit
    return MAX_BODY_BYTES
