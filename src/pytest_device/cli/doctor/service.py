"""Checks the service: its token and connection, and with ``--rent`` the account, by a session of one minute."""

import re
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from queue import Empty, SimpleQueue
from typing import Final
from uuid import uuid4

from pytest_device.cli.doctor.finding import Finding, fail, ok
from pytest_device.controllers.health import problem_of
from pytest_device.errors import (
    ConfigError,
    DeviceError,
    ForbiddenError,
    InvalidRequestError,
    LeaseTimeoutError,
    NotFoundError,
    SessionError,
    SessionTimeoutError,
    StatusError,
    StopFailedError,
    TransportError,
    UnauthorizedError,
)
from pytest_device.escape import escaped
from pytest_device.http_status import is_temporary_status
from pytest_device.options import TOKEN_VARIABLE, Options
from pytest_device.plugin.provider.backend import (
    MAIN,
    Backend,
    LocalBackend,
    RemoteBackend,
    joined,
)
from pytest_device.report.lines import line_of
from pytest_device.sessions.client import DeviceClient
from pytest_device.sessions.events import Event, detail_of, is_proof
from pytest_device.sessions.lease import lease
from pytest_device.sessions.lifecycle import WaitPolicy
from pytest_device.sessions.network import endpoint_at
from pytest_device.sessions.reporter import SafetyNet
from pytest_device.sessions.request import SessionRequest
from pytest_device.sessions.runs import new_run
from pytest_device.settings import Settings, checked_token

LIMIT_SECONDS: Final = 10.0
RENT_MINUTES: Final = 1

_SERVICE: Final = "service"
_UNAUTHORIZED: Final = 401
_PAYMENT_REQUIRED: Final = 402
_ADDRESS_FIX: Final = (
    f"set the service's own URL, without /v2 ({Options.url.spellings})"
)
_ROADBLOCK_FIX: Final = "check for a firewall in between, and the proxy in HTTPS_PROXY"
_NETWORK_FIXES: Final = (
    (
        r"CERTIFICATE_VERIFY_FAILED",
        "set SSL_CERT_FILE to the certificate authority of the service",
    ),
    (
        r"\bSSL\b|\bTLS\b|WRONG_VERSION_NUMBER",
        "correct the port or the scheme (https:// or http://): this port does not use TLS",
    ),
    (
        r"[Nn]ame or service|name resolution|getaddrinfo|nodename",
        "correct the host name, or check that DNS and VPN work",
    ),
    (r"refused", "correct the host and port, or start the service"),
    (r"[Tt]imed out|Timeout|unreachable|[Nn]o route", _ROADBLOCK_FIX),
)
_RENT: Final = "rent"
_LATER: Final = (
    "try again later, and contact the operator of the service if it persists"
)
_CAPACITY: Final = f"try again when the service has capacity, or increase {Options.wait_timeout_seconds.flag}"
_RENT_FIXES: Final[Mapping[type[DeviceError], str]] = {
    NotFoundError: f"set the ID of a project that the token's account owns ({Options.app_id.spellings})",
    InvalidRequestError: "correct what the service names; its operator enables simulator access for an account",
    SessionTimeoutError: _CAPACITY,
    LeaseTimeoutError: _CAPACITY,
    SessionError: "see the session page for the reason",
}


def check_service(
    url: str, token: str, *, limit_seconds: float = LIMIT_SECONDS
) -> Iterator[Finding]:
    """Yield findings on whether there is a token and, if so, whether the service responds and accepts it."""
    try:
        checked_token(token)
    except ConfigError as error:
        yield fail("token", *_cause_and_fix(error))
        return

    yield ok("token", f"set by {TOKEN_VARIABLE}")

    try:
        proxy = endpoint_at(url, token).proxy
    except ConfigError as error:
        yield fail(_SERVICE, *_cause_and_fix(error))
        return

    service = f"{url} through the proxy {proxy}" if proxy else url
    yield _finding_for(_error_of_request(url, token, limit_seconds), service)


def check_rent(settings: Settings) -> Iterator[Finding]:
    """Create a session, wait until its controller responds, and stop it; yield the findings."""
    reporter = _ProgressPrinter()

    try:
        request = _request(settings)
        backend = _backend(settings, request, reporter)
    except ConfigError as error:
        yield fail(_RENT, str(error), "correct the configuration")
        return

    try:
        yield _rented(settings, backend, request, reporter)
    finally:
        ends = backend.close(settings.stop_timeout_seconds)

    for event in ends:
        if not is_proof(event):
            text = f"not confirmed as stopped: {detail_of(event)}"
            yield fail(_RENT, text, "pytest-device stop")


def not_checked(settings: Settings, *, rented: bool) -> str:
    """Return what the findings do not cover."""
    if rented:
        limits = f"{settings.duration_with()!r} and {settings.max_idle_time_minutes!r}"
        return f"not checked: whether the account allows the limits of the runs (duration, idle: {limits})"

    return (
        "not checked: project, simulator access, limits, tunnels and controllers. `pytest-device doctor --rent` "
        "creates a session of one minute for that, and stops it"
    )


def _cause_and_fix(error: ConfigError) -> tuple[str, str]:
    cause, _, fix = str(error).rpartition(": ")
    return cause, fix


def _error_of_request(url: str, token: str, limit_seconds: float) -> DeviceError | None:
    """Return the error of requesting a session that does not exist; the limit includes the DNS lookup."""
    outcome = SimpleQueue[DeviceError | None]()

    def request() -> None:
        try:
            # Of the three calls, the only one that changes nothing; a made-up ID, since there is no list.
            with DeviceClient(url, token, reply_seconds=limit_seconds) as client:
                client.get(uuid4())
        except DeviceError as error:
            outcome.put(error)
        else:
            outcome.put(None)

    # A lookup cannot be interrupted: the thread is left behind.
    threading.Thread(target=request, name="pytest-device-doctor", daemon=True).start()
    try:
        return outcome.get(timeout=limit_seconds)
    except Empty:
        return TransportError(
            f"get: timed out, no response within {limit_seconds:g} s", sent=True
        )


def _finding_for(error: DeviceError | None, service: str) -> Finding:
    text = f"{service}: {error}"
    accepts = f"{service} responds and accepts the token"

    match error:
        case None:
            return ok(_SERVICE, accepts)
        case NotFoundError() if not error.is_page:
            return ok(
                _SERVICE, f"{accepts} (404 for a made-up session ID, as expected)"
            )
        case TransportError():
            return fail(_SERVICE, text, _fix_of_network(str(error)))
        case ConfigError():
            return fail(_SERVICE, *_cause_and_fix(error))
        case _:
            return fail(_SERVICE, text, _fix_of_refusal(error))


def _fix_of_network(message: str) -> str:
    for pattern, fix in _NETWORK_FIXES:
        if re.search(pattern, message):
            return fix
    return _ROADBLOCK_FIX


def _fix_of_refusal(error: DeviceError) -> str:
    match error:
        case UnauthorizedError() if error.status == _UNAUTHORIZED:
            return f"set {TOKEN_VARIABLE} to a valid token, of a robot user of the project's account or a personal one"
        case UnauthorizedError():
            return "check what removes the Authorization header on the way: a proxy, or a redirecting URL"
        case ForbiddenError() if error.status == _PAYMENT_REQUIRED:
            return "have the account's owner check its plan and its billing"
        case ForbiddenError():
            return "give the token's robot user the Developer role on the account that owns the project"
        case StatusError() if is_temporary_status(error.status):
            return _LATER
        case _:
            return _ADDRESS_FIX


class _ProgressPrinter:
    """Prints the session's events to standard error, since a boot takes minutes."""

    def event(self, event: Event) -> None:
        self.progress(line_of(event))

    def note(self, text: str) -> None:
        self.progress(text)

    def warn(self, net: SafetyNet, text: str) -> None:
        del net
        self.progress(text)

    def progress(self, text: str) -> None:
        print(escaped(text), file=sys.stderr, flush=True)


def _request(settings: Settings) -> SessionRequest:
    return SessionRequest.from_arguments(
        app_id=settings.app_id,
        platform=next(iter(settings.platform), "android"),
        name="pytest-device doctor",
        type=settings.type,
        device_identifier=settings.identifier,
        max_duration_minutes=RENT_MINUTES,
    )


def _backend(
    settings: Settings, request: SessionRequest, reporter: _ProgressPrinter
) -> Backend:
    if settings.local:
        return LocalBackend(settings, None, reporter, [request])
    run = joined(settings, new_run(), MAIN, reporter)
    service = endpoint_at(str(settings.url), settings.token)
    return RemoteBackend(settings, service, run=run, worker=None, reporter=reporter)


def _rented(
    settings: Settings,
    backend: Backend,
    request: SessionRequest,
    reporter: _ProgressPrinter,
) -> Finding:
    policy = WaitPolicy(settings.wait_timeout_seconds, settings.poll_interval_seconds)
    began = time.monotonic()
    try:
        with lease(
            backend.sessions(),
            request,
            policy=policy,
            on_event=reporter.event,
            problem_of=problem_of,
        ) as session:
            took = time.monotonic() - began
    except DeviceError as error:
        text = "; ".join([str(error), *getattr(error, "__notes__", ())])
        return fail(_RENT, text, _fix_of_rent(error))

    kind = f"{session.platform} {session.type} session {session.id}"
    return ok(
        _RENT, f"{kind} was created, was ready after {took:.1f} s, and was stopped"
    )


def _fix_of_rent(error: DeviceError) -> str:
    if isinstance(error, StopFailedError):
        return f"pytest-device stop {error.session_id}"

    for kind, fix in _RENT_FIXES.items():
        if isinstance(error, kind):
            return fix

    return _fix_of_refusal(error) if isinstance(error, StatusError) else _LATER
