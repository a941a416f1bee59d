"""``pytest-device doctor``: check whether device tests can run here, and suggest fixes."""

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from pytest_device.cli.command import Command, add_json
from pytest_device.cli.doctor.finding import NAME_WIDTH, Finding, Status, fail
from pytest_device.escape import escaped
from pytest_device.settings import Settings

_COLORS: Final = {Status.OK: "32", Status.WARN: "33", Status.FAIL: "31"}


def _run(parsed: argparse.Namespace) -> int:
    findings: list[Finding] = []
    not_checked = _check(findings, rent=parsed.rent)
    counts = {
        status: sum(finding.status is status for finding in findings)
        for status in Status
    }

    if parsed.json:
        listed = [asdict(finding) for finding in findings]
        print(json.dumps({"findings": listed, "not_checked": not_checked, **counts}))
    else:
        _print(findings)
        if not_checked:
            print(not_checked)
        print(", ".join(f"{count} {status}" for status, count in counts.items()))

    return int(counts[Status.FAIL] > 0)


def _check(findings: list[Finding], *, rent: bool) -> str:
    """Append the findings; return what remains unchecked."""
    from pytest_device.cli.doctor.packages import (
        check_packages,
        check_python,
        check_system,
    )

    # First, and alone: the modules of all other checks import these packages.
    findings += (*check_python(), check_system(), *check_packages())
    if _has_failed(findings):
        fix = "install them and run doctor again"
        findings.append(
            fail("others", "skipped, because the other checks need these packages", fix)
        )
        return ""

    from pytest_device.cli.doctor.configuration import read_configuration
    from pytest_device.cli.doctor.service import check_rent, not_checked

    configuration, settings = read_configuration()
    findings += configuration
    findings += _setup(settings)
    if not (settings and (settings.url or settings.local)):
        return ""

    # A session costs money: none is created where it is likely to be of no use.
    if rent and _has_failed(findings):
        text = "skipped, because another check failed"
        findings.append(fail("rent", text, "correct that and run doctor again"))
    elif rent:
        findings += check_rent(settings)

    return not_checked(settings, rented=rent)


def _setup(settings: Settings | None) -> Iterator[Finding]:
    from pytest_device.cli.doctor.ledger import check_ledger
    from pytest_device.cli.doctor.local import check_local
    from pytest_device.cli.doctor.service import check_service
    from pytest_device.cli.doctor.slots import check_slots

    if settings and settings.url:
        yield from check_service(settings.url, settings.token)
        yield from check_slots(settings)
    if settings:
        yield from check_ledger(settings)

    yield from check_local(os.environ, Path.home(), settings or Settings())


def _has_failed(findings: Sequence[Finding]) -> bool:
    return any(finding.status is Status.FAIL for finding in findings)


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--rent",
        action="store_true",
        help="create a session of one minute, wait until its controller responds, stop it",
    )
    add_json(parser)


def _print(findings: Sequence[Finding]) -> None:
    is_colored = (
        sys.stdout.isatty()
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM") != "dumb"
    )

    for finding in findings:
        status = f"{finding.status:4}"
        if is_colored:
            status = f"\033[{_COLORS[finding.status]}m{status}\033[0m"
        text = escaped(" ".join(finding.text.split()))  # in one line
        print(f"{status}  {finding.name:{NAME_WIDTH}}{text}")
        if finding.fix:
            print(f"{'':{6 + NAME_WIDTH}}fix: {escaped(finding.fix)}")


DOCTOR: Final = Command(
    name="doctor",
    summary="check whether device tests can run here",
    description="""\
Check the setup of a pytest run in this directory: versions, configuration,
access token, service, leftover sessions, and the programs of the local service.
It runs no test and installs nothing; it requests a session that does not exist,
and creates one with --rent only. Every finding that is not ok has a fix.""",
    examples={
        "doctor": "in the directory where you run pytest",
        "doctor --rent": "also try the account with a session of one minute",
        "doctor --json": "for scripts and CI",
    },
    statuses={
        0: "no check failed; there may be warnings",
        1: "a check failed",
        2: "usage error",
    },
    add_options=_add_options,
    run=_run,
)
