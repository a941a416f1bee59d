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
_MOST_BYTES: Final = {
    "/testing/": MAX_TESTING_BODY_BYTES,
    "/controllers/": MAX_CONTROLLER_BODY_BYTES,
    "/appium/": MAX_APPIUM_BODY_BYTES,
}
_RETRY_SECONDS: Final = "5"


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

    ``base_url`` is the URL of the service and of its session pages. Requests whose Host header does not name this
    machine are refused unless ``any_host``: a web page must not reach the service under its own host name. With
    ``any_host`` there are no session pages: they need no token, and other machines could reach them. ``faults`` adds
    the test interface. ``more`` are routes with their own keys: they see no access token. ``refuses`` is called
    before a session is created. ``max_sessions`` limits the active sessions.
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
    answer = _refusal if any_host else _page_or_refusal
    starlette = Starlette(
        routes=routes, exception_handlers=dict.fromkeys(_ANSWERED, answer)
    )
    starlette.router.redirect_slashes = False
    app: ASGIApp = _Bounded(starlette)
    if faults:
        app = FaultyApp(app, faults, sessions)
    return app if any_host else LoopbackOnly(app, _foreign_host)


_ANSWERED: Final = (
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
        _permit(caller, MAY_CREATE_AND_STOP, owner)
        _admit(owner, body)
        try:
            reason = await self._refuses(body) if self._refuses else None
        except BusyError as busy:
            raise RefusalError(
                429, replies.NO_CAPACITY, str(busy), headers={"Retry-After": "1"}
            ) from busy
        if reason:
            raise RefusalError(400, replies.NO_DEVICE, reason)
        self._check_capacity()  # no await until the session is created
        return self._success(
            self._sessions.create(body, default_minutes=owner.max_duration_minutes)
        )

    def _check_capacity(self) -> None:
        most = self._max_sessions
        if most is not None and self._sessions.count_active() >= most:
            message = f"{most} sessions are running, as many as this service allows (max_sessions)"
            raise RefusalError(
                429,
                replies.NO_CAPACITY,
                message,
                headers={"Retry-After": _RETRY_SECONDS},
            )

    async def get(self, request: Request) -> Response:
        return self._success(self._permitted(request, MAY_GET))

    async def stop(self, request: Request) -> Response:
        return self._success(
            self._sessions.stop(self._permitted(request, MAY_CREATE_AND_STOP).id)
        )

    def authenticate(self, request: Request) -> Caller:
        header = request.headers.get("authorization")
        if header is None:
            message = "the Authorization header is missing: send 'Authorization: Bearer <ACCESS_TOKEN>'"
            raise RefusalError(400, UNAUTHORIZED_ERROR, message)
        scheme, _, token = header.partition(" ")
        caller = (
            self._accounts.caller(token.strip()) if scheme.lower() == "bearer" else None
        )
        if caller is None:
            message = "the bearer token is invalid"
            raise RefusalError(
                401,
                replies.INVALID_TOKEN,
                message,
                headers={"WWW-Authenticate": "Bearer"},
            )
        return caller

    def session(self, session_id: str) -> Session:
        """Return a session's current state, for every caller that knows its ID."""
        if not is_uuid(session_id):
            raise replies.invalid(
                f"the session ID must be a UUID, not {session_id[:80]!r}"
            )
        session = self._sessions.get(session_id.lower())
        if session is None:
            raise RefusalError(404, replies.NOT_FOUND, f"no session {session_id}")
        return session

    def _permitted(self, request: Request, least: Role) -> Session:
        """Return the session of a path if the caller has this role on its project."""
        caller = self.authenticate(request)
        session = self.session(request.path_params["session_id"])
        _permit(caller, least, self._owner(session.app_id))
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


def _permit(caller: Caller, least: Role, owner: Account) -> None:
    if not caller.may(least, owner):
        message = f"the token lacks permission: this requires at least the role {least.name.lower()} on the project's account"
        raise RefusalError(403, replies.FORBIDDEN, message)


def _admit(owner: Account, body: CreateBody) -> None:
    if not owner.simulator_access:
        message = (
            "simulator access is not enabled for the account that owns the project"
        )
        raise RefusalError(400, replies.SIMULATOR_ACCESS_ERROR, message)
    check_limit(body, owner.max_duration_minutes)


def _page_or_refusal(request: Request, error: Exception) -> Response:
    """Answer as `_refusal` does, but a browser at an unknown address with a page that leads to the others."""
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
        case ClientDisconnect():  # nobody receives the response, but the service did not fail
            return refusal(
                400, replies.VALIDATION_ERROR, [("the request was aborted", None)]
            )
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
        most = next(
            (
                most
                for path, most in _MOST_BYTES.items()
                if scope["path"].startswith(path)
            ),
            MAX_BODY_BYTES,
        )
        limit = BodyLimit(most)

        async def bounded() -> Message:
            message = await receive()
            try:
                limit.count(message.get("body", b""))
            except BodyLimitError as error:
                raise RefusalError(413, replies.BODY_TOO_LARGE, str(error)) from None
            return message

        await self._app(scope, bounded, send)
