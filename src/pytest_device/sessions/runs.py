"""The runs in the state directory: a run is alive as long as one of its owners holds its lock."""

import hashlib
import hmac
import os
import re
import secrets
import threading
from collections.abc import Generator, Iterable
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final, Self

import filelock

from pytest_device.private import check_private
from pytest_device.sessions.ledger import Entry, Ledger

ATTEMPTS: Final = 10
"""Maximum attempts to create a lock, in case another run's sweep removes it at that moment."""

_GONE: Final = (FileNotFoundError, FileExistsError)
"""Errors from a run's directory while another process removes or recreates it."""


_KEY: Final = "warm.salt"
_KEY_BYTES: Final = 32


def keyed_digest(state_dir: Path, text: str) -> str:
    """Return a keyed digest of a text, which cannot be reversed without the key of this state directory.

    Raises OSError if the key cannot be stored.
    """
    return hmac.new(_key(state_dir), text.encode(), hashlib.sha256).hexdigest()


def account_of(state_dir: Path, token: str) -> str:
    """Return the ledger's identifier for the token of its sessions, empty if the key cannot be stored."""
    try:
        return keyed_digest(state_dir, f"token {token}")
    except OSError:
        return ""


def _key(state_dir: Path, given: bytes = b"") -> bytes:
    """Return the key of this state directory, created on first use; ``given`` is the key if it was known before."""
    path = state_dir / _KEY
    with suppress(FileNotFoundError):
        return path.read_bytes()
    draft = state_dir / f"{_KEY}.{secrets.token_hex(8)}.tmp"
    with open(
        os.open(draft, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600), "wb"
    ) as file:  # noqa: PTH123
        file.write(given or secrets.token_bytes(_KEY_BYTES))
    try:
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink()
    return path.read_bytes()


def new_run() -> str:
    """Return a unique name for a run."""
    return secrets.token_hex(8)


class PastRun:
    """Any run in the state directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.ledger = Ledger(str(directory))
        self._remains: list[Path] = []

    @property
    def state_dir(self) -> Path:
        return self.directory.parents[1]

    @contextmanager
    def claimed(self) -> Generator[bool]:
        """Hold all locks of the run; yield False if an owner may be alive."""
        drafts, locks = _files(self.directory, ".tmp"), _files(self.directory, ".lock")
        with ExitStack() as held:
            over = bool(locks) and _taken(locks, held)
            if not over:  # without locks, the run is just starting or its directory was tampered with
                held.close()  # release the locks of dead owners, so that others see them as dead
            self._remains = [*drafts, *locks] if over else []
            yield over

    def has_living(self, owner: str) -> bool:
        path = self.directory / f"{owner}.lock"
        return path.exists() and not _is_free(path)

    def clear(self, entries: Iterable[Entry]) -> None:
        """Remove entries of a claimed run, and the run itself once it is empty."""
        for entry in entries:
            self.ledger.remove(entry.intent)
        if _files(self.directory, ".json"):
            return
        for path in self._remains:  # nothing else: an owner may have joined meanwhile
            path.unlink(missing_ok=True)
        with suppress(OSError):
            self.directory.rmdir()


class OwnRun(PastRun):
    """A run that this process belongs to: its ledger, and the lock that shows that its owner is alive."""

    def __init__(
        self, directory: Path, owner: str, lock: filelock.BaseFileLock
    ) -> None:
        super().__init__(directory)
        self.owner = owner
        self.name = directory.name
        self._lock = lock
        self._pid = os.getpid()
        self._guard = threading.Lock()
        self._key = b""

    def in_fork(self) -> "OwnRun":
        """Return the run for a forked child, which shares its parent's lock: that is free once both have ended."""
        return OwnRun(self.directory, f"{self.owner}-fork-{os.getpid()}", self._lock)

    @classmethod
    def join(cls, state_dir: Path, run: str, owner: str) -> Self:
        """Take the owner's lock.

        Raises OSError if the state directory cannot hold it, ConfigError if other users can write to it.
        """
        problem: OSError = FileNotFoundError(
            f"the directory is deleted as soon as it is created ({state_dir})"
        )
        for _ in range(ATTEMPTS):
            name = f"{re.sub(r'[^A-Za-z0-9]', '-', owner)}-{os.getpid()}-{secrets.token_hex(2)}"
            try:
                if joined := cls._join(state_dir, run, name):
                    return joined
            except _GONE as error:
                problem = error
        raise problem

    @classmethod
    def _join(cls, state_dir: Path, run: str, owner: str) -> Self | None:
        directory = state_dir / "runs" / run
        _make(directory)
        lock = filelock.FileLock(
            directory / f"{owner}.lock", mode=0o600, thread_local=False
        )
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            return None
        except NotImplementedError as error:
            raise OSError(f"{error} ({directory})") from error
        if Path(lock.lock_file).exists():
            return cls(directory, owner, lock)
        lock.release()
        return None

    def account(self, token: str) -> str:
        """Return the ledger's identifier for a token; remember the key in case the directory must be recreated."""
        with suppress(OSError):
            self._key = _key(self.state_dir)
        return account_of(self.state_dir, token)

    def rejoin(self) -> None:
        """Recreate what was removed meanwhile: directory, key, the owner's lock. Raises the errors of ``join``."""
        path = Path(self._lock.lock_file)
        with self._guard:
            if path.exists():
                return
            _make(self.directory)
            _key(self.state_dir, self._key)
            if (
                path.stem == self.owner
            ):  # otherwise the parent of a forked child holds the lock
                self._lock.release()
                self._lock.acquire(timeout=0)

    def leave(self) -> None:
        """Release the lock, and remove the run if it is empty."""
        if os.getpid() != self._pid:  # a forked child: the lock belongs to its parent
            return
        self._lock.release()
        with (
            suppress(OSError),
            self.claimed() as over,
        ):  # nothing can be removed from an unreadable directory
            if over:
                self.clear(())

    def is_joined_by(self, owner: str) -> bool:
        """Return whether a live owner with this name belongs to the run in this directory."""
        return any(
            path.stem.startswith(f"{owner}-") and not _is_free(path)
            for path in _files(self.directory, ".lock")
        )

    def pids_of_others(self) -> list[int]:
        """Return the IDs of the run's other live processes on this machine."""
        return [
            int(path.stem.split("-")[-2])
            for path in _files(self.directory, ".lock")
            if path.stem != self.owner and not _is_free(path)
        ]


def _make(run: Path) -> None:
    for path in (run.parents[1], run.parent, run):
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        check_private(path)


def _files(directory: Path, suffix: str) -> list[Path]:
    try:
        return sorted(path for path in directory.iterdir() if path.suffix == suffix)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _is_free(path: Path) -> bool:
    try:
        with filelock.FileLock(path, mode=0o600).acquire(timeout=0):
            return True
    except _GONE:
        return True
    except filelock.Timeout:
        return False


def _taken(locks: list[Path], held: ExitStack) -> bool:
    try:
        for path in locks:
            held.enter_context(filelock.FileLock(path, mode=0o600).acquire(timeout=0))
    except (filelock.Timeout, *_GONE):
        return False
    return True


def past_runs(state_dir: Path) -> list[PastRun]:
    """Return every run in the state directory, including live ones.

    Raises OSError if it cannot be read, ConfigError if other users can write to it.
    """
    runs = state_dir / "runs"
    for path in (state_dir, runs):
        check_private(path)
    try:
        return [PastRun(path) for path in sorted(runs.iterdir()) if path.is_dir()]
    except FileNotFoundError:
        return []
