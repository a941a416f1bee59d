"""Rows: what one run leaves, another one finds; and what it must leave alone."""

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
from tests.faults.row import NOBODY, Promise, Row
from tests.faults.suites import HOLDS, PASSES, many, suite

_SWEPT: Final = "stopped 1 session"
_UNTIL_GO: Final = suite("reached()\nwhile not (ROOM / 'go').exists(): time.sleep(0.05)")
_FAILS: Final = suite("assert False, 'the app is broken'")
_KEEPS: Final = {"DEVICE_KEEP_ON_FAILURE": "true"}


def _kill_all(room: Room) -> None:
    room.kill_all()


def _next_run(room: Room) -> None:
    room.again(suite=PASSES)


def _with_wrong_token(room: Room) -> None:
    room.again(suite=PASSES, DEVICE_TOKEN="not-the-one")


def _at_another_address(room: Room) -> None:
    """Run with another name of the same service: as far as anybody can tell, another service."""
    room.again(suite=PASSES, DEVICE_URL=room.service.url.replace("127.0.0.1", "localhost"))


def _lose_state(room: Room) -> None:
    shutil.rmtree(room.state)


def _damage_ledger(room: Room) -> None:
    room.wait_for(lambda: len(room.ledger()) == 1, "one entry", 0)
    room.ledger()[0].write_text('{"half": ')


def _mine_still_runs(room: Room) -> None:
    room.wait_for(lambda: len(room.alive()) == 1, "the session of the run that lives", 0)


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
        "a container is killed whole in a test",
        "Nobody is left to stop anything: the next run with the same state directory does, and says so.",
        HOLDS,
        promise=Promise.SWEPT,
        when=in_test,
        fault=at_once(_kill_all, _next_run),
        told=_SWEPT,
    ),
    Row(
        "a container is killed whole with two workers",
        "The same, for all that they left.",
        many(2, "hold()"),
        promise=Promise.SWEPT,
        options=("-n2",),
        when=in_two_tests,
        fault=at_once(_kill_all, _next_run),
        told="stopped 2 sessions",
        sessions=2,
    ),
    Row(
        "a container is killed whole inside our stop",
        "The same.",
        PASSES,
        promise=Promise.SWEPT,
        arm=slow("stop", 60),
        when=inside("stop"),
        fault=at_once(_kill_all, _next_run),
        told=_SWEPT,
    ),
    Row(
        "a container is killed whole inside create",
        "The answer is lost: bounded, and the next run names what may be running.",
        PASSES,
        promise=Promise.BOUNDED,
        network=True,
        arm=trick("create", late(3.0)),
        when=network_strikes,
        fault=at_once(_kill_all, _next_run),
        told="test_driven",
    ),
    Row(
        "a container is killed whole, its state directory with it",
        "Nobody knows of the session any more: its limit ends it.",
        HOLDS,
        promise=Promise.BOUNDED,
        when=in_test,
        fault=at_once(_kill_all, _lose_state, _next_run),
        told=NOBODY,
    ),
    Row(
        "the next run after a killed container may not stop sessions",
        "What could not be stopped stays in the ledger, for the run after it.",
        HOLDS,
        promise=Promise.SWEPT,
        when=in_test,
        fault=at_once(_kill_all, _with_wrong_token, _next_run),
        told=_SWEPT,
    ),
    Row(
        "the next run after a killed container has no network",
        "The same.",
        HOLDS,
        promise=Promise.SWEPT,
        network=True,
        when=in_test,
        fault=at_once(_kill_all, network_becomes("refused"), _next_run, network_becomes("up"), _next_run),
        told=_SWEPT,
    ),
    Row(
        "the next run after a killed container uses another service",
        "Its token goes to no other service: the session waits for a run that uses its own.",
        HOLDS,
        promise=Promise.SWEPT,
        when=in_test,
        fault=at_once(_kill_all, _at_another_address, _mine_still_runs, _next_run),
        told=_SWEPT,
    ),
    Row(
        "`pytest-device stop` after a killed container",
        "One command instead of a next run.",
        HOLDS,
        promise=Promise.SWEPT,
        when=in_test,
        fault=at_once(_kill_all, lambda room: room.command("stop")),
        told="stopped",
    ),
    Row(
        "a ledger file is damaged",
        "Never taken for nothing: the next run names the file; the session's limit ends it.",
        HOLDS,
        promise=Promise.BOUNDED,
        when=in_test,
        fault=at_once(_kill_all, _damage_ledger, _next_run),
        told=r"[0-9a-f]{32}\.json",
    ),
    Row(
        "two runs at once share a state directory",
        "Neither touches the other's sessions.",
        _UNTIL_GO,
        when=in_test,
        fault=_another_run_beside,
        sessions=2,
        status=0,
    ),
    Row(
        "five runs at once share a state directory",
        "The same.",
        many(3, "time.sleep(0.1)"),
        fault=_four_runs_beside,
        told=r"created 3, proven stopped 3, unknown 0",
        sessions=15,
        status=0,
    ),
    Row(
        "a run ends while another one holds its session",
        "What lives is left alone.",
        HOLDS,
        when=in_test,
        fault=at_once(_next_run, _mine_still_runs, _end_first_run),
        sessions=2,
        status=143,
    ),
    Row(
        "a run starts while another one sleeps (SIGSTOP)",
        "A sleeping owner is an owner.",
        HOLDS,
        when=in_test,
        fault=at_once(sends_group(STOP), _next_run, _mine_still_runs, _wake_first_run, _end_first_run),
        sessions=2,
        status=143,
    ),
    Row(
        "a failed test's session is kept",
        "Kept because it was asked for; its limits end it, the receipt counts it.",
        _FAILS,
        promise=Promise.KEPT,
        settings=_KEEPS,
        told="kept 1",
        status=1,
    ),
    Row(
        "a kept session, and a next run",
        "Not swept.",
        _FAILS,
        promise=Promise.KEPT,
        settings=_KEEPS,
        fault=at_once(_first_has_ended, _next_run),
        told="kept 1",
        sessions=2,
        status=1,
    ),
    Row(
        "a kept session, and `pytest-device stop`",
        "Stopped when asked to.",
        _FAILS,
        settings=_KEEPS,
        fault=at_once(_first_has_ended, lambda room: room.command("stop")),
        told="stopped",
        status=1,
    ),
    Row(
        "a run that keeps what fails gets SIGKILL",
        "Nothing has failed yet: stopped.",
        HOLDS,
        settings=_KEEPS,
        when=in_test,
        fault=sends(KILL),
        told=NOBODY,
    ),
)
