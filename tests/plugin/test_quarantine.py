"""Tests in quarantine: they run and are reported, but do not fail the run."""

import xml.etree.ElementTree as ET

import pytest

from pytest_device.testing import FaultyService
from tests.plugin.runs import ON_A_WORKER, ON_WORKERS

SUITE = """
import pytest
pytestmark = pytest.mark.device(platform="android")

@pytest.mark.device_quarantine(ARGUMENTS)
@pytest.mark.parametrize("number", range(2))
def test_flaky(device_session, number):
    assert number, "still flaky"
"""
ACTIVE = 'until="2999-01-31", reason="the login is being rebuilt"'
EXPIRED = 'until="2020-01-31", reason="the login is being rebuilt"'


@pytest.mark.parametrize("options", ON_A_WORKER)
def test_a_quarantined_test_runs_and_does_not_fail_the_run(
    pytester: pytest.Pytester, service: FaultyService, options: list[str]
) -> None:
    pytester.makepyfile(SUITE.replace("ARGUMENTS", ACTIVE))

    result = pytester.runpytest("-x", "--junitxml=junit.xml", *options)

    assert result.ret == 0
    assert result.parseoutcomes() == {"passed": 1, "quarantined": 1}
    result.stdout.fnmatch_lines(
        ["*quarantined*test_flaky*0*the login is being rebuilt*still flaky*"]
    )
    (skipped,) = ET.parse(pytester.path / "junit.xml").getroot().iter("skipped")
    assert "still flaky" in str(skipped.get("message"))
    assert len(service.sessions()) == 2


@pytest.mark.parametrize("options", ON_WORKERS)
@pytest.mark.usefixtures("service")
def test_an_expired_quarantine_fails_the_run_with_a_warning_that_names_it(
    pytester: pytest.Pytester, options: list[str]
) -> None:
    pytester.makepyfile(SUITE.replace("ARGUMENTS", EXPIRED))

    result = pytester.runpytest("-Wdefault::pytest.PytestWarning", *options)

    assert result.ret == 1
    assert result.parseoutcomes() == {"passed": 1, "failed": 1, "warnings": 1}
    result.stdout.fnmatch_lines(
        ["*test_flaky: the quarantine has expired on 2020-01-31*"]
    )


@pytest.mark.usefixtures("service")
def test_all_mistakes_are_reported_at_once_with_file_and_line(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        """
        import pytest
        quarantine = pytest.mark.device_quarantine
        device = pytest.mark.device(platform="android")

        @device
        @quarantine(reason="R")
        def test_without_date(device_session): pass

        @device
        @quarantine(until="2027-01-31")
        def test_without_reason(device_session): pass

        @device
        @quarantine(until="31.1.2027", reason=" ")
        def test_wrong(device_session): pass

        @device
        @quarantine("2027-02-30", until="2027-02-30", reason="R", owner="me")
        def test_more(device_session): pass

        @quarantine(until="2027-01-31", reason="R")
        def test_plain(): pass
        """
    )

    result = pytester.runpytest()

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    file = "test_all_mistakes_are_reported_at_once_with_file_and_line.py"
    result.stderr.fnmatch_lines(
        [
            f"ERROR: {file}:5: test_without_date: device_quarantine needs the last day*",
            f"ERROR: {file}:9: test_without_reason: device_quarantine needs a reason*",
            f"ERROR: {file}:13: test_wrong: device_quarantine: until='31.1.2027' must be a date*",
            f"ERROR: {file}:13: test_wrong: device_quarantine: reason=' ' must be a text*",
            f"ERROR: {file}:17: test_more: device_quarantine takes until and reason only*",
            f"ERROR: {file}:17: test_more: device_quarantine: until='2027-02-30' must be*",
            f"ERROR: {file}:21: test_plain: device_quarantine is for tests with a device*",
        ]
    )


def test_an_expired_quarantine_is_an_error_if_warnings_are(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(SUITE.replace("ARGUMENTS", EXPIRED))

    result = pytester.runpytest("-Werror")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *test_flaky: the quarantine has expired*"])
    assert not service.sessions()
