"""Devices that boot during earlier tests: who is notified, and which boot time is reported."""

import pytest

from pytest_device.testing import FaultyService
from tests.plugin.runs import SERVICE_OF_RUN

pytestmark = pytest.mark.usefixtures("_shared_in_the_run")

PLAIN_FIRST = f"""
{SERVICE_OF_RUN}
import time, pytest

def test_plain():
    service = service_of_run()
    until = time.monotonic() + 60
    while ("get", 200) not in service.requests():  # once its ID is known, the session is polled
        assert time.monotonic() < until
        time.sleep(0.02)
    service.close()
    THEN

@pytest.mark.device(platform="android")
def test_driven(device_session): pass
"""


@pytest.fixture
def _shared_in_the_run(service: FaultyService, monkeypatch: pytest.MonkeyPatch) -> None:
    del service  # which the environment is set for
    monkeypatch.delenv("DEVICE_SHARE")


def test_a_prefetched_session_belongs_to_the_test_that_uses_it(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(PLAIN_FIRST.replace("THEN", ""))

    result = pytester.runpytest("--junitxml=report.xml")

    result.assert_outcomes(passed=2)
    plain, driven = sorted(
        (pytester.path / "report.xml").read_text().split("<testcase")[1:], key=len
    )
    assert "device_session" not in plain
    assert driven.count('name="device_session"') == 1
    assert service.statuses() == ["stopped"]


def test_a_session_prefetched_for_a_test_that_did_not_run_is_stopped_and_counted(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    service.add_fault("boot", "delay", seconds=600)
    pytester.makepyfile(PLAIN_FIRST.replace("THEN", "1 / 0"))

    result = pytester.runpytest("-x")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["devices: 1 created, 1 stopped (confirmed), 1 unused; *"]
    )
    assert service.statuses() == ["stopped"]


def test_the_suites_wait_policy_applies_while_other_devices_boot(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    service.add_fault("boot", "delay", seconds=600, times=None)
    pytester.makepyfile(
        """
        import pytest
        from pytest_device import WaitPolicy

        @pytest.fixture
        def device_wait_policy(request, device_wait_policy):
            return WaitPolicy(timeout_seconds=0.2) if "first" in request.node.name else device_wait_policy

        @pytest.mark.device(platform="android")
        def test_first(device_session): pass
        """,
        test_z="""
        import pytest

        @pytest.mark.device(platform="ios")
        def test_last(device_session): pass
        """,
    )

    result = pytester.runpytest("-x")

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*was not ready after * s*"])
    assert set(service.statuses()) == {"stopped"}
