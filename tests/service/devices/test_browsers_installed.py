"""The real installation of the pinned browser by a service that starts, and its failures."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

import pytest_device
from pytest_device.service.devices.browsers import Pinned
from pytest_device.service.programs.toolchain import Node
from tests.pinned_browser import needs_pinned_browser
from tests.service.devices.registry import Registry, serving
from tests.service.process import config, started, stdin, steps_of

Script = Callable[[str, str], Path]

pytestmark = needs_pinned_browser

SECONDS: Final = 240
REFUSING: Final = "http://127.0.0.1:9"
MANIFESTS: Final = Path(pytest_device.__file__).parent / "service/programs/npm/chromium"


@pytest.fixture
def path(script: Script, node: Node) -> str:
    """A PATH with Node.js, and without a browser."""
    return str(script("node", f'#!/bin/sh\nexec "{node.executable}" "$@"\n').parent)


def settings(directory: Path) -> dict[str, Any]:
    """Return the configuration of a service that has a browser installed before it is ready."""
    requests = [{"platform": "android", "type": "appium"}]
    return config(
        directory,
        runner="real",
        types=[],
        requests=requests,
        cache_dir=str(directory.parent / "cache"),
    )


@contextmanager
def service(
    directory: Path, path: str, **environ: str
) -> Generator["subprocess.Popen[str]"]:
    """Start a service in a directory; end it with the block."""
    directory.mkdir(exist_ok=True)
    environ = {**os.environ, "PATH": path, **environ}
    with started(json.dumps(settings(directory)), env=environ) as process:
        yield process


def only_lock(cache: Path) -> bool:
    """Return whether a failed installation has left nothing in a cache but its lock."""
    [left] = cache.iterdir()
    return left.suffix == ".lock"


def says(program: Path) -> str:
    return subprocess.check_output([program, "--version"], text=True, timeout=SECONDS)


# The gate has the race with a small package: `programs/test_install_cache`.
@pytest.mark.nightly
def test_one_of_two_first_runs_installs_next_to_an_older_version(
    path: str, tmp_path: Path
) -> None:
    cache = tmp_path / "cache"
    older = cache / "chromium-152.0.0-0a1b2c3d/chromium"
    older.parent.mkdir(mode=0o700, parents=True)
    cache.chmod(0o700)
    older.touch()

    with service(tmp_path / "one", path) as one, service(tmp_path / "two", path) as two:
        runs = [steps_of(process) for process in (one, two)]

    assert [last["event"] for _, last in runs] == ["ready", "ready"]
    reported = "\n".join(step for steps, _ in runs for step in steps)
    assert reported.count("installed Chromium") == 1
    assert reported.count("installed chromedriver") == 1
    [browser] = cache.glob("chromium-153*/chromium")
    [chromedriver] = cache.glob("chromedriver-153*/chromedriver")
    kept = {
        older.parent,
        browser.parent,
        chromedriver.parent,
        browser.parent.with_name(f"{browser.parent.name}.lock"),
        chromedriver.parent.with_name(f"{chromedriver.parent.name}.lock"),
    }
    assert set(cache.iterdir()) == kept
    assert says(browser).startswith("Chromium 153.")
    assert says(chromedriver).startswith("ChromeDriver 153.")

    offline = {"npm_config_registry": REFUSING, "PIP_INDEX_URL": REFUSING}
    with service(tmp_path / "later", path, **offline) as later:
        steps, last = steps_of(later)
    assert (steps, last["event"]) == ([], "ready")


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory, node: Node) -> Path:
    """The browser as npm unpacks it, once for all archives that a test breaks."""
    directory = tmp_path_factory.mktemp("packages")
    for name in ("package.json", "package-lock.json"):
        shutil.copy(MANIFESTS / name, directory)
    install = [*node.npm, "ci", "--ignore-scripts", "--no-engine-strict"]
    subprocess.run(install, cwd=directory, check=True, timeout=SECONDS)
    return directory / "node_modules"


ALONE: Final = """#!/bin/sh
[ "$1" = -p ] && printf '["24.0.0", "%s"]' "$0" && exit
exec "{node}" "$@"
"""
"""A Node.js that has no npm next to it: that on PATH is used."""


@pytest.mark.parametrize(
    "damage",
    [
        "truncate -s 9000000",
        pytest.param("printf damaged | tee", marks=pytest.mark.nightly),
    ],
)
def test_a_broken_archive_is_reported_and_leaves_nothing(
    damage: str, script: Script, packages: Path, node: Node, tmp_path: Path
) -> None:
    archive = "node_modules/@sparticuz/chromium/bin/chromium.br"
    script("node", ALONE.format(node=node.executable))
    npm = script(
        "npm",
        f'#!/bin/sh\nPATH=/usr/bin:/bin\ncp -R "{packages}" . && {damage} {archive}\n',
    )

    with service(tmp_path / "run", str(npm.parent)) as process:
        _, last = steps_of(process)

    assert re.search(r"unexpected end|Decompression failed", last["text"])
    assert "Fix: an archive is corrupt" in last["text"]
    assert only_lock(tmp_path / "cache")


# Without it, `test_install_cache` shows what is reported, and the tests around it what is left.
@pytest.mark.nightly
def test_a_full_disk_is_reported_and_nothing_is_left_on_it(
    path: str, tmp_path: Path
) -> None:
    """A real one, of 120 MB, which only this test sees."""
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o700)
    (tmp_path / "run").mkdir()
    disk = f"mount -t tmpfs -o size=120m,mode=700 none {cache}"
    unshare = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
    if (
        not shutil.which("unshare")
        or subprocess.run([*unshare, disk], check=False).returncode
    ):
        pytest.skip("no disk can be mounted here")

    service = f'{disk} && PATH="$1" "$0" -P -m pytest_device.service; ls {cache}'
    with subprocess.Popen(
        [*unshare, service, sys.executable, path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as run:
        # Its input stays open: the service would end with it.
        stdin(run).write(f"{json.dumps(settings(tmp_path / 'run'))}\n")
        stdin(run).flush()
        assert run.stdout
        *_, failure, left = run.stdout.read().splitlines()

    text = json.loads(failure)["text"]
    assert "ENOSPC" in text
    assert "Fix: free about 500 MB of disk space" in text
    assert left.startswith("chromium-")
    assert left.endswith(".lock")


def failure(tmp_path: Path, path: str, **environ: str) -> str:
    """Return why a first run cannot install the browser, with an empty cache of npm's, which asks a registry once."""
    npm = {
        "npm_config_fetch_retries": "0",
        "npm_config_cache": str(tmp_path / "npm-cache"),
    }
    with service(tmp_path / "run", path, **npm, **environ) as process:
        _, last = steps_of(process)
    return str(last["text"])


def test_a_package_that_differs_from_the_pinned_one_is_refused(
    path: str, tmp_path: Path
) -> None:
    with serving(Registry(MANIFESTS / "package-lock.json")) as url:
        reported = failure(tmp_path, path, npm_config_registry=url)

    assert "EINTEGRITY" in reported
    assert "Fix: a package differs from the pinned one" in reported
    assert only_lock(tmp_path / "cache")


def test_without_its_chromedriver_the_browser_is_still_installed(
    path: str, tmp_path: Path
) -> None:
    browser = Pinned(tmp_path / "cache").program
    browser.parent.mkdir(mode=0o700, parents=True)
    browser.parent.parent.chmod(0o700)
    browser.touch()
    no_index = {
        "PIP_INDEX_URL": REFUSING,
        "PIP_RETRIES": "0",
        "PIP_NO_CACHE_DIR": "1",
        "PIP_CONFIG_FILE": os.devnull,
    }

    reported = failure(tmp_path, path, **no_index)

    assert re.match(
        r"chromedriver 153.* could not (.|\n)*Fix: check the network and", reported
    )
    browser.unlink()
    browser.parent.rmdir()
    assert only_lock(tmp_path / "cache")
