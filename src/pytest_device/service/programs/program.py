"""Runs programs: those of a session, in its workspace, and short commands for their output."""

import asyncio
import shutil
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Generator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self, TypeVar

from pytest_device.errors import ConfigError, ControllerError
from pytest_device.platforms import SYSTEM
from pytest_device.service.programs.guard import Guard
from pytest_device.service.programs.output_tail import OutputTail
from pytest_device.service.programs.processes import (
    end,
    finish_despite_cancellation,
    how_ended,
    remove,
)

COMMAND_SECONDS: Final = 20.0
"""Maximum seconds for a short command, unless its caller sets another limit."""
_POLL_SECONDS: Final = 0.05
_READY_POLL_SECONDS: Final = 0.02
"""Shorter: a run waits for it, where an exit only ends a wait of the whole session."""
_DRAIN_SECONDS: Final = 1.0
"""Maximum seconds to wait for the end of the output after an exit: a child process may hold it open."""
_READ_BYTES: Final = 65536

_Answer = TypeVar("_Answer")


class EndedError(ControllerError):
    """A program exited before it was ready."""


@dataclass(frozen=True, slots=True)
class Program:
    """A started program, and its output."""

    title: str
    process: Process
    output: OutputTail
    task: asyncio.Task[None]
    """Reads the output until its end."""

    @classmethod
    def reading(cls, title: str, process: Process, output: OutputTail) -> Self:
        """Return a program that was just started, and start reading its output."""
        return cls(title, process, output, asyncio.create_task(_read(process, output)))

    async def ready(
        self, answer: Callable[[], Awaitable[_Answer | None]], limit_seconds: float
    ) -> _Answer:
        """Poll until ``answer`` returns a value; return it.

        Raises EndedError if the program exits first, ControllerError if it takes longer than the limit.
        """
        try:
            async with asyncio.timeout(limit_seconds):
                value = await answer()
                while value is None:
                    if self.process.returncode is not None:
                        raise EndedError(
                            f"{self.title} exited during startup: {await self.ended()}"
                        )
                    await asyncio.sleep(_READY_POLL_SECONDS)
                    value = await answer()
                return value
        except TimeoutError as error:
            raise ControllerError(
                f"{self.title} was not ready within {limit_seconds:g} s{self._last_output()}"
            ) from error

    async def exited(self) -> None:
        """Wait until the program exits."""
        # Not process.wait(): that also waits for the end of the output, which a child process may hold open.
        while self.process.returncode is None:  # noqa: ASYNC110
            await asyncio.sleep(_POLL_SECONDS)

    async def ended(self) -> str:
        """Wait until the program exits; return its exit status and its last output."""
        await self.exited()
        await asyncio.wait({self.task}, timeout=_DRAIN_SECONDS)
        return f"{how_ended(self.process.returncode)}{self._last_output()}"

    async def closed(self) -> None:
        """Release this process's resources for the program, which has exited."""
        await asyncio.wait({self.task}, timeout=_DRAIN_SECONDS)
        # Otherwise a child holds its output open, for whose end this would wait, too.
        if self.task.done():
            await self.process.wait()
        self.task.cancel()

    def _last_output(self) -> str:
        if not self.output.tail:
            return ""
        # On lines of their own: a client shows the first one, and keeps the others in a file.
        return f"\nThe end of its log:\n{self.output.tail}"


@dataclass(frozen=True, slots=True)
class Workspace:
    """The directory of one session, and the programs that were started there; ``short`` is for their sockets."""

    directory: Path
    short: Path
    guard: Guard
    programs: list[Program] = field(default_factory=list[Program])
    bridges: list[asyncio.Server] = field(default_factory=list[asyncio.Server])
    """Servers that listen inside the namespaces of programs."""

    async def start(
        self,
        title: str,
        command: Sequence[str | Path],
        *,
        environ: Mapping[str, str],
        output: OutputTail,
        pass_fds: Sequence[int] = (),
    ) -> Program:
        """Start a program here. Raises OSError if it cannot be started."""
        process = await self.guard.start(
            command, directory=self.directory, environ=environ, pass_fds=pass_fds
        )
        program = Program.reading(title, process, output)
        self.programs.append(program)
        return program

    async def end(self) -> None:
        """Stop every process of this workspace. Raises OSError if one cannot be stopped."""
        await finish_despite_cancellation(asyncio.to_thread(end, [self.directory]))

    def subdir(self, name: str) -> Path:
        """Return a subdirectory; create it if missing, for this user only."""
        path = self.directory / name
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return path


@asynccontextmanager
async def workspace(directory: Path, guard: Guard) -> AsyncGenerator[Workspace]:
    """Create a workspace; at the end of the block stop its processes and remove it.

    Raises OSError if the directory cannot be created or removed.
    """
    with short_directory(guard) as short:
        own = Workspace(directory, short, guard)
        try:
            directory.mkdir(mode=0o700, parents=True)  # noqa: ASYNC240  # fast
            yield own
        finally:
            await finish_despite_cancellation(_clear(own))


@contextmanager
def short_directory(guard: Guard) -> Generator[Path]:
    """Create a private directory for sockets, with a short path; it is removed with the block or this process.

    A socket's path is limited to about a hundred characters, fewer than the path of a session's directory. The path is
    absolute, since some processes of a browser change their directory.
    """
    directory = Path(tempfile.mkdtemp(prefix="pd-", dir=SYSTEM.short_directory()))
    guard.watch(directory)
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


async def _clear(own: Workspace) -> None:
    for bridge in own.bridges:
        bridge.close()
    await asyncio.to_thread(remove, [own.directory])
    for program in own.programs:
        await program.closed()


async def _read(process: Process, output: OutputTail) -> None:
    stream = process.stderr or process.stdout
    if stream is None:  # never: it was started with a pipe
        raise RuntimeError("the program has no standard output")
    while printed := await stream.read(_READ_BYTES):
        output.feed(printed)
    output.close()


async def first(*ends: Awaitable[str]) -> str:
    """Wait for the first of several ends; return the descriptions of all that occurred."""
    waiting = [asyncio.ensure_future(end) for end in ends]
    try:
        done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        return "; ".join(end.result() for end in waiting if end in done)
    finally:
        for end in waiting:
            end.cancel()


async def ask(
    command: Sequence[str | Path],
    *,
    environ: Mapping[str, str],
    limit_seconds: float = COMMAND_SECONDS,
) -> str:
    """Return a command's output. Raises ConfigError, with the cause, if it cannot run, fails or takes too long."""
    finished = await outcome(command, environ=environ, limit_seconds=limit_seconds)
    if finished.status != 0:
        raise ConfigError(f"{command[0]} failed with {finished.reason}")
    return finished.printed


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a command ended, and its output and error output."""

    status: int | None
    printed: str
    complaint: str

    @property
    def reason(self) -> str:
        """The exit status and the last line of the error output."""
        return f"{how_ended(self.status)}: {last_line(self.complaint)}"


async def outcome(
    command: Sequence[str | Path],
    *,
    environ: Mapping[str, str],
    limit_seconds: float = COMMAND_SECONDS,
) -> Outcome:
    """Return how a command ends. Raises ConfigError, with the cause, if it cannot run or takes too long."""
    program = Path(command[0])
    try:
        async with asyncio.timeout(limit_seconds):
            status, printed, complaint = await _run(command, environ)
    except TimeoutError as error:
        raise ConfigError(f"{program} timed out after {limit_seconds:g} s") from error
    except OSError as error:
        raise ConfigError(f"{program} cannot be run: {error.strerror}") from error
    return Outcome(
        status, printed.decode(errors="replace"), complaint.decode(errors="replace")
    )


async def _run(
    command: Sequence[str | Path], environ: Mapping[str, str]
) -> tuple[int | None, bytes, bytes]:
    """Return a command's exit status, output and error output; if cancelled, kill it and its children."""
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *command,
            env=dict(environ),
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
            start_new_session=True,
            creationflags=SYSTEM.creation_flags,
        )
    )
    try:
        # A cancelled start would leave the process to nobody.
        process = await asyncio.shield(starting)
        printed, complaint = await process.communicate()
    finally:
        await finish_despite_cancellation(_killed(starting))
    return process.returncode, printed, complaint


async def _killed(starting: asyncio.Future[Process]) -> None:
    """Kill a command and its children, unless it has exited, and release this process's resources for it."""
    try:
        process = await starting
    except OSError:
        return  # it was never started
    if process.returncode is None:
        SYSTEM.kill_group(process.pid)  # `node` may be a wrapper in shell

    # This also waits for the end of the output, which a child in a session of its own may hold open.
    waiting = asyncio.ensure_future(process.wait())
    await asyncio.wait({waiting}, timeout=_DRAIN_SECONDS)
    waiting.cancel()


def last_line(output: str) -> str:
    lines = output.strip().splitlines()
    return lines[-1].strip() if lines else "no output"
