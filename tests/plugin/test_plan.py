"""What ``--device-plan`` reports, and that it does nothing else."""

import json
from pathlib import Path

import pytest

from pytest_device.testing import FaultyService

SUITE = """
import pytest

@pytest.mark.device(platform="android", share="run")
@pytest.mark.parametrize("n", range(8))
def test_android(device_session, n): pass

@pytest.mark.device(platform="ios", share="run")
@pytest.mark.parametrize("n", range(2))
def test_ios(device_session, n): pass

def test_plain(): raise AssertionError
"""


@pytest.fixture
def suite(pytester: pytest.Pytester, service: FaultyService) -> Path:
    del service
    return pytester.makepyfile(test_it=SUITE)


@pytest.mark.usefixtures("suite")
@pytest.mark.parametrize("options", [[], ["-n0"]])
def test_one_process_boots_each_kind_once(
    pytester: pytest.Pytester, service: FaultyService, options: list[str]
) -> None:
    result = pytester.runpytest("--device-plan", "--device-max-sessions=1", *options)

    result.stdout.fnmatch_lines(
        [
            "*device plan for 1 process*",
            "android agent-device (run): 8 tests, 1 device, 3.0 min",
            "ios agent-device (run): 2 tests, 1 device, 1.5 min",
            "2 boots, at most 1 at once; about 4 min 30 s in total, 4.5 device minutes including boots; *",
            "known from earlier runs: 0 of 11 tests, 0 of 2 device models; otherwise assuming 15 s per device test, *",
        ]
    )
    assert service.requests() == []


@pytest.mark.usefixtures("suite")
@pytest.mark.parametrize(
    "options",
    [
        ["-n3"],
        ["-n3", "--dist=load"],
        ["-d", "--tx", "3*popen"],
        ["-n9", "--maxprocesses=3"],
    ],
)
def test_workers_are_counted_and_not_started(
    pytester: pytest.Pytester, service: FaultyService, options: list[str]
) -> None:
    result = pytester.runpytest("--device-plan", *options)

    result.stdout.fnmatch_lines(
        ["*device plan for 3 workers*", "3 boots, at most 3 at once; *"]
    )
    assert service.requests() == []


@pytest.mark.usefixtures("suite")
@pytest.mark.parametrize(
    ("seconds", "devices"),
    [
        (120.0, "1 device, 17.0 min"),
        (600.0, "3 devices, 83.0 min"),  # of at most 30 minutes each
    ],
)
def test_known_durations_are_used(
    pytester: pytest.Pytester, seconds: float, devices: str
) -> None:
    cache = pytester.path / ".pytest_cache/v/device"
    cache.mkdir(parents=True)
    known = {f"test_it.py::test_android[{n}]": seconds for n in range(8)}
    (cache / "test_seconds").write_text(json.dumps(known))

    result = pytester.runpytest("--device-plan")

    result.stdout.fnmatch_lines(
        [f"android agent-device (run): 8 tests, {devices}", "known*: 8 of 11 tests, *"]
    )


@pytest.mark.usefixtures("service")
@pytest.mark.parametrize("options", [[], ["-n2"], ["--device-shard=1/1"]])
def test_a_suite_without_devices_is_not_run_either(
    pytester: pytest.Pytester, options: list[str]
) -> None:
    pytester.makepyfile("def test_it(): raise AssertionError")

    result = pytester.runpytest("--device-plan", *options)

    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        ["*= device plan for *", "no test needs a device *; nothing was sent"]
    )


@pytest.mark.usefixtures("suite")
@pytest.mark.parametrize(
    "options", [["-k", "plain"], ["--device-platform=ios", "-k", "android or plain"]]
)
def test_a_selection_without_devices_is_not_run_either(
    pytester: pytest.Pytester, options: list[str]
) -> None:
    result = pytester.runpytest("--device-plan", *options)

    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        [
            "*= device plan for 1 process =*",
            "no test needs a device *; nothing was sent",
        ]
    )


def test_invalid_settings_end_a_plan_before_anything_runs(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile("def test_it(): pass")

    assert (
        pytester.runpytest("--device-plan", "--device-max-sessions=x").ret
        == pytest.ExitCode.USAGE_ERROR
    )


OWN_SCHEDULER = """
import pytest

@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log): pass
"""


@pytest.mark.usefixtures("suite")
@pytest.mark.parametrize(
    ("options", "others"),
    [
        (["-n2", "--dist=load"], "--dist load"),
        (["-n2", "--sw"], "--stepwise"),
        (["--sw"], "--stepwise"),
        (["-n2", "-p", "own"], "the suite's own scheduler"),
        (
            ["-n2", "-p", "own", "--dist=load"],
            "--dist load and the suite's own scheduler",
        ),
    ],
)
def test_it_reports_options_that_prevent_the_planned_distribution(
    pytester: pytest.Pytester, options: list[str], others: str
) -> None:
    pytester.makepyfile(own=OWN_SCHEDULER)
    pytester.syspathinsert()

    result = pytester.runpytest("--device-plan", *options)

    result.stdout.fnmatch_lines([f"assuming a run without {others}"])


@pytest.mark.usefixtures("suite")
@pytest.mark.parametrize("options", [["-n2"], ["-n0", "--dist=load"], ["-p", "own"]])
def test_it_does_not_report_options_without_an_effect(
    pytester: pytest.Pytester, options: list[str]
) -> None:
    pytester.makepyfile(own=OWN_SCHEDULER)
    pytester.syspathinsert()

    result = pytester.runpytest("--device-plan", *options)

    result.stdout.fnmatch_lines(["*= device plan for *"])
    result.stdout.no_fnmatch_line("assuming a run without*")
