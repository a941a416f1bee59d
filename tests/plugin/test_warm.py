"""A run keeps its device warm, and the next one takes it over."""

import json
import os
import re
from collections.abc import Generator
from pathlib import Path

import pytest

from pytest_device.sessions.ledger import Entry
from pytest_device.sessions.runs import past_runs
from pytest_device.sessions.states import Phase
from pytest_device.testing import FaultyService
from tests.plugin.test_device_report import blobs, of_method
from tests.sessions.reaper_clients import reapers

pytestmark = pytest.mark.skipif(
    not hasattr(os, "fork"), reason="ends processes as Unix does"
)

SUITE = """
import pytest
pytestmark = pytest.mark.device(platform="android", share="run")

def test_one(device_session): pass
def test_two(device_session): pass
"""
KEEP = "--device-keep-warm=5"


@pytest.fixture
def warm(
    service: FaultyService,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    pytester: pytest.Pytester,
) -> Generator[FaultyService]:
    for variable in ("CI", "BUILD_NUMBER"):
        monkeypatch.delenv(variable, raising=False)
    # By which the reapers of this test are known.
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{tmp_path}")
    pytester.makepyfile(test_it=SUITE)
    yield service
    for reaper in reapers(str(tmp_path)):
        reaper.kill()


def entries() -> list[Entry]:
    return [
        entry
        for run in past_runs(Path(os.environ["DEVICE_STATE_DIR"]))
        for entry in run.ledger.read()[0]
    ]


def test_the_next_run_takes_over_the_device(
    pytester: pytest.Pytester, warm: FaultyService
) -> None:
    first = pytester.runpytest(KEEP)
    first.assert_outcomes(passed=2)
    assert first.ret == pytest.ExitCode.OK  # what is kept warm is no leak
    first.stdout.fnmatch_lines(
        ["devices: 1 created, 0 stopped (confirmed), 1 kept warm; *"]
    )
    first.stdout.re_match_lines(
        [
            r"android agent-device: kept warm until \d\d:\d\d$",
            "    http",
            "    pytest-device stop",
        ]
    )
    assert [entry.state for entry in entries()] == [Phase.WARM]

    second = pytester.runpytest(KEEP, "--junitxml=junit.xml", "--device-report=out")

    second.assert_outcomes(passed=2)
    second.stdout.fnmatch_lines(
        ["devices: 0 created, 1 taken over, 0 stopped (confirmed), 1 kept warm; *"]
    )
    (session,) = warm.sessions()
    assert session["status"] == "in-progress"
    named = f'name="device_session" value="{session["id"]}"'
    assert (pytester.path / "junit.xml").read_text().count(named) == 2
    (path,) = (pytester.path / "out").rglob("device-run.json")
    receipt = json.loads(path.read_text())["receipt"]
    counts = ("created", "taken_over", "kept_warm", "stopped")
    assert [receipt[count] for count in counts] == [0, 1, 1, 0]


def test_a_run_without_the_option_neither_keeps_nor_takes_over_devices(
    pytester: pytest.Pytester, warm: FaultyService
) -> None:
    pytester.runpytest(KEEP).assert_outcomes(passed=2)

    result = pytester.runpytest()

    result.stdout.fnmatch_lines(["devices: 1 created, 1 stopped (confirmed); *"])
    assert warm.statuses() == ["in-progress", "stopped"]


@pytest.mark.parametrize(
    "options",
    [["-x", "-n1"], pytest.param(["--stepwise"], marks=pytest.mark.nightly)],
)
def test_a_run_that_ends_at_its_first_failure_is_not_interrupted(
    pytester: pytest.Pytester, warm: FaultyService, options: list[str]
) -> None:
    pytester.makepyfile(test_it=SUITE.replace("pass", "assert False", 1))

    result = pytester.runpytest(*options, KEEP)

    result.assert_outcomes(failed=1)
    assert warm.statuses() == ["in-progress"]
    (blob,) = blobs(pytester.path / "device-report")
    (end,) = of_method(blob, "onEnd")
    assert end["result"]["status"] == "failed"


@pytest.mark.parametrize(
    "end",
    [
        "raise KeyboardInterrupt",
        pytest.param("pytest.exit('enough', returncode=1)", marks=pytest.mark.nightly),
    ],
)
def test_an_interrupted_run_keeps_nothing_warm(
    pytester: pytest.Pytester, warm: FaultyService, end: str
) -> None:
    broken = f"""
    @pytest.mark.device(platform="ios", share="run")
    def test_three(device_session): {end}
    """
    pytester.makepyfile(
        test_it=SUITE + "\n".join(line.strip() for line in broken.splitlines())
    )

    pytester.runpytest_subprocess(KEEP)

    # Also the one that no test needed any more.
    assert warm.statuses() == [
        "stopped",
        "stopped",
    ]
    assert entries() == []
    (blob,) = blobs(pytester.path / "device-report")
    (run_end,) = of_method(blob, "onEnd")
    assert run_end["result"]["status"] == "interrupted"


def test_workers_keep_their_devices_warm_and_take_over_each_others(
    pytester: pytest.Pytester, warm: FaultyService
) -> None:
    pytester.makepyfile(
        test_it=SUITE
        + "\ndef test_three(device_session): pass\ndef test_four(device_session): pass\n"
    )

    pytester.runpytest_subprocess(KEEP, "-n2").assert_outcomes(passed=4)
    left = len(warm.sessions())
    result = pytester.runpytest_subprocess(KEEP, "-n2")

    result.assert_outcomes(passed=4)
    assert result.ret == pytest.ExitCode.OK
    (receipt,) = (line for line in result.outlines if line.startswith("devices: "))
    assert re.match(
        r"devices: \d created, [12] taken over, 0 stopped \(confirmed\), [12] kept warm;",
        receipt,
    )
    assert warm.statuses() == ["in-progress"] * len(warm.sessions())
    assert len(warm.sessions()) <= max(left, 2)


def test_the_ini_file_keeps_nothing_warm_in_ci_and_the_run_reports_it(
    pytester: pytest.Pytester, warm: FaultyService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    pytester.makeini("[pytest]\ndevice_keep_warm = 5")

    result = pytester.runpytest()

    result.stdout.fnmatch_lines(
        [
            "device_keep_warm in the ini file is ignored: in CI, only --device-keep-warm or *"
        ]
    )
    assert warm.statuses() == ["stopped"]


@pytest.mark.nightly
def test_the_environment_keeps_a_device_warm_in_ci_too(
    pytester: pytest.Pytester, warm: FaultyService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    monkeypatch.setenv("DEVICE_KEEP_WARM", "5")

    pytester.runpytest()

    assert warm.statuses() == ["in-progress"]


@pytest.mark.usefixtures("warm")
def test_the_option_is_refused_for_a_service_that_ends_with_the_run(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DEVICE_URL")

    mistaken = pytester.runpytest("--device-local", KEEP)

    assert mistaken.ret == pytest.ExitCode.USAGE_ERROR
    mistaken.stderr.fnmatch_lines(
        ["ERROR: --device-keep-warm needs a remote service: *"]
    )


def test_an_unset_idle_limit_covers_the_time_that_a_device_is_kept_warm(
    pytester: pytest.Pytester, warm: FaultyService
) -> None:
    pytester.makepyfile(
        test_it="""
        import pytest
        pytestmark = pytest.mark.device(platform="android", share="run")

        def test_unset(device_session): assert device_session.max_idle_time_minutes == 21

        @pytest.mark.device(max_idle_time_minutes=3)
        def test_set(device_session): assert device_session.max_idle_time_minutes == 3
        """
    )

    pytester.runpytest("--device-keep-warm=20").assert_outcomes(passed=2)

    assert warm.statuses() == ["in-progress", "in-progress"]


def test_a_device_that_cannot_be_reset_is_not_kept_warm(
    pytester: pytest.Pytester, warm: FaultyService
) -> None:
    pytester.makepyfile(  # a simulated controller can clear nothing
        test_it="""
        import pytest

        @pytest.mark.device(platform="android", share="run")
        def test_one(device_agent_device): pass
        """
    )

    pytester.runpytest(KEEP).assert_outcomes(passed=1)

    assert warm.statuses() == ["stopped"]


def test_a_warm_device_with_a_dead_controller_is_stopped_and_reported(
    pytester: pytest.Pytester, warm: FaultyService
) -> None:
    pytester.runpytest(KEEP)
    warm.add_fault("controller", "dead", times=1)

    result = pytester.runpytest(KEEP)

    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        [
            "stopped android agent-device *, which was kept warm: its agent-device daemon *"
        ]
    )
    assert warm.statuses() == ["stopped", "in-progress"]


def test_without_capacity_a_warm_device_makes_room_and_both_are_counted(
    pytester: pytest.Pytester, warm: FaultyService
) -> None:
    pytester.makepyfile(test_it=SUITE, test_other=SUITE.replace("android", "ios"))
    pytester.runpytest(KEEP, "test_it.py")
    warm.add_fault("create", "reply", status=429, body="full")

    result = pytester.runpytest(KEEP, "test_other.py")

    result.stdout.fnmatch_lines(
        [
            "devices: 1 created, 0 stopped (confirmed), 1 kept warm; *",
            "stopped *, which was kept warm: to make room*",
        ]
    )
    assert warm.statuses() == ["stopped", "in-progress"]


def test_a_warm_device_that_cannot_be_stopped_to_make_room_fails_the_run(
    pytester: pytest.Pytester, warm: FaultyService
) -> None:
    pytester.makepyfile(test_it=SUITE, test_other=SUITE.replace("android", "ios"))
    pytester.runpytest(KEEP, "test_it.py")
    warm.add_fault("create", "reply", status=429, body="full")
    warm.add_fault("stop", "reply", status=403, body="not yours", times=None)

    result = pytester.runpytest(KEEP, "test_other.py")

    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        [
            "devices: 1 created, 0 stopped (confirmed), 1 kept warm; *",
            "*: NOT CONFIRMED AS STOPPED: *not yours*",
        ]
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED
