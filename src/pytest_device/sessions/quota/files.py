"""Slots and places in the queue as locked files in a directory: each ends with the process that holds it."""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

import filelock

from pytest_device.errors import ConfigError
from pytest_device.options import Options
from pytest_device.sessions.quota.claim import NOT_QUEUED, Claim, Obstacle

T = TypeVar("T")

_TURN_SECONDS: Final = 5.0
"""A turn lasts milliseconds: a process that has had it for so long is suspended."""
_TURN_PAUSE_SECONDS: Final = 0.01
_TICKET: Final = re.compile(r"ticket-(\d)-(\d+)-(\d+)\.lock")


def slots_directory(state_dir: Path, service_url: str) -> Path:
    """Return where the slots of a service are: its address is not to be read off the name."""
    return state_dir / f"slots-{key_of(service_url)}"


def key_of(service_url: str) -> str:
    """Return a name for a service that does not show its address."""
    return sha256(service_url.rstrip("/").lower().encode()).hexdigest()[:16]


class FileStore:
    """The slots in a directory, for all processes of a user on a machine."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def claim(self, count: int, most: int, holder: str) -> "FileClaim":
        return FileClaim(self._directory, count, most, f"{holder} (process {os.getpid()})")


class _Lock:
    """A file that is locked by one process at a time, and what its holder leaves in the directory meanwhile."""

    def __init__(self, path: Path, left: Path | None = None) -> None:
        self._left = left
        self._lock = filelock.FileLock(path, mode=0o600, thread_local=False)

    @property
    def is_held(self) -> bool:
        return self._lock.is_locked

    def try_lock(self, timeout_seconds: float = 0) -> bool:
        """Return whether this process now holds it; raises OSError when the file cannot be locked."""
        try:
            self._lock.acquire(timeout=timeout_seconds, poll_interval=_TURN_PAUSE_SECONDS)
        except filelock.Timeout:
            return False
        except NotImplementedError as error:
            raise OSError(str(error)) from error
        return True

    def release(self) -> None:
        """Unlock it once: later calls do nothing, nor does any in a forked child, where filelock forgets it."""
        if self.is_held:
            with suppress(OSError):  # filelock removes by itself what cannot be removed while it is open
                if self._left:
                    self._left.unlink(missing_ok=True)
            self._lock.release()


class FileSlot(_Lock):
    """The right to have one session: it ends with ``release``, or with the process."""

    def __init__(self, directory: Path, number: int) -> None:
        self._words = directory / f"{number}.txt"  # not in the locked file, which nobody else can read on Windows
        super().__init__(directory / f"{number}.lock", self._words)

    def sign(self, holder: str) -> None:
        self._words.touch(mode=0o600)
        self._words.write_text(holder, encoding="utf-8")

    def holder(self) -> str:
        """Return the name that its holder wrote."""
        with suppress(OSError):
            if words := self._words.read_text(encoding="utf-8", errors="replace"):
                return words
        return "an unknown process"  # somebody took the words away


class _Ticket(NamedTuple):
    """A place in the queue, in the name of a file: how urgent it is, its number, and the slots it looks at."""

    urgency: int
    number: int
    most: int

    def lock_in(self, directory: Path) -> _Lock:
        path = directory / f"ticket-{self.urgency}-{self.number}-{self.most}.lock"
        return _Lock(path, path)


class FileClaim(Claim):
    """A claim on slots in a directory. Whatever it does, it does in its turn, which one process has at a time."""

    def __init__(self, directory: Path, count: int, most: int, holder: str) -> None:
        super().__init__(count, most, holder)
        self._directory = directory
        self._turn = _Lock(directory / "turn.lock")
        self._slots: list[FileSlot] = []
        self._ticket: _Ticket | None = None
        self._places: list[_Lock] = []
        """Its ticket's lock, and while it takes another ticket that of the former one."""
        self._probe = self._turn
        """What it looked at last."""

    @property
    def slots(self) -> Sequence[FileSlot]:
        return self._slots

    def fill(self) -> bool:
        return bool(self._slots or self._in_turn(self._fill))

    def obstacle(self) -> Obstacle:
        return self._in_turn(self._obstacle) or Obstacle(("a suspended process",), 0)

    def leave(self) -> None:
        _give_back(self._places)

    def withdraw(self) -> None:
        _give_back([*self._slots, *self._places, self._probe, self._turn])

    def _in_turn(self, act: Callable[[], T]) -> T | None:
        """Act while no other process does; None when another one does not finish its turn."""
        try:
            for path in (self._directory.parent, self._directory):
                path.mkdir(mode=0o700, parents=True, exist_ok=True)
            return act() if self._turn.try_lock(_TURN_SECONDS) else None
        except OSError as error:
            raise ConfigError(
                f"{Options.max_sessions.flag} cannot be enforced: {self._directory} cannot be used ({error}). "
                f"Set another directory with {Options.state_dir.flag}"
            ) from error
        finally:
            self._turn.release()

    def _fill(self) -> bool:
        first = 0
        for ticket in self._ahead():
            first = max(first, ticket.most)
            if self.most - first < self.count:
                break  # the others need not be looked at
        self.is_behind = first > 0
        for number in range(first, self.most):
            if len(self._slots) == self.count:
                break
            self._slots.append(FileSlot(self._directory, number))  # before it is locked, so that an interrupt finds it
            if not self._slots[-1].try_lock():
                self._slots.pop()
        if len(self._slots) < self.count:
            _give_back(self._slots)
            self._slots.clear()  # the next look counts what it takes itself
            self._queue()
            return False
        for slot in self._slots:
            slot.sign(self.holder)
        return True

    def _queue(self) -> None:
        """Take a ticket; another one only if this claim has become urgent."""
        if self.urgency >= (self._ticket.urgency if self._ticket else NOT_QUEUED):
            return
        number = 1 + max((ticket.number for ticket in self._tickets_of_all()), default=0)
        self._ticket = _Ticket(self.urgency, number, self.most)
        self._places.append(self._ticket.lock_in(self._directory))
        self._places[-1].try_lock()
        _give_back(self._places[:-1])

    def _obstacle(self) -> Obstacle:
        ahead = sum(1 for _ in self._ahead())
        slots = [FileSlot(self._directory, number) for number in range(self.most)]
        return Obstacle([slot.holder() for slot in slots if not self._was_free(slot)], ahead)

    def _ahead(self) -> Iterator[_Ticket]:
        """Yield the tickets before this claim's own, or all; remove those of dead processes."""
        for ticket in sorted(self._tickets_of_all()):
            if self._ticket and ticket >= self._ticket:
                return
            if not self._was_free(ticket.lock_in(self._directory)):
                yield ticket

    def _tickets_of_all(self) -> Iterator[_Ticket]:
        for path in self._directory.iterdir():
            if found := _TICKET.fullmatch(path.name):
                yield _Ticket(*map(int, found.groups()))

    def _was_free(self, lock: _Lock) -> bool:
        """Return whether no process holds it; then remove the files of the former holder."""
        self._probe = lock  # where an interrupt finds it
        try:
            return lock.try_lock()
        finally:
            lock.release()


def _give_back(locks: Sequence[_Lock]) -> None:
    """Release all, however often: a lock that is given back knows it."""
    for lock in locks:
        lock.release()
