"""Slots as locked files in a directory: each ends with the process that holds it."""

import os
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from random import SystemRandom
from typing import Final

import filelock

from pytest_device.errors import ConfigError
from pytest_device.options import Options

_PAUSE_SECONDS: Final = (0.03, 0.09)
"""Range of pauses in seconds: short, since a free slot is an unused device; random, so that two processes do not always
try at the same time."""
# Not seeded: workers with equal seeds would wait in step.
_pause: Final = SystemRandom().uniform


def slots_directory(state_dir: Path, service_url: str) -> Path:
    """Return the directory of a service's slots; its name does not reveal the URL."""
    return state_dir / f"slots-{key_of(service_url)}"


def key_of(service_url: str) -> str:
    """Return a name for a service that does not reveal its URL."""
    return sha256(service_url.rstrip("/").lower().encode()).hexdigest()[:16]


class FileStore:
    """The slots in a directory, shared by all processes of a user on a machine."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def claim(self, count: int, limit: int, holder: str) -> "FileClaim":
        return FileClaim(
            self._directory, count, limit, f"{holder} (process {os.getpid()})"
        )


class _Lock:
    """A file that one process at a time locks."""

    def __init__(self, path: Path) -> None:
        # filelock's substitute on a file system without locks would outlive a killed process.
        self._lock = filelock.FileLock(
            path, mode=0o600, thread_local=False, fallback_to_soft=False
        )

    @property
    def is_held(self) -> bool:
        return self._lock.is_locked

    def try_lock(self) -> bool:
        """Return whether this process holds it now; raises OSError if the file cannot be locked."""
        if self.is_held:
            return True

        try:
            self._lock.acquire(blocking=False)
        except filelock.Timeout:
            return False

        return True

    def release(self) -> None:
        """Unlock it; repeated calls do nothing, nor do calls in a forked child, where filelock forgets the lock."""
        if self.is_held:
            # Filelock itself removes what cannot be removed while it is open.
            with suppress(OSError):
                self._lock.release()


class FileSlot(_Lock):
    """A slot: allows one session until ``release``, or until the process ends."""

    def __init__(self, directory: Path, number: int) -> None:
        super().__init__(directory / f"{number}.lock")
        # Not in the locked file: other processes can't read it on Windows.
        self._words = directory / f"{number}.txt"

    def sign(self, holder: str) -> None:
        self._words.touch(mode=0o600)
        self._words.write_text(holder, encoding="utf-8")

    def holder(self) -> str:
        """Return the name that its holder wrote."""
        with suppress(OSError):
            if words := self._words.read_text(encoding="utf-8", errors="replace"):
                return words
        return "an unknown process"  # the name file was removed

    def release(self) -> None:
        if self.is_held:
            with suppress(OSError):
                self._words.unlink(missing_ok=True)
        super().release()


class FileClaim:
    """A claim on slots in a directory; whoever locks ``queue.lock`` is first in the queue."""

    def __init__(self, directory: Path, count: int, limit: int, holder: str) -> None:
        self.slots: list[FileSlot] = []
        self.is_first = False
        self._directory = directory
        self._count = count
        self._limit = limit
        self._holder = holder
        self._queue = _Lock(directory / "queue.lock")
        self._probes: list[FileSlot] = []

    def try_acquire(self, *, skips_queue: bool) -> bool:
        try:
            for path in (self._directory.parent, self._directory):
                path.mkdir(mode=0o700, parents=True, exist_ok=True)

            self.is_first = skips_queue or self._queue.try_lock()
            return self.is_first and self._lock_slots()
        except OSError as error:
            raise ConfigError(
                f"{Options.max_sessions.flag} cannot be enforced: {self._directory} cannot be used ({error}). "
                f"Set another directory with {Options.state_dir.flag}"
            ) from error

    def _lock_slots(self) -> bool:
        for number in range(self._limit):
            # Before it is locked, so that an interrupt finds it.
            self.slots.append(FileSlot(self._directory, number))
            if not self.slots[-1].try_lock():
                self.slots.pop()

            if len(self.slots) == self._count:
                for slot in self.slots:
                    slot.sign(self._holder)
                return True

        _release(self.slots)
        self.slots.clear()  # the next attempt starts from scratch
        return False

    @property
    def pause_seconds(self) -> float:
        return _pause(*_PAUSE_SECONDS)

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)

    def holders(self) -> Sequence[str]:
        # Where an interrupt finds them.
        self._probes = [FileSlot(self._directory, n) for n in range(self._limit)]
        holders = [slot.holder() for slot in self._probes if not slot.try_lock()]
        _release(self._probes)
        return holders

    def leave(self) -> None:
        self._queue.release()

    def withdraw(self) -> None:
        _release([*self.slots, *self._probes, self._queue])


def _release(locks: Iterable[_Lock]) -> None:
    """Release all locks; safe to repeat."""
    for lock in locks:
        lock.release()
