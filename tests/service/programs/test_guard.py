"""The guard, which outlives a service that is killed.

A guard is used here by small programs: a service would add seconds to each crash. The end of a whole service is tested
in ``test_controllers`` and ``test_programs``.
"""

import asyncio
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from pytest_device.service.programs.guard import Guard
from pytest_device.service.programs.processes import end, find_processes
from tests.service.programs.alive import alive, eventually, guards

TREE = ["sh", "-c", "setsid sleep 99 & sleep 99 & wait"]

OWNER = """
import asyncio, sys
from pathlib import Path
from pytest_device.service.programs.guard import Guard

TREE = ["sh", "-c", "setsid sleep 99 & sleep 99 & wait"]
ENVIRON = {"DEVICE_TOKEN": "made-up-token", "PATH": "/usr/bin:/bin"}

async def own(directory):
    guard = Guard(environ=ENVIRON, log=print)
    await guard.start(TREE, directory=directory, environ=ENVIRON)
    print("up", flush=True)
    await asyncio.sleep(99)

asyncio.run(own(Path(sys.argv[1])))
"""


def own(directory: Path) -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(directory)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    return process


def guard_of(process: "subprocess.Popen[str]") -> psutil.Process:
    # More than once: psutil leaves out a child that seems to be older than its parent, as after a clock was set.
    asyncio.run(eventually(lambda: bool(guards(psutil.Process(process.pid)))))
    [guard] = guards(psutil.Process(process.pid))
    return guard


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_programs_and_their_directory_are_removed_when_the_service_is_killed(
    number: signal.Signals, workspace: Path
) -> None:
    with own(workspace) as service:
        guard = guard_of(service)
        asyncio.run(eventually(lambda: len(find_processes([workspace])) == 3))

        service.send_signal(number)
        service.wait()

        asyncio.run(
            eventually(
                lambda: not workspace.exists() and not find_processes([workspace])
            )
        )
        asyncio.run(eventually(lambda: not alive(guard)))


def ignored_signals(process: psutil.Process) -> int:
    [mask] = re.findall(
        r"SigIgn:\s+(\w+)", Path(f"/proc/{process.pid}/status").read_text()
    )
    return int(mask, 16)


@pytest.mark.skipif(
    sys.platform != "linux",
    reason="elsewhere nothing reports from when on a process ignores signals",
)
def test_the_guard_survives_a_signal_to_the_process_group(workspace: Path) -> None:
    with own(workspace) as service:
        guard = guard_of(service)
        asyncio.run(
            eventually(lambda: ignored_signals(guard) >> (signal.SIGTERM - 1) & 1)
        )
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
            guard.send_signal(number)
        service.kill()
        asyncio.run(eventually(lambda: not find_processes([workspace])))


def test_the_guard_gets_no_secrets(workspace: Path) -> None:
    with own(workspace) as service:
        guard = guard_of(service)
        assert "made-up-token" not in guard.environ().values()
        assert "made-up-token" not in " ".join(guard.cmdline())
        service.kill()


def test_the_guard_is_gone_after_close(guard: Guard, workspace: Path) -> None:
    async def scenario() -> None:
        program = await guard.start(TREE, directory=workspace, environ=os.environ)
        await asyncio.to_thread(guard.close)
        await program.wait()

    asyncio.run(scenario())
    assert not guards(psutil.Process())
    assert not find_processes([workspace])


def test_a_dead_guard_is_replaced(workspace: Path, tmp_path: Path) -> None:
    reported: list[str] = []
    guard = Guard(environ=os.environ, log=reported.append)

    async def scenario() -> None:
        program = await guard.start(TREE, directory=workspace, environ=os.environ)
        [dead] = guards(psutil.Process())
        dead.kill()
        await eventually(lambda: dead.status() == psutil.STATUS_ZOMBIE)
        assert (
            await (
                await guard.start(["true"], directory=tmp_path, environ=os.environ)
            ).wait()
            == 0
        )
        assert reported == [f"the guard process {dead.pid} died, starting another one"]

        await asyncio.to_thread(guard.close)
        await program.wait()

    asyncio.run(scenario())
    assert not find_processes([workspace])
    assert not guards(psutil.Process())


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param(steps, marks=pytest.mark.nightly if steps % 2 else ())
        for steps in range(6)
    ],
)
def test_a_start_cancelled_halfway_leaves_a_program_that_can_be_stopped(
    steps: int, guard: Guard, workspace: Path
) -> None:
    async def scenario() -> None:
        starting = asyncio.create_task(
            guard.start(TREE, directory=workspace, environ=os.environ)
        )
        for _ in range(steps):
            await asyncio.sleep(0)
        starting.cancel()
        async with asyncio.timeout(10):
            await asyncio.wait({starting})
        assert starting.cancelled()
        await asyncio.to_thread(end, [workspace])

    asyncio.run(scenario())
    assert not find_processes([workspace])


def test_a_program_that_hides_its_environment_is_found_by_its_record(
    guard: Guard, workspace: Path
) -> None:
    """As signed programs do on macOS."""

    async def scenario() -> psutil.Process:
        hiding = ["sh", "-c", "exec env -i sleep 99"]
        process = await guard.start(hiding, directory=workspace, environ=os.environ)
        program = psutil.Process(process.pid)
        await eventually(lambda: program.environ() == {})
        assert find_processes([workspace]) == {program}
        await asyncio.to_thread(end, [workspace])
        await process.wait()
        return program

    assert not asyncio.run(scenario()).is_running()


def test_another_process_with_the_id_of_a_recorded_one_is_left_alone(
    workspace: Path,
) -> None:
    with psutil.Popen(["sleep", "99"], start_new_session=True) as other:
        earlier = other.create_time() - 60
        (workspace / ".processes").write_text(f"{other.pid} {earlier}\n{other.pid}")

        assert find_processes([workspace]) == set()
        other.kill()
