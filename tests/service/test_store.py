"""The file that keeps sessions across restarts of the service."""

import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from pytest_device import ConfigError
from tests.fakes.local_service import BOOT_SECONDS, NOW, InProcessService, data

KEEP_SECONDS = 30 * 24 * 3600
Start = Callable[..., InProcessService]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions.db"


@pytest.fixture
def start(path: Path) -> Iterator[Start]:
    """Start a service with the same file as the one before it."""
    with ExitStack() as stack:

        def started(**options: Any) -> InProcessService:
            service = InProcessService(file=path, **options)
            stack.callback(service.close)
            return service

        yield started


def names(service: InProcessService) -> list[tuple[str, str]]:
    return [
        (session["name"], session["status"]) for session in service.listed("sessions")
    ]


def by_name(service: InProcessService) -> list[dict[str, Any]]:
    return sorted(service.listed("sessions"), key=lambda session: str(session["name"]))


def test_a_restarted_service_remembers_its_sessions(start: Start) -> None:
    before = start()
    before.fault("boot", "fail", reason="no device")
    failed = before.created(
        name="a 'name'; with \u00e9 and \x00",
        platform="ios",
        applicationArchiveUrl="https://files.example.com/app.zip",
    )
    stopped = before.created(
        name="login", type="argent", maxIdleTimeMinutes=7, maxDurationMinutes=30
    )
    before.clock.advance(BOOT_SECONDS)
    for session_id in (failed, stopped):
        before.get(session_id)
    before.stop(stopped)

    after = start()

    assert by_name(after) == by_name(before)
    for session_id in (failed, stopped):
        assert data(after.get(session_id)) == data(before.get(session_id))


def test_a_session_that_was_active_when_the_service_died_is_errored_after_the_restart(
    start: Start,
) -> None:
    session_id = start().created()
    after = start()

    assert data(after.get(session_id))["status"] == "errored"
    (session,) = after.listed("sessions")
    assert session["reason"] == "the service stopped before the session ended"


def test_a_session_ended_long_ago_is_forgotten_at_a_restart(start: Start) -> None:
    before = start()
    before.stop(before.created(name="old"))
    before.clock.advance(KEEP_SECONDS)
    before.stop(before.created(name="new"))
    after = start(now=before.clock.now + 1)

    assert names(after) == [("new", "stopped")]


def test_an_active_session_is_never_forgotten(start: Start) -> None:
    start().created(name="old")
    after = start(now=NOW + 2 * KEEP_SECONDS)

    assert names(after) == [("old", "errored")]


def test_connection_details_and_launch_arguments_are_never_written(
    path: Path, start: Start
) -> None:
    service = start()
    session_id = service.created(
        type="agent-device", vendorGo=True, launchArgs=["--password=hunter2"]
    )
    service.clock.advance(BOOT_SECONDS)
    config = data(service.get(session_id))["remoteConfig"]
    written = b"".join(file.read_bytes() for file in path.parent.iterdir())

    assert session_id.encode() in written
    assert config["agentDeviceRemoteSessionToken"].encode() not in written
    assert config["agentDeviceRemoteSessionUrl"].encode() not in written
    assert b"hunter2" not in written


def test_only_this_user_can_read_the_files(path: Path, start: Start) -> None:
    start().created()
    modes = {
        file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()
    }

    assert set(modes) == {"sessions.db", "sessions.db-wal", "sessions.db-shm"}
    assert set(modes.values()) == {0o600}


def test_a_damaged_file_is_an_error_that_names_it_and_the_fix(
    path: Path, start: Start
) -> None:
    path.write_bytes(
        b"not a database, but long enough to look like a header of one" * 20
    )

    with pytest.raises(
        ConfigError, match=r"sessions\.db cannot be used \(.*\): move it away"
    ):
        start()


def test_a_file_of_another_version_is_an_error_that_names_both_versions(
    path: Path, start: Start
) -> None:
    start().close()
    with closing(sqlite3.connect(path)) as connection:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        connection.execute(f"PRAGMA user_version = {version + 1}")

    with pytest.raises(
        ConfigError,
        match=rf"its layout is version {version + 1}, this service reads {version}",
    ):
        start()


def test_a_missing_directory_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be used"):
        InProcessService(file=tmp_path / "missing" / "sessions.db")
