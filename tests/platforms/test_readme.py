"""The README's suite on a Mac's terms: no pinned browser, but one that its user has installed, with its chromedriver."""

import asyncio
import os
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from pytest_device.service.devices.browsers import BUILT_FOR, Pinned, hardware
from pytest_device.service.programs.guard import Guard
from pytest_device.service.programs.toolchain import Node, Toolbox
from pytest_device.spec import SessionType
from tests.platforms.suite import Suite
from tests.waiting import eventually

pytestmark = pytest.mark.skipif(
    hardware() != BUILT_FOR, reason="there is no browser to put on PATH"
)


@pytest.fixture
def browser_on_path(node: Node, cache_dir: Path) -> str:
    """Return a PATH with a browser and a chromedriver, which are those that Linux installs, and a Node.js."""
    pinned = Pinned(cache_dir)
    guard = Guard(environ=os.environ, log=print)
    try:
        toolbox = Toolbox(guard, os.environ, cache_dir)
        asyncio.run(pinned.install(toolbox, SessionType.APPIUM, print))
    finally:
        guard.close()

    programs = (pinned.program, pinned.chromedriver, node.executable)
    directories = [str(program.parent) for program in programs]
    return os.pathsep.join([*directories, os.environ["PATH"]])


# In the gate, `tests/bare` runs the suite, `test_runs` such a Python, and `service/test_programs` a browser on PATH.
@pytest.mark.nightly
@pytest.mark.parametrize("python", ["macos_like"], indirect=True)
def test_the_suite_of_the_readme_passes(
    suite: Suite, browser_on_path: str, cache_dir: Path, tmp_path: Path
) -> None:
    # Appium is installed there.
    caches = str(cache_dir.parent)
    init = suite.command("init", ".")
    assert init.status == 0, init.output

    temporary = tmp_path / "tmp"
    temporary.mkdir()
    # Both platforms have the same browser.
    run = suite.pytest(
        "--device-local",
        "-k",
        "android",
        PATH=browser_on_path,
        XDG_CACHE_HOME=caches,
        TMPDIR=str(temporary),
    )

    assert run.status == 0, run.output
    assert "2 passed, 2 deselected" in run.output
    assert "devices: 1 created, 1 stopped (confirmed)" in run.output
    assert eventually(lambda: not processes_of(temporary))


def processes_of(directory: Path) -> list[psutil.Process]:
    """Return the processes that are started in a directory, or for one."""
    started = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            texts = [*process.cmdline(), *process.environ().values()]
            if any(str(directory) in text for text in texts):
                started.append(process)
    return started
