"""Programs in a network namespace, and without one if the system refuses it.

A namespace is started here with a program that says what it reaches: a controller would not.
"""

import asyncio
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_device.platforms import SYSTEM
from pytest_device.platforms.bare_python import bare_python
from pytest_device.service.programs import isolated, isolation
from pytest_device.service.programs.guard import Guard
from pytest_device.service.programs.output_tail import OutputTail
from pytest_device.service.programs.program import workspace
from tests.fakes.machine import EMULATOR, LISTED, FakeMachine
from tests.pinned_browser import needs_pinned_browser

pytestmark = pytest.mark.skipif(
    SYSTEM.namespace_refusal() != "",
    reason=f"no network namespace here: {SYSTEM.namespace_refusal()}",
)

LISTEN = """
import socket, sys
with socket.create_server(("127.0.0.1", 0)) as own, socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as far:
    print(own.getsockname()[1], far.recv(100).decode(), flush=True)
    far.sendall(b"up")
    own.accept()[0].sendall(b"mine")
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


def greeting_at(port: int) -> bytes:
    """Return what a server on this machine says first, empty if there is none or it says nothing."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as client:
            return client.recv(100)
    except OSError:
        return b""


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
            # Another program of this machine may have a server at the same number.
            assert greeting_at(int(hidden)) != b"mine"

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("options", "printed"),
    [([], "it runs\n"), ([isolated.REQUIRED], "")],
    ids=["optional", "required"],
)
def test_without_namespaces_the_reason_is_reported_and_the_program_runs_unless_one_is_required(
    options: list[str], printed: str
) -> None:
    near, far = socket.socketpair()
    with near, far:
        done = subprocess.run(
            [
                *(sys.executable, "-c", REFUSING, str(os.geteuid())),
                *bare_python(isolated.MODULE)[1:],
                *(
                    str(far.fileno()),
                    *options,
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

    assert (done.stdout, listeners) == (printed, [])
    assert reason == b"No space left on device"


@pytest.mark.nightly
@needs_pinned_browser  # without a browser, the run ends earlier
def test_a_run_ends_before_its_first_session_without_a_required_namespace(
    tmp_path: Path,
) -> None:
    (tmp_path / "test_it.py").write_text("def test_it(device_session): pass\n")
    options = (
        "--device-platform=android",
        "-o",
        "device_type=appium",
        "-o",
        "device_identifier=chromium",
    )
    command = [
        *(sys.executable, "-c", REFUSING, str(os.geteuid())),
        *(
            "-m",
            "pytest",
            "-p",
            "no:cacheprovider",
            "--device-local",
            "--device-local-require-isolation",
            *options,
        ),
    ]

    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )

    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert (
        "browser not isolated from other users (No space left on device)" in done.stdout
    )
    assert (
        "isolation is required (device_local_require_isolation), but other users"
        in done.stderr
    )
    assert "no network namespace (No space left on device)" in done.stderr
    assert not (tmp_path / ".cache").exists()


@pytest.mark.parametrize(
    ("request_", "host", "reason"),
    [
        ({"deviceIdentifier": "chromium"}, "127.0.0.1", None),
        ({"deviceIdentifier": "chromium"}, "localhost", None),
        (
            {"deviceIdentifier": "chromium"},
            "::1",
            "the service listens on ::1, not on 127.0.0.1",
        ),
        ({"deviceIdentifier": "chromium", "type": "web-preview-only"}, "::1", None),
        ({"deviceIdentifier": "fake", "type": "appium"}, "::1", None),
        (
            {},
            "127.0.0.1",
            "the tools of the emulator listen on ports without access control",
        ),
    ],
)
def test_required_isolation_refuses_what_other_users_could_reach(
    tmp_path: Path, request_: dict[str, str], host: str, reason: str | None
) -> None:
    machine = FakeMachine(tmp_path)
    machine.adb.answers({"devices*": LISTED.format(EMULATOR)})
    machine.install("chromium", "echo Chromium 150.0.1.2")

    required = machine.refusal(
        **request_, isolation=isolation.Isolation(host, required=True)
    )
    optional = machine.refusal(**request_, isolation=isolation.Isolation(host))

    assert optional is None
    assert (required is None) is (reason is None)
    assert (reason or "") in (required or "")
