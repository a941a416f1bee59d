"""``pytest-device stop``: what it stops, what it reports, how it ends."""

import json
from uuid import uuid4

import pytest

from tests.cli.conftest import Ledgers
from tests.cli.running import WITHOUT_EXTRA_MODULES, call, run
from tests.fakes.http_server import scripted_server
from tests.sessions.reaper_clients import entry_of


def test_stop_stops_leftover_and_kept_sessions_but_not_those_of_live_runs(
    ledgers: Ledgers,
) -> None:
    left, kept, owned = (
        ledgers.entry(),
        ledgers.entry(state="kept"),
        ledgers.entry(),
    )
    ledgers.run(left, kept)
    ledgers.run(owned, alive=True)

    result = ledgers.stop()

    assert result.returncode == 0, result.stderr
    assert f"stopped: android appium {left.session_id} (stopped)" in result.stdout
    assert f"stopped: android appium {kept.session_id} (stopped)" in result.stdout
    assert "1 session of live runs skipped: use --all to stop them" in result.stdout
    assert ledgers.service.statuses().count("stopped") == 2
    assert [session["session_id"] for session in ledgers.listed()] == [owned.session_id]


def test_stop_reports_that_it_knows_this_machine_only(ledgers: Ledgers) -> None:
    result = ledgers.stop()

    assert result.returncode == 0
    assert result.stdout.splitlines() == [
        f"nothing to stop in {ledgers.path}",
        "sessions created by other machines are not listed: the service has no list call",
    ]


def test_stop_all_stops_sessions_of_live_runs_but_not_the_runs(
    ledgers: Ledgers,
) -> None:
    run = ledgers.run(entry := ledgers.entry(), alive=True)

    result = ledgers.stop("--all")

    assert result.returncode == 0, result.stderr
    assert entry.session_id in result.stdout
    assert ledgers.service.statuses() == ["stopped"]
    assert ledgers.listed() == []
    assert (run.directory / f"{run.owner}.lock").exists()


def test_stop_stops_exactly_the_given_sessions(ledgers: Ledgers) -> None:
    owned, other, kept = (
        ledgers.entry(),
        ledgers.entry(),
        ledgers.entry(state="kept"),
    )
    ledgers.run(owned, other, alive=True)
    ledgers.run(kept)

    result = ledgers.stop(owned.session_id.upper(), kept.session_id)

    assert result.returncode == 0, result.stderr
    assert ledgers.service.statuses().count("stopped") == 2
    assert [session["session_id"] for session in ledgers.listed()] == [other.session_id]


def test_stop_stops_a_session_from_another_machine(ledgers: Ledgers) -> None:
    entry = ledgers.entry()

    result = ledgers.stop(entry.session_id)

    assert (result.returncode, result.stdout) == (
        0,
        f"stopped: session {entry.session_id} (stopped)\n",
    )


def test_stop_needs_no_ledger_for_a_given_session(ledgers: Ledgers) -> None:
    entry = ledgers.entry()

    result = ledgers.stop("--state-dir", str(ledgers.path / "gone"), entry.session_id)

    assert (result.returncode, result.stderr) == (0, "")
    assert ledgers.service.statuses() == ["stopped"]


def test_stop_reports_that_nothing_has_run_yet(ledgers: Ledgers) -> None:
    environ = {"DEVICE_STATE_DIR": "", "XDG_STATE_HOME": str(ledgers.path)}

    result = call(
        "stop",
        DEVICE_URL=ledgers.service.url,
        DEVICE_TOKEN=ledgers.service.token,
        **environ,
    )

    assert result.returncode == 0
    assert result.stdout.startswith(
        f"nothing to stop: {ledgers.path / 'pytest-device'} does not exist\n"
    )


def test_stop_does_not_count_an_unknown_session_as_stopped(ledgers: Ledgers) -> None:
    mistyped = str(uuid4())

    result = ledgers.stop(mistyped)

    assert result.returncode == 1
    assert (
        f"session {mistyped} is unknown to both the ledger and the service"
        in result.stderr
    )


def test_stop_never_sends_the_token_to_another_service(ledgers: Ledgers) -> None:
    with scripted_server() as other:
        ledgers.run(entry := ledgers.entry(service=other.url))

        result = ledgers.stop()

    assert other.asked == []
    assert result.returncode == 1
    assert (
        f"skipped: android appium {entry.session_id} belongs to {other.url}"
        in result.stderr
    )
    assert [session["session_id"] for session in ledgers.listed()] == [entry.session_id]


def test_stop_stops_a_session_that_a_former_token_of_the_account_created(
    ledgers: Ledgers,
) -> None:
    ledgers.run(entry := ledgers.entry(account=ledgers.account(ledgers.service.token)))
    ledgers.service.add_token("rotated")

    result = ledgers.stop(DEVICE_TOKEN="rotated")

    assert (result.returncode, result.stderr) == (0, "")
    assert f"stopped: android appium {entry.session_id} (stopped)" in result.stdout
    assert ledgers.listed() == []


@pytest.mark.parametrize("names_it", [True, False])
def test_stop_names_a_session_that_another_accounts_token_created(
    ledgers: Ledgers, *, names_it: bool
) -> None:
    ledgers.run(entry := ledgers.entry(account=ledgers.account(ledgers.service.token)))
    ledgers.service.add_token("theirs", is_foreign=True)

    result = ledgers.stop(
        *([entry.session_id] if names_it else []), DEVICE_TOKEN="theirs"
    )

    assert result.returncode == 1
    assert "not stopped: android appium" in result.stderr
    assert "(status 403): " in result.stderr
    assert (
        f"with that token, run pytest-device stop {entry.session_id}" in result.stderr
    )
    assert [session["session_id"] for session in ledgers.listed()] == [entry.session_id]
    assert [operation for operation, _ in ledgers.service.requests()].count("stop") == 1


def test_stop_reports_another_accounts_session_as_json(ledgers: Ledgers) -> None:
    ledgers.run(entry := ledgers.entry(account=ledgers.account(ledgers.service.token)))
    ledgers.service.add_token("theirs", is_foreign=True)

    report = json.loads(ledgers.stop("--json", DEVICE_TOKEN="theirs").stdout)

    ((session_id, reason),) = [
        (one["session_id"], one["reason"]) for one in report["not_stopped"]
    ]
    assert session_id == entry.session_id
    assert reason.endswith("; another access token created it")


def test_stop_fails_if_a_session_cannot_be_stopped_and_keeps_its_entry(
    ledgers: Ledgers,
) -> None:
    ledgers.run(entry := ledgers.entry())
    ledgers.service.add_fault(
        "stop",
        "reply",
        status=403,
        body=json.dumps({"echo": ledgers.service.token}),
        times=None,
    )

    result = ledgers.stop("--timeout-seconds", "1")

    assert result.returncode == 1
    assert "not stopped: android appium" in result.stderr
    assert ledgers.service.token not in result.stderr + result.stdout
    assert len(ledgers.listed()) == 1
    assert entry.url.rpartition("/")[0] in result.stderr


def test_stop_gives_up_after_the_given_time(ledgers: Ledgers) -> None:
    ledgers.run(ledgers.entry())
    ledgers.service.add_fault("stop", "reply", status=503, body="{}", times=None)

    result = ledgers.stop("--timeout-seconds", "0.1")

    assert result.returncode == 1
    assert "not stopped: " in result.stderr
    assert len(ledgers.listed()) == 1


def test_stop_reports_a_create_call_whose_response_was_lost(ledgers: Ledgers) -> None:
    lost = entry_of(
        "", ledgers.service, state="asked", asked_at="2999-01-01T00:00:00+00:00"
    )
    ledgers.run(
        lost, lost._replace(intent=uuid4().hex, asked_at="2001-01-01T00:00:00+00:00")
    )

    result = ledgers.stop()

    assert result.returncode == 1
    assert result.stderr.count("cannot be stopped: android appium named 'a test'") == 1
    assert [session["asked_at"] for session in ledgers.listed()] == [lost.asked_at]


def test_stop_counts_already_stopped_sessions_except_those_of_live_runs(
    ledgers: Ledgers,
) -> None:
    ledgers.run(ledgers.entry(state="stopped"))
    ledgers.run(ledgers.entry(state="stopped"), alive=True)

    result = ledgers.stop("--all")

    assert result.returncode == 0
    assert "2 sessions already stopped" in result.stdout
    assert [session["run_alive"] for session in ledgers.listed()] == [True]


def test_stop_fails_for_a_damaged_file(ledgers: Ledgers) -> None:
    broken = ledgers.run(ledgers.entry()).directory / "broken.json"
    broken.write_text("{")

    result = ledgers.stop()

    assert result.returncode == 1
    assert f"damaged ledger file {broken}" in result.stderr
    assert ledgers.service.statuses() == ["stopped"]


def test_stop_reports_unstopped_sessions_with_the_reason_as_json(
    ledgers: Ledgers,
) -> None:
    refused, strange = ledgers.entry(), str(uuid4())
    ledgers.run(refused)
    echo = json.dumps({"echo": ledgers.service.token})
    ledgers.service.add_fault("stop", "reply", status=403, body=echo, times=None)

    result = ledgers.stop(
        "--json", refused.session_id, strange, DEVICE_STOP_TIMEOUT_SECONDS="3"
    )

    report = json.loads(result.stdout)
    assert (result.returncode, result.stderr) == (1, "")
    assert ledgers.service.token not in result.stdout
    assert [(one["session_id"], one["page"]) for one in report["not_stopped"]] == [
        (refused.session_id, refused.url),
        (strange, ""),
    ]
    assert "Developer" in report["not_stopped"][0]["reason"]
    assert (report["stopped"], report["already_stopped"], report["damaged"]) == (
        [],
        0,
        {},
    )


def test_stop_reports_the_whole_ledger_as_json(ledgers: Ledgers) -> None:
    left, lost = (
        ledgers.entry(),
        entry_of(
            "",
            ledgers.service,
            state="asked",
            asked_at="2999-01-01T00:00:00+00:00",
        ),
    )
    elsewhere = entry_of(str(uuid4()), ledgers.service)._replace(
        service="https://devices.example"
    )
    broken = (
        ledgers.run(left, lost, elsewhere, ledgers.entry(state="stopped")).directory
        / "broken.json"
    )
    broken.write_text("{")
    ledgers.run(ledgers.entry(), alive=True)

    report = json.loads(ledgers.stop("--json").stdout)

    assert report["stopped"] == [
        {
            "session_id": left.session_id,
            "label": "android appium",
            "page": left.url,
            "status": "stopped",
        }
    ]
    assert [(one["session_id"], one["reason"]) for one in report["not_stopped"]] == [
        ("", "its ID is unknown: the response to its create call was lost"),
        (elsewhere.session_id, "belongs to https://devices.example"),
    ]
    assert (report["already_stopped"], report["left_to_live_runs"]) == (1, 1)
    assert list(report["damaged"]) == [str(broken)]


@pytest.mark.parametrize(
    ("arguments", "environ", "reported"),
    [
        ((), {"DEVICE_URL": ""}, "--url or DEVICE_URL"),
        ((), {"DEVICE_TOKEN": ""}, "DEVICE_TOKEN"),
        (("--url", "http://devices.example"), {}, "http://devices.example"),
        (("not-an-id",), {}, "not-an-id"),
        (("--all", str(uuid4())), {}, "not allowed with"),
        (("--timeout-seconds", "-1"), {}, "-1"),
        (
            ("--timeout-seconds", "0"),
            {},
            "'0' must be a number of seconds greater than 0, at most 1000000",
        ),
        (("--timeout-seconds", "inf"), {}, "inf"),
        (("--timeout-seconds", "1000001"), {}, "1000001"),
        (
            (),
            {"DEVICE_STOP_TIMEOUT_SECONDS": "soon"},
            "DEVICE_STOP_TIMEOUT_SECONDS='soon' must be",
        ),
    ],
)
def test_stop_reports_invalid_arguments(
    ledgers: Ledgers, arguments: tuple[str, ...], environ: dict[str, str], reported: str
) -> None:
    result = ledgers.stop(*arguments, **environ)

    assert result.returncode == 2
    assert reported in result.stderr


def test_sessions_are_listed_and_stopped_without_the_local_extra(
    ledgers: Ledgers,
) -> None:
    ledgers.run(entry := ledgers.entry())
    session_id = entry.session_id
    url, token = ledgers.service.url, ledgers.service.token

    # Both in one interpreter, which takes longer to start than the commands.
    result = run(
        "--state-dir",
        str(ledgers.path),
        code=f"{WITHOUT_EXTRA_MODULES}; from pytest_device.cli import main; "
        "sys.exit(max(main([name, *sys.argv[1:]]) for name in ('sessions', 'stop')))",
        DEVICE_URL=url,
        DEVICE_TOKEN=token,
    )

    assert (result.returncode, result.stderr) == (0, "")
    assert f"{session_id}  live (run finished)" in result.stdout

    assert ledgers.service.statuses() == ["stopped"]
