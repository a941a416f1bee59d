"""A run without a ledger or a reaper says so before its first device, or refuses to create one."""

import errno
import os
from typing import Final

import pytest

from pytest_device.testing import FaultyService
from tests.plugin.runs import ON_WORKERS
from tests.waiting import eventually

DRIVEN: Final = """
import pytest

@pytest.mark.device(platform="android")
@pytest.mark.parametrize("n", range(2))
def test_driven(device_session, n):
    print("running")
"""
NO_LEDGER: Final = "*device no ledger (*): later runs cannot stop sessions that this run leaves running. Set *"
NO_PROGRAM: Final = """
import sys

def pytest_configure(config):
    # The coordinator of workers starts them by it.
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", None):
        sys.executable = "/bin/false"
"""
"""No reaper can be started, as in an embedded interpreter."""


@pytest.fixture
def _unusable(
    service: FaultyService, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Configure a state directory that cannot be created, even by root."""
    del service  # configures a usable one
    (pytester.path / "a-file").touch()
    monkeypatch.setenv("DEVICE_STATE_DIR", str(pytester.path / "a-file" / "state"))


@pytest.mark.usefixtures("_unusable")
@pytest.mark.parametrize(
    "options",
    [
        ["-n2"],
        *(
            pytest.param(case, marks=pytest.mark.nightly)
            for case in ([], ["-q"], ["-q", "-n2"])
        ),
    ],
)
def test_a_run_without_a_ledger_says_so_once_and_before_its_first_device(
    pytester: pytest.Pytester, service: FaultyService, options: list[str]
) -> None:
    pytester.makepyfile(DRIVEN)

    result = pytester.runpytest("-s", *options)

    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines([NO_LEDGER])
    (said,) = [
        number
        for number, line in enumerate(result.outlines)
        if "later runs cannot stop" in line
    ]
    assert all(
        number > said
        for number, line in enumerate(result.outlines)
        if line.startswith("running")
    )
    assert eventually(lambda: service.statuses() == ["stopped"] * 2)


@pytest.mark.usefixtures("_unusable")
@pytest.mark.parametrize("options", ON_WORKERS)
def test_a_required_ledger_that_cannot_be_used_is_a_usage_error(
    pytester: pytest.Pytester, service: FaultyService, options: list[str]
) -> None:
    pytester.makepyfile(DRIVEN)

    result = pytester.runpytest("--device-require-ledger", *options)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [
            "ERROR: no ledger (*), but --device-require-ledger is set: set a writable directory with --device-state-dir*"
        ]
    )
    assert service.requests() == []


@pytest.mark.usefixtures("service")
def test_a_required_ledger_that_can_be_used_goes_unmentioned(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEVICE_REQUIRE_LEDGER", "true")
    pytester.makepyfile(DRIVEN)

    result = pytester.runpytest()

    result.assert_outcomes(passed=2)
    result.stdout.no_fnmatch_line("*later runs cannot stop*")


def test_an_invalid_switch_is_a_usage_error(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(DRIVEN)
    pytester.makeini("[pytest]\ndevice_require_ledger = perhaps")

    result = pytester.runpytest()

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*device_require_ledger='perhaps' in the ini file must be *"]
    )
    assert service.requests() == []


@pytest.mark.nightly
@pytest.mark.skipif(os.name == "nt", reason="no flock")
def test_a_file_system_without_locks_is_a_missing_ledger(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makeconftest(
        f"""
        import fcntl
        def flock(file, operation): raise OSError({errno.ENOSYS}, "Function not implemented")
        fcntl.flock = flock
        """
    )
    pytester.makepyfile(DRIVEN)

    result = pytester.runpytest_subprocess()

    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines([NO_LEDGER])
    assert service.statuses() == ["stopped"] * 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="ends processes as Unix does")
@pytest.mark.parametrize("options", ON_WORKERS)
def test_a_run_without_a_reaper_says_so_once_and_before_its_first_device(
    pytester: pytest.Pytester, service: FaultyService, options: list[str]
) -> None:
    pytester.makeconftest(NO_PROGRAM)
    pytester.makepyfile(DRIVEN)

    result = pytester.runpytest_subprocess("-s", *options)

    result.assert_outcomes(passed=2)
    (said,) = [
        number
        for number, line in enumerate(result.outlines)
        if "the run stops its sessions itself" in line
    ]
    assert all(
        number > said
        for number, line in enumerate(result.outlines)
        if line.startswith("running")
    )
    assert eventually(lambda: service.statuses() == ["stopped"] * 2)


@pytest.mark.nightly
@pytest.mark.skipif(not hasattr(os, "fork"), reason="ends processes as Unix does")
def test_a_required_reaper_that_cannot_be_started_is_a_configuration_error(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makeconftest(NO_PROGRAM)
    pytester.makepyfile(DRIVEN)

    result = pytester.runpytest_subprocess("--device-require-ledger")

    result.assert_outcomes(errors=1)  # the other test was not attempted
    result.stdout.no_fnmatch_line("*if it is killed*")
    result.stdout.fnmatch_lines(
        ["*No session was requested, because --device-require-ledger is set*"]
    )
    assert service.requests() == []


def test_a_run_may_do_without_a_reaper_on_purpose(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(DRIVEN)

    result = pytester.runpytest("--device-require-ledger", "--device-no-reaper")

    result.assert_outcomes(passed=2)
    assert service.statuses() == ["stopped"] * 2
