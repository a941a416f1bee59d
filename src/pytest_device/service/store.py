"""Stores the sessions in an SQLite file, across restarts."""

import os
import sqlite3
import weakref
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Final, Self

from pytest_device.errors import ConfigError
from pytest_device.service.lifecycle import Session
from pytest_device.spec import Platform, SessionType, Status

VERSION: Final = 1
"""Version of the file's schema."""

_COLUMNS: Final = tuple(field.name for field in fields(Session))
_CREATE: Final = f"CREATE TABLE IF NOT EXISTS session ({', '.join(_COLUMNS)}, PRIMARY KEY (id)) WITHOUT ROWID"
_SAVE: Final = (
    f"INSERT OR REPLACE INTO session VALUES ({', '.join('?' * len(_COLUMNS))})"  # noqa: S608 - marks only
)


class Store:
    """Stored sessions, written on every change and read once, at the start.

    A killed process loses no data; after a power failure the latest changes may be missing.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Open the store; raises sqlite3.Error if the file is not a store of this version."""
        self._connection = connection
        self._close = weakref.finalize(self, connection.close)
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version not in {0, VERSION}:
            raise sqlite3.DatabaseError(
                f"its layout is version {version}, this service reads {VERSION}"
            )
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(_CREATE)
        connection.execute(f"PRAGMA user_version = {VERSION}")

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open or create a file that only this user may read.

        Raises ConfigError if it is damaged or has another version.
        """
        try:
            # SQLite creates its other files with the same mode.
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
            # Without transactions: each change is in the file when the call returns.
            connection = sqlite3.connect(path, isolation_level=None)
            try:
                return cls(connection)
            except BaseException:
                connection.close()
                raise
        except (OSError, sqlite3.Error) as error:
            raise ConfigError(
                f"{path} cannot be used ({error}): move it away, or choose another state_dir"
            ) from error

    def load(self) -> Sequence[Session]:
        return [
            _session(row) for row in self._connection.execute("SELECT * FROM session")
        ]

    def save(self, session: Session) -> None:
        values = [getattr(session, column) for column in _COLUMNS]
        self._connection.execute(_SAVE, values)

    def forget(self, before: float) -> None:
        """Remove ended sessions that have not changed since ``before`` (Unix seconds)."""
        self._connection.execute(
            "DELETE FROM session WHERE updated_at < ? AND status IN (?, ?)",
            (before, Status.STOPPED, Status.ERRORED),
        )

    def close(self) -> None:
        self._close()


def _session(row: Sequence[Any]) -> Session:
    values: dict[str, Any] = dict(zip(_COLUMNS, row, strict=True))
    values["type"] = SessionType(values["type"])
    values["platform"] = Platform(values["platform"])
    values["status"] = Status(values["status"])
    return Session(**values)
