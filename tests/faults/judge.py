"""Runs a row and checks its promise against what the service reports about every session."""

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from pytest_device.testing import FaultyService
from tests import forking
from tests.faults.processes import described
from tests.faults.row import Promise, Record, Row
from tests.faults.row_environment import RowEnvironment, patiently, row_environment

LINGER_SECONDS: Final = 60.0
"""How long a process may take to exit once it has nothing left to do."""
BUSY: Final = 3
"""How much slower than a quiet machine a busy one may be: the limits are there to find what hangs."""


def run(
    row: Row,
    directory: Path,
    service: FaultyService,
    start: "type[subprocess.Popen[bytes]]" = forking.LeanPopen,
) -> Record:
    """Trigger the fault; return what happened to the sessions and what the run reported.

    ``start`` starts the programs of the row: by default as forks, with the workers.
    """
    with row_environment(directory, row, service, start) as env:
        row.arm(env)
        stuck = _strike(row, env)
        limit = BUSY * row.limit
        ended = patiently(
            lambda: all(one.poll() is not None for one in env.runs), limit
        )
        left_open = bool(env.alive())  # when the run was over
        patiently(lambda: _done(row, env), limit if ended else 0)
        gone = patiently(lambda: not env.processes(), LINGER_SECONDS)
        output = env.output()
        reported = _reported(row, output).replace(f"{directory}/", "")
        env.end_faults()  # else they would affect the requests below, too
        facts = [env.session(session["id"]) for session in env.service.sessions()]
        status = env.runs[0].returncode
        problems = [
            *stuck,
            *_complaints(
                (ended, "the run did not end"),
                (
                    gone,
                    f"processes left behind: {[described(process) for process in env.processes()]}",
                ),
                (
                    len(facts) >= row.sessions,
                    f"{len(facts)} sessions were created, not {row.sessions}",
                ),
                (
                    bool(reported) or not row.reported,
                    f"no line of the output matches {row.reported!r}",
                ),
                (
                    row.status is None or status == row.status,
                    f"the exit status is {status}, not {row.status}",
                ),
                (
                    not (status == 0 and left_open),
                    "the run succeeded although a session was not stopped yet",
                ),
                (env.service.token not in output, "the token is in the output"),
                (not _holds(env, env.service.token), "the token is on the disk"),
            ),
            *_broken_promise(row, env, facts),
        ]
        stopped = not env.alive()
        return Record(
            row.name, stopped, _seconds(env, facts), reported, status, tuple(problems)
        )


def _strike(row: Row, env: RowEnvironment) -> list[str]:
    try:
        row.start(env)
        row.when(env)
        row.fault(env)
    except (TimeoutError, subprocess.TimeoutExpired) as error:
        return [str(error)]
    return []


def _done(row: Row, env: RowEnvironment) -> bool:
    if row.promise in {Promise.BOUNDED, Promise.KEPT}:
        return not env.processes()
    return not env.alive()


def _broken_promise(
    row: Row, env: RowEnvironment, facts: list[dict[str, Any]]
) -> Iterator[str]:
    alive = env.alive()
    match row.promise:
        case Promise.NONE:
            yield from _complaints((not facts, f"sessions were created: {facts}"))
        case Promise.STOPPED | Promise.SWEPT:
            yield from _complaints(
                (not alive, f"still running: {[session['name'] for session in alive]}"),
                (
                    not _open_entries(env),
                    f"the ledger still holds {_open_entries(env)}",
                ),
            )
        case Promise.KEPT:
            yield from _complaints(
                (len(alive) == 1, f"{len(alive)} sessions were kept, not 1")
            )
        case Promise.BOUNDED:
            yield from _complaints(
                (all(_has_limit(fact) for fact in facts), f"no limit ends {facts}")
            )


def _open_entries(env: RowEnvironment) -> list[str]:
    """Return the ledger entries, without tombstones."""
    return [
        path.name
        for path in env.ledger()
        if json.loads(path.read_bytes())["state"] != "stopped"
    ]


def _has_limit(fact: dict[str, Any]) -> bool:
    # The default.
    return bool(fact["maxDurationMinutes"]) and fact["maxDurationMinutes"] <= 30


def _complaints(*rules: tuple[bool, str]) -> Iterator[str]:
    return (complaint for holds, complaint in rules if not holds)


def _reported(row: Row, output: str) -> str:
    if not row.reported:
        return ""
    return next(
        (line.strip() for line in output.splitlines() if re.search(row.reported, line)),
        "",
    )


def _holds(env: RowEnvironment, secret: str) -> bool:
    return any(
        secret.encode() in path.read_bytes()
        for path in env.state.rglob("*")
        if path.is_file()
    )


def _seconds(env: RowEnvironment, facts: list[dict[str, Any]]) -> float | None:
    """Return the seconds from the fault until the last session ended, by the clock of the service."""
    if not facts or env.alive():
        return None
    created, ended = _latest(facts, "createdAt", min), _latest(facts, "updatedAt", max)
    at = env.struck_at or env.network_struck_at() or env.reached_at() or created
    return max(0.0, ended - at)


def _latest(
    facts: list[dict[str, Any]], name: str, pick: Callable[[list[float]], float]
) -> float:
    return pick([datetime.fromisoformat(fact[name]).timestamp() for fact in facts])
