"""Rows: sessions that one run leaves for another, and sessions that a run must leave alone."""

import re
import shutil
from typing import Final

from pytest_device.sessions.quota.redis_store import SETTLE_SECONDS
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
    waits,
)
from tests.faults.network import late
from tests.faults.row import NOBODY, NONE_KEPT_OR_UNKNOWN, Promise, Row
from tests.faults.row_environment import PATIENCE_SECONDS, RowEnvironment
from tests.faults.suites import HOLDS, PASSES, files, many, suite

_SWEPT: Final = "stopped 1 session"
_UNTIL_GO: Final = suite(
    "reached()\nwhile not (DIRECTORY / 'go').exists(): time.sleep(0.05)"
)
_FAILS: Final = suite("assert False, 'the app is broken'")
_ONLY_SWEEPS: Final = files("def test_it(device_client): pass")
_FREEZES: Final = """
import datetime, random, secrets, uuid
frozen = datetime.datetime(2001, 1, 1, tzinfo=datetime.UTC)

class Frozen(datetime.datetime):
    @classmethod
    def now(cls, tz=None): return frozen

datetime.datetime = Frozen
time.time = lambda: 978307200.0
uuid.uuid4 = lambda: uuid.UUID(int=1)
secrets.token_hex = lambda size=16: "0" * 2 * size
random.random = lambda: 0.5
"""
_WAITED_SECONDS: Final = 5
"""After which a run first reports that it waits for a slot."""
_KEEPS: Final = {"DEVICE_KEEP_ON_FAILURE": "true"}


def _kill_all(env: RowEnvironment) -> None:
    env.kill_all()


def _next_run(env: RowEnvironment) -> None:
    env.again(suite=PASSES)


def _with_wrong_token(env: RowEnvironment) -> None:
    env.again(suite=PASSES, DEVICE_TOKEN="not-the-one")


def _with_rotated_token(env: RowEnvironment) -> None:
    """Run as a CI job does whose access token is valid for that job only."""
    env.service.add_token("rotated")
    env.again(suite=PASSES, DEVICE_TOKEN="rotated")


def _stop_with_rotated_token(env: RowEnvironment) -> None:
    env.service.add_token("rotated")
    env.command("stop", DEVICE_TOKEN="rotated")


def _with_a_strangers_token(env: RowEnvironment) -> None:
    """Run with a token of another account, which the service accepts but which may stop nothing here."""
    env.service.add_token("theirs", is_foreign=True)
    env.again(suite=_ONLY_SWEEPS, DEVICE_TOKEN="theirs")
    env.wait_for(lambda: env.run.returncode == 0, "a run that succeeds", 0)


def _stop_with_a_strangers_token(env: RowEnvironment) -> None:
    env.service.add_token("theirs", is_foreign=True)
    env.command("stop", DEVICE_TOKEN="theirs")


def _tried_once(env: RowEnvironment) -> None:
    env.wait_for(lambda: env.count("stop") == 1, "exactly one stop call", 0)


def _names_it(env: RowEnvironment) -> None:
    named = re.compile(
        "that another access token created.*pytest-device stop [0-9a-f-]{36}"
    )
    env.wait_for(
        lambda: named.search(env.output()) is not None,
        "the session's name and the command",
        0,
    )


def _names_the_command(env: RowEnvironment) -> None:
    named = re.compile(
        "another access token created it.*pytest-device stop [0-9a-f-]{36}"
    )
    env.wait_for(
        lambda: named.search(env.output()) is not None,
        "the session's name and the command",
        0,
    )


def _at_another_address(env: RowEnvironment) -> None:
    """Run with another URL of the same service, which makes it a different service for the plugin."""
    env.again(
        suite=PASSES, DEVICE_URL=env.service.url.replace("127.0.0.1", "localhost")
    )


def _lose_state(env: RowEnvironment) -> None:
    shutil.rmtree(env.state)


def _damage_ledger(env: RowEnvironment) -> None:
    env.wait_for(lambda: len(env.ledger()) == 1, "one entry", 0)
    env.ledger()[0].write_text('{"half": ')


def _mine_still_runs(env: RowEnvironment) -> None:
    env.wait_for(lambda: len(env.alive()) == 1, "the session of the run that lives", 0)


def _end_first_run(env: RowEnvironment) -> None:
    env.runs[0].send_signal(TERM)


def _wake_first_run(env: RowEnvironment) -> None:
    env.runs[0].send_signal(CONT)


def _first_has_ended(env: RowEnvironment) -> None:
    env.runs[0].wait(PATIENCE_SECONDS)


def _another_run_beside(env: RowEnvironment) -> None:
    env.start(suite=_UNTIL_GO)
    env.wait_reached(2)
    touches("go")(env)


def _another_run_asks_for_a_slot(env: RowEnvironment) -> None:
    waits_for_it = f"waited {_WAITED_SECONDS} s for 1 of 1 sessions"
    env.start(suite=PASSES)
    env.wait_for(
        lambda: waits_for_it in env.output() or len(env.service.sessions()) > 1,
        "a run that waits for a slot or has one",
    )


def _end_first_run_while_it_has_the_only_session(env: RowEnvironment) -> None:
    count = len(env.service.sessions())
    touches("go")(env)
    env.wait_for(lambda: count == 1, f"1 session, not {count}", 0)


def _another_run_is_refused(env: RowEnvironment) -> None:
    env.start(suite=PASSES)
    env.wait_for(
        lambda: "--device-max-sessions cannot be enforced" in env.output(),
        "a run that is refused",
    )


def _four_runs_beside(env: RowEnvironment) -> None:
    for _ in range(4):
        env.start(suite=many(3, "time.sleep(0.1)"))


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
        "the next run after a killed container has a new access token of the account",
        "The session is stopped: any token of the service is tried.",
        HOLDS,
        promise=Promise.SWEPT,
        when=in_test,
        fault=at_once(_kill_all, _with_rotated_token),
        reported=_SWEPT,
        sessions=2,
    ),
    Row(
        "`pytest-device stop` with a new access token of the account after a killed container",
        "The same.",
        HOLDS,
        promise=Promise.SWEPT,
        when=in_test,
        fault=at_once(_kill_all, _stop_with_rotated_token),
        reported="stopped: android",
    ),
    Row(
        "the next run after a killed container has an invalid access token",
        "The session is named with the command that stops it, and left to a run with its own token.",
        HOLDS,
        promise=Promise.SWEPT,
        when=in_test,
        fault=at_once(
            _kill_all, _with_wrong_token, _names_it, _mine_still_runs, _next_run
        ),
        reported=_SWEPT,
    ),
    Row(
        "the next run after a killed container has an access token of another account",
        "The same, after one stop call: the refusal neither delays nor fails the run.",
        HOLDS,
        promise=Promise.SWEPT,
        when=in_test,
        fault=at_once(
            _kill_all,
            _with_a_strangers_token,
            _tried_once,
            _names_it,
            _mine_still_runs,
            _next_run,
        ),
        reported=_SWEPT,
    ),
    Row(
        "`pytest-device stop` with an access token of another account after a killed container",
        "The same.",
        HOLDS,
        promise=Promise.SWEPT,
        when=in_test,
        fault=at_once(
            _kill_all,
            _stop_with_a_strangers_token,
            _tried_once,
            _names_the_command,
            _mine_still_runs,
            _next_run,
        ),
        reported=_SWEPT,
    ),
    Row(
        "a container is killed with two workers, in a suite that freezes uuid, random and the wall clock",
        "Each session has its own ledger file, dated by the file system: the next run stops both.",
        suite(
            "hold()",
            marks='@pytest.mark.parametrize("n", range(2))',
            given=", n",
            conftest=_FREEZES,
        ),
        promise=Promise.SWEPT,
        options=("-n2",),
        when=in_two_tests,
        fault=at_once(_kill_all, _next_run),
        reported="stopped 2 sessions",
        sessions=3,
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
        fault=at_once(_kill_all, lambda env: env.command("stop")),
        reported="stopped",
    ),
    Row(
        "a ledger file is damaged",
        "Never ignored: the next run names the file; the session's limit ends it.",
        HOLDS,
        promise=Promise.BOUNDED,
        when=in_test,
        fault=at_once(_kill_all, _damage_ledger, _next_run),
        reported=r"damaged ledger file .*[0-9]\.json",
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
        "the Redis server of the limit comes back empty while a session holds the only slot",
        "The session keeps its slot: another run gets one after its end only.",
        _UNTIL_GO,
        settings={"DEVICE_MAX_SESSIONS": "1", "DEVICE_WAIT_TIMEOUT_SECONDS": "60"},
        redis=True,
        when=in_test,
        fault=at_once(
            lambda env: env.empty_redis(),
            _another_run_asks_for_a_slot,
            # Until the server gives slots again: the session is safe then only if its run has renewed its own.
            waits(SETTLE_SECONDS - _WAITED_SECONDS + 2),
            _end_first_run_while_it_has_the_only_session,
        ),
        sessions=2,
        status=0,
        limit=60,
    ),
    Row(
        "the Redis server of the limit dies while a session holds the only slot",
        "The session goes on; another run is refused rather than exceeding the limit.",
        _UNTIL_GO,
        settings={"DEVICE_MAX_SESSIONS": "1"},
        redis=True,
        when=in_test,
        fault=at_once(
            lambda env: env.kill_redis(), _another_run_is_refused, touches("go")
        ),
        reported="cannot be enforced: the Redis server of DEVICE_SLOTS_URL does not respond",
        status=0,
    ),
    Row(
        "the Redis server of the limit has no memory left while a session holds the only slot",
        "The same; the session's slot is still renewed and released.",
        _UNTIL_GO,
        settings={"DEVICE_MAX_SESSIONS": "1"},
        redis=True,
        when=in_test,
        fault=at_once(
            lambda env: env.fill_redis(), _another_run_is_refused, touches("go")
        ),
        reported=r"cannot be enforced: the Redis server of DEVICE_SLOTS_URL gives no slots \(.*memory",
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
        fault=at_once(_first_has_ended, lambda env: env.command("stop")),
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
