"""The three calls of the REST interface: create, get, stop; for the run's own local service with its details."""

import re
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any, Final, Protocol, Self
from urllib.parse import urlsplit
from uuid import UUID

import httpx

from pytest_device import parsers
from pytest_device.call_limit import Sockets
from pytest_device.errors import (
    ConfigError,
    NoCapacityError,
    ServiceError,
    StatusError,
    TransportError,
)
from pytest_device.redact import Redactor, is_loopback
from pytest_device.sessions import retry_policy
from pytest_device.sessions.models import Session
from pytest_device.sessions.network import (
    InterceptedError,
    check_sent,
    naming_intercepting_plugin,
    protect_from_mocks,
    verification,
)
from pytest_device.sessions.partial import is_same, path_of
from pytest_device.sessions.replies import (
    body_of,
    check_whole,
    is_temporary,
    no_answer,
    read_session,
    retry_after_of,
)
from pytest_device.sessions.request import SessionRequest
from pytest_device.sessions.session_id import SessionId
from pytest_device.settings import checked_token
from pytest_device.spec import SESSIONS_PATH, TERMINAL, VENDOR, Status

REPLY_SECONDS: Final = 30.0
"""Maximum seconds of a call once it is connected, however slowly the response trickles in; of a create call, unless
its caller waits longer."""
CONNECT_SECONDS: Final = 10.0

_SILENCE_SECONDS: Final = 30.0
_TIMEOUT: Final = httpx.Timeout(_SILENCE_SECONDS, connect=CONNECT_SECONDS)
_NEVER_SENT: Final = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.LocalProtocolError,
    httpx.PoolTimeout,
    httpx.ProxyError,
    httpx.UnsupportedProtocol,
)
_QUOTED_REPLY: Final = re.compile(r"(?s):? (bytearray\()?b['\"].*")
"""The part of a response in the text of a protocol error: it may hold connection details."""


class SessionClient(Protocol):
    """The three calls of the REST interface: the type of the fixture ``device_client``.

    It is a ``DeviceClient``, or a client that sends the same calls through the run's reaper.

    >>> session = client.create(request)
    >>> client.stop(session.id).status
    <Status.STOPPED: 'stopped'>
    """

    @property
    def base_url(self) -> str: ...
    def create(
        self, request: SessionRequest, *, timeout_seconds: float | None = None
    ) -> Session:
        """Create a session. It is billed until it is stopped.

        Args:
            request: What to create.
            timeout_seconds: How long to wait for the response; by default as long as the client chooses.

        Raises:
            ServiceError: The service refused, or its response was lost: see ``leaves_unknown``.
        """
        ...

    def get(self, session_id: UUID | str) -> Session: ...
    def stop(self, session_id: UUID | str) -> Session: ...
    def leaves_unknown(self, error: BaseException) -> bool:
        """Return whether a create call that failed with this error may have left a session whose ID is unknown."""
        ...


class DeviceClient:
    """Create, get and stop sessions, without pytest.

    Use it in a ``with`` block, which closes its connections. ``lease`` stops the sessions that it creates; without it,
    stop them yourself.

    Args:
        base_url: The URL of the service, without ``/v2``.
        token: The access token.
        vendor: The account's prefix of vendor-specific fields.
        transport: Replaces the network in tests.
        sleep: Sleeps for some seconds between retries.
        reply_seconds: The maximum duration of a call, once it is connected.
        now: Returns Unix seconds.
        redactor: Masks the token, and the connection details in responses.

    Raises:
        ConfigError: The URL or the token is invalid.

    >>> with DeviceClient(service.url, service.token) as client, lease(client, request) as session:
    ...     session.status
    <Status.IN_PROGRESS: 'in-progress'>
    """

    # `get` and `stop` are safe to repeat, so they are retried: `get` after transport errors and temporary refusals, no
    # sooner than `Retry-After` says, but a long `Retry-After` is left to the caller; `stop` until the end is confirmed,
    # also by a lookup. `create` is retried only if the request was certainly never sent: a lost response may have
    # created a session, and the interface has no call that lists them.

    def __init__(
        self,
        base_url: str,
        token: str,
        *,
        vendor: str = VENDOR,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
        reply_seconds: float = REPLY_SECONDS,
        now: Callable[[], float] = time.time,
        redactor: Redactor | None = None,
    ) -> None:
        self.base_url = parsers.address(base_url)
        self._vendor = vendor
        self._is_networked = transport is None
        self._sleep = sleep
        self._reply_seconds = reply_seconds
        self._now = now
        self._redactor = redactor or Redactor()
        self._redactor.add(token)
        self._sockets = Sockets()
        headers = {
            "Authorization": f"Bearer {checked_token(token)}",
            "Accept": "application/json",
            "Accept-Encoding": "identity",  # so that the limit on a reply's size also limits its decoded size
            "User-Agent": "pytest-device",
        }

        is_here = is_loopback(urlsplit(self.base_url).hostname or "")
        try:
            http = httpx.Client(
                base_url=self.base_url,
                headers=headers,
                timeout=_TIMEOUT,
                transport=transport,
                # The token would go wherever a response points.
                follow_redirects=False,
                trust_env=not is_here,  # no proxy for loopback addresses
                verify=verification(self.base_url) if self._is_networked else False,
            )
            self._http = protect_from_mocks(http)
        except (ImportError, OSError, ValueError, httpx.InvalidURL) as error:
            raise ConfigError(
                f"no connection to {self.base_url} can be prepared ({self._redactor.text(str(error))}): check the "
                "proxy variables (HTTPS_PROXY, ALL_PROXY) and the certificate variables (SSL_CERT_FILE, SSL_CERT_DIR)"
            ) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; sessions stay as they are."""
        self._http.close()

    def create(
        self, request: SessionRequest, *, timeout_seconds: float | None = None
    ) -> Session:
        """Create a session. It is billed until it is stopped.

        Args:
            request: What to create.
            timeout_seconds: How long to wait for the response, if that is longer than for other calls: once nobody waits
                for it, nobody can stop the session.

        Returns:
            The session, whose status is ``new``.

        Raises:
            InvalidRequestError: The request breaks a rule of the service.
            NoCapacityError: Nothing was created, and the same call may succeed later.
            ServiceError: The call failed in another way; ``leaves_unknown`` returns whether a session may exist.

        >>> session = client.create(request)
        >>> session.status
        <Status.NEW: 'new'>
        >>> client.stop(session.id).status
        <Status.STOPPED: 'stopped'>
        """
        # Never shorter than other calls: a session that is created later is billed all the same.
        seconds = max(self._reply_seconds, timeout_seconds or 0.0)
        body = request.to_wire(self._vendor)
        return self._call(
            "create", "POST", SESSIONS_PATH, _never_left, body=body, seconds=seconds
        )

    def get(self, session_id: UUID | str) -> Session:
        """Return a session, with its connection details while it is in progress.

        Raises:
            NotFoundError: The service doesn't know the session.
            ServiceError: The call failed in another way.

        >>> client.get("00000000-0000-4000-8000-00000000dead")
        Traceback (most recent call last):
        pytest_device.NotFoundError: ...
        """
        return self._call("get", "GET", _path(session_id), _is_soon)

    def stop(self, session_id: UUID | str) -> Session:
        """Stop a session; one that is stopped or errored already is returned unchanged.

        Returns:
            The session, as the service confirmed it.

        Raises:
            ServiceError: The stop is not confirmed: the session may still be running.

        >>> session = client.create(request)
        >>> client.stop(session.id).status
        <Status.STOPPED: 'stopped'>
        """
        answer = self._stopped(session_id)

        for attempts in range(1, retry_policy.ATTEMPTS):
            if _has_ended(answer, session_id):
                break
            self._sleep(retry_policy.pause_after(attempts, retry_after_of(answer)))
            answer = self._stopped(session_id)

        if isinstance(answer, ServiceError):
            raise answer

        return answer

    def _stopped(self, session_id: UUID | str) -> Session | ServiceError:
        """Return the response that proves the end, from the stop call or a lookup; otherwise the stop's response."""
        path = _path(session_id)
        answer = self._tried("stop", "POST", f"{path}/stop")
        if _has_ended(answer, session_id):
            return answer

        # The service may have stopped it all the same, and only its response was lost or replaced on the way.
        proof = self._tried("get", "GET", path)
        return proof if _has_ended(proof, session_id) else answer

    def leaves_unknown(self, error: BaseException) -> bool:
        """Return whether a create call that failed with an error may have left a session whose ID is unknown.

        It has not if the request was never sent, as where a plugin intercepts it, or was refused.

        >>> client.leaves_unknown(TransportError("refused", sent=False))
        False
        """
        match error:
            case TransportError():
                return error.sent
            case ConfigError() | NoCapacityError() | InterceptedError():
                return False
            case StatusError():
                # A gateway may have lost a successful response.
                return error.status not in retry_policy.REFUSED
            case _:  # an interrupt loses the response, too
                return True

    def hide(self, session: Session) -> Session:
        """Mask the session's connection details from now on; return it."""
        if config := session.remote_config:
            public = {urlsplit(url).hostname for url in (session.url, self.base_url)}
            self._redactor.add(
                *(secret for secret in config.secrets() if secret not in public)
            )

        return session

    def _call(
        self,
        operation: str,
        method: str,
        path: str,
        may_repeat: Callable[[ServiceError], bool],
        body: Any = None,
        seconds: float | None = None,
    ) -> Session:
        for attempts in range(1, retry_policy.ATTEMPTS):
            try:
                return self._once(operation, method, path, body, seconds)
            except ServiceError as error:
                if not may_repeat(error):
                    raise
                retry_after_seconds = retry_after_of(error)

            self._sleep(retry_policy.pause_after(attempts, retry_after_seconds))

        return self._once(operation, method, path, body, seconds)

    def _tried(self, operation: str, method: str, path: str) -> Session | ServiceError:
        try:
            return self._once(operation, method, path, None)
        except ServiceError as error:
            return error

    def _once(
        self,
        operation: str,
        method: str,
        path: str,
        body: Any,
        seconds: float | None = None,
    ) -> Session:
        seconds = self._reply_seconds if seconds is None else seconds
        try:
            with (
                naming_intercepting_plugin(self.base_url),
                self._bounded(operation, seconds),
            ):
                return self.hide(self._asked(operation, method, path, body, seconds))
        except ServiceError as error:
            self._without_token(error)
            raise
        except (httpx.InvalidURL, UnicodeError) as error:
            raise ConfigError(
                f"service address {self.base_url!r} cannot be used: {error}"
            ) from None

    def _asked(
        self, operation: str, method: str, path: str, body: Any, seconds: float
    ) -> Session:
        # The interface requires the Content-Type header even without a body ("Endpoints", common to all).
        headers = {"Content-Type": "application/json"}
        extensions = {"trace": self._sockets.note}
        silence = max(_SILENCE_SECONDS, seconds)

        timeout = httpx.Timeout(_SILENCE_SECONDS, connect=CONNECT_SECONDS, read=silence)
        with self._http.stream(
            method,
            path,
            json=body,
            headers=headers,
            extensions=extensions,
            timeout=timeout,
        ) as reply:
            if self._is_networked:
                check_sent(reply, self.base_url)

            self._http.cookies.clear()  # the interface does not use cookies
            retry_after_seconds = retry_policy.retry_after(
                reply.headers.get("Retry-After"), reply.headers.get("Date"), self._now()
            )

            answer, arrived = body_of(operation, reply)
            try:
                return read_session(
                    operation, reply.status_code, answer, retry_after_seconds
                )
            except NoCapacityError:  # allows a retry of the call
                check_whole(operation, reply, arrived)
                raise

    @contextmanager
    def _bounded(self, operation: str, seconds: float) -> Generator[None]:
        """Limit a call's duration and convert httpx's errors into ours."""
        with self._sockets.limited(seconds) as late:
            try:
                yield
            except httpx.HTTPError as error:
                if late.is_set():
                    message = (
                        f"{operation}: the response took longer than {seconds:g} s"
                    )
                    raise TransportError(message, sent=True) from None

                raise self._no_answer(operation, error) from None

    def _without_token(self, error: ServiceError) -> None:
        """Remove the token from an error in case the service or a proxy echoed it."""
        error.args = (self._redactor.text(str(error)),)
        if isinstance(error, StatusError):
            error.detail = self._redactor.text(error.detail)

    def _no_answer(self, operation: str, error: httpx.HTTPError) -> TransportError:
        reason = _QUOTED_REPLY.sub("", str(error)) or type(error).__name__
        if isinstance(error, _NEVER_SENT):
            return no_answer(operation, self.base_url, reason, sent=False)

        return no_answer(
            operation, self.base_url, f"{type(error).__name__}: {reason}", sent=True
        )


def _path(session_id: UUID | str) -> str:
    try:
        return path_of(str(SessionId(str(session_id))))
    except ValueError:
        raise ConfigError(f"session ID {str(session_id)!r} must be a UUID") from None


def _has_ended(answer: Session | ServiceError, session_id: UUID | str) -> bool:
    # A response about another session proves nothing.
    return (
        isinstance(answer, Session)
        and answer.status in TERMINAL
        and is_same(str(answer.id), str(session_id))
    )


def _is_soon(error: ServiceError) -> bool:
    """Return whether to retry here; a long ``Retry-After`` is left to the caller."""
    return (
        is_temporary(error)
        and retry_after_of(error) <= retry_policy.MAX_GET_PAUSE_SECONDS
    )


def _never_left(error: ServiceError) -> bool:
    return isinstance(error, TransportError) and not error.sent


class LocalClient(DeviceClient):
    """Adds the device's name, and the reason why a session ended."""

    def get(self, session_id: UUID | str) -> Session:
        """Return the session; raises ConfigError if its request made it fail."""
        session = super().get(session_id)
        facts = dict[str, Any]()
        if session.status != Status.NEW:
            with suppress(httpx.HTTPError, ValueError):
                facts = (
                    self._http.get(f"/sessions/{session.id}/facts")
                    .json()
                    .get("data", {})
                )

        if facts.get("failedByRequest"):
            raise ConfigError(str(facts["reason"]))

        return session.model_copy(
            update={"reason": facts.get("reason"), "deviceName": facts.get("device")}
        )
