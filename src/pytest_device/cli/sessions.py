"""``pytest-device sessions``: list the sessions in this machine's ledger."""

import argparse
import json
from typing import Final

from pytest_device.cli.command import Command, add_json, add_state_dir, known_state_dir, nothing_in
from pytest_device.errors import ConfigError
from pytest_device.escape import escaped

ONLY_HERE: Final = "sessions created by other machines are not listed: the service has no list call"


def unusable(error: OSError) -> ConfigError:
    return ConfigError(f"the ledger cannot be used: {error}")


def _add_options(parser: argparse.ArgumentParser) -> None:
    add_state_dir(parser, "directory where the runs recorded their sessions")
    add_json(parser)


def _run(parsed: argparse.Namespace) -> int:
    from pytest_device.sessions.inventory import opened

    try:
        state_dir = known_state_dir(parsed)
        with opened(state_dir) as found:
            sessions, damaged = found
    except OSError as error:
        raise unusable(error) from None
    if parsed.json:
        print(json.dumps({"sessions": [one.to_json() for one in sessions], "damaged": damaged}))
        return int(bool(damaged))
    for one in sessions:
        print(*map(escaped, one.lines()), sep="\n")
    for path, reason in damaged.items():
        print(escaped(f"damaged: {path}: {reason}; its session may still be running"))
    if not (sessions or damaged):
        print(f"no sessions{nothing_in(state_dir)}")
    return int(bool(damaged))


SESSIONS: Final = Command(
    name="sessions",
    summary="list sessions of this machine's runs that may still be running",
    description=f"""\
List the sessions in this machine's ledger, without calling a service;
{ONLY_HERE}.""",
    examples={
        "sessions": "sessions of live runs, leftover and kept sessions",
        "sessions --json": "the same as JSON",
    },
    statuses={0: "success", 1: "a ledger file is damaged", 2: "usage error"},
    add_options=_add_options,
    run=_run,
)
