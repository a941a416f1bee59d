"""The processes of a directory: marked at their start, found by the mark, stopped with their directory."""

import contextlib
import shutil
import signal
import time
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import psutil

from pytest_device.platforms import SYSTEM

MARK: Final = "PYTEST_DEVICE_DIRECTORY"
"""Environment variable that names the directory of a process; child processes inherit it.

A process ID may be reused by an unrelated process, and does not lead to the orphans of a dead parent. A mark stays.
"""

_RECORD: Final = ".processes"
"""File in a directory: ID and start time of each process that was started there.

macOS hides the environment of some signed programs, browsers among them: their mark cannot be read.
"""
_SAME_START_SECONDS: Final = 1.0
"""Two processes with one ID start further apart; a start time is computed from the clock, which may be adjusted."""

GRACE_SECONDS: Final = 5.0
"""Seconds between SIGTERM and SIGKILL."""

KILL_SECONDS: Final = 5.0
_POLL_SECONDS: Final = 0.05
"""Seconds between listings, for a program in the middle of its exec to get its environment."""
_EXIT_POLL_SECONDS: Final = 0.01
_POLLS_PER_LISTING: Final = 25
"""Polls of the known processes: all of them together take a twentieth of a listing of every process."""
_SCANS: Final = 3
"""Listings of a search: a process that starts another and exits during one is missed by it."""
_KERNEL_PARENTS: Final = (0, 2)
"""Parents of kernel threads on Linux, which never have an environment."""

_Result = TypeVar("_Result")


def marked(environ: Mapping[str, str], directory: Path) -> dict[str, str]:
    """Return the environment for a directory's process, which must lead its own process session."""
    return {**environ, MARK: str(directory)}


def record(directory: Path, pid: int) -> None:
    """Note a process that was started in a directory, and leads its own process session."""
    with (
        # It has exited, or the disk is full: what remains is the mark.
        contextlib.suppress(psutil.NoSuchProcess, OSError),
        (directory / _RECORD).open("a", encoding="ascii") as file,
    ):
        file.write(f"{pid} {psutil.Process(pid).create_time()}\n")


def find_processes(
    directories: Collection[Path], *, sleep: Callable[[float], None] = time.sleep
) -> set[psutil.Process]:
    """Find the processes of these directories, those in their process sessions, and all descendants.

    Those of a directory have its mark, or are recorded there.
    """
    marks = {str(directory) for directory in directories}
    starts: dict[int, float] = {}
    for directory in directories:
        starts.update(_recorded(directory))

    everyone = _everyone(sleep)
    sessions = {
        entry.session
        for entry in everyone
        if entry.mark in marks or _has_started_at(entry, starts)
    }
    family = {
        entry.process.pid: entry for entry in everyone if entry.session in sessions
    }

    # A child may lead a process session of its own, and so may its children. Each round adds at least one process.
    while True:
        children = [
            entry
            for entry in everyone
            if entry.parent in family and entry.process.pid not in family
        ]
        if not children:
            return {entry.process for entry in family.values()}
        family |= {entry.process.pid: entry for entry in children}


def end(
    directories: Collection[Path],
    *,
    grace_seconds: float = GRACE_SECONDS,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Stop every process of these directories: terminate them, and kill the remaining ones after ``grace_seconds``.

    Blocks up to ``grace_seconds`` plus ``KILL_SECONDS``. Raises TimeoutError if a process survives that.
    """
    known: set[psutil.Process] = set()
    for send_signal, seconds in (
        (psutil.Process.terminate, grace_seconds),
        (psutil.Process.kill, KILL_SECONDS),
    ):
        signalled: set[psutil.Process] = set()
        deadline = clock() + seconds
        remaining = _remaining(known, directories)
        while remaining:
            _signal(remaining - signalled, send_signal)
            signalled |= remaining
            if clock() >= deadline:
                break

            _wait_for_an_exit(remaining, sleep)
            remaining = _remaining(known, directories)

        if not remaining:
            _forget(directories)
            return

    raise TimeoutError(
        f"these processes cannot be stopped: {sorted(process.pid for process in known)}"
    )


def _forget(directories: Collection[Path]) -> None:
    """Remove the records of processes that have ended: what a directory keeps is its own."""
    for directory in directories:
        with contextlib.suppress(OSError):
            (directory / _RECORD).unlink()


def remove(directories: Collection[Path]) -> None:
    """Stop every process of these directories, then remove them.

    Blocks as long as `end`. Raises OSError if a process cannot be stopped (its directory stays, so that the next
    attempt finds it) or a directory cannot be removed.
    """
    end(directories)
    for directory in directories:
        # The guard and a restarted service may both remove it: a missing file is not an error.
        shutil.rmtree(directory, ignore_errors=True)
        if directory.exists():
            raise OSError(f"{directory} cannot be removed")


async def finish_despite_cancellation(work: Coroutine[Any, Any, _Result]) -> _Result:
    """Finish the work; a cancellation in the meantime takes effect afterwards."""
    import asyncio  # for the service only: the guard process does without

    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        task.result()
        raise


@dataclass(frozen=True, slots=True)
class _Entry:
    """A process in a listing.

    Attributes:
        process: The process.
        parent: The ID of its parent.
        session: The ID of its process session.
        mark: The directory that it is marked with, None without a mark.
        is_blank: Whether it has no environment: it lacks one, or is in the middle of its exec.
    """

    process: psutil.Process
    parent: int
    session: int
    mark: str | None
    is_blank: bool


def _recorded(directory: Path) -> Iterator[tuple[int, float]]:
    """Yield ID and start time of each recorded process; nothing for a line that is incomplete."""
    try:
        lines = (directory / _RECORD).read_text("ascii", errors="replace").splitlines()
    except OSError:  # nothing was started there, or it is removed
        return
    for line in lines:
        with contextlib.suppress(ValueError):
            pid, start = line.split()
            yield int(pid), float(start)


def _has_started_at(entry: _Entry, starts: Mapping[int, float]) -> bool:
    start = starts.get(entry.process.pid)
    if start is None:
        return False
    return abs(entry.process.create_time() - start) < _SAME_START_SECONDS


def _everyone(sleep: Callable[[float], None]) -> list[_Entry]:
    """List every process, including those started during the listing by processes that have exited since."""
    seen: dict[int, _Entry | None] = {}
    for _ in range(_SCANS):
        unclear = _unclear([entry for entry in seen.values() if entry])
        if unclear:
            sleep(_POLL_SECONDS)  # during its exec a program has no environment yet
        seen |= {
            pid: _entry(pid) for pid in (set(psutil.pids()) - seen.keys()) | unclear
        }
    return [entry for entry in seen.values() if entry]


def _unclear(entries: Collection[_Entry]) -> set[int]:
    """Return the processes without an environment in process sessions of which no mark is known.

    Some programs overwrite theirs, as a browser does in two of its processes: no wait would help.
    """
    clear = {entry.session for entry in entries if not entry.is_blank}
    return {entry.process.pid for entry in entries if entry.session not in clear}


def _entry(pid: int) -> _Entry | None:
    # Not psutil.process_iter(): it caches processes, shares the cache among threads, and misses a process with a
    # reused ID once.
    try:
        process = psutil.Process(pid)
        with process.oneshot():
            parent, environ = process.ppid(), _environ(process)
            is_blank = environ == {} and parent not in _KERNEL_PARENTS
            return _Entry(
                process,
                parent,
                SYSTEM.session_of(pid),
                (environ or {}).get(MARK),
                is_blank,
            )
    except (psutil.NoSuchProcess, ProcessLookupError):  # it has exited, or is a zombie
        return None


def _environ(process: psutil.Process) -> Mapping[str, str] | None:
    try:
        return process.environ()
    except psutil.AccessDenied:  # another user's process: not started here
        return None


def _alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _remaining(
    known: set[psutil.Process], directories: Collection[Path]
) -> set[psutil.Process]:
    """Return the remaining processes, and keep them in ``known``.

    A process can lose its marked relatives, and thus become impossible to find.
    """
    known |= find_processes(directories)
    known -= {process for process in known if not _alive(process)}
    return set(known)


def _wait_for_an_exit(
    processes: Collection[psutil.Process], sleep: Callable[[float], None]
) -> None:
    """Wait until one of the processes exits, but only briefly: meanwhile they may start others."""
    for _ in range(_POLLS_PER_LISTING):
        sleep(_EXIT_POLL_SECONDS)
        if not all(_alive(process) for process in processes):
            return


def _signal(
    processes: Collection[psutil.Process], send_signal: Callable[[psutil.Process], None]
) -> None:
    for process in processes:
        # A process that must not be signalled stays in the list, and is reported.
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            send_signal(process)


def how_ended(status: int | None) -> str:
    """Return how a program ended, from its ``returncode``.

    >>> how_ended(3)
    'exit status 3'
    >>> how_ended(-9)
    'killed by SIGKILL'
    """
    if status is None or status >= 0:
        return f"exit status {status}"

    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:  # a signal without a name, such as a real-time signal
        return f"killed by signal {-status}"
