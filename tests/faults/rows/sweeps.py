"""Rows: sessions that one run leaves for another, and sessions that a run must leave alone."""

import shutil
from typing import Final

from tests.faults.acts import (
    CONT,
    KILL,
    STOP,
    TERM,
    at_once,
    in_test,
    in_two_tests,
    inside,
    network_becomes,
    network_strikes,
    sends,
    sends_group,
    slow,
    touches,
    trick,
)
from tests.faults.network import late
from tests.faults.room import PATIENCE_SECONDS, Room
from tests.faults.row import NOBODY, NONE_KEPT_OR_UNKNOWN, Promise, Row
from tests.faults.suites import HOLDS, PASSES, many, suite

_SWEPT: Final = "stopped 1 session"
_UNTIL_GO: Final = suite(
    "reached()\nwhile not (ROOM / 'go').exists(): time.sleep(0.05)"
)
_FAILS: Final = suite("assert False, 'the app is broken'")
_KEEPS: Final = {"DEVICE_KEEP_ON_FAILURE": "true"}


def _kill_all(room: Room) -> None:
    room.kill_all()


def _next_run(room: Room) -> None:
    room.again(suite=PASSES)


def _with_wrong_token(room: Room) -> None:
    room.again(suite=PASSES, DEVICE_TOKEN="not-the-one")


def _names_it(room: Room) -> None:
    room.wait_for(
        lambda: "that another access token created" in room.output(),
        "the skipped session's name",
        0,
    )


def _at_another_address(room: Room) -> None:
    """Run with another URL of the same service, which makes it a different service for the plugin."""
    room.again(
        suite=PASSES, DEVICE_URL=room.service.url.replace("127.0.0.1", "localhost")
    )


def _lose_state(room: Room) -> None:
    shutil.rmtree(room.state)


def _damage_ledger(room: Room) -> None:
    room.wait_for(lambda: len(room.ledger()) == 1, "one entry", 0)
    room.ledger()[0].write_text('{"half": ')


def _mine_still_runs(room: Room) -> None:
    room.wait_for(
        lambda: len(room.alive()) == 1, "the session of the run that lives", 0
    )


def _end_first_run(room: Room) -> None:
    room.runs[0].send_signal(TERM)


def _wake_first_run(room: Room) -> None:
    room.runs[0].send_signal(CONT)


def _first_has_ended(room: Room) -> None:
    room.runs[0].wait(PATIENCE_SECONDS)


def _another_run_beside(room: Room) -> None:
    room.start(suite=_UNTIL_GO)
    room.wait_reached(2)
    touches("go")(room)


def _four_runs_beside(room: Room) -> None:
    for _ in range(4):
        room.start(suite=many(3, "time.sleep(0.1)"))


ROWS: Final = (
    Row(
        "a container is killed in a test",
        "No process is left: the next run with the same state directory stops the session and reports it.",
        HOLDS,
        promise=Promise.SWEPT,
        when=in_test,
        fault=at_once(_kill_all, _next_run),
        reported=_SWEPT,
    ),
    Row(
        "a container is killed with two workers",
        "The same for all their sessions.",
        many(2, "hold()"),
        promise=Promise.SWEPT,
        options=("-n2",),
        when=in_two_tests,
        fault=at_once(_kill_all, _next_run),
        reported="stopped 2 sessions",
        sessions=2,
    ),
    Row(
        "a container is killed inside stop",
        "The same.",
        PASSES,
        promise=Promise.SWEPT,
        arm=slow("stop", 60),
        when=inside("stop"),
        fault=at_once(_kill_all, _next_run),
        reported=_SWEPT,
    ),
    Row(
        "a container is killed inside create",
        "The response is lost: bounded, and the next run names the session that may be running.",
        PASSES,
        promise=Promise.BOUNDED,
        network=True,
        arm=trick("create", late(3.0)),
        when=network_strikes,
        fault=at_once(_kill_all, _next_run),
        reported="test_driven",
    ),
    Row(
        "a container is killed, and its state directory is lost",
        "No process knows the session anymore: its limit ends it.",
        HOLDS,
        promise=Promise.BOUNDED,
        when=in_test,
        fault=at_once(_kill_all, _lose_state, _next_run),
        reported=NOBODY,
    ),
    Row(
        "the next run after a killed container has another access token",
        "The session is named and left to a run with its own token.",
        HOLDS,
        promise=Promise.SWEPT,
        when=in_test,
        fault=at_once(
            _kill_all, _with_wrong_token, _names_it, _mine_still_runs, _next_run
        ),
        reported=_SWEPT,
    ),
    Row(
        "the next run after a killed container has no network",
        "The same.",
        HOLDS,
        promise=Promise.SWEPT,
        network=True,
        when=in_test,
        fault=at_once(
            _kill_all,
            network_becomes("refused"),
            _next_run,
            network_becomes("up"),
            _next_run,
        ),
        reported=_SWEPT,
    ),
    Row(
        "the next run after a killed container uses another service",
        "A token is never sent to another service: the session waits for a run that uses its own service.",
        HOLDS,
        promise=Promise.SWEPT,
        when=in_test,
        fault=at_once(_kill_all, _at_another_address, _mine_still_runs, _next_run),
        reported=_SWEPT,
    ),
    Row(
        "`pytest-device stop` after a killed container",
        "The command does what the next run would do.",
        HOLDS,
        promise=Promise.SWEPT,
        when=in_test,
        fault=at_once(_kill_all, lambda room: room.command("stop")),
        reported="stopped",
    ),
    Row(
        "a ledger file is damaged",
        "Never ignored: the next run names the file; the session's limit ends it.",
        HOLDS,
        promise=Promise.BOUNDED,
        when=in_test,
        fault=at_once(_kill_all, _damage_ledger, _next_run),
        reported=r"[0-9a-f]{32}\.json",
    ),
    Row(
        "two concurrent runs share a state directory",
        "Neither touches the other's sessions.",
        _UNTIL_GO,
        when=in_test,
        fault=_another_run_beside,
        sessions=2,
        status=0,
    ),
    Row(
        "five concurrent runs share a state directory",
        "The same.",
        many(3, "time.sleep(0.1)"),
        fault=_four_runs_beside,
        reported=rf"3 created, 3 stopped \(confirmed\){NONE_KEPT_OR_UNKNOWN}",
        sessions=15,
        status=0,
    ),
    Row(
        "a run ends while another one holds its session",
        "Live sessions are left alone.",
        HOLDS,
        when=in_test,
        fault=at_once(_next_run, _mine_still_runs, _end_first_run),
        sessions=2,
        status=143,
    ),
    Row(
        "a run starts while another one is suspended (SIGSTOP)",
        "A suspended owner is still an owner.",
        HOLDS,
        when=in_test,
        fault=at_once(
            sends_group(STOP),
            _next_run,
            _mine_still_runs,
            _wake_first_run,
            _end_first_run,
        ),
        sessions=2,
        status=143,
    ),
    Row(
        "a failed test's session is kept",
        "Kept as requested; its limits end it, the receipt counts it.",
        _FAILS,
        promise=Promise.KEPT,
        settings=_KEEPS,
        reported="1 kept",
        status=1,
    ),
    Row(
        "a kept session, and the next run",
        "Not swept.",
        _FAILS,
        promise=Promise.KEPT,
        settings=_KEEPS,
        fault=at_once(_first_has_ended, _next_run),
        reported="1 kept",
        sessions=2,
        status=1,
    ),
    Row(
        "a kept session, and `pytest-device stop`",
        "Stopped on request.",
        _FAILS,
        settings=_KEEPS,
        fault=at_once(_first_has_ended, lambda room: room.command("stop")),
        reported="stopped",
        status=1,
    ),
    Row(
        "SIGKILL of a run with --device-keep-on-failure",
        "No test has failed yet: stopped.",
        HOLDS,
        settings=_KEEPS,
        when=in_test,
        fault=sends(KILL),
        reported=NOBODY,
    ),
)
