"""Starts programs in their own network namespace, with bridges to some ports outside."""

import asyncio
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from pytest_device.errors import ControllerError
from pytest_device.platforms import SYSTEM
from pytest_device.platforms.bare_python import bare_python
from pytest_device.service.logs import Log
from pytest_device.service.programs import isolated
from pytest_device.service.programs.output_tail import OutputTail
from pytest_device.service.programs.program import Program, Workspace, ask

OPEN: Final = "other users of this machine can reach ports of the session's programs"

HOST: Final = "127.0.0.1"
"""Address that programs listen on, and that namespaces protect."""
_NEAR: Final = (HOST, "localhost", "0.0.0.0")  # noqa: S104  compared, not listened on
_START_SECONDS: Final = 30.0
_READ_BYTES: Final = 65536
_MAX_BRIDGES: Final = 8
"""Maximum number of sockets to receive; a controller has two, to the browser and to the service."""


@dataclass(frozen=True, slots=True)
class Isolation:
    """Whether sessions must be ``required`` to have namespaces for their programs; the service listens on ``host``."""

    host: str = HOST
    required: bool = False

    async def refusal(self, environ: Mapping[str, str]) -> str:
        """Return why the programs of a session cannot have a namespace, "" if they can."""
        if not is_bridged(self.host):
            return f"the service listens on {self.host}, not on {HOST}"

        reason = SYSTEM.why_no_namespaces()
        if not reason:
            # A process of its own: one with threads should not fork without starting a program.
            printed = await ask(bare_python(isolated.MODULE), environ=environ)
            reason = printed.strip()
        return f"no network namespace ({reason})" if reason else ""


def required(reason: str) -> str:
    """Return the error for a session that cannot have what the user requires."""
    fix = "Allow user namespaces for this user, use a machine that has no other users, or turn the option off."
    return f"isolation is required (device_local_require_isolation), but {OPEN}: {reason}. {fix}"


def is_bridged(host: str) -> bool:
    """Return whether programs in a namespace can reach a service that listens on this host."""
    return host in _NEAR


async def start(
    work: Workspace,
    title: str,
    command: Sequence[str | Path],
    *,
    environ: Mapping[str, str],
    output: OutputTail,
    bridges: Sequence[int],
    note: Log,
    is_required: bool = False,
) -> Program:
    """Start a program that can only reach some ports of 127.0.0.1, and whose own ports nothing outside can reach.

    If the system refuses a namespace, it runs like any other program.

    Arguments:
        work: The workspace that it is started in.
        title: Its name for messages.
        command: Its command line.
        environ: Its environment.
        output: Collects its output.
        bridges: The ports that it can reach.
        note: Called with a line if the system refuses a namespace.
        is_required: Whether that is an error instead.

    Raises:
        ControllerError: It does not start in time, or without a required namespace.
        OSError: It cannot be started.
    """
    reason = SYSTEM.why_no_namespaces()
    if reason:
        if is_required:
            raise ControllerError(required(reason))
        note(f"{OPEN}: {reason}")
        return await work.start(title, command, environ=environ, output=output)

    own_end, its_end = socket.socketpair()
    own_end.settimeout(_START_SECONDS)
    with own_end:
        with its_end:
            descriptor = its_end.fileno()
            options = [isolated.REQUIRED] if is_required else []
            ports = [str(port) for port in bridges]
            wrapper = bare_python(
                isolated.MODULE, str(descriptor), *options, *ports, "--"
            )
            program = await work.start(
                title,
                [*wrapper, *command],
                environ=environ,
                output=output,
                pass_fds=[descriptor],
            )

        try:
            refusal, listeners = await asyncio.to_thread(
                SYSTEM.receive_sockets, own_end, _MAX_BRIDGES
            )
        except TimeoutError as error:
            raise ControllerError(
                f"{title} was not started within {_START_SECONDS:g} s"
            ) from error

    if not listeners:
        reason = f"no network namespace ({refusal.decode()})"
        if is_required:
            raise ControllerError(required(reason))
        note(f"{OPEN}: {reason}")
        return program

    for listener, port in zip(listeners, bridges, strict=False):
        server = await asyncio.start_server(partial(_carry, port), sock=listener)
        work.bridges.append(server)
    return program


async def _carry(
    port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Forward bytes between a connection and a port."""
    port_writer: asyncio.StreamWriter | None = None
    try:
        port_reader, port_writer = await asyncio.open_connection(HOST, port)
        await asyncio.gather(_copy(reader, port_writer), _copy(port_reader, writer))
    except OSError:
        return  # either end is gone
    finally:
        writer.close()
        if port_writer is not None:
            port_writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while received := await reader.read(_READ_BYTES):
        writer.write(received)
        await writer.drain()

    # The other direction may still be open.
    with suppress(OSError):
        writer.write_eof()
