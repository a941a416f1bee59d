"""Slots as the processes of several runs take them, in a directory or on a Redis server."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from pytest_device import LeaseTimeoutError
from pytest_device.sessions.quota import FileStore, Slot, Slots, Store
from pytest_device.sessions.quota.redis_store import RedisConfig, RedisStore
from pytest_device.sessions.reporter import ProgressReporter
from tests.fakes.clock import FakeClock
from tests.fakes.reporter import SILENT, RecordingReporter

REPOSITORY: Final = Path(__file__).parents[2]
Taken = list[Slot]
"""Slots that a claim has taken."""


def slots_at(
    place: Path | Store,
    limit: int,
    holder: str = "run a",
    *,
    timeout_seconds: float = 60,
    clock: FakeClock | None = None,
    on_pause: Callable[[float], object] = lambda _seconds: None,
    reporter: ProgressReporter = SILENT,
) -> Slots:
    """Return the slots as a process sees them whose clock only its own pauses advance.

    ``on_pause`` is called after each of them, with its seconds.
    """
    clock = clock or FakeClock()

    def pause(seconds: float) -> None:
        clock.sleep(seconds)
        on_pause(seconds)

    return Slots(
        FileStore(place) if isinstance(place, Path) else place,
        limit,
        holder=holder,
        timeout_seconds=timeout_seconds,
        clock=clock,
        sleep=pause,
        reporter=reporter,
    )


def slots_in_real_time(
    place: Path | Store,
    limit: int,
    holder: str = "run b",
    *,
    timeout_seconds: float = 60,
    pause_seconds: float | None = None,
) -> Slots:
    """Return the slots as a process sees them that waits in real time, in short pauses if they are given."""
    sleep = None if pause_seconds is None else lambda _: time.sleep(pause_seconds)

    return Slots(
        FileStore(place) if isinstance(place, Path) else place,
        limit,
        holder=holder,
        timeout_seconds=timeout_seconds,
        sleep=sleep,
        reporter=SILENT,
    )


class SharedSlots:
    """The slots of one directory or server, as several processes see them: each call returns another process's view."""

    def __init__(self, place: Callable[[], Path | Store]) -> None:
        self._place = place

    def __call__(self, limit: int = 2, holder: str = "run a", **more: Any) -> Slots:
        """Return the slots as a process sees them on a clock of its own: see ``slots_at``."""
        return slots_at(self._place(), limit, holder, **more)

    def in_real_time(self, limit: int, pause_seconds: float = 0.01) -> Slots:
        """Return the slots as a process sees them that waits in real time."""
        return slots_in_real_time(self._place(), limit, pause_seconds=pause_seconds)

    def are_free(self, count: int) -> bool:
        """Return whether so many of two slots can be taken."""
        try:
            release(self(timeout_seconds=0).acquire(count))
        except LeaseTimeoutError:
            return False
        return True

    def is_waited_for(self, limit: int) -> bool:
        """Return whether a claim is first in the queue, so that another one would be behind it."""
        try:
            release(self(limit, timeout_seconds=0).acquire(1))
        except LeaseTimeoutError as error:
            return "before it in the queue" in str(error)
        return False


def release(slots: Iterable[Slot]) -> None:
    """Release slots."""
    for slot in slots:
        slot.release()


@contextmanager
def another_process(
    address: Path | str,
    limit: int,
    count: int = 1,
    *,
    key: str = "",
    slot_seconds: float = 30,
    fork: bool = False,
) -> Generator[subprocess.Popen[str]]:
    """Run a process that takes slots, reports it, and keeps them; see ``takes_slots``."""
    arguments = [str(address), key, str(slot_seconds), str(limit), str(count)]
    command = [sys.executable, "-W", "ignore", "-m", "tests.sessions.takes_slots"]
    with subprocess.Popen(
        [*command, *arguments, *(["fork"] if fork else [])],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=REPOSITORY,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def has_taken(process: subprocess.Popen[str]) -> bool:
    """Wait until another process has taken its slots."""
    assert process.stdout is not None
    return process.stdout.readline() == "taken\n"


class Machine:
    """A process on some machine that shares slots on a Redis server, and renews its own on request."""

    def __init__(
        self,
        url: str,
        key: str,
        *,
        slot_seconds: float = 30,
        settle_seconds: float = 0,
    ) -> None:
        self.recorder = RecordingReporter()
        self.warnings = self.recorder.notes
        self._renewals = threading.Semaphore(0)
        self.config = RedisConfig(
            url,
            "DEVICE_SLOTS_URL",
            key,
            self.recorder,
            slot_seconds=slot_seconds,
            settle_seconds=settle_seconds,
            # No test waits for it: a server that is stopped refuses connections.
            reply_seconds=60,
            sleep=self._pause,
        )
        self.store = RedisStore(self.config)

    def slots(
        self,
        limit: int = 1,
        holder: str = "run a",
        *,
        timeout_seconds: float = 1,
        reporter: ProgressReporter = SILENT,
    ) -> Slots:
        """Return the slots, for claims whose clock only their own pauses advance."""
        return slots_at(
            self.store,
            limit,
            holder,
            timeout_seconds=timeout_seconds,
            reporter=reporter,
        )

    def wait_for_slot(self, timeout_seconds: float = 60) -> Taken:
        """Take the only slot, in real time."""
        slots = slots_in_real_time(self.store, 1, timeout_seconds=timeout_seconds)
        return slots.acquire(1)

    def renew(self) -> None:
        """Make it renew once."""
        self._renewals.release()

    def _pause(self, _seconds: float) -> None:
        self._renewals.acquire(timeout=60)


def leases_on(client: Any, key: str) -> dict[str, float]:
    """Return when each slot expires, in milliseconds of the server's clock, by its holder's text."""
    leases = client.zrange(f"{{pytest-device:{key}}}:leases", 0, -1, withscores=True)
    return dict[str, float](leases)


def let_expire(client: Any, key: str) -> None:
    """Let all slots and the queue place expire, as if their processes had renewed none for long enough."""
    client.delete(f"{{pytest-device:{key}}}:queue")
    leases = f"{{pytest-device:{key}}}:leases"
    for lease in client.zrange(leases, 0, -1):
        client.zadd(leases, {lease: 1})
