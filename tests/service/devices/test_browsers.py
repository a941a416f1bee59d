"""Which browser a session gets.

The programs of the machine are scripts, and the search is asked itself: it names what is missing on any hardware, where a
service knows its own only.
"""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from pytest_device.service import programs
from pytest_device.service.devices.browsers import BUILT_FOR, Pinned
from pytest_device.service.programs.toolchain import CHROMIUM
from pytest_device.spec import SessionType
from tests.fakes.machine import FakeMachine

APPIUM, ARGENT = SessionType.APPIUM, SessionType.ARGENT
OLD = "chromedriver 150 on PATH does not match Chromium 156"
REFUSING = "http://127.0.0.1:9"


@pytest.fixture
def machine(tmp_path: Path) -> FakeMachine:
    return FakeMachine(tmp_path)


@pytest.fixture
def cache_dir(machine: FakeMachine) -> Path:
    return machine.cache


def install(machine: FakeMachine, versions: Mapping[str, str]) -> None:
    for name, version in versions.items():
        machine.install(name, f"echo '{version}'")


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
    machine: FakeMachine,
) -> None:
    install(machine, versions)
    own, pinned = machine.bin / "chromium", Pinned(machine.cache)

    browser = machine.find_browser(session_type, built_for=BUILT_FOR)

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
    machine: FakeMachine,
) -> None:
    install(machine, versions)

    browser = machine.find_browser(built_for=built_for)

    assert (browser.missing, browser.to_install) == (missing, "")
    assert "install" in browser.fix


def test_a_browser_in_a_cache_that_others_can_write_to_is_not_used(
    machine: FakeMachine,
) -> None:
    machine.cache.mkdir(mode=0o700)
    assert machine.find_browser(built_for=BUILT_FOR).missing == ""

    machine.cache.chmod(0o777)

    problem = f"the cache of programs {machine.cache} can be written to by other users"
    assert problem in machine.find_browser(built_for=BUILT_FOR).missing


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
