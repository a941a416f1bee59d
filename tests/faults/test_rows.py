"""Every fault of the table, as real processes, judged by what the service reports about each session."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Generator
from dataclasses import asdict
from pathlib import Path
from typing import Final

import pytest

from pytest_device.testing import FaultyService, faulty_service
from tests.faults import judge
from tests.faults.row import Record, Row
from tests.faults.rows import GROUPS, ROWS
from tests.faults.rows.nightly import NIGHTLY

RECORDS: Final = "FAULT_RECORDS"
"""The environment variable with the directory for the records of all rows."""

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="following orphaned processes needs Linux"
)


@pytest.fixture(scope="session")
def service() -> Generator[FaultyService]:
    with faulty_service() as running:
        yield running


RACES: Final = (
    "Signals",
    "Signals during a call",
    "A test ends its process",
    "How pytest ends",
    "pytest-xdist",
    "The reaper",
)
"""The groups whose rows depend on which of two processes is faster."""

LONGEST_FIRST: Final = sorted(ROWS, key=lambda row: -row.limit)


def named(row: Row) -> str:
    return re.sub(r"\W+", "-", row.name).strip("-")


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(
            row,
            id=named(row),
            marks=[pytest.mark.nightly] if row.name in NIGHTLY else [],
        )
        for row in LONGEST_FIRST
    ],
)
def test_the_row_has_its_result(
    row: Row, tmp_path: Path, service: FaultyService
) -> None:
    _check(row, judge.run(row, tmp_path, service), tmp_path)


def _check(row: Row, record: Record, tmp_path: Path) -> None:
    if directory := os.environ.get(RECORDS):
        (Path(directory) / f"{ROWS.index(row)}.json").write_text(
            json.dumps(asdict(record))
        )
    outputs = "\n".join(
        path.read_text(errors="replace") for path in sorted(tmp_path.glob("output-*"))
    )
    assert not record.problems, f"{record}\n{outputs}"


# As users start them: forks skip the start of the interpreter, and its cleanup.
@pytest.mark.nightly
@pytest.mark.parametrize(
    "row", [row for group in RACES for row in GROUPS[group]], ids=named
)
def test_a_race_has_its_result_each_time(
    row: Row, tmp_path: Path, service: FaultyService
) -> None:
    # Not a parameter: each worker of the gate would collect a thousand tests more.
    for attempt in range(10):
        directory = tmp_path / str(attempt)
        directory.mkdir()
        _check(row, judge.run(row, directory, service, subprocess.Popen), directory)
