"""How many sessions this user's runs on this machine have at once: a slot for each, held as a lock on a file."""

import os
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from random import SystemRandom
from typing import Final

import filelock

from pytest_device.errors import ConfigError, LeaseTimeoutError
from pytest_device.option_table import MAX_SESSIONS, STATE_DIR, WAIT_TIMEOUT_SECONDS

_PAUSE_SECONDS: Final = (0.1, 0.3)
"""Between two looks; of unequal length, so that those who wait do not always look at the same time."""
_FIRST_WORD_SECONDS: Final = 5.0
_HEARTBEAT_SECONDS: Final = 30.0

_pause: Final = SystemRandom().uniform  # not seeded: workers that seed theirs alike would wait in step


def slots_directory(state_dir: Path, service_url: str) -> Path:
    """Return where the slots of a service are: its address is not to be read off the name."""
    return state_dir / f"slots-{sha256(service_url.rstrip('/').lower().encode()).hexdigest()[:16]}"


class Slot:
    """The right to have one session: it ends with ``release``, or with the process."""

    def __init__(self, path: Path) -> None:
        self._words = path.with_suffix(".txt")  # not in the locked file, which nobody else can read on Windows
        self._lock = filelock.FileLock(path, mode=0o600, thread_local=False)

    def try_lock(self) -> bool:
        """Tell whether it was free and is now this process's; raises OSError when the file cannot be."""
        try:
            self._lock.acquire(timeout=0)
        except filelock.Timeout:
            return False
        except NotImplementedError as error:
            raise OSError(str(error)) from error
        return True

    def sign(self, holder: str) -> None:
        """Write down who holds it."""
        self._words.touch(mode=0o600)
        self._words.write_text(f"{holder} (process {os.getpid()})", encoding="utf-8")

    def holder(self) -> str:
        """Return who has signed it."""
        with suppress(OSError):
            if words := self._words.read_text(encoding="utf-8", errors="replace"):
                return words
        return "one who has not signed"  # just taken, or just given back

    def release(self) -> None:
        """Give it back, once: later calls do nothing, nor does any in a forked child, where filelock forgets it."""
        if self._lock.is_locked:
            with suppress(OSError):
                self._words.unlink(missing_ok=True)
            self._lock.release()


class Slots:
    """The slots of one service: as many as there may be sessions at once.

    Runs that are told different numbers at the same time look each at its own first ``most`` files. So none has more
    sessions than it was told, and all together have no more than the greatest number that one of them was told; but a
    run that was told less waits while others hold the first slots, and others go on past its number.

    Whoever looks first when a slot is free gets it, however long others have waited; who needs several may wait for
    long behind those who need one.
    """

    def __init__(
        self,
        directory: Path,
        most: int,
        *,
        holder: str,
        timeout_seconds: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        tell: Callable[[str], None],
    ) -> None:
        """Look at the slots in ``directory``; ``holder`` is who others are told has them: no secret."""
        self.most = most
        self._directory, self._holder, self._timeout = directory, holder, timeout_seconds
        self._clock, self._sleep, self._tell = clock, sleep, tell

    def take(self, count: int, gives_way: Callable[[], bool] = lambda: False) -> list[Slot]:
        """Wait for so many slots at once; raises LeaseTimeoutError, and ConfigError where waiting cannot help.

        One call never waits with a slot in its hands, so two that need two each cannot block each other. With slots of
        earlier calls they can: so before each wait ``gives_way`` is asked to give back one that can be done without,
        and says whether it did. Two that need what they have and want more wait until one of them times out.
        An interrupt leaves none taken.
        """
        if count > self.most:
            raise ConfigError(
                f"{count} sessions are needed at once, {MAX_SESSIONS.option} allows {self.most}: "
                "allow more, or use fewer devices in one test"
            )
        slots: list[Slot] = []
        try:
            return self._filled(slots, count, gives_way)
        except BaseException:
            _give_back(slots)
            raise

    def _filled(self, slots: list[Slot], count: int, gives_way: Callable[[], bool]) -> list[Slot]:
        started = self._clock()
        deadline, word_at = started + self._timeout, started + _FIRST_WORD_SECONDS
        while held := self._fill(slots, count):
            if gives_way():
                continue
            now = self._clock()
            if now >= deadline:
                raise LeaseTimeoutError(
                    f"{self._waited(count, now - started, held)}. Allow more with {MAX_SESSIONS.option}, "
                    f"or a longer wait with {WAIT_TIMEOUT_SECONDS.option}"
                )
            if now >= word_at:
                word_at = now + _HEARTBEAT_SECONDS
                self._tell(self._waited(count, now - started, held))
            self._sleep(min(_pause(*_PAUSE_SECONDS), deadline - now))
        return slots

    def _fill(self, slots: list[Slot], count: int) -> list[str]:
        """Take so many slots, all or none; return who has those that are missing.

        They are tried in one order, and no longer than there may be enough: of several that do so at once one goes on.
        """
        held: list[str] = []
        try:
            for path in self._paths():
                slots.append(Slot(path))  # before it is locked, so that an interrupt finds it
                if not slots[-1].try_lock():
                    held.append(slots.pop().holder())
                if len(held) > self.most - count:
                    _give_back(slots)
                    return held
                if len(slots) == count:
                    break
            for slot in slots:
                slot.sign(self._holder)
        except OSError as error:
            raise ConfigError(
                f"{MAX_SESSIONS.option} cannot be kept: {self._directory} cannot be used ({error}). "
                f"Name another place with {STATE_DIR.option}"
            ) from error
        return []

    def _paths(self) -> list[Path]:
        for path in (self._directory.parent, self._directory):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return [self._directory / f"{number}.lock" for number in range(self.most)]

    def _waited(self, count: int, seconds: float, held: list[str]) -> str:
        holders = ", ".join(f"{number} by {holder}" for holder, number in Counter(held).items())
        wanted = f"{count} of the {self.most} sessions that {MAX_SESSIONS.option} allows at once"
        return f"waited {seconds:.0f} s for {wanted}; held: {holders}"


def _give_back(slots: list[Slot]) -> None:
    while slots:
        slots[-1].release()
        slots.pop()  # after it is released, so that an interrupt finds it
