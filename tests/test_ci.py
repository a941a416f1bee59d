"""The script of CI: the README's second command, as on a machine with one Python and nothing else of its user's."""

import os
import shutil
import subprocess
from collections.abc import Sequence
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
    "python",
    "python3.99",
    "pip3",
    "pyenv",
    "uv",
)
HIDDEN: Final = {
    "CI": "true",
    "PYENV_ROOT": "{home}/.pyenv",
    "PYENV_VERSION": "3.99.0",
    "VIRTUAL_ENV": "/no/such/environment",
    "UV_PYTHON": "3.99",
    "XDG_CACHE_HOME": "{home}/cache",
    "npm_config_update_notifier": "false",
    "A_TOKEN": "made-up-token",
}
REGISTRIES: Final = {
    "HTTPS_PROXY": "http://proxy.example",
    "no_proxy": "localhost",
    "SSL_CERT_FILE": "/no/such/authority",
    "PIP_INDEX_URL": "https://pip.example",
    "NPM_CONFIG_REGISTRY": "https://npm.example",
    "UV_DEFAULT_INDEX": "https://uv.example",
}
TOX: Final = """#!/bin/sh
for name in {names}; do command -v "$name"; done
echo "arguments: $@"
env > "{directory}/environment"
cp -r "$HOME" "{directory}/copy of home"
exit 7
"""
PYTHON: Final = """#!/bin/sh
[ "$1" = -I ] && echo "{version} $0" && exit
mkdir -p "$3/bin"
touch "$3/bin/pip"
cp "{directory}/tox" "$3/bin/tox"
chmod +x "$3/bin/pip" "$3/bin/tox"
echo "python3: $0 $@"
"""


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A clone with the script, folders of programs that must not be used, and a home with settings."""
    (tmp_path / "clone/.ci").mkdir(parents=True)
    shutil.copy(ROOT / ".ci/run", tmp_path / "clone/.ci")
    shutil.copy(ROOT / "pyproject.toml", tmp_path / "clone")
    names = " ".join((*ABSENT, "of_user", "git"))
    script(tmp_path / "tox", TOX.format(names=names, directory=tmp_path))
    for name in (*ABSENT, "git"):
        script(tmp_path / "some programs" / name, "#!/bin/sh\nexit 1\n")
    script(tmp_path / "home/bin/of_user", "#!/bin/sh\n")
    # A shim starts the Python that a version manager chooses: it is never asked.
    script(tmp_path / "some/shims/python3", f"#!/bin/sh\ntouch '{tmp_path}/asked'\n")
    write(tmp_path / "home/.config/pip/pip.conf", "[global]\ntimeout = 9\n")
    npm = "@it:registry=https://npm.example\nupdate-notifier=false\nca=made-up\n"
    write(tmp_path / "home/.npmrc", npm)
    write(tmp_path / "home/.cache/pytest-device/program", "")
    return tmp_path


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def script(path: Path, text: str) -> None:
    write(path, text)
    path.chmod(0o755)


def run_of_ci(machine: Path) -> tuple[Sequence[str], Path]:
    """Run the script; return the lines that it printed, and the folder that it had made of PATH."""
    folders = ("some/shims", "home/bin", "some programs")
    path = [*(str(machine / name) for name in folders), "relative", "/no/such/folder"]
    home = machine / "home"
    run = subprocess.run(
        [machine / "clone/.ci/run"],
        env={
            "PATH": ":".join([*path, os.defpath]),
            "HOME": str(home),
            "USER": "ada",
            **REGISTRIES,
            **{name: value.format(home=home) for name, value in HIDDEN.items()},
        },
        cwd=machine,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (run.returncode, run.stderr) == (7, "")
    environment = (machine / "environment").read_text().splitlines()
    (folder,) = [line for line in environment if line.startswith("PATH=")]
    return run.stdout.splitlines(), Path(folder.removeprefix("PATH="))


@pytest.mark.parametrize(
    ("on_path", "of_manager", "chosen"),
    [
        ("3.11.0", "3.99.0", "some programs/python3"),
        ("3.99.0", "3.11.0", "home/.pyenv/versions/it/bin/python3"),
    ],
)
def test_ci_runs_the_readmes_second_command_on_the_lowest_python_and_says_what_it_hides(
    machine: Path, on_path: str, of_manager: str, chosen: str
) -> None:
    for name, version in (
        ("some programs/python3", on_path),
        ("home/.pyenv/versions/it/bin/python3", of_manager),
    ):
        script(machine / name, PYTHON.format(version=version, directory=machine))

    (said, python, git, arguments), bare = run_of_ci(machine)

    beginning, _, hidden = said.partition("; hidden: ")
    assert beginning == "Python 3.11.0 alone, an empty home"
    assert {*ABSENT, *HIDDEN} <= {*hidden.split()}
    assert python == f"python3: {machine / chosen} -m venv .venv"
    assert (git, arguments) == (str(bare / "git"), "arguments: -p auto")
    assert not (machine / "asked").exists()
    assert not bare.parent.exists()


def test_ci_keeps_what_leads_to_the_registries_and_nothing_else_of_the_user(
    machine: Path,
) -> None:
    python = PYTHON.format(version="3.11.0", directory=machine)
    script(machine / "some programs/python3", python)

    run_of_ci(machine)

    lines = (machine / "environment").read_text().splitlines()
    environ = dict(line.split("=", 1) for line in lines)
    assert REGISTRIES.items() <= environ.items()
    assert environ["USER"] == "ada"
    assert not HIDDEN.keys() & environ.keys()
    home = machine / "copy of home"
    files = {str(path.relative_to(home)) for path in home.rglob("*") if path.is_file()}
    assert files == {".config/pip/pip.conf", ".npmrc"}
    npm = (home / ".npmrc").read_text()
    assert npm == "@it:registry=https://npm.example\nca=made-up\n"


def test_the_last_line_of_the_script_is_the_readmes_second_command() -> None:
    _, tests = commands_of_readme("python3 -m venv")

    assert (ROOT / ".ci/run").read_text().splitlines()[-1] == tests
