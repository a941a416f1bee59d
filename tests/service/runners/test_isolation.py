"""Programs in a network namespace, and without one if the system refuses it."""

import asyncio
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_device.service.runners import isolated, isolation
from pytest_device.service.runners.guard import Guard
from pytest_device.service.runners.output_tail import OutputTail
from pytest_device.service.runners.program import workspace

pytestmark = pytest.mark.skipif(
    isolated.refusal() != "", reason=f"no network namespace here: {isolated.refusal()}"
)

LISTEN = """
import socket, sys
with socket.create_server(("127.0.0.1", 0)) as own, socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as far:
    print(own.getsockname()[1], far.recv(100).decode(), flush=True)
    far.sendall(b"up")
    own.accept()
"""
REFUSING = """
import ctypes, os, sys
ctypes.CDLL(None).unshare(0x10000000)
open("/proc/self/setgroups", "w").write("deny")
open("/proc/self/uid_map", "w").write(f"0 {sys.argv[1]} 1")
open("/proc/sys/user/max_net_namespaces", "w").write("0")
open("/proc/sys/user/max_user_namespaces", "w").write("0")
os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
"""
"""Makes the kernel refuse namespaces to a program."""


def test_a_program_reaches_the_bridged_ports_but_its_own_are_unreachable(
    guard: Guard, tmp_path: Path
) -> None:
    async def scenario() -> None:
        heard = asyncio.get_running_loop().create_future()

        async def answer(
            reader: asyncio.StreamReader, writer: asyncio.StreamWriter
        ) -> None:
            writer.write(b"hello")
            heard.set_result(await reader.readexactly(2))
            writer.close()

        async with (
            await asyncio.start_server(answer, "127.0.0.1", 0) as server,
            workspace(tmp_path / "w", guard) as own,
        ):
            port = server.sockets[0].getsockname()[1]
            output = OutputTail()
            await isolation.start(
                own,
                "a program",
                [sys.executable, "-c", LISTEN, str(port)],
                environ=os.environ,
                output=output,
                bridges=[port],
                note=pytest.fail,
            )
            async with asyncio.timeout(20):
                assert await heard == b"up"
                while not output.text:  # noqa: ASYNC110  nothing reports it
                    await asyncio.sleep(0.02)
            hidden, said = output.text.split()
            assert said == "hello"
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", int(hidden)))

    asyncio.run(scenario())


def test_without_namespaces_the_program_runs_and_the_reason_is_reported() -> None:
    near, far = socket.socketpair()
    with near, far:
        done = subprocess.run(
            [
                *(sys.executable, "-c", REFUSING, str(os.geteuid())),
                *(
                    "-I",
                    "-S",
                    isolated.__file__,
                    str(far.fileno()),
                    "9222",
                    "--",
                    "/bin/echo",
                    "it runs",
                ),
            ],
            pass_fds=[far.fileno()],
            capture_output=True,
            text=True,
            check=True,
        )
        reason, listeners, *_ = socket.recv_fds(near, 1000, 1)

    assert (done.stdout, listeners) == ("it runs\n", [])
    assert reason == b"No space left on device"
