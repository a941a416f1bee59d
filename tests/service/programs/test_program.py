"""Short commands for their output.

They are cancelled at each step of their start, which nothing outside can hit.
"""

import asyncio
import os
from pathlib import Path

import psutil
import pytest

from pytest_device.errors import ConfigError
from pytest_device.service.programs.program import ask
from tests.service.programs.alive import alive
from tests.waiting import eventually

SLEEPER = ["sh", "-c", "exec sleep 99"]


def children() -> set[psutil.Process]:
    return set(psutil.Process().children(recursive=True))


@pytest.mark.parametrize("steps", [*range(6), "until it runs"])
def test_a_cancelled_command_is_killed(steps: int | str) -> None:
    before = children()

    async def scenario() -> None:
        asking = asyncio.create_task(ask(SLEEPER, environ=os.environ))
        if isinstance(steps, int):
            for _ in range(steps):
                await asyncio.sleep(0)
        else:
            async with asyncio.timeout(10):
                while not children() - before:  # noqa: ASYNC110  # nothing reports when it starts
                    await asyncio.sleep(0.01)
        asking.cancel()
        async with asyncio.timeout(10):
            await asyncio.wait({asking})
        assert asking.cancelled()

    asyncio.run(scenario())

    assert children() <= before


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("echo $$ > pid; exec sleep 99", id="a program"),
        pytest.param("sleep 99 & echo $! > pid; wait", id="a child of a wrapper"),
    ],
)
def test_a_command_that_takes_too_long_is_killed(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    seconds = 0.25

    # On a busy machine, the program needs some time to start.
    while not (tmp_path / "pid").exists() and seconds < 60:
        seconds *= 2
        with pytest.raises(ConfigError, match=rf"^sh timed out after {seconds:g} s$"):
            asyncio.run(
                ask(["sh", "-c", script], environ=os.environ, limit_seconds=seconds)
            )

    sleeper = int((tmp_path / "pid").read_text())
    assert eventually(lambda: not is_alive(sleeper))


def is_alive(pid: int) -> bool:
    try:
        return alive(psutil.Process(pid))
    except psutil.NoSuchProcess:
        return False
