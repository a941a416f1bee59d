"""The service's log: a file that only this user may read, with the token masked."""

import logging
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol

from pytest_device.errors import ConfigError
from pytest_device.escape import escaped
from pytest_device.redact import Redactor

LOGGER: Final = logging.getLogger("pytest_device.service")
_FORMAT: Final = "%(asctime)s %(levelname)s %(message)s"


class Log(Protocol):
    """Receives lines of text: for the service's log, a session's timeline, or as progress for the terminal."""

    def __call__(self, text: str, /) -> object: ...


def no_log(_text: str) -> None:
    """Discard a line."""


@contextmanager
def logging_to(path: Path | None, token: str) -> Generator[None]:
    """Send all logs of this process to a file, or its warnings to standard error, until the block ends.

    Raises ConfigError when the file cannot be written.
    """
    handler = _handler(path)
    handler.setFormatter(_Redacted(token))
    handler.addFilter(_may_be_logged)
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    try:
        yield
    finally:
        root.setLevel(level)
        root.removeHandler(handler)
        handler.close()


def _handler(path: Path | None) -> logging.Handler:
    if path is None:
        handler = logging.StreamHandler(sys.stderr)
        handler.setLevel(logging.WARNING)
        return handler
    try:
        # logging would create it with the permissions of the user's umask.
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
        return logging.FileHandler(path, encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            f"log_path {path} cannot be written ({error.strerror}): choose another"
        ) from error


def _may_be_logged(record: logging.LogRecord) -> bool:
    """Return whether a record may be logged: httpx logs each URL, whose query is often a signature."""
    return record.name != "httpx" or record.levelno > logging.INFO


class _Redacted(logging.Formatter):
    def __init__(self, token: str) -> None:
        super().__init__(_FORMAT)
        self._redactor = Redactor([token])

    def format(self, record: logging.LogRecord) -> str:
        return escaped(self._redactor.text(super().format(record)))
