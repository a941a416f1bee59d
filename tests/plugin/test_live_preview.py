"""``--device-preview``: where to watch the devices, shown to the user only."""

import sys
from pathlib import Path

import pytest

from pytest_device.testing import FaultyService
from tests.plugin.screen import TerminalRun
from tests.waiting import eventually

SUITE = """
import pytest

@pytest.mark.device(platform="android")
def test_one(device_session, device_preview_url): pass
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


def test_only_an_http_url_is_opened(
    pytester: pytest.Pytester,
    service: FaultyService,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    opened, browser = tmp_path / "opened", tmp_path / "browser"
    browser.write_text(f"#!/bin/sh\ntouch '{opened}'\n")
    browser.chmod(0o755)
    monkeypatch.setenv("BROWSER", f"{browser} %s")
    details = {"webPreviewUrl": "file://files.invalid/share"}
    service.add_fault("get", "change", fields={"remoteConfig": details}, times=None)
    pytester.makepyfile(
        SUITE.replace('"android"', '"android", type="web-preview-only"')
    )

    result = pytester.runpytest("--device-preview-open")

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        ["*not opened: the URL of a live preview must be http or https"]
    )
    assert not opened.exists()


def test_it_opens_in_the_browser_without_exposing_the_url_to_other_processes(
    pytester: pytest.Pytester,
    service: FaultyService,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    opened, browser = tmp_path / "opened", tmp_path / "browser"
    browser.write_text(
        f"#!{sys.executable}\n"
        "import pathlib, sys, urllib.parse, urllib.request\n"
        "page = pathlib.Path(urllib.request.url2pathname(urllib.parse.urlsplit(sys.argv[1]).path))\n"
        f"draft = pathlib.Path({str(opened)!r} + '.draft')\n"
        "draft.write_text(sys.argv[1] + '\\n' + page.read_text() + oct(page.parent.stat().st_mode & 0o777))\n"
        f"draft.rename({str(opened)!r})\n"
    )
    browser.chmod(0o755)
    monkeypatch.setenv("BROWSER", f"{browser} %s")
    pytester.makepyfile(
        """
        import pathlib, time, pytest

        @pytest.mark.device(platform="android")
        def test_one(device_session):
            until = time.monotonic() + 30
            while not pathlib.Path(OPENED).exists():
                assert time.monotonic() < until
                time.sleep(0.02)
        """.replace("OPENED", repr(str(opened)))
    )

    result = pytester.runpytest("--device-preview-open")

    result.assert_outcomes(passed=1)
    argument, page = opened.read_text().split("\n", 1)
    (session,) = service.sessions()
    assert f"url=https://{session['id']}{SECRET}" in page
    assert page.endswith("0o700")
    assert argument.startswith("file://")
    assert SECRET not in argument
    assert eventually(lambda: not Path(argument.removeprefix("file://")).exists())
