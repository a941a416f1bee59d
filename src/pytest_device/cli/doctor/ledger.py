"""Checks the state directory and the leftover sessions in it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pytest_device.cli.doctor.finding import Finding, fail, ok, warn
from pytest_device.errors import ConfigError
from pytest_device.figures import counted
from pytest_device.options import Options
from pytest_device.sessions.inventory import opened
from pytest_device.sessions.runs import OwnRun, new_run
from pytest_device.sessions.states import TOMBSTONES
from pytest_device.settings import Settings

_NAME: Final = "state directory"


def check_ledger(settings: Settings) -> Iterator[Finding]:
    """Yield findings on whether runs can record their sessions, and on sessions left by earlier runs."""
    if settings.state_dir is None:
        yield fail(
            _NAME,
            "this user has no home directory for it",
            f"set {Options.state_dir.variable}",
        )

        return

    state_dir = Path(settings.state_dir)
    try:
        # A local service's sessions end with the run and are not recorded.
        if not settings.local:
            OwnRun.join(state_dir, new_run(), "doctor").leave()
            yield ok(_NAME, f"{state_dir} is writable")
        yield from _left(state_dir)
    except ConfigError as error:
        yield fail(
            _NAME,
            str(error),
            f"use a directory of your own, or set {Options.state_dir.variable}",
        )
    except OSError as error:
        yield fail(
            _NAME,
            f"{state_dir} cannot be used: {error}",
            f"make it writable, or set {Options.state_dir.variable}",
        )


def _left(state_dir: Path) -> Iterator[Finding]:
    with opened(state_dir) as inventory:
        sessions, damaged = inventory

    for path, reason in damaged.items():
        yield fail(
            "ledger",
            f"damaged file {path} ({reason}): its session may still be running",
            "check the service's session pages for a leftover session, then remove the file",
        )

    # The next run removes those that have ended.
    left = [
        session
        for session in sessions
        if not session.is_alive and session.entry.state not in TOMBSTONES
    ]
    if left:
        text = f"{counted(len(left), 'session')} left behind or kept by finished runs"
        yield warn("sessions", text, "pytest-device stop")
    else:
        yield ok("sessions", "none left behind")
