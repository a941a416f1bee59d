"""``--device-preview``: where to watch the devices, shown to the user only."""

import sys

import pytest

from pytest_device.testing import FaultyService
from tests.plugin.screen import TerminalRun

SUITE = """
import pytest

@pytest.mark.device(platform="android")
def test_one(device_session): pass
"""
SECRET = ".simulated.invalid/preview"


@pytest.mark.parametrize(
    "workers", [pytest.param("-n0", marks=pytest.mark.nightly), "-n1"]
)
def test_a_terminal_shows_the_url(
    pytester: pytest.Pytester,
    service: FaultyService,
    workers: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("CI", raising=False)
    pytester.makepyfile(SUITE)

    run = TerminalRun("--device-preview", workers, columns=250).finish()

    (session,) = service.sessions()
    worker = "gw0 " if workers == "-n1" else ""
    line = f"  device {worker}android agent-device: live preview: https://{session['id']}{SECRET}"
    assert run.raw.count(line) == 1


@pytest.mark.parametrize(
    "workers", [pytest.param("-n0", marks=pytest.mark.nightly), "-n1"]
)
def test_a_file_does_not_get_the_url(
    pytester: pytest.Pytester, service: FaultyService, workers: str
) -> None:
    pytester.makepyfile(SUITE)

    result = pytester.runpytest("--device-preview", workers)

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        ["*android agent-device: live preview: [*][*][*] (shown on a terminal only)"]
    )
    assert SECRET not in result.stdout.str() + result.stderr.str()
    assert service.statuses() == ["stopped"]


def test_a_file_does_not_get_the_url_from_the_debugger_either(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(SUITE.replace("pass", "assert False"))

    result = pytester.run(
        sys.executable, "-m", "pytest", "--pdb", "-p", "no:xdist", stdin=b"quit\n"
    )

    result.stdout.fnmatch_lines(["*[(]Pdb[)]*"])
    result.stdout.fnmatch_lines(["*[*][*][*] (shown on a terminal only)"])
    assert SECRET not in result.stdout.str() + result.stderr.str()
    assert service.statuses() == ["stopped"]


def test_a_ci_terminal_does_not_get_the_url(
    pytester: pytest.Pytester, service: FaultyService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    pytester.makepyfile(SUITE)

    run = TerminalRun("--device-preview", columns=250).finish()

    assert "live preview: *** " in run.raw
    assert SECRET not in run.raw
    assert service.statuses() == ["stopped"]


@pytest.mark.usefixtures("service")
def test_a_session_without_a_preview_is_reported(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(SUITE.replace('"android"', '"android", type="appium"'))

    result = pytester.runpytest("--device-preview")

    result.stdout.fnmatch_lines(["*android appium: no live preview"])
