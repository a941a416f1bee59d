"""The script of CI: the README's second command, as on a machine without the programs that pytest-device installs."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.bare.blocks import ROOT, commands_of_readme

ABSENT: Final = (
    "node",
    "nodejs",
    "npm",
    "npx",
    "corepack",
    "chrome",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chromedriver",
    "redis-server",
    "redis-cli",
    "valkey-server",
)
TOX: Final = """
for name in {names}; do command -v "$name"; done
echo "PATH: $PATH"
python3.0 -c 'import sys; print("executable:", sys.executable)'
echo "arguments: $@"
exit 7
"""
PYTHON: Final = """
mkdir -p "$3/bin"
touch "$3/bin/pip"
cp "{tox}" "$3/bin/tox"
chmod +x "$3/bin/pip" "$3/bin/tox"
echo "python3: $@"
"""


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A clone with the script, and a folder of programs: those that must not be used, git and two Pythons."""
    (tmp_path / "clone/.ci").mkdir(parents=True)
    shutil.copy(ROOT / ".ci/run", tmp_path / "clone/.ci")
    programs = tmp_path / "some programs"
    programs.mkdir()
    tox = tmp_path / "tox"
    tox.write_text(f"#!/bin/sh\n{TOX.format(names=' '.join((*ABSENT, 'git')))}")
    for name in (*ABSENT, "git"):
        script(programs / name, "")
    script(programs / "python3", PYTHON.format(tox=tox))
    (programs / "python3.0").symlink_to(sys.executable)
    return tmp_path


def script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}")
    path.chmod(0o755)


def test_ci_runs_the_readmes_second_command_without_the_programs_that_are_installed(
    machine: Path,
) -> None:
    programs = machine / "some programs"
    environ = {
        **os.environ,
        "PATH": f"{programs}:relative:/no/such/directory:{os.environ['PATH']}",
    }

    run = subprocess.run(
        [machine / "clone/.ci/run"],
        env=environ,
        cwd=machine,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert (run.returncode, run.stderr) == (7, "")
    python, git, path, executable, arguments = run.stdout.splitlines()
    assert (python, arguments) == ("python3: -m venv .venv", "arguments: -p auto")
    bare = Path(path.removeprefix("PATH: "))
    assert git == str(bare / "git")
    # What an environment is made of stays.
    assert executable == f"executable: {programs / 'python3.0'}"
    assert not bare.exists()


def test_the_last_line_of_the_script_is_the_readmes_second_command() -> None:
    _, tests = commands_of_readme("python3 -m venv")

    assert (ROOT / ".ci/run").read_text().splitlines()[-1] == tests
