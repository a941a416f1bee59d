"""The suite of the README: it passes unchanged, without an account."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bare.blocks import commands_of_readme, files_of_readme

pytestmark = pytest.mark.timeout(600)  # the first run of a user installs browser and controller


def passes(command: str, directory: Path) -> bool:
    """Run a pytest command as a CI shell does, with the pytest that runs this test; four tests must pass."""
    bin_dir = Path(sys.executable).parent
    result = subprocess.run(
        ["bash", "-e", "-c", command],
        cwd=directory,
        env={**os.environ, "PATH": f"{bin_dir}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    sys.stdout.write(result.stdout + result.stderr)
    return result.returncode == 0 and " 4 passed in " in result.stdout


def test_the_suite_of_the_readme_passes_when_pasted(tmp_path: Path) -> None:
    for name, text in files_of_readme().items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (command,) = commands_of_readme("pytest --device-local")

    assert passes(command, tmp_path)
