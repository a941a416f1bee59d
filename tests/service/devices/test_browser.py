"""A browser process that fails to start.

Through a service each would cost a start of one, and it does not say how long it waits for a browser.
"""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_device.errors import ControllerError
from pytest_device.service.devices.browser import (
    browsing,
    find_browsers,
    find_chromedriver,
)
from pytest_device.service.programs.guard import Guard
from pytest_device.service.programs.processes import find_processes

Script = Callable[[str, str], Path]


Start = Callable[..., None]


@pytest.fixture
def start(guard: Guard) -> Start:
    """Start a browser in a directory, and end it once it is ready."""

    def start(program: Path, directory: Path, limit_seconds: float = 20) -> None:
        async def scenario() -> None:
            async with browsing(
                program,
                size=(400, 800),
                directory=directory,
                environ=os.environ,
                guard=guard,
                log=print,
                limit_seconds=limit_seconds,
            ):
                pass

        asyncio.run(scenario())

    return start


def test_a_browser_that_exits_during_startup_is_reported_with_its_output(
    start: Start, script: Script, tmp_path: Path
) -> None:
    program = script(
        "chromium",
        "#!/bin/sh\necho 'dbus/bus.cc: noise'\necho 'no such library' >&2\nexit 3\n",
    )

    with pytest.raises(
        ControllerError,
        match=r"exited during startup: exit status 3\nThe end of its log:\n    no such library$",
    ):
        start(program, tmp_path / "session")


def test_a_browser_that_crashes_once_is_restarted(
    start: Start, script: Script, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    crash_first = """#!/bin/sh
        [ -e crashed ] || { touch crashed; kill -SEGV $$; }
        printf '{"id":1,"result":{}}\\0' >&4
        exec sleep 99
    """

    start(script("chromium", crash_first.lstrip()), tmp_path / "session")

    assert (
        capsys.readouterr().out
        == "the browser exited during startup: killed by SIGSEGV; starting it again\n"
    )
    assert not find_processes([tmp_path / "session"])


def test_an_unresponsive_browser_times_out_and_leaves_no_process(
    start: Start, script: Script, tmp_path: Path
) -> None:
    program = script("chromium", "#!/bin/sh\necho waiting\nexec sleep 99\n")

    with pytest.raises(ControllerError, match=r"not ready within 0\.2 s"):
        start(program, tmp_path / "session", limit_seconds=0.2)

    assert not find_processes([tmp_path / "session"])


def test_a_browser_with_endless_output_is_not_blocked(
    start: Start, script: Script, tmp_path: Path
) -> None:
    program = script(
        "chromium", "#!/bin/sh\nyes 'a line of output' | head -c 300000\nexit 4\n"
    )

    with pytest.raises(
        ControllerError, match=r"exit status 4\nThe end of its log:\n    .*output"
    ):
        start(program, tmp_path / "session")


def test_a_browser_that_cannot_be_run_is_reported(start: Start, tmp_path: Path) -> None:
    with pytest.raises(
        ControllerError, match="none cannot be run: No such file or directory"
    ):
        start(tmp_path / "none", tmp_path / "session")


@pytest.mark.parametrize("usual", ["/tmp", "x" * 60])
def test_its_temporary_files_are_private_have_a_short_path_and_are_removed(
    usual: str,
    start: Start,
    script: Script,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = tmp_path / usual
    place.mkdir(exist_ok=True)
    monkeypatch.setattr("tempfile.tempdir", str(place))
    program = script("chromium", '#!/bin/sh\nls -ld "$TMPDIR"\nexit 3\n')

    with pytest.raises(
        ControllerError, match=r"\n    drwx------.* /tmp/pd-\w+$"
    ) as failure:
        start(program, tmp_path / "session")

    assert not Path(str(failure.value).split()[-1]).exists()


@pytest.mark.parametrize(
    "name", ["chromium", "chromium-browser", "google-chrome", "chrome"]
)
def test_a_browser_is_found_on_path_by_each_of_its_names(
    name: str, script: Script
) -> None:
    program = script(name, "#!/bin/sh\n")

    assert find_browsers({"PATH": str(program.parent)}) == [program]


def test_without_a_browser_on_path_none_is_found(tmp_path: Path) -> None:
    assert find_browsers({"PATH": str(tmp_path)}) == []
    assert find_chromedriver({}) is None
