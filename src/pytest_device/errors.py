"""Every exception this package raises, as one tree.

DeviceError
├── ConfigError                 found before anything is sent
│   ├── AuthConfigError         found in a call of the sign-in library; a ValueError, too
│   └── ProjectError            found in the files of the app under test
├── ServiceError
│   ├── TransportError          no response
│   │   └── CreateDelayedError  no response to a create call yet; the call stays open
│   ├── UnexpectedReplyError    a response that the document doesn't describe
│   ├── StopDelayedError        the stop takes long, and continues in the background
│   └── StatusError             an error status, or a redirect
│       ├── InvalidRequestError 400 or 422
│       ├── UnauthorizedError   401, or 400 with the code UNAUTHORIZED_ERROR
│       ├── ForbiddenError      402, 403
│       ├── NotFoundError       404
│       │   └── SessionGoneError
│       └── NoCapacityError     429 or 503 to a create call: try again later
├── NotAttemptedError           an identical request of this run has already failed
├── LeaseTimeoutError           no session in time: a limit, or no capacity
├── SessionError                a session failed: its ID and session page
│   ├── SessionFailedError      it became errored
│   ├── SessionStoppedError     it was stopped by someone else, or by a limit
│   ├── SessionTimeoutError     it was not ready in time
│   └── StopFailedError         it could not be stopped, and may still be running
├── ControllerError             the controller failed, or rejected a command
│   ├── ControllerLostError     it stopped responding
│   ├── AgentDeviceError        agent-device rejected a command
│   └── ArgentError             argent rejected a call
├── ResponseError               an error response of an identity provider
│   ├── AuthError               to an authorization request
│   └── TokenError              to a token request
└── AppError                    the app under test failed
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pytest_device.escape import escaped
from pytest_device.verdict import Verdict

NOT_STARTED: Final = "the session failed to start"
"""Message of a SessionFailedError without a known cause, or the start of one with a cause."""


class DeviceError(Exception):
    """Base class of all exceptions of this package. Messages may quote untrusted text and are escaped for terminals.

    >>> issubclass(ConfigError, DeviceError)
    True
    """

    def __init__(self, *messages: str) -> None:
        super().__init__(*(escaped(message) for message in messages))

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]:
        # Not by a call: its own arguments are not those of its message.
        return type(self).__new__, (type(self), *self.args), vars(self)


class ConfigError(DeviceError):
    """An invalid marker argument, option, environment variable or ini value. Nothing was sent.

    Attributes:
        problems: The mistakes, each with its value, the rule and the fix.

    >>> ConfigError("platform='x' must be android or ios", "type='y' is unknown").problems
    ("platform='x' must be android or ios", "type='y' is unknown")
    """

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems: Sequence[str] = tuple(escaped(problem) for problem in problems)


class ProjectError(ConfigError):
    """A file of the app under test that can't be read or used.

    Attributes:
        code: Identifies the kind of problem, and stays the same from version to version.
        path: The file.
        line: The line, from 1; 0 if unknown.
        column: The column, from 1; 0 if unknown.
        reason: What is wrong, without the place.

    >>> str(ProjectError("slug must be a string", path=Path("app.json"), line=3))
    'app.json:3: slug must be a string'
    """

    def __init__(
        self,
        *problems: str,
        code: str = "INVALID_CONFIG",
        path: Path | None = None,
        line: int = 0,
        column: int = 0,
    ) -> None:
        place = ":".join(str(part) for part in (path, line, column) if part)
        located = (f"{place}: {problem}" if place else problem for problem in problems)
        super().__init__(*located)
        self.code = code
        self.path = path
        self.line = line
        self.column = column
        self.reason = escaped("; ".join(problems))
        """What is wrong, without the place."""


class AuthConfigError(ConfigError, ValueError):
    """An invalid argument of the sign-in library. Nothing was sent."""


class ServiceError(DeviceError):
    """A call to the service failed.

    >>> try:
    ...     client.get("00000000-0000-4000-8000-00000000dead")
    ... except ServiceError as error:
    ...     print(type(error).__name__)
    NotFoundError
    """


class TransportError(ServiceError):
    """No complete response arrived.

    Attributes:
        sent: False only if the request was certainly never sent, so that repeating it is safe.
        is_run_ending: True if the run is ending, so that the request was not sent.

    >>> TransportError("connection refused", sent=False).sent
    False
    """

    def __init__(
        self, message: str, *, sent: bool, is_run_ending: bool = False
    ) -> None:
        super().__init__(message)
        self.sent = sent
        self.is_run_ending = is_run_ending


class CreateDelayedError(TransportError):
    """A create call got no response in time, but stays open: a session that it still creates is stopped."""

    def __init__(self, message: str) -> None:
        super().__init__(message, sent=True)


class UnexpectedReplyError(ServiceError):
    """A response that the REST interface does not describe.

    Attributes:
        session_id: The ID that could still be read from it, or None: that session exists and must be stopped.
        status: Its HTTP status, if an identity provider returned another one than the standard's; otherwise None.
    """

    def __init__(
        self,
        message: str,
        *,
        session_id: str | None = None,
        status: int | None = None,
    ) -> None:
        super().__init__(message)
        self.session_id = session_id
        self.status = status


class StopDelayedError(ServiceError):
    """The session is not stopped yet; its reaper keeps trying, and the end of the run reports the outcome."""


class StatusError(ServiceError):
    """A refusal by the service.

    Attributes:
        status: The HTTP status.
        detail: The service's explanation, in any format.
        retry_after_seconds: The service's ``Retry-After``, None without one.
        is_page: Whether the response was an HTML page, which an intermediary sent.

    >>> try:
    ...     client.get("00000000-0000-4000-8000-00000000dead")
    ... except StatusError as error:
    ...     print(error.status)
    404
    """

    def __init__(
        self,
        message: str,
        *,
        status: int,
        detail: str = "",
        retry_after_seconds: float | None = None,
        is_page: bool = False,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.detail = detail
        self.retry_after_seconds = retry_after_seconds
        self.is_page = is_page


class InvalidRequestError(StatusError):
    """400, 422: the request breaks a rule of the REST interface, or the account has no simulator access.

    >>> service.add_fault("create", "reply", status=422)
    >>> client.create(request)
    Traceback (most recent call last):
        ...
    pytest_device.InvalidRequestError: ...
    """


class UnauthorizedError(StatusError):
    """401, or 400 with the code ``UNAUTHORIZED_ERROR``: the access token is invalid or missing.

    >>> with DeviceClient(service.url, "an-expired-token") as client:
    ...     client.get("00000000-0000-4000-8000-00000000dead")
    Traceback (most recent call last):
        ...
    pytest_device.UnauthorizedError: ...
    """


class ForbiddenError(StatusError):
    """402, 403: the account can't pay for the action, or the token may not read the project or perform the action.

    >>> service.add_fault("create", "reply", status=403)
    >>> client.create(request)
    Traceback (most recent call last):
        ...
    pytest_device.ForbiddenError: ...
    """


class NotFoundError(StatusError):
    """404: no project or session with this identifier.

    >>> client.get("00000000-0000-4000-8000-00000000dead")
    Traceback (most recent call last):
        ...
    pytest_device.NotFoundError: ...
    """


class SessionGoneError(NotFoundError):
    """404 for a minute, to both stop and lookup: the service no longer knows a session that it knew before."""


class NoCapacityError(StatusError):
    """429 or 503 from the service itself to a create call: nothing was created, and the same call may succeed later.

    >>> service.add_fault("create", "reply", status=429, headers={"Retry-After": "30"})
    >>> try:
    ...     client.create(request)
    ... except NoCapacityError as error:
    ...     print(error.retry_after_seconds)
    30.0
    """


class NotAttemptedError(DeviceError):
    """An identical request of this run has already failed, so it was not sent again; or the run's minutes are used up.

    Attributes:
        cause: The message of that error, or the budget.
        verdict: Its verdict.

    >>> str(NotAttemptedError("401: the token is invalid", verdict=Verdict.CONFIG))
    'not attempted: an identical request already failed with: 401: the token is invalid'
    >>> str(NotAttemptedError("the budget of 60 device minutes is used up", verdict=Verdict.BUDGET))
    'not attempted: the budget of 60 device minutes is used up'
    """

    def __init__(self, cause: str, *, verdict: Verdict) -> None:
        reason = cause
        # A budget is used up although nothing has failed.
        if verdict is not Verdict.BUDGET:
            reason = f"an identical request already failed with: {cause}"

        super().__init__(f"not attempted: {reason}")
        self.cause = cause
        self.verdict = verdict


class LeaseTimeoutError(DeviceError):
    """No session became available in time.

    The maximum number of sessions (``device_max_sessions``) was running, or the service had no capacity.
    """


class SessionError(DeviceError):
    """A session failed.

    Attributes:
        session_id: Its ID.
        url: Its page, None if it never became known.
        reason: The service's explanation in one sentence, which the message includes; empty without one.
        explanation: All that the service says about it; empty without an explanation.

    >>> str(SessionFailedError("the session failed to start", session_id="7f3c"))
    'the session failed to start'
    """

    def __init__(
        self,
        message: str,
        *,
        session_id: str,
        url: str | None = None,
        reason: str = "",
        explanation: str = "",
    ) -> None:
        super().__init__(message)
        self.session_id = session_id
        self.url = url
        self.reason = reason
        self.explanation = explanation


class SessionFailedError(SessionError):
    """The session became ``errored``.

    >>> service.add_fault("boot", "fail", reason="no booted device")
    >>> with lease(client, request, policy=WaitPolicy(poll_interval_seconds=0.1)):
    ...     pass
    Traceback (most recent call last):
        ...
    pytest_device.SessionFailedError: ...
    """


class SessionStoppedError(SessionError):
    """The session became ``stopped`` before it was ready, by another client or by a limit.

    >>> service.add_fault("get", "expire")
    >>> with lease(client, request, policy=WaitPolicy(poll_interval_seconds=0.1)):
    ...     pass
    Traceback (most recent call last):
        ...
    pytest_device.SessionStoppedError: ...
    """


class SessionTimeoutError(SessionError):
    """The session was not ready in time.

    >>> service.add_fault("boot", "delay", seconds=60)
    >>> with lease(client, request, policy=WaitPolicy(timeout_seconds=0.2, poll_interval_seconds=0.1)):
    ...     pass
    Traceback (most recent call last):
        ...
    pytest_device.SessionTimeoutError: ...
    """


class StopFailedError(SessionError):
    """The session could not be stopped and may still be running."""


class AppError(DeviceError):
    """The app under test could not be installed, started or opened, or it crashed. Device and controller are fine."""


class ResponseError(DeviceError):
    """An error response of an identity provider (RFC 6749).

    Attributes:
        code: Its ``error``.
        description: Its explanation, or the standard's.
        uri: A page that explains it, None without one.
        params: The whole response.
        info: Always None.

    >>> TokenError({"error": "invalid_grant", "error_description": "The code has expired"}).code
    'invalid_grant'
    """

    def __init__(self, params: Mapping[str, str]) -> None:
        code = params.get("error", "")
        detail = params.get("error_description")
        meaning = self._meanings().get(code)
        message = meaning or detail or f"unknown error {code!r}"
        if meaning and detail:
            message = f"{meaning}\nMore info: {detail}"
        super().__init__(message)
        self.code = code
        self.description = meaning if detail is None else detail
        self.uri = params.get("error_uri")
        self.info: object = None
        self.params: Mapping[str, str] = dict(params)

    @staticmethod
    def _meanings() -> Mapping[str, str]:
        """Return the standard's descriptions of the codes, which only runs with such an error load."""
        return {}


class AuthError(ResponseError):
    """An error response to an authorization request.

    Attributes:
        state: The returned state, None without one.

    >>> AuthError({"error": "access_denied", "state": "x7"}).state
    'x7'
    """

    def __init__(self, params: Mapping[str, str]) -> None:
        super().__init__(params)
        self.state = params.get("state")

    @staticmethod
    def _meanings() -> Mapping[str, str]:
        from pytest_device.oauth import AUTHORIZATION_ERRORS

        return AUTHORIZATION_ERRORS


class TokenError(ResponseError):
    """An error response to a token request.

    >>> TokenError({"error": "invalid_grant"}).params
    {'error': 'invalid_grant'}
    """

    @staticmethod
    def _meanings() -> Mapping[str, str]:
        from pytest_device.oauth import TOKEN_ERRORS

        return TOKEN_ERRORS


class ControllerError(DeviceError):
    """The controller of a session in progress did not respond, or rejected a command."""


class ControllerLostError(ControllerError):
    """The controller did not respond, or another program did: never the test's fault."""


class AgentDeviceError(ControllerError):
    """agent-device rejected a command.

    Attributes:
        code: Its own code.
        hint: Its advice, empty without one.
        details: Its other data.

    >>> AgentDeviceError("no match", code="COMMAND_FAILED", hint="Take a snapshot.").hint
    'Take a snapshot.'
    """

    def __init__(
        self,
        message: str,
        *,
        code: str = "",
        hint: str = "",
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.hint = hint
        self.details: Mapping[str, Any] = details or {}


class ArgentError(ControllerError):
    """argent rejected a call.

    Attributes:
        code: Its own code.
        issues: A sentence for each invalid argument.

    >>> ArgentError("invalid arguments", issues=["x is missing"]).issues
    ['x is missing']
    """

    def __init__(
        self, message: str, *, code: str = "", issues: Sequence[str] = ()
    ) -> None:
        super().__init__(message)
        self.code = code
        self.issues: Sequence[str] = issues


def hides_frames(error: Any) -> bool:
    """Return whether pytest leaves this package's frames out of a traceback; a module's ``__tracebackhide__``.

    They are shown only for a mistake in this package, which they explain. ``error`` is pytest's ``ExceptionInfo``.
    """
    if error is None or isinstance(error.value, DeviceError | TimeoutError):
        return True

    traceback = error.tb
    while traceback.tb_next:
        traceback = traceback.tb_next

    raised_in = str(traceback.tb_frame.f_globals.get("__name__", ""))
    return raised_in.partition(".")[0] != "pytest_device"


# Tracebacks show the names that suites import.
for _error in tuple(globals().values()):
    if isinstance(_error, type) and issubclass(_error, DeviceError):
        _error.__module__ = "pytest_device"
