"""Slots and queue places as locked files in a directory: each ends with the process that holds it."""

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from random import SystemRandom
from typing import Final, NamedTuple, TypeVar

import filelock

from pytest_device.errors import ConfigError
from pytest_device.options import Options
from pytest_device.sessions.quota.claim import NOT_QUEUED, Blocker, Claim

T = TypeVar("T")

# Not seeded: workers with equal seeds would wait in step.
_pause: Final = SystemRandom().uniform

_TURN_SECONDS: Final = 5.0
"""A turn lasts milliseconds: a process that holds one for this long is suspended."""
_TURN_PAUSE_SECONDS: Final = 0.01
_FIRST_PAUSE_SECONDS: Final = (0.03, 0.09)
"""Range of pauses in seconds of the next claims: short, since a free slot is an unused device; random, so that two
processes do not always try at the same time."""
_SOON: Final = 4
"""How many claims these are, besides the first: several slots may become free at once."""
_PAUSE_SECONDS: Final = (0.2, 0.6)
"""Range of pauses of the claim behind them; those of others grow with their place in the queue."""
_MAX_PAUSE_SECONDS: Final = (0.8, 1.6)
_PROBE_SECONDS: Final = (0.5, 1.0)
_PROBE_BEHIND_SECONDS: Final = (2.0, 4.0)
"""Range of times after which a claim asks whether the processes that keep it waiting are alive, by locking their files,
which takes most of the CPU time of a wait. Otherwise it only looks whether the files exist."""
_TICKET: Final = re.compile(r"ticket-(\d)-(\d+)-(\d+)\.lock")


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
    """A file that one process at a time locks, and a file that its holder leaves in the directory meanwhile."""

    def __init__(self, path: Path, note: Path | None = None) -> None:
        self._note = note
        # filelock's substitute on a file system without locks would outlive a killed process.
        self._lock = filelock.FileLock(
            path, mode=0o600, thread_local=False, fallback_to_soft=False
        )

    @property
    def is_held(self) -> bool:
        return self._lock.is_locked

    def try_lock(self, timeout_seconds: float = 0) -> bool:
        """Return whether this process now holds it; raises OSError if the file cannot be locked."""
        try:
            self._lock.acquire(
                timeout=timeout_seconds,
                poll_interval=_TURN_PAUSE_SECONDS,
                blocking=timeout_seconds > 0,
            )
        except filelock.Timeout:
            return False

        return True

    def release(self) -> None:
        """Unlock it; repeated calls do nothing, nor do calls in a forked child, where filelock forgets the lock."""
        if self.is_held:
            # Filelock itself removes what cannot be removed while it is open.
            with suppress(OSError):
                if self._note:
                    self._note.unlink(missing_ok=True)
            self._lock.release()


class FileSlot(_Lock):
    """A slot: allows one session until ``release``, or until the process ends."""

    def __init__(self, directory: Path, number: int) -> None:
        # Not in the locked file: other processes can't read it on Windows.
        self.words = directory / f"{number}.txt"
        super().__init__(directory / f"{number}.lock", self.words)

    def sign(self, holder: str) -> None:
        self.words.touch(mode=0o600)
        self.words.write_text(holder, encoding="utf-8")

    def holder(self) -> str:
        """Return the name that its holder wrote."""
        with suppress(OSError):
            if words := self.words.read_text(encoding="utf-8", errors="replace"):
                return words
        return "an unknown process"  # the name file was removed


class _Ticket(NamedTuple):
    """A queue place, encoded in a file name: its urgency, its number, and how many of the first slots it may use."""

    urgency: int
    number: int
    limit: int

    def path_in(self, directory: Path) -> Path:
        return directory / f"ticket-{self.urgency}-{self.number}-{self.limit}.lock"

    def lock_in(self, directory: Path) -> _Lock:
        path = self.path_in(directory)
        return _Lock(path, path)


class FileClaim(Claim):
    """A claim on slots in a directory. It acts only in its turn, which one process has at a time."""

    def __init__(self, directory: Path, count: int, limit: int, holder: str) -> None:
        super().__init__(count, limit, holder)
        self._directory = directory
        self._turn = _Lock(directory / "turn.lock")
        self._slots: list[FileSlot] = []
        self._ticket: _Ticket | None = None
        self._places: list[_Lock] = []
        """Its ticket's lock and, while it takes another ticket, the previous ticket's lock."""
        self._probe = self._turn
        """The lock that was probed last."""
        self._before: _Ticket | None = None
        """The last ticket that keeps it waiting, if it waits for other claims."""
        self._in_use: list[Path] = []
        """Files of the slots that keep it waiting, if it waits for no other claim."""
        self._probe_at = 0.0
        self._place = 0
        """How many tickets keep it waiting."""

    @property
    def slots(self) -> Sequence[FileSlot]:
        return self._slots

    def try_acquire(self) -> bool:
        if self._slots:
            return True
        return not self._still_waits() and bool(self._in_turn(self._try_acquire))

    @property
    def pause_seconds(self) -> float:
        if not self.is_behind or self._place <= _SOON:
            return _pause(*_FIRST_PAUSE_SECONDS)
        pause = _pause(*_PAUSE_SECONDS) * self._place / _SOON
        return min(pause, _pause(*_MAX_PAUSE_SECONDS))

    def blocked_by(self) -> Blocker:
        return self._in_turn(self._blocked_by) or Blocker(("a suspended process",), 0)

    def leave(self) -> None:
        _release(self._places)

    def withdraw(self) -> None:
        _release([*self._slots, *self._places, self._probe, self._turn])

    def _still_waits(self) -> bool:
        """Return whether all that keeps it waiting is still there, without taking a turn."""
        own = self._ticket
        before = self._before
        directory = self._directory
        if own is None or self.urgency < own.urgency:
            return False

        files = [before.path_in(directory)] if before else self._in_use
        try:
            if not files or not all(file.exists() for file in files):
                return False

            if before and self._place > _SOON:
                # Claims that came first may have been served.
                self._place = len(self._before_own(self._tickets_of_all()))

            if time.monotonic() < self._probe_at:
                return True
            if before is None:
                return False

            self._probe_at = time.monotonic() + _pause(*_PROBE_BEHIND_SECONDS)
            return not self._was_free(before.lock_in(directory))
        except OSError:
            # The attempt in its turn reports it.
            return False

    def _in_turn(self, act: Callable[[], T]) -> T | None:
        """Call ``act`` while no other process acts; None if another process does not finish its turn."""
        try:
            if not self._directory.is_dir():
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

    def _try_acquire(self) -> bool:
        first = 0
        for ticket in self._ahead():
            first = max(first, ticket.limit)
            if self.limit - first < self.count:
                break  # the other tickets need no check

        self.is_behind = first > 0

        self._lock_slots(first)

        if len(self._slots) == self.count:
            for slot in self._slots:
                slot.sign(self.holder)
            return True

        _release(self._slots)
        self._slots.clear()  # the next attempt starts from scratch
        self._queue()
        self._before = self._last_before()
        seconds = _PROBE_BEHIND_SECONDS if self._before else _PROBE_SECONDS
        self._probe_at = time.monotonic() + _pause(*seconds)

        return False

    def _lock_slots(self, first: int) -> None:
        """Lock as many slots as it needs, or as there are, from the first one that it may use."""
        self._in_use = []
        for number in range(first, self.limit):
            if len(self._slots) == self.count:
                return

            # Before it is locked, so that an interrupt finds it.
            self._slots.append(FileSlot(self._directory, number))
            if not self._slots[-1].try_lock():
                slot = self._slots.pop()
                if not self.is_behind:
                    self._in_use.append(slot.words)

    def _queue(self) -> None:
        """Take a ticket; take another one only if this claim has become urgent."""
        urgency = self._ticket.urgency if self._ticket else NOT_QUEUED
        if self.urgency >= urgency:
            return

        number = 1 + max(
            (ticket.number for ticket in self._tickets_of_all()), default=0
        )
        self._ticket = _Ticket(self.urgency, number, self.limit)
        self._places.append(self._ticket.lock_in(self._directory))
        self._places[-1].try_lock()
        _release(self._places[:-1])

    def _blocked_by(self) -> Blocker:
        ahead = sum(1 for _ in self._ahead())
        slots = [FileSlot(self._directory, number) for number in range(self.limit)]
        return Blocker(
            [slot.holder() for slot in slots if not self._was_free(slot)], ahead
        )

    def _ahead(self) -> Iterator[_Ticket]:
        """Yield the tickets before this claim's own, or all; remove those of dead processes."""
        for ticket in sorted(self._tickets_of_all()):
            if self._ticket and ticket >= self._ticket:
                return
            if not self._was_free(ticket.lock_in(self._directory)):
                yield ticket

    def _last_before(self) -> _Ticket | None:
        """Return the last ticket before its own without whose end it cannot be served; remove those of dead processes."""
        tickets = self._before_own(self._tickets_of_all())
        self._place = len(tickets)
        for ticket in sorted(tickets, reverse=True):
            if not self._was_free(ticket.lock_in(self._directory)):
                return ticket

        return None

    def _before_own(self, tickets: Iterable[_Ticket]) -> Sequence[_Ticket]:
        """Return the tickets without whose end it cannot be served."""
        own = self._ticket
        if own is None:
            return ()

        return [
            ticket
            for ticket in tickets
            if ticket < own and self.limit - ticket.limit < self.count
        ]

    def _tickets_of_all(self) -> Iterator[_Ticket]:
        for path in self._directory.iterdir():
            if match := _TICKET.fullmatch(path.name):
                yield _Ticket(*map(int, match.groups()))

    def _was_free(self, lock: _Lock) -> bool:
        """Return whether no process held it; if so, remove its last holder's files."""
        self._probe = lock  # where an interrupt finds it
        try:
            return lock.try_lock()
        finally:
            lock.release()


def _release(locks: Sequence[_Lock]) -> None:
    """Release all locks; safe to repeat."""
    for lock in locks:
        lock.release()
