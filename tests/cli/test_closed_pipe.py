"""Commands whose output is closed or cannot be written, or is read by a program that ends early, such as ``head``."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import CODE, run


@pytest.mark.skipif(sys.platform == "win32", reason="there is no EPIPE on Windows")
@pytest.mark.parametrize(
    ("command", "unbuffered"),
    [
        ("--help", True),
        ("init suite", False),
        ("doctor --json", False),
        *(
            pytest.param(*case, marks=pytest.mark.nightly)
            for case in (
                ("--help", False),
                ("--version", False),
                ("--version", True),
                ("trace list --help", False),
                ("trace list --help", True),
                ("init suite", True),
                ("doctor --json", True),
            )
        ),
    ],
)
def test_a_command_ends_quietly_when_nobody_reads_its_output(
    tmp_path: Path, command: str, *, unbuffered: bool
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        result = subprocess.run(
            [
                *(sys.executable, *(["-u"] if unbuffered else [])),
                *("-c", CODE, *command.split()),
            ],
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=120,
            cwd=tmp_path,
        )
    finally:
        os.close(writer)

    assert result.stderr == ""
    assert result.returncode == 141


def test_a_command_ends_quietly_when_nobody_reads_its_errors(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        result = subprocess.run(
            [sys.executable, "-c", CODE, "trace", "list", "missing"],
            stdout=subprocess.PIPE,
            stderr=writer,
            text=True,
            check=False,
            timeout=120,
            cwd=tmp_path,
        )
    finally:
        os.close(writer)

    assert result.stdout == ""
    assert result.returncode == 141


@pytest.mark.skipif(sys.platform == "win32", reason="there is no sh on Windows")
@pytest.mark.parametrize(
    ("redirection", "arguments", "status"),
    [
        (">&-", "--version", 0),
        pytest.param(">&-", "sessions --json", 0, marks=pytest.mark.nightly),
        ("2>&-", "trace list missing", 2),
        ("<&- >&- 2>&-", "sessions", 0),
    ],
)
def test_a_command_works_without_output(
    tmp_path: Path, redirection: str, arguments: str, status: int
) -> None:
    shell = ["sh", "-c", f'"$@" {arguments} {redirection}', "sh"]

    result = run(before=shell, cwd=tmp_path, DEVICE_STATE_DIR=str(tmp_path))

    assert (result.returncode, result.stdout, result.stderr) == (status, "", "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
@pytest.mark.parametrize("flag", ["", "-u"], ids=["flush", "write"])
def test_a_full_disk_is_one_line(tmp_path: Path, flag: str) -> None:
    shell = ["sh", "-c", '"$@" --version >/dev/full', "sh"]

    result = run(before=shell, cwd=tmp_path, PYTHONUNBUFFERED=flag)

    assert result.returncode == 1
    assert result.stderr == (
        "pytest-device: cannot write the output: No space left on device\n"
    )
