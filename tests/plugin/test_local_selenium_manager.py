"""The README's suite on a browser and a chromedriver that Selenium Manager downloads, from a mirror on this machine."""

import json
import os
import subprocess
import sys
from collections.abc import Generator, Mapping
from pathlib import Path
from uuid import UUID

import pytest

from pytest_device.service.devices.browsers import BUILT_FOR, hardware
from pytest_device.sessions.client import DeviceClient
from pytest_device.sessions.request import SessionRequest
from pytest_device.spec import Platform, SessionType, Status
from tests.cli.running import COMMAND, run
from tests.service.devices.mirror import mirrored
from tests.service.pages import browser_programs
from tests.waiting import eventually

pytestmark = [
    pytest.mark.usefixtures("node"),
    pytest.mark.skipif(
        hardware() != BUILT_FOR, reason="the mirror has Chrome for Linux x86_64"
    ),
]
SYSTEM_PATH = "/usr/bin:/bin"
REFUSING = "http://127.0.0.1:9"


@pytest.fixture
def environ(cache_dir: Path, tmp_path: Path) -> Generator[dict[str, str]]:
    """Return the environment of a user without a browser, whose cache has the controllers alone."""
    chrome, chromedriver = browser_programs()
    cache = tmp_path / "cache/pytest-device"
    cache.mkdir(parents=True, mode=0o700)
    for entry in cache_dir.iterdir():
        if entry.name.startswith(("appium-", "nodejs-")):
            (cache / entry.name).symlink_to(entry)

    scripts = [
        f"#!/bin/sh\nexec '{program}' \"$@\"\n" for program in (chrome, chromedriver)
    ]
    with mirrored(tmp_path / "mirror", *scripts) as url:
        yield {
            "PATH": SYSTEM_PATH,
            "XDG_CACHE_HOME": str(cache.parent),
            "XDG_STATE_HOME": str(tmp_path / "state"),
            "SE_BROWSER_MIRROR_URL": url,
            "SE_DRIVER_MIRROR_URL": url,
        }


# In the gate, `service/devices/test_selenium_manager` downloads them, and `tests/bare` runs the suite.
@pytest.mark.nightly
def test_the_suite_of_the_readme_passes(
    environ: Mapping[str, str], tmp_path: Path
) -> None:
    suite = tmp_path / "suite"
    assert run("init", str(suite)).returncode == 0

    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest"),
            *("--device-local", "--device-local-selenium-manager"),
            # Both platforms have the same browser.
            *("-k", "android"),
        ],
        cwd=suite,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed, 2 deselected" in done.stdout
    assert "Selenium Manager downloads Chrome and chromedriver" in done.stdout
    assert [*tmp_path.glob("cache/pytest-device/selenium/chrome/**/chrome")]
    assert not [*tmp_path.glob("cache/pytest-device/chrom*")]


def test_serve_uses_it_and_the_session_reports_why_it_fails(
    environ: Mapping[str, str], tmp_path: Path
) -> None:
    command = [
        *(*COMMAND, "serve", "--selenium-manager", "--json", "--port", "0"),
        *("--state-dir", str(tmp_path / "service")),
    ]
    refusing = dict.fromkeys(
        ("SE_BROWSER_MIRROR_URL", "SE_DRIVER_MIRROR_URL"), REFUSING
    )

    with subprocess.Popen(
        command,
        env={**os.environ, **environ, **refusing},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as service:
        assert service.stdout
        try:
            ready = json.loads(service.stdout.readline())
            token = Path(ready["token_path"]).read_text()
            request = SessionRequest(
                app_id=UUID(ready["app_id"]),
                platform=Platform.ANDROID,
                type=SessionType.APPIUM,
                device_identifier="chromium",
            )
            with DeviceClient(ready["url"], token) as client:
                session = client.create(request).id
                assert eventually(
                    lambda: client.get(session).status == Status.ERRORED, 120
                )
        finally:
            service.terminate()
            printed = service.communicate(timeout=60)[1]

    assert "Selenium Manager installed no Chrome and chromedriver" in printed
    assert REFUSING in printed
