"""Processes started by tests have default signals, whatever the test process inherited."""

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parent.parent
UNDER_NOHUP: Final = ("sh", "-c", "trap '' INT QUIT HUP TERM; exec \"$@\"", "sh")
SUITE: Final = '''
import os, signal, subprocess, sys

CODE = """
import signal
numbers = signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM
print([number.name for number in numbers if signal.getsignal(number) == signal.SIG_IGN])
"""

def test_it():
    os.kill(os.getpid(), signal.SIGHUP)
    assert subprocess.check_output([sys.executable, "-c", CODE], text=True).strip() == "[]"
'''

pytestmark = [
    pytest.mark.every_python,
    pytest.mark.skipif(sys.platform == "win32", reason="there is no nohup"),
]


@pytest.mark.parametrize(
    "options",
    [
        pytest.param((), id="alone"),
        pytest.param(("-n1",), id="in a worker", marks=pytest.mark.nightly),
    ],
)
def test_under_nohup_tests_keep_ignoring_signals_but_their_processes_do_not(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    (tmp_path / "test_it.py").write_text(SUITE)
    alike = (
        "-c",
        str(ROOT / "pyproject.toml"),
        "-p",
        "tests.conftest",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:anyio",
    )
    command = [
        *UNDER_NOHUP,
        sys.executable,
        "-m",
        "pytest",
        *alike,
        *options,
        str(tmp_path),
    ]

    run = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )

    assert "1 passed" in run.stdout, run.stdout + run.stderr
