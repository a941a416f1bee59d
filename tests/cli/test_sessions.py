"""``pytest-device sessions``: what the ledger knows, for people and for programs."""

from pathlib import Path

import pytest

from pytest_device.sessions.ledger import ASKED, KEPT
from tests.cli.conftest import Ledgers
from tests.cli.running import call
from tests.sessions.owning import entry_of


def test_sessions_lists_what_the_ledger_knows_for_people(ledgers: Ledgers) -> None:
    kept, live = ledgers.entry(state=KEPT), ledgers.entry(name="my test")
    ledgers.run(kept)
    ledgers.run(live, alive=True)

    shown = call("sessions", DEVICE_STATE_DIR=str(ledgers.state_dir), DEVICE_TOKEN="")

    assert shown.returncode == 0
    assert f"{kept.session_id}  kept, its run is over: android appium 'a test'" in shown.stdout
    assert f"{live.session_id}  live, its run is alive: android appium 'my test'" in shown.stdout
    assert f"lasts 15 minutes at most, at {ledgers.service.url}, page {kept.page}" in shown.stdout
    assert f"asked for at {kept.asked_at}" in shown.stdout


def test_sessions_lists_what_the_ledger_knows_for_programs(ledgers: Ledgers) -> None:
    run = ledgers.run(entry := ledgers.entry())

    assert ledgers.listed() == [
        {
            "session_id": entry.session_id,
            "label": "android appium",
            "name": "a test",
            "state": "live",
            "service": ledgers.service.url,
            "page": entry.page,
            "asked_at": entry.asked_at,
            "minutes": 15,
            "until": None,
            "run": run.name,
            "run_alive": False,
        }
    ]


def test_sessions_tells_of_a_session_without_an_id(ledgers: Ledgers) -> None:
    ledgers.run(entry_of("", ledgers.service, state=ASKED, name="lost one"))

    shown = call("sessions", "--state-dir", str(ledgers.state_dir)).stdout

    assert shown.startswith("id unknown  asked, its run is over: android appium 'lost one'")


def test_sessions_says_that_there_is_none(tmp_path: Path) -> None:
    shown = call("sessions", "--state-dir", str(tmp_path))

    assert (shown.returncode, shown.stdout) == (0, f"no session is known in {tmp_path}\n")


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_sessions_does_not_read_a_damaged_file_as_nothing(ledgers: Ledgers, options: tuple[str, ...]) -> None:
    broken = ledgers.run(ledgers.entry()).directory / "broken.json"
    broken.write_text("{")

    shown = call("sessions", *options, "--state-dir", str(ledgers.state_dir))

    assert shown.returncode == 1
    assert str(broken) in shown.stdout


def test_a_state_directory_that_is_none_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file")

    shown = call("sessions", "--state-dir", str(tmp_path))

    assert shown.returncode == 2
    assert shown.stderr.startswith("pytest-device: the ledger cannot be used: ")
