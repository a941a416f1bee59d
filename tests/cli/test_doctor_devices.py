"""``pytest-device doctor``: the devices that sessions of the local service would get."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_device.cli.doctor.devices import check_devices
from tests.cli.running import run

Script = Callable[[str, str], None]


@pytest.fixture
def script(tmp_path: Path) -> Script:
    """Write an executable on the path of the tests."""

    def write(name: str, text: str = "") -> None:
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    return write


def found(directory: Path) -> dict[str, tuple[str, str, str]]:
    """Return status, text and fix of each finding."""
    findings = check_devices({"PATH": str(directory / "bin")}, directory)
    return {one.name: (one.status, one.text, one.fix) for one in findings}


def test_every_kind_of_every_platform_is_reported_the_preferred_ones_first(tmp_path: Path) -> None:
    assert list(found(tmp_path)) == [
        *("android: emulator", "android: chromium", "android: fake"),
        *("ios: simulator", "ios: chromium", "ios: fake"),
    ]


def test_a_browser_serves_sessions_of_every_type(tmp_path: Path, script: Script) -> None:
    script("chromium", "")
    script("chromedriver", "")

    findings = found(tmp_path)

    programs = f"{tmp_path}/bin/chromium, {tmp_path}/bin/chromedriver"
    assert findings["ios: chromium"] == ("ok", f"for sessions of every type, {programs}", "")
    assert findings["ios: fake"] == ("ok", "not used", "")


def test_without_a_browser_appium_gets_the_fake_device_and_it_is_reported_what_to_install(tmp_path: Path) -> None:
    findings = found(tmp_path)

    status, text, fix = findings["android: chromium"]
    assert (status, text) == ("warn", "not used: no Chromium is on PATH, chromedriver is not on PATH")
    assert "install" in fix
    assert findings["android: fake"] == ("ok", "for appium sessions", "")


def test_a_real_device_without_appium_s_driver_serves_the_others(tmp_path: Path, script: Script) -> None:
    script("adb", "echo 'emulator-5554 device'")
    script("chromium", "")
    script("chromedriver", "")

    findings = found(tmp_path)

    status, text, _ = findings["android: emulator"]
    assert status == "ok"
    assert text.startswith("for agent-device, argent and preview sessions, emulator-5554: appium-uiautomator2-driver")
    assert text.endswith("(to use it: appium driver install uiautomator2)")
    assert findings["android: chromium"][1].startswith("for appium sessions, ")


def test_the_command_reports_them(tmp_path: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path), "PATH": os.environ["PATH"]}

    report = run("doctor", "--json", cwd=tmp_path, DEVICE_LOCAL="1", **environ)

    names = {finding["name"] for finding in json.loads(report.stdout)["findings"]}
    assert {"android: chromium", "ios: chromium", "agent-device", "argent"} <= names
