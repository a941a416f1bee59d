"""The Python code on the pages runs unchanged, with simulated devices."""

from pathlib import Path

import pytest

import pytest_device.plugin.run  # noqa: F401  # else a run within a test unloads it, and the next one has parts of two
from pytest_device.testing import FaultyService
from tests.docs_pages import DOCS, blocks


@pytest.fixture(autouse=True)
def _configured(
    service: FaultyService, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DEVICE_URL", service.url)
    monkeypatch.setenv("DEVICE_TOKEN", service.token)
    monkeypatch.setenv("DEVICE_APP_ID", service.app_id)
    monkeypatch.setenv("DEVICE_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("DEVICE_POLL_INTERVAL_SECONDS", "0.05")


def only_block(page: str) -> str:
    (block,) = blocks(DOCS / page, "python")
    return block


def test_the_hook_is_called(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(only_block("hooks.md"))
    pytester.makepyfile("def test_it(device_session): print(device_session.url)")

    result = pytester.runpytest("-s", "--device-platform", "android")

    result.assert_outcomes(passed=1)
    result.stdout.re_match_lines(
        [r".*test_the_hook_is_called.py::test_it: http://.*/sessions/"]
    )


def test_a_script_leases_a_session(
    service: FaultyService, capsys: pytest.CaptureFixture[str]
) -> None:
    script = (
        only_block("reference/sessions.md")
        .replace("https://devices.example", service.url)
        .replace("…", service.app_id)
    )

    exec(script, {"token": service.token})

    assert "/sessions/" in capsys.readouterr().out
    assert service.statuses() == ["stopped"]


def test_a_tool_is_tested_with_faults(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(only_block("local-service.md"))

    pytester.runpytest().assert_outcomes(passed=1)


def test_a_quarantined_test_does_not_fail_the_run(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(only_block("results.md").replace("2027-01-31", "2999-01-31"))

    result = pytester.runpytest()

    assert result.parseoutcomes() == {"quarantined": 1}
    assert result.ret == 0
