"""``pytest-device sessions``: what the ledger of this machine knows."""

import argparse
import json
from typing import Final

from pytest_device.cli.command import Command, add_json, add_state_dir, known_state_dir, nothing_in
from pytest_device.errors import ConfigError

ONLY_HERE: Final = "sessions that other machines asked for are not known here: the service has no list"


def unusable(error: OSError) -> ConfigError:
    """Return the error of a state directory that cannot be used."""
    return ConfigError(f"the ledger cannot be used: {error}")


def _add_options(parser: argparse.ArgumentParser) -> None:
    add_state_dir(parser, "where the runs wrote their sessions down")
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
        print(*one.lines(), sep="\n")
    for path, reason in damaged.items():
        print(f"damaged: {path}: {reason}; it may stand for a session that is running")
    if not (sessions or damaged):
        print(f"no session is known{nothing_in(state_dir)}")
    return int(bool(damaged))


SESSIONS: Final = Command(
    name="sessions",
    summary="list the sessions of this machine's runs that may run on",
    description=f"""\
List what the ledger of this machine knows, without asking a service;
{ONLY_HERE}.""",
    examples={
        "sessions": "those of live runs, those left behind, those kept",
        "sessions --json": "for programs",
    },
    statuses={0: "all was read", 1: "a file of the ledger is damaged: it is named", 2: "a usage error"},
    add_options=_add_options,
    run=_run,
)
