"""pytest-timeout limits the time of a test, without the wait for its device."""

import pytest

from pytest_device.testing import FaultyService

BOOT_SECONDS = 8


@pytest.fixture
def slow(service: FaultyService, monkeypatch: pytest.MonkeyPatch) -> FaultyService:
    """Provide a service whose devices boot longer than a test may take; tests share them."""
    monkeypatch.setenv("DEVICE_SHARE", "run")
    monkeypatch.setenv("DEVICE_POLL_INTERVAL_SECONDS", "0.5")
    service.add_fault("boot", "delay", seconds=BOOT_SECONDS, times=None)
    return service


@pytest.mark.parametrize(
    ("func_only", "options"),
    [("false", []), ("true", ["-n2"]), ("false", ["--timeout-method=thread"])],
)
def test_the_wait_for_a_device_does_not_count_towards_the_timeout(
    pytester: pytest.Pytester, slow: FaultyService, func_only: str, options: list[str]
) -> None:
    pytester.makeini(f"[pytest]\ntimeout = 5\ntimeout_func_only = {func_only}\n")
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.device(platform="android")
        def test_waits_in_its_set_up(device_session): pass

        @pytest.mark.device(platform="ios")
        def test_waits_in_its_body(request): request.getfixturevalue("device_session")
        """
    )

    pytester.runpytest_subprocess(*options).assert_outcomes(passed=2)

    assert slow.statuses() == ["stopped", "stopped"]


@pytest.mark.usefixtures("service")
@pytest.mark.parametrize("func_only", ["false", "true"])
def test_the_rest_of_a_test_has_the_timeout(
    pytester: pytest.Pytester, func_only: str
) -> None:
    pytester.makeini(f"[pytest]\ntimeout = 2\ntimeout_func_only = {func_only}\n")
    pytester.makepyfile(
        """
        import threading
        import pytest

        @pytest.mark.device(platform="android")
        def test_hangs(device_session): threading.Event().wait(60)
        """
    )

    result = pytester.runpytest()

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*Timeout (>[12].?s) from pytest-timeout*"])
