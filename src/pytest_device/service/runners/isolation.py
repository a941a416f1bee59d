"""Starts programs in their own network namespace, with bridges to some ports outside."""

import asyncio
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from pytest_device.errors import ControllerError
from pytest_device.service.logs import Log
from pytest_device.service.runners import isolated
from pytest_device.service.runners.controller import HOST
from pytest_device.service.runners.output_tail import OutputTail
from pytest_device.service.runners.program import Program, Workspace

OPEN: Final = "other users of this machine can reach ports of the session's programs"

_START_SECONDS: Final = 30.0
_READ_BYTES: Final = 65536
_MOST_BRIDGES: Final = 8


async def start(
    work: Workspace,
    title: str,
    command: Sequence[str | Path],
    *,
    environ: Mapping[str, str],
    output: OutputTail,
    bridges: Sequence[int],
    note: Log,
) -> Program:
    """Start a program that can only reach these ports of 127.0.0.1.

    Nothing outside can reach its ports. If the system refuses a namespace, it runs like any other program, and ``note``
    reports that. Raises ControllerError if it does not start in time, OSError if it cannot be started.
    """
    near, far = socket.socketpair()
    near.settimeout(_START_SECONDS)
    with near:
        with far:
            wrapper = [
                sys.executable,
                "-I",
                "-S",
                isolated.__file__,
                far.fileno(),
                *bridges,
                "--",
            ]
            process = [*map(str, wrapper), *command]
            program = await work.start(
                title, process, environ=environ, output=output, pass_fds=[far.fileno()]
            )
        try:
            reason, listeners, *_ = await asyncio.to_thread(
                socket.recv_fds, near, _READ_BYTES, _MOST_BRIDGES
            )
        except TimeoutError as error:
            raise ControllerError(
                f"{title} was not started within {_START_SECONDS:g} s"
            ) from error
    if not listeners:
        note(f"{OPEN}: no network namespace ({reason.decode()})")
    for listener, port in zip(listeners, bridges, strict=False):
        server = await asyncio.start_server(
            partial(_carry, port), sock=socket.socket(fileno=listener)
        )
        work.bridges.append(server)
    return program


async def _carry(
    port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Forward bytes between a connection and a port."""
    far: asyncio.StreamWriter | None = None
    try:
        answers, far = await asyncio.open_connection(HOST, port)
        await asyncio.gather(_copy(reader, far), _copy(answers, writer))
    except OSError:
        return  # either end is gone
    finally:
        for end in (writer, far):
            if end is not None:
                end.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while received := await reader.read(_READ_BYTES):
        writer.write(received)
        await writer.drain()
    with suppress(OSError):
        writer.write_eof()
