"""The runs in the state directory: one of them is alive as long as one of its owners holds its lock."""

import os
import re
import secrets
from collections.abc import Generator, Iterable
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final, Self

import filelock

from pytest_device.sessions.ledger import Entry, Ledger

ATTEMPTS: Final = 3
"""How often a lock is tried to be made, should a sweep of another run remove it in this moment."""


def new_run() -> str:
    """Return a name for a run that no other has."""
    return secrets.token_hex(8)


class OwnRun:
    """A run that this process takes part in: its ledger, and the lock that says that its owner lives."""

    def __init__(self, directory: Path, owner: str, lock: filelock.BaseFileLock) -> None:
        self.owner = owner
        self.name = directory.name
        self.directory = directory
        self.ledger = Ledger(str(directory))
        self._lock = lock

    @classmethod
    def join(cls, state_dir: Path, run: str, owner: str) -> Self:
        """Take the owner's lock; raises OSError when the state directory cannot hold it."""
        directory = state_dir / "runs" / run
        for _ in range(ATTEMPTS):
            owner_name = f"{re.sub(r'[^A-Za-z0-9]', '-', owner)}-{os.getpid()}-{secrets.token_hex(2)}"
            for path in (state_dir, state_dir / "runs", directory):
                path.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = filelock.FileLock(directory / f"{owner_name}.lock", mode=0o600)
            try:
                lock.acquire(timeout=0)
            except (FileNotFoundError, filelock.Timeout):
                continue
            except NotImplementedError as error:
                raise OSError(f"{error} ({directory})") from error
            if Path(lock.lock_file).exists():
                return cls(directory, owner_name, lock)
            lock.release()
        raise OSError(f"the directory is taken away again and again ({directory})")

    def leave(self) -> None:
        """Give the lock back, and remove the run when nothing is left of it."""
        self._lock.release()
        past = PastRun(self.directory)
        with past.claimed() as over:
            if over:
                past.clear(())

    def pids_of_others(self) -> list[int]:
        """Return the processes of this machine that take part in the run and are alive."""
        return [
            int(path.stem.split("-")[-2])
            for path in self.directory.glob("*.lock")
            if path.stem != self.owner and not _is_free(path)
        ]


class PastRun:
    """Any run in the state directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.ledger = Ledger(str(directory))
        self._claimed: list[Path] = []

    @contextmanager
    def claimed(self) -> Generator[bool]:
        """Hold all locks of the run, so that nobody else takes it to be over; give False when an owner may be alive."""
        locks = self._locks()
        with ExitStack() as held:
            over = bool(locks) and all(_taken(path, held) for path in locks)
            if not over:  # without any it is just being made, or somebody has been in here
                held.close()  # the dead owners of a live run are to be seen as dead
            self._claimed = locks if over else []
            yield over

    def has_living(self, owner: str) -> bool:
        """Tell whether this owner is alive."""
        path = self.directory / f"{owner}.lock"
        return path.exists() and not _is_free(path)

    def clear(self, entries: Iterable[Entry]) -> None:
        """Remove these entries of a claimed run, and the run itself when nothing is left of it."""
        for entry in entries:
            self.ledger.remove(entry.intent)
        if any(self.directory.glob("*.json")):
            return
        for path in self._claimed:  # no others: an owner may have joined since
            path.unlink(missing_ok=True)
        if not self._locks():
            for path in self.directory.glob("*.tmp"):
                path.unlink(missing_ok=True)
            with suppress(OSError):
                self.directory.rmdir()

    def _locks(self) -> list[Path]:
        return sorted(self.directory.glob("*.lock"))


def _is_free(path: Path) -> bool:
    with ExitStack() as held:
        return _taken(path, held)


def _taken(path: Path, held: ExitStack) -> bool:
    try:
        held.enter_context(filelock.FileLock(path, mode=0o600).acquire(timeout=0))
    except filelock.Timeout:
        return False
    return True


def past_runs(state_dir: Path) -> list[PastRun]:
    """Return every run that has left something in the state directory, the live ones too."""
    try:
        return [PastRun(path) for path in sorted((state_dir / "runs").iterdir()) if path.is_dir()]
    except FileNotFoundError:
        return []
