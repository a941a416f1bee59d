"""Checks the account with a session of one minute: creates, reaches and stops it (``--rent``)."""

import sys
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from pytest_device.cli.doctor.finding import Finding, fail, ok
from pytest_device.cli.doctor.reach import fix_of
from pytest_device.errors import (
    ConfigError,
    DeviceError,
    InvalidRequestError,
    LeaseTimeoutError,
    NotFoundError,
    SessionError,
    SessionTimeoutError,
    StatusError,
    StopFailedError,
)
from pytest_device.escape import escaped
from pytest_device.options import Options
from pytest_device.settings import Settings
from pytest_device.spec import Platform

if TYPE_CHECKING:
    from pytest_device.plugin.provider.backend import Backend
    from pytest_device.sessions.events import Event
    from pytest_device.sessions.reporter import Reporter
    from pytest_device.sessions.request import SessionRequest

RENT_MINUTES: Final = 1
_NAME: Final = "rent"
_LATER: Final = "try again, and contact the operator of the service if it persists"
_CAPACITY: Final = f"try again when the service has capacity, or increase {Options.wait_timeout_seconds.flag}"
_FIXES: Final[Mapping[type[DeviceError], str]] = {
    NotFoundError: f"set the ID of a project that the token's account owns ({Options.app_id.spellings})",
    InvalidRequestError: "correct what the service names; its operator enables simulator access for an account",
    SessionTimeoutError: _CAPACITY,
    LeaseTimeoutError: _CAPACITY,
    SessionError: "see the session page for the reason",
}


class _ProgressPrinter:
    """Prints the session's events to standard error, since a boot takes minutes."""

    def event(self, event: "Event") -> None:
        from pytest_device.report.lines import line_of

        self.progress(line_of(event))

    def note(self, text: str) -> None:
        self.progress(text)

    def progress(self, text: str) -> None:
        print(escaped(text), file=sys.stderr, flush=True)


def check_rent(settings: Settings) -> Iterator[Finding]:
    """Create a session, wait until its controller responds, and stop it; yield the findings."""
    from pytest_device.sessions.events import detail_of, is_proof

    reporter = _ProgressPrinter()
    try:
        request = _request(settings)
        backend = _backend(settings, request, reporter)
    except ConfigError as error:
        yield fail(_NAME, str(error), "correct the configuration")
        return
    try:
        yield _rented(settings, backend, request, reporter)
    finally:
        ends = backend.close(settings.stop_timeout_seconds)
    for event in ends:
        if not is_proof(event):
            yield fail(_NAME, f"not confirmed as stopped: {detail_of(event)}", "pytest-device stop")


def not_checked(settings: Settings, *, rented: bool) -> str:
    """Return what the findings do not cover."""
    if rented:
        limits = f"{settings.duration_with()!r} and {settings.max_idle_time_minutes!r}"
        return f"not checked: whether the account allows the limits of the runs (duration, idle: {limits})"
    return (
        "not checked: project, simulator access, limits, tunnels and controllers. `pytest-device doctor --rent` "
        "creates a session of one minute for that, and stops it"
    )


def _request(settings: Settings) -> "SessionRequest":
    from pytest_device.sessions.request import SessionRequest

    return SessionRequest.from_arguments(
        app_id=settings.app_id,
        platform=(*settings.platform, Platform.ANDROID)[0],
        name="pytest-device doctor",
        type=settings.type,
        device_identifier=settings.identifier,
        max_duration_minutes=RENT_MINUTES,
    )


def _backend(settings: Settings, request: "SessionRequest", reporter: "Reporter") -> "Backend":
    from pytest_device.plugin.provider.backend import MAIN, LocalBackend, RemoteBackend, joined
    from pytest_device.sessions.runs import new_run

    if settings.local:
        return LocalBackend(settings, None, reporter, [request])
    run = joined(settings, new_run(), MAIN, reporter)
    return RemoteBackend(settings, run=run, worker=None, reporter=reporter)


def _rented(settings: Settings, backend: "Backend", request: "SessionRequest", reporter: "Reporter") -> Finding:
    from pytest_device.controllers.health import problem_of
    from pytest_device.sessions.lease import lease
    from pytest_device.sessions.lifecycle import WaitPolicy

    policy = WaitPolicy(settings.wait_timeout_seconds, settings.poll_interval_seconds)
    began = time.monotonic()
    try:
        with lease(backend.sessions(), request, policy=policy, reporter=reporter, problem_of=problem_of) as session:
            took = time.monotonic() - began
    except DeviceError as error:
        return fail(_NAME, "; ".join([str(error), *getattr(error, "__notes__", ())]), _fix_of(error))
    kind = f"{session.platform} {session.type} session {session.id}"
    return ok(_NAME, f"{kind} was created, was ready after {took:.1f} s, and was stopped")


def _fix_of(error: DeviceError) -> str:
    match error:
        case StopFailedError():
            return f"pytest-device stop {error.session_id}"
        case StatusError() if not isinstance(error, NotFoundError | InvalidRequestError):
            return fix_of(error)
        case _:
            return next((fix for kind, fix in _FIXES.items() if isinstance(error, kind)), _LATER)
