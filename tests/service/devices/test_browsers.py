"""Which browser a session gets, and the errors if the pinned one cannot be installed."""

import asyncio
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pytest_device.errors import ConfigError
from pytest_device.service import programs
from pytest_device.service.devices.availability import Availability
from pytest_device.service.devices.browsers import BUILT_FOR, Pinned, find
from pytest_device.service.programs.cache import Installer, Package
from pytest_device.service.programs.guard import Guard
from pytest_device.service.programs.toolchain import CHROMIUM, Toolbox
from pytest_device.spec import SessionType
from tests.service.devices.registry import Registry, serving

Script = Callable[[str, str], Path]

APPIUM, ARGENT = SessionType.APPIUM, SessionType.ARGENT
OLD = "chromedriver 150 on PATH does not match Chromium 156"
REFUSING = "http://127.0.0.1:9"


@pytest.fixture
def guard() -> Iterator[Guard]:
    guard = Guard(environ=os.environ, log=print)
    yield guard
    guard.close()


@pytest.fixture
def cache_dir(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def availability(
    tmp_path: Path, session_type: SessionType, built_for: str = BUILT_FOR
) -> Availability:
    environ = {"PATH": str(tmp_path / "bin")}
    return asyncio.run(
        find(environ, session_type, cache_dir=tmp_path / "cache", built_for=built_for)
    )


def installs(script: Script, **versions: str) -> None:
    for name, version in versions.items():
        script(name, f"#!/bin/sh\necho '{version}'\n")


@pytest.mark.parametrize(
    ("versions", "session_type", "unused"),
    [
        (
            {
                "chromium": "Chromium 156.0.1.2 built on it",
                "chromedriver": "ChromeDriver 156.0.8078.79",
            },
            APPIUM,
            None,
        ),
        ({"chromium": "", "chromedriver": "ChromeDriver 156.0.8078.79"}, APPIUM, None),
        ({"chromium": "Chromium 156.0.1.2"}, ARGENT, None),
        (
            {
                "chromium": "Chromium 156.0.1.2",
                "chromedriver": "ChromeDriver 150.0.1.2",
            },
            ARGENT,
            None,
        ),
        (
            {
                "chromium": "Chromium 156.0.1.2",
                "chromedriver": "ChromeDriver 150.0.1.2",
            },
            APPIUM,
            OLD,
        ),
        ({"chromium": "Chromium 156.0.1.2"}, APPIUM, "chromedriver is not on PATH"),
        ({"chromedriver": "ChromeDriver 156.0.1.2"}, APPIUM, ""),
        ({}, ARGENT, ""),
    ],
)
def test_the_machines_browser_is_preferred_but_for_appium_only_with_a_matching_chromedriver(
    versions: dict[str, str],
    session_type: SessionType,
    unused: str | None,
    script: Script,
    tmp_path: Path,
) -> None:
    installs(script, **versions)
    own, pinned = tmp_path / "bin/chromium", Pinned(tmp_path / "cache")

    browser = availability(tmp_path, session_type)

    if unused is None:
        assert (browser.program, browser.about, browser.to_install) == (
            own,
            versions["chromium"],
            "",
        )
    else:
        why = f"; {own} is not used: {unused}" if unused else ""
        assert (browser.program, browser.missing) == (pinned.program, "")
        assert browser.about == f"Chromium 153.0.0, installed by pytest-device{why}"
        assert browser.to_install.startswith("Chromium 153.0.0")
        assert ("chromedriver" in browser.to_install) == (session_type is APPIUM)


@pytest.mark.parametrize(
    ("versions", "missing"),
    [
        ({}, "no Chromium is on PATH, chromedriver is not on PATH"),
        ({"chromium": "Chromium 156.0.1.2"}, "chromedriver is not on PATH"),
        (
            {
                "chromium": "Chromium 156.0.1.2",
                "chromedriver": "ChromeDriver 150.0.1.2",
            },
            OLD,
        ),
    ],
)
@pytest.mark.parametrize(
    "built_for", ["Linux aarch64", "Darwin arm64", "Darwin x86_64"]
)
def test_on_other_systems_nothing_is_installed_and_the_command_is_named(
    versions: dict[str, str],
    missing: str,
    built_for: str,
    script: Script,
    tmp_path: Path,
) -> None:
    installs(script, **versions)

    browser = availability(tmp_path, APPIUM, built_for)

    assert (browser.missing, browser.to_install) == (missing, "")
    assert "install" in browser.fix


def test_a_browser_in_a_cache_that_others_can_write_to_is_not_used(
    tmp_path: Path,
) -> None:
    (tmp_path / "cache").mkdir(mode=0o700)
    assert availability(tmp_path, APPIUM).missing == ""

    (tmp_path / "cache").chmod(0o777)

    problem = (
        f"the cache of programs {tmp_path / 'cache'} can be written to by other users"
    )
    assert problem in availability(tmp_path, APPIUM).missing


def test_browser_and_chromedriver_have_the_same_version_and_a_pinned_hash() -> None:
    [driver] = Pinned(Path("cache")).missing(APPIUM)[1:]
    requirements = Path(programs.__file__).parent / "pip/chromedriver/requirements.txt"

    assert (
        driver.removeprefix("chromedriver ").split(".")[0]
        == CHROMIUM.version.split(".")[0]
    )
    assert re.fullmatch(
        r"chromedriver-py==[\d.]+ \\\n    --hash=sha256:[0-9a-f]{64}\n",
        requirements.read_text(),
    )


def toolbox(
    guard: Guard, cache_dir: Path, npm: str = REFUSING, pip: str = REFUSING
) -> Toolbox:
    """Return one with empty caches of npm's and pip's, which ask these registries once."""
    environ = {
        "PATH": os.environ["PATH"],
        "npm_config_registry": npm,
        "npm_config_fetch_retries": "0",
        "npm_config_cache": str(cache_dir.with_name("npm-cache")),
        "PIP_INDEX_URL": pip,
        "PIP_RETRIES": "0",
        "PIP_NO_CACHE_DIR": "1",
        "PIP_CONFIG_FILE": os.devnull,
    }
    return Toolbox(guard, environ, cache_dir)


def failure(guard: Guard, cache_dir: Path, npm: str = REFUSING) -> str:
    """Return why the browser cannot be installed; check that nothing is left."""
    with pytest.raises(ConfigError) as error:
        asyncio.run(
            Pinned(cache_dir).install(toolbox(guard, cache_dir, npm), APPIUM, print)
        )
    assert [path.suffix for path in cache_dir.iterdir()] == [".lock"]
    return str(error.value)


@pytest.mark.usefixtures("node_on_path")
def test_without_a_registry_the_reason_is_reported_and_nothing_is_left(
    guard: Guard, cache_dir: Path
) -> None:
    reported = failure(guard, cache_dir)

    assert reported.startswith("Chromium 153.0.0 could not be installed")
    assert "ECONNREFUSED" in reported
    assert "Fix: check the network, the proxy and the registry" in reported


@pytest.mark.usefixtures("node_on_path")
def test_a_registry_that_goes_away_halfway_leaves_nothing(
    guard: Guard, cache_dir: Path
) -> None:
    with serving(Registry(CHROMIUM, half=True)) as url:
        reported = failure(guard, cache_dir, url)

    assert re.search("aborted|ECONNRESET|premature|socket hang up", reported)
    assert "Fix: check the network, the proxy and the registry" in reported


@pytest.mark.usefixtures("node_on_path")
def test_a_package_that_differs_from_the_pinned_one_is_refused(
    guard: Guard, cache_dir: Path
) -> None:
    with serving(Registry(CHROMIUM)) as url:
        reported = failure(guard, cache_dir, url)

    assert "EINTEGRITY" in reported
    assert "Fix: a package differs from the pinned one" in reported


def test_without_its_chromedriver_the_browser_is_still_installed(
    guard: Guard, cache_dir: Path
) -> None:
    pinned = Pinned(cache_dir)
    pinned.program.parent.mkdir(parents=True)
    pinned.program.touch()

    with pytest.raises(
        ConfigError,
        match=r"^chromedriver 153.* could not (.|\n)*Fix: check the network and",
    ):
        asyncio.run(pinned.install(toolbox(guard, cache_dir), APPIUM, print))

    assert sorted(path.name for path in cache_dir.iterdir()) == [
        f"{pinned.chromedriver.parent.name}.lock",
        pinned.program.parent.name,
    ]


@pytest.mark.parametrize(
    ("line", "fix"),
    [
        (
            "headless_shell: error while loading shared libraries: libglib-2.0.so.0: cannot open",
            "lacks what",
        ),
        (
            "/lib/libc.so.6: version `GLIBC_2.38' not found",
            "lacks what the program needs",
        ),
        ("No module named pip", "this Python has no pip"),
    ],
)
def test_a_system_that_cannot_run_it_is_reported_with_the_install_command(
    line: str, fix: str, guard: Guard, cache_dir: Path, script: Script
) -> None:
    command = script(
        "install",
        f'#!/bin/sh\necho "{line.replace("`", chr(92) + "`")}" >&2\nexit 127\n',
    )
    package = Package(
        "Thing",
        cache_dir / "thing",
        Path("proof"),
        [command],
        by_hand="apt-get install thing",
    )

    with pytest.raises(ConfigError, match=f"Fix: apt-get install thing.*{fix}"):
        asyncio.run(Installer(guard, {"PATH": "/usr/bin:/bin"}, print).ensure(package))
