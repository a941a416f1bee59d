"""The real installation of the pinned browser, and its failures."""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from pytest_device.errors import ConfigError
from pytest_device.service.devices.browsers import BUILT_FOR, Pinned, hardware
from pytest_device.service.programs.cache import Installer, Package
from pytest_device.service.programs.guard import Guard
from pytest_device.service.programs.toolchain import CHROMIUM, Node, Toolbox
from pytest_device.spec import SessionType

Script = Callable[[str, str], Path]

pytestmark = [
    pytest.mark.skipif(
        hardware() != BUILT_FOR, reason="the pinned browser is not for this system"
    ),
    pytest.mark.usefixtures("node_on_path"),
]

SECONDS: Final = 240
INSTALL: Final = """
import asyncio, os, sys
from pathlib import Path
from pytest_device.service.devices.browsers import Pinned
from pytest_device.service.programs.guard import Guard
from pytest_device.service.programs.toolchain import Toolbox
from pytest_device.spec import SessionType

cache = Path(sys.argv[1])
guard = Guard(environ=os.environ, log=print)
try:
    asyncio.run(Pinned(cache).install(Toolbox(guard, os.environ, cache), SessionType.APPIUM, print))
finally:
    guard.close()
"""
"""A first run, as far as the browser goes."""


@pytest.fixture
def guard() -> Iterator[Guard]:
    guard = Guard(environ=os.environ, log=print)
    yield guard
    guard.close()


def test_one_of_two_first_runs_installs_next_to_an_older_version(
    guard: Guard, tmp_path: Path
) -> None:
    older = tmp_path / "chromium-152.0.0-0a1b2c3d/chromium"
    older.parent.mkdir()
    older.touch()
    command = [sys.executable, "-c", INSTALL, str(tmp_path)]

    runs = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    reported = "".join(run.communicate(timeout=SECONDS)[0] for run in runs)

    assert [run.returncode for run in runs] == [0, 0]
    assert (
        reported.count("installed Chromium"),
        reported.count("installed chromedriver"),
    ) == (1, 1)
    pinned = Pinned(tmp_path)
    kept = {
        older.parent,
        pinned.program.parent,
        pinned.chromedriver.parent,
        *(
            directory.with_name(f"{directory.name}.lock")
            for directory in (pinned.program.parent, pinned.chromedriver.parent)
        ),
    }
    assert set(tmp_path.iterdir()) == kept
    assert _says(pinned.program).startswith("Chromium 153.")
    assert _says(pinned.chromedriver).startswith("ChromeDriver 153.")
    assert pinned.missing(SessionType.APPIUM) == []
    nothing_to_ask = {
        "PATH": "",
        "npm_config_registry": "http://127.0.0.1:9",
        "PIP_INDEX_URL": "http://127.0.0.1:9",
    }
    asyncio.run(
        pinned.install(
            Toolbox(guard, nothing_to_ask, tmp_path), SessionType.APPIUM, pytest.fail
        )
    )


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory, node: Node) -> Path:
    """The browser as npm unpacks it, once for all archives that a test breaks."""
    directory = tmp_path_factory.mktemp("packages")
    for file in CHROMIUM.files:
        shutil.copy(file, directory)
    install = [*node.npm, "ci", "--ignore-scripts", "--no-engine-strict"]
    subprocess.run(install, cwd=directory, check=True, timeout=SECONDS)
    return directory / "node_modules"


@pytest.mark.parametrize("damage", ["truncate -s 9000000", "printf damaged | tee"])
def test_a_broken_archive_is_reported_and_leaves_nothing(
    damage: str,
    guard: Guard,
    script: Script,
    packages: Path,
    node: Node,
    tmp_path: Path,
) -> None:
    archive = "node_modules/@sparticuz/chromium/bin/chromium.br"
    breaking = script("npm", f'#!/bin/sh\ncp -R "{packages}" . && {damage} {archive}\n')
    command: list[str | Path] = [node.executable, "install.mjs", breaking]
    package = Package(
        "Chromium",
        tmp_path / "cache/chromium",
        CHROMIUM.script,
        command,
        CHROMIUM.files,
    )

    with pytest.raises(
        ConfigError,
        match=r"(unexpected end|Decompression failed)(.|\n)*Fix: an archive is corrupt",
    ):
        asyncio.run(Installer(guard, os.environ, print).ensure(package))

    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["chromium.lock"]


def test_a_full_disk_is_reported_and_nothing_is_left_on_it(tmp_path: Path) -> None:
    """A real one, of 120 MB, which only this test sees."""
    disk = f"mount -t tmpfs -o size=120m,mode=700 none {tmp_path}"
    unshare = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
    if (
        not shutil.which("unshare")
        or subprocess.run([*unshare, disk], check=False).returncode
    ):
        pytest.skip("no disk can be mounted here")

    run = subprocess.run(
        [
            *unshare,
            f'{disk} && "$0" -c "$1" {tmp_path}; ls {tmp_path}',
            sys.executable,
            INSTALL,
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )

    assert "ENOSPC" in run.stderr
    assert "Fix: free about 500 MB of disk space" in run.stderr
    assert run.stdout.splitlines()[-1].startswith("chromium-")
    assert run.stdout.splitlines()[-1].endswith(".lock")


def _says(program: Path) -> str:
    return subprocess.check_output([program, "--version"], text=True, timeout=SECONDS)
