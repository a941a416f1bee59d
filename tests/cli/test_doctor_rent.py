"""``pytest-device doctor --rent``: one session of a minute, created, reached, stopped."""

import json
import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_device import DeviceClient
from pytest_device.testing import FaultyService, faulty_service
from tests.cli.running import COMMAND, call
from tests.waiting import eventually


@pytest.fixture
def here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, service: FaultyService
) -> Mapping[str, str]:
    """An empty directory, and the environment of an account."""
    monkeypatch.chdir(tmp_path)
    return {
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "DEVICE_URL": service.url,
        "DEVICE_TOKEN": service.token,
        "DEVICE_APP_ID": service.app_id,
        "DEVICE_POLL_INTERVAL_SECONDS": "0.05",
        "DEVICE_STOP_TIMEOUT_SECONDS": "3",
        "DEVICE_TYPE": "appium",
    }


def rent(
    here: Mapping[str, str], **environ: str
) -> tuple[int, dict[str, str], dict[str, Any], str]:
    """Return the exit status, the finding of the session, the whole report, the lines meanwhile."""
    result = call("doctor", "--rent", "--json", **{**here, **environ})
    report = json.loads(result.stdout)
    return (
        result.returncode,
        next(one for one in report["findings"] if one["name"] == "rent"),
        report,
        result.stderr,
    )


def left_in(here: Mapping[str, str]) -> list[Path]:
    return list(Path(here["XDG_STATE_HOME"]).rglob("runs/*/*.json"))


def test_a_one_minute_session_is_created_checked_and_stopped(
    here: Mapping[str, str], service: FaultyService
) -> None:
    status, finding, report, said = rent(here)

    (session,) = service.sessions()
    with DeviceClient(service.url, service.token) as client:
        known = client.get(session["id"])
    assert (known.max_duration_minutes, known.status) == (1, "stopped")
    assert (status, finding["status"]) == (0, "ok")
    assert finding["text"].startswith(
        f"android appium session {session['id']} was created, was ready after "
    )
    assert "session page:\n    http://" in said
    assert report["not_checked"] == (
        "not checked: whether the account allows the limits of the runs (duration, idle: 30 and 10)"
    )
    assert left_in(here) == []


def test_without_it_the_skipped_checks_are_reported(
    here: Mapping[str, str], service: FaultyService
) -> None:
    shown = call("doctor", **here).stdout.splitlines()

    assert shown[-2].startswith(
        "not checked: project, simulator access, limits, tunnels and controllers. `pytest-dev"
    )
    assert service.sessions() == []


def test_an_account_without_access_is_reported_with_the_services_message(
    tmp_path: Path, here: Mapping[str, str]
) -> None:
    with faulty_service(simulator_access=False) as closed:
        status, finding, _, _ = rent(
            here, DEVICE_URL=closed.url, DEVICE_TOKEN=closed.token
        )

    assert (status, finding["status"]) == (1, "fail")
    assert "simulator access is not enabled" in finding["text"]
    assert "enables simulator access" in finding["fix"]
    assert tmp_path.exists()


def test_a_missing_project_is_reported(here: Mapping[str, str]) -> None:
    _, finding, _, _ = rent(here, DEVICE_APP_ID="11111111-1111-4111-8111-111111111111")

    assert "unknown project" in finding["text"]
    assert finding["fix"].startswith("set the ID of a project")


def test_a_session_that_fails_to_start_is_stopped_and_reported(
    here: Mapping[str, str], service: FaultyService
) -> None:
    service.add_fault("boot", "fail", reason="no device is free")

    status, finding, _, _ = rent(here)

    assert (status, finding["fix"]) == (1, "see the session page for the reason")
    assert (
        "no device is free" in finding["text"] or "failed to start" in finding["text"]
    )
    assert left_in(here) == []


def test_the_session_of_a_killed_doctor_is_stopped(
    here: Mapping[str, str], service: FaultyService
) -> None:
    service.add_fault("boot", "delay", seconds=60)
    with subprocess.Popen(
        [*COMMAND, "doctor", "--rent"],
        env={**os.environ, **here},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as doctor:
        assert eventually(lambda: service.statuses() == ["new"])
        doctor.send_signal(signal.SIGKILL)

    assert eventually(lambda: service.statuses() == ["stopped"])


def test_nothing_is_created_if_another_check_fails(
    here: Mapping[str, str], service: FaultyService
) -> None:
    _, finding, _, _ = rent(here, DEVICE_TOKEN="not-the-one")

    assert finding["text"] == "skipped, because another check failed"
    assert service.sessions() == []
