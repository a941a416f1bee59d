"""Slots of a fleet: what waiting claims cost, how soon a released slot is granted, and what killed processes block.

Measures claims on a Redis server by the plugin and, in the same run, by the scripts that it had before, which are in
``slots_before.py``; then claims on a directory. Waiting claims are threads with a connection each, in a few processes:
the server cannot tell them from processes. Its CPU time is what it reports itself. Exits with 1 if a bar is missed.
"""

import argparse
import contextlib
import math
import multiprocessing
import os
import secrets
import signal
import statistics
import sys
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from random import Random
from typing import Any, Final

# Its own modules, however it is started.
sys.path.insert(0, str(Path(__file__).parents[1]))

import psutil
import redis

from benchmarks import slots_before
from pytest_device.sessions.quota import Slots
from pytest_device.sessions.quota.redis_store import RedisConfig, RedisStore
from pytest_device.sessions.reporter import SilentReporter
from tests.sessions.redis_server import RedisServer
from tests.waiting import eventually

CPU_BAR: Final = 0.05
"""Of one core: the server, or all processes that wait for a directory's slots."""
GRANT_BAR: Final = 0.2
"""Seconds from a release to the grant, 95th percentile."""
KILLED_BAR: Final = 30.0
"""Seconds for which killed processes block a claim."""

KEY: Final = "benchmark"
TAG: Final = f"{{pytest-device:{KEY}}}"
STEADY_SECONDS: Final = 600.0
"""For how long a claim waits, and how long setting up may take."""
_START_SECONDS: Final = 0.02
"""Between two threads of a process: all at once, they would keep each other from reading replies in time."""
HELD_SECONDS: Final = (0.2, 2.0)
"""Range of times for which a granted slot is held."""

Release = Callable[[], None]
_FORK: Final = multiprocessing.get_context("fork")


class Place(ABC):
    """Where the slots are."""

    def __init__(self, limit: int) -> None:
        self.limit = limit

    @abstractmethod
    def acquire(self) -> Release:
        """Wait for a slot as a process of its own does; return its release."""

    @abstractmethod
    def waiting(self) -> int:
        """Return how many claims wait."""


class RedisPlace(Place):
    """A Redis server, by the plugin."""

    def __init__(self, port: int, limit: int) -> None:
        super().__init__(limit)
        self._port = port

    def acquire(self) -> Release:
        config = RedisConfig(
            f"redis://127.0.0.1:{self._port}",
            "DEVICE_SLOTS_URL",
            KEY,
            SilentReporter(),
            settle_seconds=0,
        )
        return _acquire(RedisStore(config), self.limit)

    def waiting(self) -> int:
        with redis.Redis(port=self._port, protocol=2) as client:
            return int(client.zcard(f"{TAG}:2:queue"))


class RedisPlaceBefore(Place):
    """A Redis server, by the scripts and the pauses that the plugin had before."""

    def __init__(self, port: int, limit: int) -> None:
        super().__init__(limit)
        self._port = port

    def acquire(self) -> Release:
        client = redis.Redis(port=self._port, protocol=2, socket_timeout=STEADY_SECONDS)
        look, drop = map(client.register_script, (slots_before.LOOK, slots_before.DROP))
        keys = [f"{TAG}:{name}" for name in slots_before.KEYS]
        claim, random = secrets.token_hex(8), Random(secrets.token_bytes(8))
        # They last for long: renewals would only add to its CPU time.
        lasts = int(STEADY_SECONDS * 1000)
        while True:
            took, first, *_ = look(
                keys=keys, args=[claim, 1, self.limit, "a run", 1, lasts, 0]
            )
            if took:
                return lambda: drop(keys=keys, args=[claim, ""])
            time.sleep(random.uniform(*((0.1, 0.3) if first else (0.03, 0.09))))

    def waiting(self) -> int:
        with redis.Redis(port=self._port, protocol=2) as client:
            return int(client.hlen(f"{TAG}:queue"))


class Directory(Place):
    """A directory of the machine, by the plugin."""

    def __init__(self, path: Path, limit: int) -> None:
        super().__init__(limit)
        self._path = path

    def acquire(self) -> Release:
        return _acquire(self._path, self.limit)

    def waiting(self) -> int:
        return sum(1 for _ in self._path.glob("ticket-*.lock"))


def _acquire(place: Path | RedisStore, limit: int) -> Release:
    slots = Slots(
        place,
        limit,
        holder="a run of the benchmark",
        timeout_seconds=STEADY_SECONDS,
        reporter=SilentReporter(),
    )
    (slot,) = slots.acquire(1)
    return slot.release


@dataclass(frozen=True)
class Figures:
    """What was measured in one place."""

    name: str
    claims: int
    core_share: float
    """Of one core, while nothing but waiting happened."""
    delays: Sequence[float]
    """Seconds from each release to the grant that followed."""
    blocked_seconds: float | None = None

    @property
    def p95(self) -> float:
        return sorted(self.delays)[math.ceil(0.95 * len(self.delays)) - 1]

    def __str__(self) -> str:
        text = (
            f"{self.name}, {self.claims} claims: {self.core_share:.2%} of a core; {len(self.delays)} grants after "
            f"{statistics.median(self.delays):.3f} s, 95th percentile {self.p95:.3f} s, longest {max(self.delays):.3f} s"
        )
        if self.blocked_seconds is not None:
            text += (
                f"; killed processes blocked a claim for {self.blocked_seconds:.1f} s"
            )
        return text

    def missed(self) -> Iterator[str]:
        """Yield the bars that it misses."""
        if self.core_share > CPU_BAR:
            yield f"{self.core_share:.2%} of a core (bar: {CPU_BAR:.0%})"
        if self.p95 > GRANT_BAR:
            yield f"95th percentile {self.p95:.3f} s (bar: {GRANT_BAR} s)"
        if (self.blocked_seconds or 0) > KILLED_BAR:
            yield f"blocked for {self.blocked_seconds:.1f} s (bar: {KILLED_BAR} s)"


def measure_server(
    program: str | None,
    place_of: Callable[[int, int], Place],
    *,
    name: str,
    claims: int,
    limit: int,
    seconds: float,
    grants: int,
    processes: int = 4,
) -> Figures:
    """Measure claims on a new Redis server; ``program`` is its path, by default the tests' server."""
    with _server(program) as server:
        place = place_of(server.port, limit)

        def cpu_seconds() -> float:
            client: Any = redis.Redis(port=server.port, protocol=2)
            with client:
                info = client.info("cpu")
                return float(info["used_cpu_user"] + info["used_cpu_sys"])

        share, delays = _wait_and_grant(
            place, claims, processes, lambda _pids: cpu_seconds(), seconds, grants
        )
    return Figures(name, claims, share, delays)


def measure_directory(
    *, claims: int, limit: int, seconds: float, grants: int
) -> Figures:
    """Measure claims on a directory, each by a process of its own, and then what killed ones block."""
    with tempfile.TemporaryDirectory() as directory:
        place = Directory(Path(directory) / "slots", limit)
        share, delays = _wait_and_grant(
            place, claims, claims, _cpu_seconds_of, seconds, grants
        )
        blocked = blocked_by_killed(Directory(Path(directory) / "killed", limit))
    return Figures("directory", claims, share, delays, blocked)


def blocked_on_server(program: str | None, *, processes: int, limit: int) -> float:
    """Return for how many seconds killed processes block a claim on a new Redis server."""
    with _server(program) as server:
        return blocked_by_killed(RedisPlace(server.port, limit), processes)


def blocked_by_killed(place: Place, processes: int = 50) -> float:
    """Kill so many processes, of which as many as possible hold slots and the others wait; return when a slot is free."""
    events = _FORK.SimpleQueue()
    with _children(processes, _hold, place, events) as children:
        for _ in range(place.limit):
            events.get()
        waiting = processes - place.limit
        assert eventually(lambda: place.waiting() == waiting)

        observer = threading.Thread(target=place.acquire)
        observer.start()
        assert eventually(lambda: place.waiting() == waiting + 1)
        killed_at = time.monotonic()
        for child in children:
            child.kill()
        observer.join()
        return time.monotonic() - killed_at


def _wait_and_grant(
    place: Place,
    claims: int,
    processes: int,
    cpu_seconds: Callable[[Sequence[int]], float],
    seconds: float,
    grants: int,
) -> tuple[float, Sequence[float]]:
    """Let claims wait, then grant slots to them; return the share of a core meanwhile, and the delays of the grants."""
    events = _FORK.SimpleQueue()
    held = [place.acquire() for _ in range(place.limit)]
    with _children(processes, _wait, place, events, claims // processes) as children:
        pids = [child.pid or 0 for child in children]
        assert eventually(lambda: place.waiting() == claims, STEADY_SECONDS)
        time.sleep(5)  # until the last ones have become quiet

        began, used = time.monotonic(), cpu_seconds(pids)
        time.sleep(seconds)
        share = (cpu_seconds(pids) - used) / (time.monotonic() - began)

        random = Random(1)
        releases, granted = list[float](), list[float]()
        for release in held:
            time.sleep(random.uniform(0, 0.1))
            releases.append(time.monotonic())
            release()
        while len(granted) < grants:
            is_grant, at = events.get()
            (granted if is_grant else releases).append(at)
    # The queue was never empty: the n-th grant took the slot of the n-th release.
    pairs = zip(sorted(releases), sorted(granted), strict=False)
    return share, [grant - release for release, grant in pairs]


def _wait(place: Place, events: Any, threads: int) -> None:
    """Wait for slots in so many threads; report when they were granted and released."""

    def take() -> None:
        release = place.acquire()
        events.put((True, time.monotonic()))
        time.sleep(random.uniform(*HELD_SECONDS))
        events.put((False, time.monotonic()))
        release()

    random = Random(os.getpid())
    threading.stack_size(256 * 1024)
    started = [threading.Thread(target=take) for _ in range(threads)]
    for thread in started:
        thread.start()
        time.sleep(_START_SECONDS)
    for thread in started:
        thread.join()


def _hold(place: Place, events: Any) -> None:
    release = place.acquire()
    events.put(True)
    signal.pause()
    release()


@contextmanager
def _children(
    count: int, act: Callable[..., None], *arguments: Any
) -> Generator[Sequence[BaseProcess]]:
    children = [_FORK.Process(target=act, args=arguments) for _ in range(count)]
    try:
        for child in children:
            child.start()
        yield children
    finally:
        for child in children:
            if child.pid:
                child.kill()
                child.join()


@contextmanager
def _server(program: str | None) -> Generator[RedisServer]:
    with tempfile.TemporaryDirectory() as directory:
        server = RedisServer(Path(directory), program=program)
        try:
            server.start()
            yield server
        finally:
            server.stop()


def _cpu_seconds_of(pids: Sequence[int]) -> float:
    seconds = 0.0
    for pid in pids:
        times = psutil.Process(pid).cpu_times()
        seconds += times.user + times.system
    return seconds


def main() -> int:
    """Print the figures, and return 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--claims", type=int, default=5000)
    parser.add_argument("--claims-before", type=int, default=300)
    parser.add_argument("--processes", type=int, default=64, help="of a directory")
    parser.add_argument("--limit", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--grants", type=int, default=300)
    parser.add_argument(
        "--server", help="the server's program; by default the one of the tests"
    )
    options = parser.parse_args()

    missed = list[str]()
    shared: dict[str, Any] = {
        "limit": options.limit,
        "seconds": options.seconds,
        "grants": options.grants,
    }

    def show(figures: Figures, *, has_bars: bool = True) -> None:
        print(figures, flush=True)
        if has_bars:
            missed.extend(f"{figures.name}: {text}" for text in figures.missed())

    # Before, more claims than the default would keep the server from answering at all.
    for claims in sorted({options.claims_before, options.claims}):
        for name, place in (("before", RedisPlaceBefore), ("now", RedisPlace)):
            if name == "now" or claims <= options.claims_before:
                figures = measure_server(
                    options.server, place, name=name, claims=claims, **shared
                )
                show(figures, has_bars=name == "now")

    blocked = blocked_on_server(options.server, processes=50, limit=10)
    print(f"50 killed processes blocked a claim on the server for {blocked:.1f} s")
    if blocked > KILLED_BAR:
        missed.append(f"server: blocked for {blocked:.1f} s (bar: {KILLED_BAR} s)")

    show(
        measure_directory(
            claims=options.processes,
            limit=4,
            seconds=options.seconds,
            grants=min(options.grants, options.processes - 8),
        )
    )
    print("\n".join(missed) or "bars met")
    return bool(missed)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main())
