"""The runs in the state directory: a run is alive as long as one of its owners holds its lock.

Names are unique because files and directories are created exclusively, never because they are random: a suite may patch
``uuid``, ``random`` and ``secrets``, and containers that share the directory may use the same process IDs.
"""

import hashlib
import hmac
import os
import re
from collections.abc import Generator, Iterable
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Final, Self

import filelock

from pytest_device.directory_permissions import check_private
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


def _key(state_dir: Path) -> bytes:
    """Return the key of this state directory, created on first use."""
    path = state_dir / _KEY
    with suppress(FileNotFoundError):
        return path.read_bytes()

    draft, descriptor = _new_file(state_dir, f"{_KEY}.{os.getpid()}", ".tmp")
    with open(descriptor, "wb") as file:  # noqa: PTH123
        file.write(os.urandom(_KEY_BYTES))

    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    except OSError:
        # The file system has no hard links: of processes that start together, the last one decides.
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)

    return path.read_bytes()


def new_run() -> str:
    """Return a name for a run; ``OwnRun.start`` makes it unique."""
    return os.urandom(8).hex()


class PastRun:
    """Any run in the state directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.ledger = Ledger(str(directory))
        self._remains: list[Path] = []
        self._is_cleared = False

    @property
    def state_dir(self) -> Path:
        return self.directory.parents[1]

    @contextmanager
    def claimed(self) -> Generator[bool]:
        """Hold all locks of the run; yield False if an owner may be alive."""
        drafts = _files(self.directory, ".tmp")
        locks = _files(self.directory, ".lock")

        with ExitStack() as held:
            over = bool(locks) and _taken(locks, held)
            if not over:  # without locks, the run is just starting or its directory was tampered with
                held.close()  # release the locks of dead owners, so that others see them as dead
            self._remains = [*drafts, *locks] if over else []
            yield over

        if self._remains and self._is_cleared:
            self._remove_remains()  # an open file cannot be removed on Windows

    def has_living(self, owner: str) -> bool:
        path = self.directory / f"{owner}.lock"
        return path.exists() and not _is_free(path)

    def clear(self, entries: Iterable[Entry]) -> None:
        """Remove entries of a claimed run, and the run itself once it is empty."""
        for entry in entries:
            self.ledger.remove(entry.intent)

        if _files(self.directory, ".json"):
            return

        self._is_cleared = True
        self._remove_remains()

    def _remove_remains(self) -> None:
        """Remove drafts and locks of dead owners, nothing else: an owner may have joined meanwhile."""
        for path in [*self._remains]:
            with suppress(PermissionError):
                path.unlink(missing_ok=True)
                self._remains.remove(path)

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

    @classmethod
    def start(cls, state_dir: Path, name: str, owner: str) -> Self:
        """Join a new run, under a name like ``name`` if another run has that one; raises the errors of ``join``."""
        runs = state_dir / "runs"
        _make(state_dir, runs)

        unused = name
        numbers = count(1)

        while not _is_made(runs / unused):
            unused = f"{name}-{next(numbers)}"

        try:
            return cls.join(state_dir, unused, owner)
        except OSError:
            with suppress(OSError):
                (runs / unused).rmdir()
            raise

    @classmethod
    def join(cls, state_dir: Path, run: str, owner: str) -> Self:
        """Take the owner's lock.

        Raises OSError if the state directory cannot hold it, ConfigError if other users can write to it.
        """
        problem: OSError = FileNotFoundError(
            f"the directory is deleted as soon as it is created ({state_dir})"
        )

        for _ in range(ATTEMPTS):
            try:
                if joined := cls._join(
                    state_dir, run, re.sub(r"[^A-Za-z0-9]", "-", owner)
                ):
                    return joined
            except _GONE as error:
                problem = error

        raise problem

    @classmethod
    def _join(cls, state_dir: Path, run: str, owner: str) -> Self | None:
        directory = state_dir / "runs" / run
        _make(state_dir, directory.parent, directory)
        # A dead process's name is not used again: its sessions would seem to have a living owner.
        path, descriptor = _new_file(directory, f"{owner}-{os.getpid()}", ".lock")
        os.close(descriptor)

        lock = _lock_at(path, thread_local=False)
        try:
            lock.acquire(blocking=False)
        except filelock.Timeout:  # a sweep holds it at this moment
            return None
        except OSError:
            _remove_unlockable(path)
            raise

        if path.exists():
            return cls(directory, path.stem, lock)

        lock.release()
        return None

    def account(self, token: str) -> str:
        """Return the ledger's identifier for a token."""
        return account_of(self.state_dir, token)

    def leave(self) -> None:
        """Release the lock, and remove the run if it is empty."""
        if os.getpid() != self._pid:  # a forked child: the lock belongs to its parent
            return

        self._lock.release()

        # Nothing can be removed from an unreadable directory.
        with (
            suppress(OSError),
            self.claimed() as over,
        ):
            if over:
                self.clear(())

    def is_joined_by(self, owner: str) -> bool:
        """Return whether a live owner with this name belongs to the run in this directory."""
        return any(
            path.stem.startswith(f"{owner}-") and not _is_free(path)
            for path in _files(self.directory, ".lock")
        )


def _make(*directories: Path) -> None:
    for path in directories:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        check_private(path)


def _is_made(directory: Path) -> bool:
    """Create a directory; return False if there is one already, perhaps of another process."""
    try:
        directory.mkdir(mode=0o700)
    except FileExistsError:
        return False
    return True


def _new_file(directory: Path, stem: str, suffix: str) -> tuple[Path, int]:
    """Create a file that did not exist, numbered; return its path and an open descriptor."""
    for number in count():
        path = directory / f"{stem}-{number}{suffix}"
        with suppress(FileExistsError):
            return path, os.open(path, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600)
    raise AssertionError("a count never ends")


def _lock_at(path: Path, *, thread_local: bool = True) -> filelock.BaseFileLock:
    """Return a lock that ends with its process; taking it raises OSError on a file system without such locks.

    filelock's substitute there, a file whose existence is the lock, would outlive a killed process. The file stays when
    the lock is released: on Windows, a dead run without one would look as if it were just starting.
    """
    return filelock.FileLock(
        path,
        mode=0o600,
        thread_local=thread_local,
        fallback_to_soft=False,
        preserve_lock_file=True,
    )


def _remove_unlockable(path: Path) -> None:
    """Remove the lock file that cannot be locked, and its run if that is empty: later runs would find it damaged."""
    with suppress(OSError):
        path.unlink()
        path.parent.rmdir()


def _files(directory: Path, suffix: str) -> list[Path]:
    try:
        return sorted(path for path in directory.iterdir() if path.suffix == suffix)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _is_free(path: Path) -> bool:
    try:
        with _lock_at(path).acquire(blocking=False):
            return True
    except _GONE:
        return True
    except filelock.Timeout:
        return False


def _taken(locks: list[Path], held: ExitStack) -> bool:
    try:
        for path in locks:
            held.enter_context(_lock_at(path).acquire(blocking=False))
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
