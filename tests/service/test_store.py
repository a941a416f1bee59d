"""The file that keeps sessions across restarts."""

import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_device.errors import ConfigError
from pytest_device.service.lifecycle import Session
from pytest_device.service.store import VERSION, Store
from pytest_device.spec import Platform, SessionType, Status
from tests.service.world import APP_ID, UNKNOWN_ID

SESSION = Session(
    id=UNKNOWN_ID,
    app_id=APP_ID,
    job_run_id="run",
    name="a 'name'; with \u00e9 and \x00",
    type=SessionType.SERVE_SIM,
    package_version="1",
    build_id=None,
    application_archive_url="https://files.example.com/app.apk",
    platform=Platform.IOS,
    status=Status.ERRORED,
    reason="no device",
    max_duration_minutes=30,
    max_idle_time_minutes=None,
    started_at=None,
    finished_at=None,
    created_at=1_800_000_000.123456,
    updated_at=1_800_000_001.0,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with closing(Store.open(path)) as store:
        yield store


def test_a_session_is_read_as_it_was_written(path: Path, store: Store) -> None:
    store.save(SESSION)

    with closing(Store.open(path)) as again:
        assert again.load() == [SESSION]


def test_words_are_read_as_enum_members(store: Store) -> None:
    store.save(SESSION)
    (session,) = store.load()

    assert (type(session.type), type(session.platform), type(session.status)) == (
        SessionType,
        Platform,
        Status,
    )


def test_a_changed_session_replaces_its_predecessor(store: Store) -> None:
    store.save(SESSION)
    changed = replace(SESSION, name=None)
    store.save(changed)

    assert store.load() == [changed]


def test_only_this_user_can_read_the_files(path: Path, store: Store) -> None:
    store.save(SESSION)
    modes = {
        file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()
    }

    assert set(modes) == {"sessions.db", "sessions.db-wal", "sessions.db-shm"}
    assert set(modes.values()) == {0o600}


def test_a_damaged_file_is_an_error_that_names_it_and_the_fix(path: Path) -> None:
    path.write_bytes(
        b"not a database, but long enough to look like a header of one" * 20
    )

    with pytest.raises(
        ConfigError, match=r"sessions\.db cannot be used \(.*\): move it away"
    ):
        Store.open(path)


def test_a_file_of_another_version_is_an_error_that_names_both_versions(
    path: Path,
) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {VERSION + 1}")

    with pytest.raises(
        ConfigError,
        match=rf"its layout is version {VERSION + 1}, this service reads {VERSION}",
    ):
        Store.open(path)


def test_a_missing_directory_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be used"):
        Store.open(tmp_path / "missing" / "sessions.db")
