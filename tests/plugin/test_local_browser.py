"""Runs on a machine without an available browser: another processor, and none on PATH."""

import shutil
import subprocess
from pathlib import Path

import pytest

SUITE = """
import pytest

@pytest.fixture
def device_appium_options():
    return {"appium:app": "web-build"}

@pytest.mark.device(platform="android", type="appium")
def test_driven(device_driver): pass

@pytest.mark.device(platform="android", type="web-preview-only")
def test_seen(device_session): pass
"""
REASON = (
    "this machine has no android device for the session (emulator: adb is neither on PATH nor in ANDROID_HOME*; "
    "chromium: no Chromium is on PATH*): *install *"
)


@pytest.fixture(autouse=True)
def _bare(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("ANDROID_HOME", raising=False)
    pytester.makepyfile(test_it=SUITE)


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    setarch = shutil.which("setarch", path="/usr/bin:/bin")
    if (
        not setarch
        or subprocess.run([setarch, "i686", "/bin/true"], check=False).returncode
    ):
        pytest.skip("this machine cannot pass for another")
    # As setarch does; the service inherits it.
    pytester.makeconftest("import ctypes\nctypes.CDLL(None).personality(0x0008)\n")
    return pytester.runpytest_subprocess("--device-local", *arguments)


def test_a_run_without_a_browser_ends_before_its_first_session_with_the_command_to_install_one(
    pytester: pytest.Pytester, tmp_path: Path
) -> None:
    result = run(pytester)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: the local service failed to start: {REASON}"])
    assert "created" not in result.stdout.str()
    assert not (tmp_path / "cache").exists()


@pytest.mark.nightly
def test_a_worker_without_a_browser_creates_nothing_and_reports_a_configuration_error(
    pytester: pytest.Pytester,
) -> None:
    result = run(pytester, "-n", "1")

    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines([f"*config: *{REASON}"])
    assert "devices: " not in result.stdout.str()
