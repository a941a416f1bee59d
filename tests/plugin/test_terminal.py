"""The output of device tests: on a terminal, in a log, with workers."""

import json
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from pytest_device.testing import FaultyService
from tests.plugin.runs import ON_A_WORKER
from tests.plugin.screen import TerminalRun

pytestmark = pytest.mark.usefixtures("_a_terminal_of_no_ci")

ONE = """
import pytest

@pytest.mark.device(platform="android")
def test_driven(device_session): pass
"""
LOSES_ITS_DEVICE = """
import pytest

@pytest.mark.device(platform="android", share="test")
def test_driven(device_session, device_client):
    device_client.stop(device_session.id)
    assert not "the screen that was expected"
"""


@pytest.fixture
def _a_terminal_of_no_ci(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    del pytester  # which switches colors off
    for name in (
        "CI",
        "BUILD_NUMBER",
        "COLUMNS",
        "LINES",
        "NO_COLOR",
        "FORCE_COLOR",
        "PY_COLORS",
        "PYTEST_ADDOPTS",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    # Many processes are started here.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_PLUGINS", "xdist.plugin,pytest_device.plugin")


def piped(*args: str) -> str:
    return subprocess.run(
        [sys.executable, "-m", "pytest", *args],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    ).stdout


def without_chance(lines: Iterable[str]) -> list[str]:
    """Remove variable parts, terminal-only output and blank lines."""
    lines = (
        re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|\d+\.\d+|\d+ s\b", "…", line)
        for line in lines
    )
    return [
        line.removeprefix("collecting ... ").strip("= ")
        for line in lines
        if line.strip()
    ]


@pytest.mark.parametrize("args", [[], pytest.param(["-v"], marks=pytest.mark.nightly)])
def test_the_screen_shows_the_same_as_a_log(
    pytester: pytest.Pytester,
    service: FaultyService,
    monkeypatch: pytest.MonkeyPatch,
    args: list[str],
) -> None:
    service.add_fault("boot", "delay", seconds=1.3, times=None)
    pytester.makepyfile(ONE)
    args = [*args, "-pno:cacheprovider"]

    terminal = TerminalRun(*args, columns=250).finish()
    monkeypatch.setenv("COLUMNS", "250")
    log = piped(*args)

    assert without_chance(terminal.lines()) == without_chance(log.splitlines())
    assert "\r" not in log
    assert "\x1b" not in log
    assert "1 passed" in log


def test_a_wait_ends_even_if_the_suite_freezes_every_clock(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    service.add_fault("boot", "delay", seconds=1)
    pytester.makeconftest(
        "import time\nnow = time.monotonic()\ntime.monotonic = time.time = lambda: now"
    )
    pytester.makepyfile(ONE)

    assert "1 passed" in piped()


@pytest.mark.parametrize("distributed", ON_A_WORKER)
def test_the_usual_boot_time_is_learned_from_earlier_runs(
    pytester: pytest.Pytester, service: FaultyService, distributed: list[str]
) -> None:
    service.add_fault("boot", "delay", seconds=1.0, times=None)
    pytester.makepyfile(ONE)

    cache = Path(".pytest_cache/v/device/boot_seconds")

    assert "1 passed" in piped(*distributed)
    (earlier,) = json.loads(cache.read_text())["android agent-device"]
    assert "1 passed" in piped(*distributed)

    remembered = json.loads(cache.read_text())["android agent-device"]
    assert remembered[:-1] == [earlier]
    assert round(min(remembered)) >= 1


@pytest.mark.usefixtures("service")
def test_the_newest_fifty_boot_times_are_remembered(pytester: pytest.Pytester) -> None:
    cache = pytester.mkdir(".pytest_cache") / "v" / "device"
    cache.mkdir(parents=True)
    times = [1000.0, *[50.0] * 26, *[46.0] * 23, 3.0]
    (cache / "boot_seconds").write_text(json.dumps({"android agent-device": times}))
    pytester.makepyfile(ONE)

    assert "1 passed" in piped()

    remembered = json.loads((cache / "boot_seconds").read_text())
    assert remembered["android agent-device"][:-1] == times[2:]


@pytest.mark.usefixtures("service")
@pytest.mark.parametrize(
    "damaged",
    [
        pytest.param("{", marks=pytest.mark.nightly),
        '{"android agent-device": ["48", -1, 1e9]}',
    ],
)
def test_damaged_remembered_times_are_ignored(
    pytester: pytest.Pytester, damaged: str
) -> None:
    cache = pytester.mkdir(".pytest_cache") / "v" / "device"
    cache.mkdir(parents=True)
    (cache / "boot_seconds").write_text(damaged)
    pytester.makepyfile(ONE)

    assert "1 passed" in piped()
    assert (
        len(json.loads((cache / "boot_seconds").read_text())["android agent-device"])
        == 1
    )


@pytest.mark.parametrize(
    "args", [pytest.param(["-n1"], marks=pytest.mark.nightly), ["-n1", "-v"]]
)
def test_a_workers_events_are_shown_with_its_name(
    pytester: pytest.Pytester, service: FaultyService, args: list[str]
) -> None:
    service.add_fault("boot", "delay", seconds=0.5, times=None)
    pytester.makepyfile(ONE)

    terminal, log = TerminalRun(*args).finish(), piped(*args)

    for lines in (terminal.lines(), log.splitlines()):
        shown = [
            line
            for line in lines
            if line.startswith("  device gw0 android agent-device: ")
        ]
        assert len(shown) == (0 if "-v" not in args else 3)
        assert bool(
            re.search(r"    http://127\.0\.0\.1:\d+/sessions/", "\n".join(lines))
        ) == ("-v" in args)


@pytest.mark.usefixtures("service")
def test_with_q_no_events_of_workers_are_shown(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(ONE)

    assert "  device " not in piped("-n1", "-q")


@pytest.mark.usefixtures("service")
@pytest.mark.parametrize("distributed", ON_A_WORKER)
def test_an_infrastructure_error_during_a_test_is_not_a_failure_and_is_listed_with_its_page(
    pytester: pytest.Pytester, distributed: list[str]
) -> None:
    pytester.makepyfile(test_it=LOSES_ITS_DEVICE)

    result = pytester.runpytest("-v", *distributed)

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        [
            "*test_it.py::test_driven ERROR*"
            if not distributed
            else "*ERROR* test_it.py::test_driven*"
        ]
    )
    result.stdout.fnmatch_lines(
        [
            "1 infrastructure error (not a test failure)",
            "infrastructure: test_it.py::test_driven",
            "    http://*/sessions/*",
        ]
    )


def test_ten_infrastructure_errors_are_listed_and_the_others_counted(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    for n in range(12):
        service.add_fault("create", "reply", status=500, body=f"bug number {'i' * n}.")
    pytester.makepyfile(
        """
        import pytest

        @pytest.fixture
        def device_request_defaults(n): return {"device_identifier": f"Pixel {n}"}

        @pytest.mark.device(platform="android")
        @pytest.mark.parametrize("n", range(12))
        def test_driven(device_session, n): pass
        """
    )

    result = pytester.runpytest("--device-start-attempts=1")

    result.assert_outcomes(errors=12)
    listed = [
        line
        for line in result.outlines
        if line.startswith("infrastructure: test_") and "::test_driven[" in line
    ]
    assert len(listed) == 10
    result.stdout.fnmatch_lines(
        ["12 infrastructure errors (not test failures)", "and 2 more"]
    )


def test_pytest_formats_no_traceback_for_an_error_reported_by_its_message(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    service.add_fault("create", "reply", status=500, body="a bug")
    pytester.makeconftest(
        """
        import pytest

        @pytest.hookimpl(wrapper=True)  # inside of the plugin's own, which replaces what pytest made
        def pytest_runtest_makereport(item, call):
            report = yield
            if report.failed:
                item.config.stash["made"] = str(report.longrepr)
            return report

        def pytest_terminal_summary(config):
            print("made:", config.stash["made"])
        """
    )
    pytester.makepyfile(ONE)

    result = pytester.runpytest("--showlocals", "--full-trace")

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["made: create: the service failed (status 500): a bug"]
    )


@pytest.mark.parametrize("args", [[], pytest.param(["-q"], marks=pytest.mark.nightly)])
def test_a_retried_boot_is_counted_and_named(
    pytester: pytest.Pytester, service: FaultyService, args: list[str]
) -> None:
    service.add_fault("boot", "fail", reason="no booted device")
    pytester.makepyfile(ONE)

    result = pytester.runpytest(*args, "--device-start-attempts=2")

    result.assert_outcomes(passed=1)
    reported = [
        line
        for line in result.outlines
        if "android agent-device: failed to start, retrying with a new session (2/2): see the session page"
        in line
    ]
    assert len(reported) == (0 if args else 1)
    result.stdout.fnmatch_lines(
        [
            "devices: 2 created, 2 stopped (confirmed), 1 failed to start; * of device time, * waiting for devices",
            "failed to start: android agent-device: see the session page for the reason",
            "    http://127.0.0.1:*/sessions/*",
        ]
    )


@pytest.mark.usefixtures("service")
def test_colors_are_used_if_pytest_uses_them(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(ONE)

    assert "\x1b[32mdevices: 1 created, " in TerminalRun().finish().raw
    assert "\x1b" not in TerminalRun("--color=no").finish().raw
    assert "\x1b[32mdevices: 1 created, " in piped("--color=yes")


def test_the_header_reports_service_app_and_limits(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEVICE_URL", "https://devices.example")
    monkeypatch.setenv("DEVICE_APP_ID", "11111111-2222-4333-8444-555555555555")

    first = "device: https://devices.example (DEVICE_URL), app ID 11111111…, "
    pytester.runpytest().stdout.fnmatch_lines(
        [f"{first}sessions up to 30 min (idle 10)"]
    )
    limits = [
        "--device-max-duration-minutes=9",
        "--device-max-idle-time-minutes=3",
        "--device-max-sessions=4",
    ]
    shown = pytester.runpytest(*limits).stdout
    shown.fnmatch_lines([f"{first}sessions up to 9 min (idle 3), at most 4 at once"])
    shown.no_fnmatch_line("device max*")


@pytest.mark.parametrize(("minutes", "idle"), [("5", "4"), ("1", "none")])
def test_the_header_reports_the_idle_limit_that_the_duration_leaves_room_for(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, minutes: str, idle: str
) -> None:
    monkeypatch.setenv("DEVICE_URL", "https://devices.example")

    result = pytester.runpytest(f"--device-max-duration-minutes={minutes}")

    result.stdout.fnmatch_lines(
        [f"device: *, sessions up to {minutes} min (idle {idle})"]
    )


def test_with_v_the_header_shows_the_source_of_each_setting(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEVICE_URL", "https://devices.example")
    monkeypatch.setenv("DEVICE_PLATFORM", "ios,android")
    monkeypatch.setenv("DEVICE_IDENTIFIER", "iPhone\x1b[2J")
    pytester.makeini("[pytest]\ndevice_wait_timeout_seconds = 30\n")
    address = "https://me:hidden@builds.example/app.apk?X-Signature=hidden"

    shown = pytester.runpytest(
        "-v", "--device-no-reorder", f"--device-application-archive-url={address}"
    ).stdout

    reported = [line for line in shown.str().splitlines() if line.startswith("device ")]
    assert reported == [
        "device platform: ios, android (DEVICE_PLATFORM)",
        "device application archive url: https://***@builds.example/app.apk?… (--device-application-archive-url)",
        "device identifier: 'iPhone\\x1b[2J' (DEVICE_IDENTIFIER)",
        "device reorder: false (--device-no-reorder)",
        "device wait timeout seconds: 30 (device_wait_timeout_seconds in the ini file)",
    ]


ADDS_A_FOLD = """
import os
import pytest

class Entries:
    def __init__(self): self.lines = []
    def add(self, entry, /): self.lines.append(repr(entry))

@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session):
    if terminal := session.config.pluginmanager.get_plugin("device-terminal"):
        terminal.folds.append(entries := Entries())
        terminal.note(f"a stop was refused: {os.environ['DEVICE_TOKEN']}")
        session.config.add_cleanup(lambda: open("entries.txt", "w").write("\\n".join(entries.lines)))
"""
TWO_PLATFORMS = """
import pytest

@pytest.mark.device(platform="android")
def test_on_android(device_session): pass

@pytest.mark.device(platform="ios")
def test_on_ios(device_session): pass
"""


@pytest.mark.parametrize("distributed", ON_A_WORKER)
def test_a_fold_gets_each_event_and_incident_of_the_run_once_and_masked(
    pytester: pytest.Pytester, service: FaultyService, distributed: list[str]
) -> None:
    service.add_fault("create", "reply", status=500, body=f"bug {service.token}")
    pytester.makeconftest(ADDS_A_FOLD)
    pytester.makepyfile(test_it=TWO_PLATFORMS)

    pytester.runpytest_subprocess("--device-prefetch=0", *distributed)

    entries = (pytester.path / "entries.txt").read_text()
    # Phases of tests come between them, in another order with workers.
    lines = [line for line in entries.splitlines() if not line.startswith("TestPhase(")]
    assert [line.partition("(")[0] for line in lines] == [
        "Note",
        "CreateUnknown",
        "Incident",
        "Created",
        "Ready",
        "Stopped",
    ]
    assert "\n".join(lines).count("***") == 2
    assert service.token not in entries
