"""A chromedriver that prints its version and does not start: the command that needs it fails, the session stays."""

import os
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil
import pytest
from appium.webdriver import Remote
from selenium.common.exceptions import WebDriverException

from pytest_device.local import LocalService
from pytest_device.sessions.models import Session
from pytest_device.settings import LOCAL_APP_ID
from pytest_device.spec import Platform
from tests.service.appium_driver.conftest import APP, APP_ID, booted, driven, seen
from tests.service.pages import browser_programs
from tests.waiting import eventually

DRIVER: Final = """#!/bin/sh
if [ "$1" = --version ]; then exec {real} --version; fi
{start}
"""
SILENT: Final = "echo Starting ChromeDriver; trap '' TERM; while sleep 1; do :; done"
EXITS: Final = "exit 127"
KILLED: Final = "kill -KILL $$"
WORKS: Final = 'exec {real} "$@" --log-path="$0.log"'
"""The log shows which program it was: the real one may start yet another."""


@dataclass(frozen=True)
class Broken:
    """A driver for the app, on a service whose chromedriver a test writes."""

    session: Session
    appium: Remote
    chromedriver: Path
    real: Path

    def starts(self, commands: str) -> None:
        write(self.chromedriver, self.real, commands)


def write(chromedriver: Path, real: Path, start: str) -> None:
    """Write a chromedriver with the version of the real one that starts with some commands of the shell."""
    text = DRIVER.format(real=real, start=start.format(real=real))
    chromedriver.write_text(text)
    chromedriver.chmod(0o755)


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Generator[Broken]:
    program, real = browser_programs()
    first = tmp_path_factory.mktemp("bin")
    path = os.pathsep.join([str(first), str(program.parent), os.environ["PATH"]])
    chromedriver = first / "chromedriver"
    write(chromedriver, real, WORKS)

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", path)
        service = LocalService.start(app_id=LOCAL_APP_ID, progress=print, runner="real")
        try:
            with (
                booted(service, Platform.ANDROID) as session,
                driven(session, {"app": str(APP), "appPackage": APP_ID}) as driver,
            ):
                yield Broken(session, driver, chromedriver, real)
        finally:
            service.close()


def started_from(program: Path) -> list[psutil.Process]:
    children = psutil.Process().children(recursive=True)
    return [process for process in children if str(program) in command_line(process)]


def command_line(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.NoSuchProcess:  # it has ended just now
        return ""


@pytest.mark.parametrize(
    ("start", "reason"),
    [
        pytest.param(
            EXITS, "exited with status 127 before it accepted commands", id="exits"
        ),
        pytest.param(
            KILLED, "was ended by SIGKILL before it accepted commands", id="is killed"
        ),
        pytest.param(
            SILENT,
            "did not accept commands within 30 s",
            id="is silent",
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_a_switch_to_the_web_view_fails_and_the_context_stays(
    opened: Broken, start: str, reason: str
) -> None:
    opened.starts(start)

    with pytest.raises(WebDriverException) as refused:
        opened.appium.switch_to.context(f"WEBVIEW_{APP_ID}")

    message = str(refused.value)
    assert f"chromedriver did not start: {opened.chromedriver}: {reason}" in message
    assert "Fix: start it in a terminal" in message
    assert opened.appium.current_context == "NATIVE_APP"
    assert seen(opened.appium, "add").is_displayed()
    assert eventually(lambda: not started_from(opened.chromedriver))


def test_once_it_starts_the_session_goes_on(opened: Broken) -> None:
    opened.starts(EXITS)
    with pytest.raises(WebDriverException, match="exited with status 127"):
        opened.appium.switch_to.context(f"WEBVIEW_{APP_ID}")

    opened.starts(WORKS)
    opened.appium.switch_to.context(f"WEBVIEW_{APP_ID}")

    assert opened.appium.title == "Notes"
    opened.appium.switch_to.context("NATIVE_APP")


def test_one_that_was_killed_starts_again(opened: Broken) -> None:
    opened.starts(WORKS)
    opened.appium.switch_to.context(f"WEBVIEW_{APP_ID}")
    (program,) = started_from(opened.chromedriver)
    program.kill()
    assert eventually(lambda: not started_from(opened.chromedriver))

    assert opened.appium.title == "Notes"
    opened.appium.switch_to.context("NATIVE_APP")


def test_the_end_of_a_session_does_not_wait_for_a_start(opened: Broken) -> None:
    opened.starts(SILENT)
    before = started_from(opened.chromedriver)
    with ThreadPoolExecutor(1) as pool:
        with driven(opened.session, {}) as driver:
            switch = pool.submit(driver.switch_to.context, "CHROMIUM")
            assert eventually(lambda: started_from(opened.chromedriver) != before)

        with pytest.raises(WebDriverException, match="the session has ended"):
            switch.result()

    assert eventually(lambda: started_from(opened.chromedriver) == before)


def test_the_end_of_a_session_does_not_wait_for_one_that_hangs(opened: Broken) -> None:
    opened.starts(WORKS)
    before = started_from(opened.chromedriver)
    with driven(opened.session, {}) as driver:
        driver.switch_to.context("CHROMIUM")
        (program,) = set(started_from(opened.chromedriver)) - set(before)
        program.suspend()

    assert started_from(opened.chromedriver) == before
