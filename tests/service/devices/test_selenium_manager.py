"""A browser of Selenium Manager, from a mirror on this machine, and chromedrivers that cannot be used."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pytest_device.errors import ConfigError
from pytest_device.service.devices import browsers
from pytest_device.service.devices.availability import Availability, Origin
from pytest_device.service.devices.browsers import BUILT_FOR
from pytest_device.service.programs.guard import Guard
from pytest_device.service.programs.toolchain import Toolbox
from pytest_device.spec import SessionType
from tests.fakes.machine import FakeMachine
from tests.pinned_browser import needs_pinned_browser
from tests.service.devices.mirror import mirrored

SYSTEM_PATH = "/usr/bin:/bin"
REFUSING = "http://127.0.0.1:9"


@pytest.fixture
def mirror(tmp_path: Path) -> Iterator[str]:
    """Serve Chrome 153 and its chromedriver, which only print their versions."""
    chrome = "#!/bin/sh\necho 'Google Chrome for Testing 153.0.1.2'\n"
    chromedriver = "#!/bin/sh\necho 'ChromeDriver 153.0.1.2'\n"
    with mirrored(tmp_path / "mirror", chrome, chromedriver) as url:
        yield url


@pytest.fixture
def machine(tmp_path: Path) -> FakeMachine:
    return FakeMachine(tmp_path)


Install = Callable[[str], Availability]


@pytest.fixture
def install(machine: FakeMachine, guard: Guard) -> Install:
    """Install what Selenium Manager has to, from a mirror; return the browser with it."""

    def install(url: str) -> Availability:
        environ = {
            "PATH": SYSTEM_PATH,
            "SE_BROWSER_MIRROR_URL": url,
            "SE_DRIVER_MIRROR_URL": url,
        }
        browser = managed(machine)
        toolbox = Toolbox(guard, environ, machine.cache)
        return asyncio.run(
            browsers.install(
                browser, toolbox, SessionType.APPIUM, print, built_for=BUILT_FOR
            )
        )

    return install


def managed(machine: FakeMachine, built_for: str = BUILT_FOR) -> Availability:
    return machine.find_browser(built_for=built_for, selenium_manager=True)


@needs_pinned_browser  # the mirror has Chrome for the same system
def test_it_downloads_a_pair_once_which_is_found_offline_later(
    machine: FakeMachine, install: Install, mirror: str
) -> None:
    before = managed(machine)
    assert before.origin is Origin.SELENIUM_MANAGER
    assert before.to_install == "Chrome and chromedriver by Selenium Manager"

    browser = install(mirror)
    later = managed(machine)

    assert browser.tool.is_relative_to(machine.cache / "selenium")
    assert "153.0.1.2, installed by Selenium Manager" in browser.about
    assert (later.program, later.chromedriver) == (
        browser.program,
        browser.chromedriver,
    )
    assert (later.missing, later.to_install) == ("", "")


@needs_pinned_browser
def test_it_downloads_the_chromedriver_of_the_machines_browser(
    machine: FakeMachine, install: Install, mirror: str
) -> None:
    own = machine.install("chromium", "echo Chromium 153.0.9.9")

    browser = install(mirror)

    assert browser.program == own
    assert browser.chromedriver
    assert browser.chromedriver.is_relative_to(machine.cache / "selenium")


@needs_pinned_browser
def test_without_a_network_its_reason_is_reported(install: Install) -> None:
    with pytest.raises(
        ConfigError,
        match=r"installed no Chrome and chromedriver: .*127\.0\.0\.1:9.*Fix",
    ):
        install(REFUSING)


def test_for_hardware_without_a_published_chrome_it_is_not_started(
    machine: FakeMachine,
) -> None:
    browser = managed(machine, "Linux aarch64")

    assert "Selenium Manager has no browser for Linux aarch64" in browser.missing
    assert "install" in browser.fix


@pytest.mark.parametrize(
    ("start", "problem", "limit_seconds"),
    [
        (
            "echo 'no such library' >&2; exit 127",
            "exit status 127: no such library",
            60,
        ),
        ("exec sleep 600", "timed out after 3 s", 3),
        ("echo ChromeDriver 150.0.1.2", "chromedriver 150 on PATH does not match", 60),
    ],
)
def test_a_chromedriver_that_cannot_be_used_is_reported_before_a_session(
    start: str, problem: str, limit_seconds: float, machine: FakeMachine
) -> None:
    machine.install("chromium", "echo Chromium 156.0.1.2")
    machine.install("chromedriver", start)

    browser = asyncio.run(
        browsers.find(
            machine.environ,
            SessionType.APPIUM,
            cache_dir=machine.cache,
            built_for="Darwin arm64",
            limit_seconds=limit_seconds,
        )
    )

    assert problem in browser.missing
    assert "--device-local-selenium-manager" in browser.fix


@pytest.mark.parametrize(
    "built_for", ["Darwin arm64", "Darwin x86_64", "Windows AMD64"]
)
def test_a_browser_of_the_pinned_version_gets_the_pinned_chromedriver(
    built_for: str, machine: FakeMachine
) -> None:
    own = machine.install("chromium", "echo Chromium 153.0.1.2")

    browser = machine.find_browser(built_for=built_for)

    assert (browser.program, browser.origin) == (own, Origin.PINNED_DRIVER)
    assert browser.to_install.startswith("chromedriver 153.")
    assert browser.chromedriver
    assert (browser.chromedriver.suffix == ".exe") == built_for.startswith("Windows")
