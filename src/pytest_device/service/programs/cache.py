"""Installs programs once per user: each completely or not at all, and by one process at a time."""

import asyncio
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from filelock import FileLock, Timeout

from pytest_device.directory_permissions import check_private
from pytest_device.errors import ConfigError
from pytest_device.redact import MASK, Redactor
from pytest_device.service.logs import Log
from pytest_device.service.programs.guard import Guard
from pytest_device.service.programs.processes import (
    end,
    finish_despite_cancellation,
    how_ended,
    remove,
)

LIMIT_SECONDS: Final = 600.0
"""Maximum seconds for one installation, and for waiting for that of another process."""

_LOCK_POLL_SECONDS: Final = 0.1
_DRAIN_SECONDS: Final = 1.0
"""Maximum seconds to wait for the end of an installer's output, which a process outside its directory may hold open."""
_TAIL_LINES: Final = 20

_ANY_FIX: Final = "check the network, the proxy and the registry in use (npm config get registry), then try again"
_FIXES: Final = (
    (r"ENOSPC|No space left", "free about 500 MB of disk space"),
    (
        r"EACCES|EPERM|Permission denied",
        "grant yourself write access to the path above",
    ),
    (r"ECONNREFUSED|ENOTFOUND|ETIMEDOUT|Connection refused|name resolution", _ANY_FIX),
    (
        r"No module named pip",
        "{by_hand} yourself: this Python has no pip to install it with",
    ),
    (
        r"error while loading shared|version `GLIBC|cannot execute",
        "{by_hand}: this system lacks what the program needs",
    ),
    (
        r"Decompression failed|unexpected end of file",
        "an archive is corrupt: clear npm's cache (npm cache clean --force)",
    ),
    (
        r"EINTEGRITY|DO NOT MATCH THE HASHES",
        "a package differs from the pinned one: find out what the registry or proxy in use has changed",
    ),
    (
        r"\bE401\b|\bE403\b",
        "log in to the registry in use, or choose another (npm config get registry)",
    ),
    (r"\bE404\b|ETARGET", "choose a registry that has these packages"),
    (
        r"No matching distribution",
        "check the network and the package index in use (pip config list)",
    ),
)

# npm and pip mask most credentials themselves; these are the keys of the others in their configuration files. The limit
# and the possessive quantifiers keep the search linear: an installer may print a line of any length.
_CREDENTIAL: Final = re.compile(r"(?i)(_auth\w{0,40}|password)(\s*+[=:]\s*+)\S+")

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Package:
    """A package to install.

    Attributes:
        title: Its name for messages.
        directory: The directory that it is installed in.
        proof: A file in the directory that exists once the package is installed.
        command: Installs it; it runs in an empty directory with ``files``, and fills it.
        files: The files that the command needs.
        by_hand: How users install it themselves.
    """

    title: str
    directory: Path
    proof: Path
    command: Sequence[str | Path]
    files: Sequence[Path] = ()
    by_hand: str = ""

    @property
    def installed(self) -> bool:
        return (self.directory / self.proof).is_file()


@dataclass(frozen=True, slots=True)
class Installer:
    """Installs missing packages. A second installation of a package waits until the first has finished."""

    guard: Guard
    environ: Mapping[str, str]
    progress: Log
    limit_seconds: float = LIMIT_SECONDS
    progress_seconds: float = 10.0
    clock: Callable[[], float] = time.monotonic

    async def ensure(self, package: Package) -> None:
        """Install a missing package. Raises ConfigError with cause and fix, and leaves no partial installation.

        An installed package in a cache that another user can write to is an error, too: it may be another program.
        """
        cache = package.directory.parent
        check_cache(cache)
        if package.installed:
            return

        try:
            cache.mkdir(mode=0o700, parents=True, exist_ok=True)
            await self._ensure_alone(package)
        except OSError as error:
            raise ConfigError(
                f"{package.title} cannot be installed in {cache}: {error.strerror or error}. "
                f"Free disk space and grant yourself write access, or set XDG_CACHE_HOME to a directory of your own."
            ) from error

    async def _ensure_alone(self, package: Package) -> None:
        # A lock for each package: different ones are installed side by side.
        lock = FileLock(package.directory.with_name(f"{package.directory.name}.lock"))
        acquiring = asyncio.ensure_future(_acquire(lock))
        try:
            await self._in_time(
                f"waiting for another installation of {package.title}", acquiring
            )
            if not package.installed:
                await self._install(package)
        finally:
            acquiring.cancel()
            lock.release()

    async def _install(self, package: Package) -> None:
        cache = package.directory.parent
        prefix = f"{package.directory.name}.partial-"
        # Left by a process that died with its guard.
        await asyncio.to_thread(remove, list(cache.glob(f"{prefix}*")))

        partial = Path(tempfile.mkdtemp(prefix=prefix, dir=cache))
        try:
            await self._fill(partial, package)
            _replace(package.directory, partial)
        finally:
            await finish_despite_cancellation(asyncio.to_thread(remove, [partial]))

    async def _fill(self, directory: Path, package: Package) -> None:
        for file in package.files:
            shutil.copy(file, directory)

        self.progress(f"installing {package.title} in {package.directory}, once")
        started = self.clock()
        process = await self.guard.start(
            package.command, directory=directory, environ=self.environ
        )
        running = asyncio.ensure_future(process.communicate())
        try:
            await self._in_time(f"installing {package.title}", running)
        finally:
            await finish_despite_cancellation(_ended(directory, running))

        printed, _ = running.result()
        is_complete = (directory / package.proof).is_file()
        if process.returncode != 0 or not is_complete:
            text = printed.decode(errors="replace")
            raise ConfigError(_failure(package, process.returncode, text))

        self.progress(f"installed {package.title} in {self.clock() - started:.0f} s")

    async def _in_time(self, step: str, work: asyncio.Future[_Result]) -> None:
        """Wait until the work is done, and report progress. Raises ConfigError at the time limit."""
        started = self.clock()
        await asyncio.wait({work}, timeout=self.progress_seconds)
        while not work.done():
            seconds = self.clock() - started
            if seconds > self.limit_seconds:
                raise ConfigError(
                    f"{step} timed out after {seconds:.0f} s. Fix: {_ANY_FIX}."
                )

            self.progress(f"{step}: {seconds:.0f} s so far")
            await asyncio.wait({work}, timeout=self.progress_seconds)

        work.result()


def check_cache(directory: Path) -> None:
    """Raise ConfigError, with the fix, if another user than root can put programs in the cache."""
    check_private(
        directory,
        "the cache of programs",
        variable="XDG_CACHE_HOME",
        may_be_of_root=True,
    )


async def _acquire(lock: FileLock) -> None:
    # Not in a thread, which would go on waiting for the lock after a cancellation, and then hold it.
    while True:
        try:
            lock.acquire(blocking=False)
        except Timeout:
            await asyncio.sleep(_LOCK_POLL_SECONDS)
        else:
            return


async def _ended(directory: Path, running: asyncio.Future[tuple[bytes, bytes]]) -> None:
    await asyncio.to_thread(end, [directory])
    await asyncio.wait({running}, timeout=_DRAIN_SECONDS)
    running.cancel()


def _replace(directory: Path, partial: Path) -> None:
    # An existing directory is incomplete: its proof is missing. If it cannot be removed, the rename reports it.
    shutil.rmtree(directory, ignore_errors=True)
    partial.rename(directory)


def _failure(package: Package, status: int | None, printed: str) -> str:
    last_lines = printed.strip().splitlines()[-_TAIL_LINES:]
    tail = "\n".join(f"    {line}" for line in last_lines)
    tail = _CREDENTIAL.sub(rf"\g<1>\g<2>{MASK}", Redactor().text(tail))
    fix = _fix_of(printed).format(by_hand=package.by_hand)
    return f"{package.title} could not be installed: {how_ended(status)}, last output:\n{tail}\nFix: {fix}."


def _fix_of(printed: str) -> str:
    for pattern, fix in _FIXES:
        if re.search(pattern, printed):
            return fix
    return _ANY_FIX
