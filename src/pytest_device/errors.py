"""Every exception this package raises, as one tree.

DeviceError
├── ConfigError                 found before anything is sent
├── ServiceError
│   ├── TransportError          no answer
│   ├── UnexpectedReplyError    an answer that is not in the document
│   ├── StopDelayedError        a stop that takes longer, and goes on by itself
│   └── StatusError             a refusal
│       ├── InvalidRequestError 400
│       ├── UnauthorizedError   401, or 400 with the code UNAUTHORIZED_ERROR
│       ├── ForbiddenError      403
│       ├── NotFoundError       404
│       └── NoCapacityError     429 or 503 to a create call: nothing was created, later it may be
├── LeaseTimeoutError           as many sessions as may be are running, or the service has no capacity
├── SessionError                a session that went wrong; has its id and page
│   ├── SessionFailedError      errored
│   ├── SessionStoppedError     stopped by someone else, or by a limit
│   ├── SessionTimeoutError     not ready in time
│   └── StopFailedError         may still be running
├── ControllerError             the session is fine, its controller is not, or did not do what it was asked
│   ├── ControllerLostError     no answer of the controller's own
│   ├── AgentDeviceError        a refusal by agent-device
│   └── ArgentError             a refusal by argent
└── AppError                    both are fine, the app under test is not
"""

from collections.abc import Mapping, Sequence
from typing import Any


class DeviceError(Exception):
    """Base of everything this package raises."""


class ConfigError(DeviceError):
    """A marker argument, option, environment variable or ini value that cannot work. Nothing was sent."""

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems: Sequence[str] = problems


class ServiceError(DeviceError):
    """The service did not do what it was asked."""


class TransportError(ServiceError):
    """No complete answer arrived.

    ``sent`` is False only when the request certainly never left, so that repeating it is safe.
    """

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message)
        self.sent = sent


class UnexpectedReplyError(ServiceError):
    """An answer that is not in the document.

    ``session_id`` is the id that could still be read from it: that session exists and must be stopped.
    """

    def __init__(self, message: str, *, session_id: str | None = None) -> None:
        super().__init__(message)
        self.session_id = session_id


class StopDelayedError(ServiceError):
    """The session is not stopped yet; its reaper goes on trying, and the end of the run tells what came of it."""


class StatusError(ServiceError):
    """A refusal: ``status`` is the HTTP status, ``detail`` what the service said, in whatever shape.

    ``retry_after_seconds`` is when it asked to be asked again, None when it did not say.
    """

    def __init__(
        self, message: str, *, status: int, detail: str = "", retry_after_seconds: float | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.detail = detail
        self.retry_after_seconds = retry_after_seconds


class InvalidRequestError(StatusError):
    """400: a rule of the document is broken, or the account has no simulator access."""


class UnauthorizedError(StatusError):
    """401, or 400 with the code ``UNAUTHORIZED_ERROR``: the access token is invalid or missing."""


class ForbiddenError(StatusError):
    """403: the token may not read the project or do this."""


class NotFoundError(StatusError):
    """404: no project or session with this identifier."""


class NoCapacityError(StatusError):
    """429 or 503 to a create call, by the service itself: nothing was created, and the same call may succeed later."""


class LeaseTimeoutError(DeviceError):
    """No session was to be had for as long as a test may wait.

    As many as ``device_max_sessions`` allows at once were running, or the service had no capacity.
    """


class SessionError(DeviceError):
    """A session went wrong. ``session_id`` names it, ``url`` is its page (None when it never became known)."""

    def __init__(self, message: str, *, session_id: str, url: str | None = None) -> None:
        super().__init__(message)
        self.session_id = session_id
        self.url = url


class SessionFailedError(SessionError):
    """The session became ``errored``."""


class SessionStoppedError(SessionError):
    """The session became ``stopped`` before it was ready, by someone else or by a limit."""


class SessionTimeoutError(SessionError):
    """The session was not ready within the wait limit."""


class StopFailedError(SessionError):
    """The session could not be stopped and may still be running."""


class AppError(DeviceError):
    """The app under test could not be installed, started or opened. Its device and controller are fine."""


class ControllerError(DeviceError):
    """The controller of a session in progress did not answer or refused."""


class ControllerLostError(ControllerError):
    """The controller did not answer, or something else did in its place: never the fault of the test."""


class AgentDeviceError(ControllerError):
    """agent-device did not do what it was asked: ``code``, ``hint`` and ``details`` are its own."""

    def __init__(
        self, message: str, *, code: str = "", hint: str = "", details: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.hint = hint
        self.details: Mapping[str, Any] = details or {}


class ArgentError(ControllerError):
    """argent did not do what it was asked: ``code`` is its own, ``issues`` say which arguments are wrong and how."""

    def __init__(self, message: str, *, code: str = "", issues: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.issues: Sequence[str] = issues
