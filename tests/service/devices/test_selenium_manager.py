"""A browser of Selenium Manager, from a mirror on this machine, and chromedrivers that cannot be used."""

import asyncio
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pytest_device.errors import ConfigError
from pytest_device.service.devices.availability import Availability, Origin
from pytest_device.service.devices.browsers import BUILT_FOR, find, hardware, install
from pytest_device.service.programs.guard import Guard
from pytest_device.service.programs.toolchain import Toolbox
from pytest_device.spec import SessionType
from tests.service.devices.mirror import mirrored

Script = Callable[[str, str], Path]

APPIUM = SessionType.APPIUM
SYSTEM_PATH = "/usr/bin:/bin"
REFUSING = "http://127.0.0.1:9"


@pytest.fixture
def mirror(tmp_path: Path) -> Iterator[str]:
    """Serve Chrome 153 and its chromedriver, which only print their versions."""
    chrome = "#!/bin/sh\necho 'Google Chrome for Testing 153.0.1.2'\n"
    chromedriver = "#!/bin/sh\necho 'ChromeDriver 153.0.1.2'\n"
    with mirrored(tmp_path / "mirror", chrome, chromedriver) as url:
        yield url


def availability(
    tmp_path: Path,
    built_for: str = BUILT_FOR,
    *,
    selenium_manager: bool = True,
    limit_seconds: float = 10,
) -> Availability:
    environ = {"PATH": str(tmp_path / "bin")}
    searching = find(
        environ,
        APPIUM,
        cache_dir=tmp_path / "cache",
        built_for=built_for,
        selenium_manager=selenium_manager,
        limit_seconds=limit_seconds,
    )
    return asyncio.run(searching)


def installed(browser: Availability, tmp_path: Path, url: str) -> Availability:
    environ = {
        "PATH": SYSTEM_PATH,
        "SE_BROWSER_MIRROR_URL": url,
        "SE_DRIVER_MIRROR_URL": url,
    }
    guard = Guard(environ=os.environ, log=print)
    toolbox = Toolbox(guard, environ, tmp_path / "cache")
    try:
        return asyncio.run(
            install(browser, toolbox, APPIUM, print, built_for=BUILT_FOR)
        )
    finally:
        guard.close()


needs_chrome = pytest.mark.skipif(
    hardware() != BUILT_FOR, reason="the mirror has Chrome for Linux x86_64"
)


@needs_chrome
def test_it_downloads_a_pair_once_which_is_found_offline_later(
    mirror: str, tmp_path: Path
) -> None:
    before = availability(tmp_path)
    assert before.origin is Origin.SELENIUM_MANAGER
    assert before.to_install == "Chrome and chromedriver by Selenium Manager"

    browser = installed(before, tmp_path, mirror)
    later = availability(tmp_path)

    assert browser.tool.is_relative_to(tmp_path / "cache/selenium")
    assert "153.0.1.2, installed by Selenium Manager" in browser.about
    assert (later.program, later.chromedriver) == (
        browser.program,
        browser.chromedriver,
    )
    assert (later.missing, later.to_install) == ("", "")


@needs_chrome
def test_it_downloads_the_chromedriver_of_the_machines_browser(
    mirror: str, script: Script
) -> None:
    own = script("chromium", "#!/bin/sh\necho Chromium 153.0.9.9\n")

    browser = installed(availability(own.parent.parent), own.parent.parent, mirror)

    assert browser.program == own
    assert browser.chromedriver
    assert browser.chromedriver.is_relative_to(own.parent.parent / "cache/selenium")


@needs_chrome
def test_without_a_network_its_reason_is_reported(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError,
        match=r"installed no Chrome and chromedriver: .*127\.0\.0\.1:9.*Fix",
    ):
        installed(availability(tmp_path), tmp_path, REFUSING)


def test_for_hardware_without_a_published_chrome_it_is_not_started(
    tmp_path: Path,
) -> None:
    browser = availability(tmp_path, "Linux aarch64")

    assert "Selenium Manager has no browser for Linux aarch64" in browser.missing
    assert "install" in browser.fix


@pytest.mark.parametrize(
    ("start", "problem"),
    [
        ("echo 'no such library' >&2; exit 127", "exit status 127: no such library"),
        ("exec sleep 600", "timed out after 2 s"),
        ("echo ChromeDriver 150.0.1.2", "chromedriver 150 on PATH does not match"),
    ],
)
def test_a_chromedriver_that_cannot_be_used_is_reported_before_a_session(
    start: str, problem: str, script: Script
) -> None:
    script("chromium", "#!/bin/sh\necho Chromium 156.0.1.2\n")
    directory = script("chromedriver", f"#!/bin/sh\nPATH=/bin:/usr/bin\n{start}\n")

    browser = availability(
        directory.parent.parent,
        "Darwin arm64",
        selenium_manager=False,
        limit_seconds=2,
    )

    assert problem in browser.missing
    assert "--device-local-selenium-manager" in browser.fix


@pytest.mark.parametrize(
    "built_for", ["Darwin arm64", "Darwin x86_64", "Windows AMD64"]
)
def test_a_browser_of_the_pinned_version_gets_the_pinned_chromedriver(
    built_for: str, script: Script
) -> None:
    own = script("chromium", "#!/bin/sh\necho Chromium 153.0.1.2\n")

    browser = availability(own.parent.parent, built_for, selenium_manager=False)

    assert (browser.program, browser.origin) == (own, Origin.PINNED_DRIVER)
    assert browser.to_install.startswith("chromedriver 153.")
    assert browser.chromedriver
    assert (browser.chromedriver.suffix == ".exe") == built_for.startswith("Windows")
