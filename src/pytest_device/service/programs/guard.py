"""A process that outlives a killed service just long enough to stop the processes that the service started."""

import asyncio
import json
import subprocess
import sys
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final

from pytest_device.platforms import SYSTEM
from pytest_device.service.logs import Log
from pytest_device.service.programs import guard_process
from pytest_device.service.programs.processes import (
    GRACE_SECONDS,
    KILL_SECONDS,
    finish_despite_cancellation,
    marked,
    record,
)

_PASSED_ON: Final = ("PATH", "PYTHONHOME", "PYTHONPATH", "LANG", "LC_ALL", "SYSTEMROOT")
"""The variables that the guard needs to import this package; no tokens."""


class Guard:
    """Starts programs for directories, and makes sure that they end with this process, however it ends.

    The guard process reads the directories to watch from a pipe. At the end of the file, which no kind of crash can
    prevent, it stops their processes and removes them.
    """

    def __init__(self, *, environ: Mapping[str, str], log: Log) -> None:
        self._environ = {name: environ[name] for name in _PASSED_ON if name in environ}
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        # Removed directories stay: they only take a few bytes.
        self._watched: list[Path] = []

    async def start(
        self,
        command: Sequence[str | Path],
        *,
        directory: Path,
        environ: Mapping[str, str],
        piped: bool = False,
        pass_fds: Sequence[int] = (),
    ) -> Process:
        """Start a program in a directory, with its output in one pipe. Raises OSError if it cannot be started.

        With ``piped``, its standard input, output and error output are separate pipes.
        """
        self.watch(directory)
        starting = asyncio.create_subprocess_exec(
            *command,
            cwd=directory,
            env=marked(environ, directory),
            stdin=PIPE if piped else DEVNULL,
            stdout=PIPE,
            stderr=PIPE if piped else STDOUT,
            start_new_session=True,
            creationflags=SYSTEM.creation_flags,
            pass_fds=pass_fds,
        )
        # If cancelled half-way, asyncio would kill only the program and wait for its children.
        return await finish_despite_cancellation(_recorded(starting, directory))

    def close(self) -> None:
        """Let the guard stop all remaining processes, and wait for it. Blocks as long as `remove`."""
        process, self._process = self._process, None
        if process is not None:
            _end(process)

    def watch(self, directory: Path) -> None:
        """Make the guard stop a directory's processes and remove it when this process ends."""
        # Kept even if sending it fails: a new guard gets all of them.
        self._watched.append(directory)
        if self._process is None:
            self._process = self._spawn()
        try:
            self._send(self._process, directory)
        except BrokenPipeError:
            self._log(
                f"the guard process {self._process.pid} died, starting another one"
            )
            _end(self._process)
            self._process = self._spawn()
            self._send(self._process, *self._watched)

    def _send(self, process: subprocess.Popen[bytes], *directories: Path) -> None:
        lines = "".join(f"{json.dumps(str(directory))}\n" for directory in directories)
        _input(process).write(lines.encode())

    def _spawn(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603  # no external input
            # -P: a module in the user's working directory must not shadow one of the guard's.
            [sys.executable, "-P", "-m", guard_process.__name__],
            env=self._environ,
            stdin=subprocess.PIPE,
            # The death of a guard must show at the write itself, not at a later one.
            bufsize=0,
            # It outlives this process: whoever reads this one's output would wait for its end.
            stdout=subprocess.DEVNULL,
            start_new_session=True,
            creationflags=SYSTEM.creation_flags,
        )


async def _recorded(starting: Coroutine[Any, Any, Process], directory: Path) -> Process:
    process = await starting
    record(directory, process.pid)
    return process


def _end(process: subprocess.Popen[bytes]) -> None:
    _input(process).close()
    # Twice the time that it may take to end all processes: it also removes their directories.
    SYSTEM.wait_for_exit(process, 2 * (GRACE_SECONDS + KILL_SECONDS))


def _input(process: subprocess.Popen[bytes]) -> IO[bytes]:
    if process.stdin is None:  # never: it is started with a pipe
        raise RuntimeError("the guard has no standard input")
    return process.stdin
