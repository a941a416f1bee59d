"""``pytest-device sessions``: the ledger, as text and as JSON."""

import os
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest

from tests.cli.conftest import Ledgers
from tests.cli.running import call, run
from tests.sessions.reaper_clients import entry_of

ENVIRON = {"DEVICE_URL": "http://127.0.0.1:9", "DEVICE_TOKEN": "open-sesame"}


def test_sessions_lists_the_ledger_as_text(ledgers: Ledgers) -> None:
    kept, live = ledgers.entry(state="kept"), ledgers.entry(name="my test")
    ledgers.run(kept)
    ledgers.run(live, alive=True)

    shown = call("sessions", DEVICE_STATE_DIR=str(ledgers.path), DEVICE_TOKEN="")

    assert shown.returncode == 0
    assert (
        f"{kept.session_id}  kept (run finished): android appium 'a test'"
        in shown.stdout
    )
    assert (
        f"{live.session_id}  live (run active): android appium 'my test'"
        in shown.stdout
    )
    assert (
        f"max. duration 10 min (+5 min cleanup), at {ledgers.service.url}, session page: {kept.url}"
        in shown.stdout
    )


def test_sessions_prints_a_name_that_the_stream_cannot_encode(ledgers: Ledgers) -> None:
    ledgers.run(ledgers.entry(state="kept", name="smoke · gw0"))
    options = ("--state-dir", str(ledgers.path))

    shown = run("sessions", *options, PYTHONIOENCODING="ascii")

    assert shown.returncode == 0
    assert r"'smoke \xb7 gw0'" in shown.stdout


@contextmanager
def time_zone(name: str) -> Generator[None]:
    """Let this process have a time zone, as if it had been started there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", name)
        time.tzset()
        yield
    time.tzset()


def test_sessions_shows_all_times_in_local_time(ledgers: Ledgers) -> None:
    asked_at, until = "2026-01-01T16:39:56+00:00", "2026-01-01T17:40:00+00:00"
    session_id, service = str(uuid4()), ledgers.service
    ledgers.run(entry_of(session_id, service, asked_at=asked_at))
    ledgers.run(
        entry_of(session_id, service, state="warm", asked_at=asked_at, until=until)
    )
    ledgers.run(
        entry_of(
            "",
            ledgers.service,
            state="asked",
            asked_at="2998-12-31T16:39:56+00:00",
        )
    )
    options = ("--state-dir", str(ledgers.path))

    with time_zone("XST-9"):
        shown = call("sessions", *options).stdout
        stopped = ledgers.stop()

    assert shown.count("created 2026-01-02 01:39, max. duration") == 2
    assert "created 2999-01-01 01:39, max. duration" in shown
    assert "minutes after its creation at 2999-01-01 01:39" in stopped.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="directories have no such mode")
def test_no_command_uses_a_ledger_that_others_can_write_to(
    ledgers: Ledgers, tmp_path: Path
) -> None:
    ledgers.run(ledgers.entry())
    ledgers.path.chmod(0o770)

    for command in ("sessions", "stop", "doctor", "serve"):
        result = call(command, **ENVIRON, DEVICE_STATE_DIR=str(tmp_path))
        assert result.returncode
        assert (
            f"the state directory {tmp_path} can be written to by other users (mode 770)"
            in (result.stdout + result.stderr)
        )
        assert f"chmod go-w {tmp_path}" in result.stdout + result.stderr

    (tmp_path / "runs").chmod(0o702)
    tmp_path.chmod(0o700)
    assert (
        "can be written to by other users (mode 702)"
        in call("sessions", DEVICE_STATE_DIR=str(tmp_path)).stderr
    )


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away"
)
def test_a_ledger_that_belongs_to_another_user_is_not_used(ledgers: Ledgers) -> None:
    os.chown(ledgers.path, 12345, 12345)

    result = call("sessions", DEVICE_STATE_DIR=str(ledgers.path))

    assert result.returncode == 2
    assert (
        "belongs to another user (ID 12345): choose a directory of your own"
        in result.stderr
    )


def test_sessions_lists_the_ledger_as_json(ledgers: Ledgers) -> None:
    run = ledgers.run(entry := ledgers.entry())

    assert ledgers.listed() == [
        {
            "session_id": entry.session_id,
            "label": "android appium",
            "name": "a test",
            "state": "live",
            "service": ledgers.service.url,
            "page": entry.url,
            "asked_at": entry.asked_at,
            "minutes": 15,
            "until": None,
            "run": run.name,
            "run_alive": False,
        }
    ]


def test_sessions_lists_a_session_without_an_id(ledgers: Ledgers) -> None:
    ledgers.run(entry_of("", ledgers.service, state="asked", name="lost one"))

    shown = call("sessions", "--state-dir", str(ledgers.path)).stdout

    assert shown.startswith(
        "ID unknown  asked (run finished): android appium 'lost one'"
    )


def test_sessions_reports_an_empty_ledger(tmp_path: Path) -> None:
    shown = call("sessions", "--state-dir", str(tmp_path))

    assert (shown.returncode, shown.stdout) == (0, f"no sessions in {tmp_path}\n")


def test_sessions_reports_that_nothing_has_run_yet(tmp_path: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path), "DEVICE_STATE_DIR": ""}

    shown = call("sessions", **environ)

    assert shown.returncode == 0
    assert shown.stdout == f"no sessions: {tmp_path / 'pytest-device'} does not exist\n"
    assert (
        call("sessions", "--json", **environ).stdout
        == '{"sessions": [], "damaged": {}}\n'
    )


@pytest.mark.parametrize("command", ["sessions", "stop"])
def test_a_state_directory_that_depends_on_where_the_command_runs_is_a_usage_error(
    command: str,
) -> None:
    by_option = call(command, "--state-dir", "state", **ENVIRON)
    by_variable = call(command, **ENVIRON, DEVICE_STATE_DIR="state")

    assert (by_option.returncode, by_variable.returncode) == (2, 2)
    assert by_option.stderr.startswith(
        "pytest-device: --state-dir='state' must be an absolute path"
    )
    assert by_variable.stderr.startswith(
        "pytest-device: DEVICE_STATE_DIR='state' must be an absolute path"
    )


@pytest.mark.parametrize("command", ["sessions", "stop"])
def test_a_missing_state_directory_is_reported_and_is_an_error_if_given_explicitly(
    command: str, tmp_path: Path
) -> None:
    missing = str(tmp_path / "state")

    by_option = call(command, "--state-dir", missing, **ENVIRON)
    by_variable = call(command, **ENVIRON, DEVICE_STATE_DIR=missing)

    assert (by_option.returncode, by_variable.returncode) == (2, 0)
    assert by_option.stderr.startswith(
        f"pytest-device: --state-dir={missing!r} does not exist"
    )
    assert f"{missing} does not exist\n" in by_variable.stdout


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_sessions_does_not_ignore_a_damaged_file(
    ledgers: Ledgers, options: tuple[str, ...]
) -> None:
    broken = ledgers.run(ledgers.entry()).directory / "broken.json"
    broken.write_text("{")

    shown = call("sessions", *options, "--state-dir", str(ledgers.path))

    assert shown.returncode == 1
    assert str(broken) in shown.stdout


def test_a_state_directory_that_is_a_file_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file")

    shown = call("sessions", "--state-dir", str(tmp_path))

    assert shown.returncode == 2
    assert shown.stderr.startswith("pytest-device: the ledger cannot be used: ")
