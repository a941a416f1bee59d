"""The processes of a directory: found whatever they do to their environment and parents, and stopped.

Shells build trees here that no program of a session is known to build, and that one of tomorrow may.
"""

import asyncio
import itertools
import os
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import psutil
import pytest

from pytest_device.service.programs.processes import (
    end,
    find_processes,
    finish_despite_cancellation,
    marked,
    remove,
)
from tests.waiting import eventually

STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(99)"

# Each leaves the leader of its session running, and one sleeper that is hard to find for its own reason.
TREES = {
    "a child": "sleep 99 & echo up; wait",
    "a child of a child": "sh -c 'sleep 99 & wait' & echo up; wait",
    "a child in a session of its own": "setsid sleep 99 & echo up; wait",
    "an orphan in a session of its own": "(setsid sleep 99 &) ; echo up; sleep 99",
    "a child without the mark": "env -i sh -c 'echo up; exec sleep 99' & wait",
    "a child without the mark in a session of its own": "env -i setsid sh -c 'echo up; exec sleep 99' & wait",
    "an orphan without the mark": "(env -i sh -c 'echo up; exec sleep 99' &) ; sleep 99",
    "a child without the mark in a session of its own that ignores the request to end": (
        "trap '' TERM; env -i setsid sh -c 'echo up; exec sleep 99' & trap - TERM; wait"
    ),
    "a child that ignores the request to end": "trap '' TERM; sleep 99 & echo up; wait",
    "a leader that starts another as it ends": "trap 'sleep 99 & exit' TERM; sleep 99 & echo up; wait",
}


@pytest.fixture
def stranger() -> Iterator[psutil.Popen]:
    with psutil.Popen(["sleep", "99"], start_new_session=True) as process:
        yield process
        process.kill()


def start(command: list[str], directory: Path) -> "subprocess.Popen[str]":
    """Return after its first output, when it is in the state that the test needs."""
    process = subprocess.Popen(
        command,
        env=marked(os.environ, directory),
        stdout=subprocess.PIPE,
        start_new_session=True,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    return process


def nobody_holds(output: IO[str] | None) -> bool:
    """Return whether all processes that inherited an output have ended: only then does it end."""
    assert output is not None
    readable, _, _ = select.select([output], [], [], 60)
    return bool(readable) and not output.read()


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES)
def test_a_process_tree_leaves_nothing(tree: str, workspace: Path) -> None:
    with start(["sh", "-c", tree], workspace) as leader:
        assert len(find_processes([workspace])) >= 2

        end([workspace], grace_seconds=0.2)

        assert not find_processes([workspace])
        assert nobody_holds(leader.stdout)


def test_a_process_started_during_the_search_is_found(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with start(["sh", "-c", "echo up; sleep 99; :"], workspace) as late:
        everyone = psutil.pids()
        looks = iter([[pid for pid in everyone if pid != late.pid]])
        monkeypatch.setattr(psutil, "pids", lambda: next(looks, everyone))

        assert late.pid in {process.pid for process in find_processes([workspace])}
        end([workspace])


def blank(leader: "subprocess.Popen[str]", count: int) -> list[int]:
    """Return the children once there are that many and none of them has an environment."""
    children = psutil.Process(leader.pid).children
    assert eventually(lambda: [child.environ() for child in children()] == count * [{}])
    return [child.pid for child in children()]


def test_processes_without_an_environment_are_waited_for_all_at_once(
    workspace: Path,
) -> None:
    with start(
        ["sh", "-c", f"{4 * 'env -i setsid sleep 99 & '} echo up; wait"], workspace
    ) as leader:
        blank(leader, 4)
        pauses: list[float] = []

        assert len(find_processes([workspace], sleep=pauses.append)) == 5

        end([workspace])
    assert len(pauses) == 2


def test_one_that_has_overwritten_its_environment_is_found_by_its_session_without_a_pause(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with start(["sh", "-c", "env -i sleep 99 & echo up; wait"], workspace) as leader:
        pids = [leader.pid, *blank(leader, 1)]
        # Others on this machine may be waited for.
        monkeypatch.setattr(psutil, "pids", lambda: pids)

        assert (
            len(find_processes([workspace], sleep=lambda _: pytest.fail("waited"))) == 2
        )

        end([workspace])


def test_a_process_is_terminated_before_it_is_killed(workspace: Path) -> None:
    with start(
        ["sh", "-c", "trap 'exit 7' TERM; echo up; while :; do sleep 0.02; done"],
        workspace,
    ) as process:
        end([workspace])
        assert process.wait() == 7


def test_unrelated_processes_and_those_of_other_directories_are_left_alone(
    stranger: psutil.Popen, workspace: Path, tmp_path: Path
) -> None:
    with start(["sh", "-c", "echo up; exec sleep 99"], tmp_path) as neighbour:
        end([workspace])
        assert stranger.is_running()
        assert neighbour.poll() is None
        end([tmp_path])


def test_a_process_that_survives_the_kill_is_named(workspace: Path) -> None:
    with start([sys.executable, "-c", STUBBORN], workspace) as process:
        # Every limit is over before anyone can have ended.
        jumps = itertools.count(step=1000)
        with pytest.raises(TimeoutError, match=str(process.pid)):
            end([workspace], clock=lambda: next(jumps), sleep=lambda _: None)


def test_a_directory_is_removed_with_its_processes(workspace: Path) -> None:
    (workspace / "deep/er").mkdir(parents=True)
    with start(["sh", "-c", "echo up; exec sleep 99"], workspace):
        remove([workspace])
        assert not find_processes([workspace])
    assert not workspace.exists()


def test_an_already_removed_directory_is_not_an_error(tmp_path: Path) -> None:
    remove([tmp_path / "gone"])


def test_work_is_finished_before_its_cancellation_takes_effect() -> None:
    done: list[str] = []

    async def work(started: asyncio.Event, go_on: asyncio.Event) -> None:
        started.set()
        await go_on.wait()
        done.append("work")

    async def scenario() -> None:
        started, go_on = asyncio.Event(), asyncio.Event()
        task = asyncio.create_task(finish_despite_cancellation(work(started, go_on)))
        await started.wait()
        task.cancel()
        asyncio.get_running_loop().call_later(0.01, go_on.set)
        await asyncio.wait({task})
        assert task.cancelled()
        assert done == ["work"]

    asyncio.run(scenario())
