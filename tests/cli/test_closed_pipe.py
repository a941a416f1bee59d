"""Commands whose output is read by a program that ends early, such as ``head``."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import CODE


@pytest.mark.skipif(sys.platform == "win32", reason="there is no EPIPE on Windows")
@pytest.mark.parametrize(
    "unbuffered", [False, True], ids=["fails at the flush", "fails at a write"]
)
@pytest.mark.parametrize(
    "arguments",
    [
        ("--help",),
        ("--version",),
        ("trace", "list", "--help"),
        ("init", "suite"),
        ("doctor", "--json"),
    ],
    ids=" ".join,
)
def test_a_command_ends_quietly_when_nobody_reads_its_output(
    tmp_path: Path, arguments: tuple[str, ...], *, unbuffered: bool
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        result = subprocess.run(
            [sys.executable, *(["-u"] if unbuffered else []), "-c", CODE, *arguments],
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
