"""Programs that tests start as forks look like any other process to the test."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from tests import forking

pytestmark = [
    pytest.mark.every_python,
    pytest.mark.skipif(sys.platform != "linux", reason="forks are for Linux"),
]

WRONG: Final = [sys.executable, *forking.COMMAND, "--nonsense"]
RUN: Final = [sys.executable, "-m", "pytest", "-s"]
SERVICE: Final = [sys.executable, *forking.SERVICE]


def command_line(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")


def test_a_program_is_a_fork_with_the_streams_of_a_process() -> None:
    with forking.Popen(
        SERVICE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert forking.__file__ in command_line(process.pid)

        output, errors = process.communicate("{}\n")

    assert '"error"' in output
    assert errors is None
    assert process.returncode == process.wait() != 0
    assert process.args == SERVICE


def test_a_run_of_pytester_is_a_fork_and_so_are_its_workers(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        """
        from pathlib import Path

        def test_it():
            print("RUN BY", Path("/proc/self/cmdline").read_text())
        """
    )

    for options in ([], ["-n1"]):
        result = pytester.runpytest_subprocess("-rP", *options)

        result.stdout.fnmatch_lines([f"RUN BY *{forking.__file__}*"])


@pytest.mark.parametrize(
    ("more", "begins"),
    [
        ({"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}, ("", "usage")),
        ({"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}, ("usage", None)),
        ({"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}, (None, "usage")),
    ],
    ids=["both", "together", "errors"],
)
@pytest.mark.parametrize(
    ("text", "decode"),
    [({}, bytes.decode), ({"encoding": "utf-8"}, str)],
    ids=["bytes", "text"],
)
def test_a_fork_writes_where_a_process_would(
    more: dict[str, Any],
    begins: tuple[str | None, str | None],
    text: dict[str, Any],
    decode: Callable[[Any], str],
) -> None:
    with forking.Popen(WRONG, **more, **text) as process:
        written = process.communicate()

    assert process.returncode == 2
    for stream, begin in zip(written, begins, strict=True):
        if begin is None:
            assert stream is None
        else:
            assert decode(stream)[:5] == begin


def test_a_run_as_a_fork_has_its_own_directory_environment_and_group(
    tmp_path: Path,
) -> None:
    (tmp_path / "test_it.py").write_text(
        "import os\n"
        "def test_it():\n"
        "    print(os.getcwd(), os.environ['MARK'], os.getpgid(0))\n"
    )
    with (
        (tmp_path / "output").open("w+") as file,
        forking.Popen(
            RUN,
            stdout=file,
            cwd=tmp_path,
            env=os.environ | {"MARK": "of this one"},
            process_group=0,
        ) as process,
    ):
        assert process.wait() == 0

    assert f"{tmp_path} of this one {process.pid}" in (tmp_path / "output").read_text()


def test_the_status_of_a_killed_fork_is_its_signal() -> None:
    with forking.Popen(SERVICE, stdin=subprocess.PIPE) as process:
        process.kill()

        assert process.wait() == -signal.SIGKILL


@pytest.mark.parametrize(
    "more",
    [{"executable": sys.executable}, {"pass_fds": [0]}],
    ids=["program", "files"],
)
def test_a_program_that_needs_a_fresh_interpreter_gets_one(
    more: dict[str, Any],
) -> None:
    with forking.Popen(SERVICE, stdin=subprocess.PIPE, **more) as process:
        assert forking.__file__ not in command_line(process.pid)
        process.kill()
