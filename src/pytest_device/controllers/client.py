"""The base class of agent-device's and argent's clients: calls with a session's credentials, which no error shows."""

import json
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, Self, TypeVar
from urllib.parse import quote, unquote, urlsplit

import httpx

from pytest_device.body_limit import BodyLimitError, read_body
from pytest_device.call_limit import Sockets
from pytest_device.controllers.environment import environment_of
from pytest_device.errors import ControllerError, ControllerLostError
from pytest_device.http_status import GATEWAY_ERRORS
from pytest_device.redact import Redactor, is_loopback
from pytest_device.sessions.models import Session
from pytest_device.sessions.network import (
    protect_from_mocks,
    verification,
)
from pytest_device.sessions.remote_config import RemoteConfig

if TYPE_CHECKING:
    from pytest_device.trace.recorder import DeviceRecorder

__tracebackhide__ = True  # errors are shown at the line of the test

CALL_SECONDS: Final = 180.0
"""Maximum seconds of one call: the first one prepares the device."""
CONNECT_SECONDS: Final = 10.0
MAX_BODY_BYTES: Final = 1024 * 1024
"""agent-device's limit: it cuts off longer requests while they are sent."""
MAX_REPLY_BYTES: Final = 256 * 1024 * 1024
"""Large enough for recordings."""
RETRY_PAUSES: Final = (0.2, 1.0)
"""Seconds before each retry of a read."""

OK: Final = 200

_IDLE_SECONDS: Final = 2.0
"""Shorter than any server keeps an idle connection, so that no action is sent on one that is just closing."""
_REDIRECT: Final = range(300, 400)
_UNAUTHORIZED: Final = 401

C = TypeVar("C", bound=RemoteConfig)


def config_of(session: Session, kind: type[C], controller: str) -> C:
    """Return the connection details of a session; raise ControllerError if it has another controller, or none."""
    config = session.remote_config
    if not isinstance(config, kind):
        raise ControllerError(
            f"session {session.id} is of type {session.type}: it has no {controller}"
        )
    return config


class Reply(NamedTuple):
    """The response of a controller."""

    status: int
    body: bytes


class Client:
    """A connection to one controller, closed at the end of its ``with`` block; reads are retried, actions never."""

    controller: ClassVar[str]
    recorder: "DeviceRecorder | None" = None
    """Records the commands of this client, if there is one."""

    def __init__(
        self,
        session: Session,
        environment: Mapping[str, str] | None = None,
        *,
        timeout_seconds: float = CALL_SECONDS,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        base_url, token = self._access(session)
        self.environment = (
            environment_of(session) if environment is None else environment
        )
        self.platform = str(session.platform)
        self._page = session.page
        self._timeout_seconds = timeout_seconds
        self._sleep = sleep
        self._sockets = Sockets()
        self._shown = Redactor([base_url, token]).text
        """Returns a text without the controller's URL and token."""

        # A function instead of the URL, which is a secret: no attribute shows it.
        self._url_of: Callable[[str], httpx.URL] = lambda path: url_of(base_url, path)
        try:
            self._http = http_client(
                base_url, token, limits=httpx.Limits(keepalive_expiry=_IDLE_SECONDS)
            )
        # The last three are also raised for invalid proxy variables.
        except (httpx.InvalidURL, ImportError, OSError, ValueError) as error:
            message = f"{self.controller} cannot be called: {type(error).__name__}"
            raise ControllerError(f"{message} ({self._page})") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.disconnect()

    def disconnect(self) -> None:
        """Close the connection; a session of agent-device stays open.

        >>> device.disconnect()
        """
        self._http.close()

    def _recorder_in_use(self) -> "DeviceRecorder | None":
        """Return the recorder if anybody wants its values."""
        recorder = self.recorder
        return recorder if recorder is not None and recorder.is_active else None

    def _kept(self, picture: bytes, path: Path | None) -> bytes:
        """Record a screenshot that a test took, and write it to a path if there is one; return it."""
        recorder = self._recorder_in_use()
        if recorder is not None:
            recorder.picture(picture)
        if path is not None:
            path.write_bytes(picture)

        return picture

    def artifact(self, artifact_id: str) -> bytes:
        """Return a file that a call created. agent-device returns each file only once.

        Args:
            artifact_id: The ID of the artifact, from the data of the call.

        Raises:
            ControllerError: There is no such file, or it was returned before.

        >>> content = device.artifact("7f3c")  # doctest: +SKIP
        """
        reply = self._get(f"/artifacts/{quote(artifact_id, safe='')}")
        if reply.status != OK:
            raise self._no_artifact(as_mapping(self._value_of(reply)), reply.status)
        return reply.body

    def _access(self, session: Session) -> tuple[str, str]:
        raise NotImplementedError

    def _no_artifact(self, reply: Mapping[str, Any], status: int) -> ControllerError:
        raise NotImplementedError

    def _get(self, path: str) -> Reply:
        """Send a GET request to a path below the base URL."""
        return self._answered(
            lambda: self._send("GET", path, b"", self._timeout_seconds), RETRY_PAUSES
        )

    def _post(
        self, path: str, value: object, *, is_read: bool, timeout_seconds: float | None
    ) -> Reply:
        """Send a value as JSON.

        Arguments:
            path: The path below the base URL.
            value: The value.
            is_read: Whether the call changes nothing, so that it may be retried.
            timeout_seconds: The maximum duration; that of the client by default.

        Raises:
            ControllerError: The value is too long.
            ControllerLostError: The controller does not respond.
        """
        body = json.dumps(value).encode()
        if len(body) > MAX_BODY_BYTES:
            raise ControllerError(
                f"{self.controller} accepts at most {MAX_BODY_BYTES} bytes, this call has {len(body)}"
            )

        seconds = self._timeout_seconds if timeout_seconds is None else timeout_seconds
        return self._answered(
            lambda: self._send("POST", path, body, seconds),
            RETRY_PAUSES if is_read else (),
        )

    def _lost(self, what: str) -> ControllerLostError:
        """Return the error for a controller that is gone, or replaced by something else."""
        return ControllerLostError(f"the {self.controller} {what} ({self._page})")

    def _value_of(self, reply: Reply) -> Any:
        """Return the controller's own reply as JSON; raise ControllerLostError for any other reply."""
        if reply.status == _UNAUTHORIZED or reply.status in _REDIRECT:
            raise self._lost(refusal_of(reply.status))

        try:
            return json.loads(reply.body)
        except (ValueError, RecursionError):
            raise self._lost(
                f"returned something other than JSON (status {reply.status})"
            ) from None

    def _answered(self, send: Callable[[], Reply], pauses: Sequence[float]) -> Reply:
        """Return the first reply that is not a gateway's, or the last one; there is a retry after each pause."""
        for pause in pauses:
            try:
                reply = send()
            except httpx.ReadTimeout as error:  # the time limit is reached
                raise self._unanswered(error) from None
            except httpx.HTTPError:
                pass
            else:
                if reply.status not in GATEWAY_ERRORS:
                    return reply

            self._sleep(pause)

        try:
            return send()
        except httpx.HTTPError as error:
            raise self._unanswered(error) from None

    def _unanswered(self, error: httpx.HTTPError) -> ControllerLostError:
        if isinstance(error, httpx.TimeoutException):
            return self._lost("does not respond in time")
        return self._lost(f"does not respond: {reason_of(error)}")

    def _send(self, method: str, path: str, body: bytes, seconds: float) -> Reply:
        timeout = httpx.Timeout(seconds, connect=min(seconds, CONNECT_SECONDS))
        headers = {"Content-Type": "application/json"} if body else {}
        url = self._url_of(path)
        deadline = time.monotonic() + seconds

        with (
            self._sockets.ending_late_calls(
                seconds, httpx.TransportError, self._unfinished
            ),
            self._http.stream(
                method,
                url,
                content=body,
                headers=headers,
                timeout=timeout,
                extensions={"trace": self._sockets.note},
            ) as reply,
        ):
            try:
                received = read_body(
                    reply.iter_bytes(), MAX_REPLY_BYTES, deadline=deadline
                )
            except BodyLimitError as error:
                if error.is_late:
                    raise self._unfinished() from None
                raise self._lost(
                    f"returned more than {MAX_REPLY_BYTES} bytes"
                ) from None

            return Reply(reply.status_code, received)

    def _unfinished(self) -> ControllerLostError:
        return self._lost("does not finish its response in time")


def url_of(base_url: str, path: str = "") -> httpx.URL:
    """Return the URL of a path below a base URL, without credentials.

    Raises httpx.InvalidURL or ValueError if it is not valid.
    """
    parts = urlsplit(base_url)
    netloc = parts.netloc.rpartition("@")[2]
    path = parts.path.rstrip("/") + path
    return httpx.URL(parts._replace(netloc=netloc, path=path).geturl())


def http_client(base_url: str, token: str = "", **options: Any) -> httpx.Client:
    """Return a client with a controller's headers and credentials, which plugins that mock HTTP calls don't intercept.

    Raises httpx.InvalidURL, ImportError, OSError or ValueError for a URL or proxy variables that are not valid.
    """
    parts = urlsplit(base_url)
    headers = {
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        "User-Agent": "pytest-device",
    }
    if token:
        headers["Authorization"] = f"Bearer {token}"
    elif parts.username is not None:  # not in the URL, which httpx logs
        options["auth"] = (unquote(parts.username), unquote(parts.password or ""))

    client = httpx.Client(
        headers=headers,
        verify=verification(base_url),
        # A proxy of the environment would not reach a controller on this machine.
        trust_env=not is_loopback(url_of(base_url).host),
        **options,
    )
    return protect_from_mocks(client)


def refusal_of(status: int) -> str:
    """Describe an error status."""
    if status in _REDIRECT:
        return f"sent a redirect (status {status})"
    if status == _UNAUTHORIZED:
        return f"rejected the session's credentials (status {status})"
    return f"returned status {status}"


def reason_of(error: httpx.HTTPError) -> str:
    """Describe the cause of an error, without the URL and the data sent or received."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, OSError):
        cause = cause.__cause__ or cause.__context__

    match cause:
        case ssl.SSLError():
            name = str(cause.reason or type(cause).__name__)  # such as UNKNOWN_CA
            return f"TLS, {name.lower().replace('_', ' ')}"
        case OSError(strerror=str(text)):
            return text.lower()
        case _ if isinstance(error, httpx.RemoteProtocolError):
            return "the connection was cut, or it does not speak HTTP"
        case _:
            return type(error).__name__


def as_mapping(value: object) -> Mapping[str, Any]:
    """Return a JSON object, an empty one for anything else."""
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType]
