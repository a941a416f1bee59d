"""Rows: the reaper itself is killed, suspended or disabled."""

from typing import Final

from pytest_device.plugin.output.exit_status import INFRASTRUCTURE_ONLY
from tests.faults.acts import (
    INT,
    KILL,
    STOP,
    TERM,
    at_once,
    goes_on,
    hangs,
    in_test,
    inside,
    network_strikes,
    sends,
    sends_reapers,
    touches,
    trick,
    waits,
)
from tests.faults.network import late
from tests.faults.row import NOBODY, Promise, Row
from tests.faults.row_environment import PATIENCE_SECONDS, RowEnvironment
from tests.faults.suites import HOLDS, PASSES, many, suite

_UNTIL_GO: Final = suite(
    "reached()\nwhile not (DIRECTORY / 'go').exists(): time.sleep(0.05)"
)
_OFF: Final = {"DEVICE_REAPER": "false"}


def _next_run(env: RowEnvironment) -> None:
    env.again(suite=PASSES)


def _first_has_ended(env: RowEnvironment) -> None:
    env.runs[0].wait(PATIENCE_SECONDS)


def _wake(env: RowEnvironment) -> None:
    for process in env.reapers():
        process.resume()


ROWS: Final = (
    Row(
        "the reaper is killed in a test",
        "A new reaper replaces it, or the run does its work.",
        _UNTIL_GO,
        when=in_test,
        fault=at_once(sends_reapers(KILL), touches("go")),
        status=0,
    ),
    Row(
        "the reaper is killed in a test, and Ctrl-C",
        "The same.",
        HOLDS,
        when=in_test,
        fault=at_once(sends_reapers(KILL), sends(INT)),
        status=2,
    ),
    Row(
        "the reaper is killed twice",
        "The same.",
        many(3, "reached()\nwhile not (DIRECTORY / 'go').exists(): time.sleep(0.05)"),
        when=in_test,
        fault=at_once(sends_reapers(KILL), waits(1.0), touches("go")),
        reported=r"3 created, 3 stopped \(confirmed\)",
        sessions=3,
    ),
    Row(
        "the reaper is killed inside create",
        "The response is lost with it: bounded and reported.",
        PASSES,
        promise=Promise.BOUNDED,
        network=True,
        arm=trick("create", late(3.0)),
        when=network_strikes,
        fault=sends_reapers(KILL),
        reported="1 unknown",
        status=INFRASTRUCTURE_ONLY,
    ),
    Row(
        "the reaper is killed inside stop",
        "Retried by its replacement.",
        PASSES,
        arm=hangs("stop"),
        when=inside("stop"),
        fault=at_once(sends_reapers(KILL), goes_on),
    ),
    Row(
        "the reaper is killed, and pytest 1 s later",
        "A new reaper has replaced it by then.",
        HOLDS,
        when=in_test,
        fault=at_once(sends_reapers(KILL), waits(1.0), sends(KILL)),
        reported=NOBODY,
    ),
    Row(
        "the reaper is suspended (SIGSTOP) in a test",
        "The run doesn't wait for it forever; the session is stopped.",
        _UNTIL_GO,
        settings={"DEVICE_STOP_TIMEOUT_SECONDS": "3"},
        when=in_test,
        fault=at_once(sends_reapers(STOP), touches("go"), _first_has_ended, _wake),
        reported="devices",
    ),
    Row(
        "the reaper is disabled",
        "The run does the work itself.",
        PASSES,
        settings=_OFF,
        status=0,
    ),
    Row(
        "the reaper is disabled, and SIGTERM",
        "Stopped gracefully.",
        HOLDS,
        settings=_OFF,
        when=in_test,
        fault=sends(TERM),
        status=143,
    ),
    Row(
        "the reaper is disabled, and SIGKILL",
        "No process is left: the next run stops the session and reports it.",
        HOLDS,
        promise=Promise.SWEPT,
        settings=_OFF,
        when=in_test,
        fault=at_once(sends(KILL), waits(0.2), _next_run),
        reported="stopped 1 session",
    ),
    Row(
        "the reaper is disabled, and pytest-timeout (thread)",
        "The same.",
        HOLDS,
        promise=Promise.SWEPT,
        settings=_OFF,
        fault=at_once(_first_has_ended, _next_run),
        options=("--timeout=1", "--timeout-method=thread"),
        reported="stopped 1 session",
    ),
    Row(
        "the reaper is disabled, and a worker is killed",
        "The coordinator stops the session.",
        suite("reached()\nos._exit(3)"),
        settings=_OFF,
        options=("-n1", "--max-worker-restart=0"),
        status=1,
    ),
)
