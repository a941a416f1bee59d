"""``pytest-device sessions`` and ``pytest-device stop``: list and stop the sessions in this machine's ledger."""

import argparse
import json
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from pytest_device.cli.command import (
    Command,
    add_json,
    add_state_dir,
    nothing_in,
    state_dir_of,
)
from pytest_device.errors import ConfigError
from pytest_device.escape import escaped
from pytest_device.options import TOKEN_VARIABLE, Options
from pytest_device.sessions.session_id import SessionId
from pytest_device.settings import resolve

if TYPE_CHECKING:
    from pytest_device.sessions.events import SessionRef
    from pytest_device.sessions.inventory import StopResult
    from pytest_device.sessions.ledger import Entry

_ONLY_HERE: Final = (
    "sessions created by other machines are not listed: the service has no list call"
)
_STATE_DIR: Final = "directory where the runs recorded their sessions"


def _add_list_options(parser: argparse.ArgumentParser) -> None:
    add_state_dir(parser, _STATE_DIR)
    add_json(parser)


def _list(parsed: argparse.Namespace) -> int:
    from pytest_device.sessions.inventory import opened

    try:
        state_dir = state_dir_of(parsed, must_exist=True)
        with opened(state_dir) as inventory:
            sessions, damaged = inventory
    except OSError as error:
        raise _unusable(error) from None

    if parsed.json:
        listed = [session.to_json() for session in sessions]
        print(json.dumps({"sessions": listed, "damaged": damaged}))
        return int(bool(damaged))

    for session in sessions:
        for line in session.lines():
            print(escaped(line))
    for path, reason in damaged.items():
        print(escaped(f"damaged: {path}: {reason}; its session may still be running"))
    if not sessions and not damaged:
        print(f"no sessions{nothing_in(state_dir)}")

    return int(bool(damaged))


SESSIONS: Final = Command(
    name="sessions",
    summary="list sessions of this machine's runs that may still be running",
    description=f"""\
List the sessions in this machine's ledger, without calling a service;
{_ONLY_HERE}.""",
    examples={
        "sessions": "sessions of live runs, leftover and kept sessions",
        "sessions --json": "the same as JSON",
    },
    statuses={0: "success", 1: "a ledger file is damaged", 2: "usage error"},
    add_options=_add_list_options,
    run=_list,
)


def _add_stop_options(parser: argparse.ArgumentParser) -> None:
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument(
        "ids",
        nargs="*",
        default=[],
        type=_session_id,
        metavar="ID",
        help="stop only these sessions",
    )
    choice.add_argument(
        "--all", action="store_true", help="also stop the sessions of live runs"
    )
    parser.add_argument(
        "--url",
        default=os.environ.get(Options.url.variable),
        help=f"{Options.url.help} (default: {Options.url.variable})",
    )
    parser.add_argument(
        "--timeout-seconds",
        type=_seconds,
        metavar="SECONDS",
        help="how long to retry failed stops "
        f"(default: {Options.stop_timeout_seconds.variable}, else {Options.stop_timeout_seconds.default:g})",
    )
    add_state_dir(parser, _STATE_DIR)
    add_json(parser)


def _session_id(text: str) -> SessionId:
    try:
        return SessionId(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"session ID {text!r} must be a UUID"
        ) from None


def _seconds(text: str) -> float:
    try:
        return Options.stop_timeout_seconds.parse(text) if text else 0.0
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} must be {error}") from None


def _stop(parsed: argparse.Namespace) -> int:
    from pytest_device.sessions.inventory import Choice, stop_known
    from pytest_device.sessions.network import endpoint_at

    if not parsed.url:
        raise ConfigError(
            f"no service: set --url or {Options.url.variable} (`pytest-device sessions` shows it for each session)"
        )

    # No option has the token: other users can read command lines.
    service = endpoint_at(parsed.url, os.environ.get(TOKEN_VARIABLE, ""))
    choice = Choice(frozenset(parsed.ids), with_live_runs=parsed.all)
    timeout_seconds = parsed.timeout_seconds or _timeout_of_environment()
    try:
        # A session that is named needs no ledger: the service may know it all the same.
        state_dir = state_dir_of(parsed, must_exist=not choice.ids)
        outcome = stop_known(state_dir, service, choice, timeout_seconds)
    except OSError as error:
        raise _unusable(error) from None

    if parsed.json:
        print(json.dumps(_to_json(outcome)))
        return int(any(outcome.problems()))

    lines = list(outcome.lines())
    problems = list(outcome.problems())
    for line in lines:
        print(escaped(line))
    for problem in problems:
        print(escaped(problem), file=sys.stderr)

    if not choice.ids:
        if lines or problems:
            print(f"no other sessions in {state_dir}")
        else:
            print(f"nothing to stop{nothing_in(state_dir)}")
        print(_ONLY_HERE)

    return int(bool(problems))


def _timeout_of_environment() -> float:
    variable = Options.stop_timeout_seconds.variable
    settings = resolve({}, {variable: os.environ.get(variable, "")}, {})
    return settings.stop_timeout_seconds


def _to_json(outcome: "StopResult") -> dict[str, Any]:
    from pytest_device.sessions.events import detail_of, is_proof

    return {
        "stopped": [
            {**_facts(event.session), "status": detail_of(event)}
            for event in outcome.stopped
            if is_proof(event)
        ],
        "not_stopped": list(_not_stopped(outcome)),
        "already_stopped": len(outcome.already_stopped),
        "left_to_live_runs": outcome.skipped_live,
        "damaged": outcome.damaged,
    }


def _not_stopped(outcome: "StopResult") -> Iterator[dict[str, str]]:
    from pytest_device.sessions.events import detail_of, is_proof

    for event in outcome.stopped:
        if not is_proof(event):
            yield {**_facts(event.session), "reason": detail_of(event)}

    for entry in outcome.unknown:
        yield {
            **_facts(entry),
            "reason": "its ID is unknown: the response to its create call was lost",
        }

    for entry in outcome.other_services:
        yield {**_facts(entry), "reason": f"belongs to {entry.service}"}

    for event in outcome.left_to_other_tokens:
        yield {
            **_facts(event.session),
            "reason": f"{detail_of(event)}; another access token created it",
        }

    for session_id in outcome.unknown_ids:
        reason = "unknown to both the ledger and the service"
        yield {"session_id": session_id, "label": "", "page": "", "reason": reason}


def _facts(session: "SessionRef | Entry") -> dict[str, str]:
    return {
        "session_id": session.session_id,
        "label": session.label,
        "page": session.url,
    }


def _unusable(error: OSError) -> ConfigError:
    return ConfigError(f"the ledger cannot be used: {error}")


STOP: Final = Command(
    name="stop",
    summary="stop leftover and kept sessions",
    description=f"""\
Stop the sessions in this machine's ledger that no live run owns;
{_ONLY_HERE}.
The access token is read from {TOKEN_VARIABLE} and sent to this service only.""",
    examples={
        "stop": "stop leftover and kept sessions",
        "stop --all": "also stop the sessions of live runs",
        "stop ID": "stop this session, whichever machine created it",
    },
    statuses={
        0: "all requested sessions are confirmed stopped",
        1: "some sessions are not; they are listed",
        2: "usage error, nothing was sent",
    },
    add_options=_add_stop_options,
    run=_stop,
)
