"""Runs every row and writes the pages of faults: ``python -m tests.faults --write DIRECTORY``."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.faults.row import Record
from tests.faults.rows import ROWS
from tests.faults.table import pages
from tests.faults.test_rows import RECORDS, test_the_row_has_its_result

_HERE: Final = Path(__file__).parent
LIMIT_SECONDS: Final = 1200.0


def main() -> int:
    """Return the exit status of the rows: 1 when one fails."""
    arguments = _arguments()
    with tempfile.TemporaryDirectory() as directory:
        started = time.monotonic()
        status = _run_rows(Path(directory), arguments.n)
        records = _records(Path(directory))
    sys.stderr.write(f"{len(ROWS)} rows in {time.monotonic() - started:.0f} s\n")
    for name, text in pages(records).items():
        (arguments.write / name).write_text(text)
    return status


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument(
        "--write",
        type=Path,
        required=True,
        metavar="DIRECTORY",
        help="where to write the pages",
    )
    parser.add_argument(
        "-n",
        type=int,
        default=8,
        help="number of rows to run in parallel; they mostly wait (default: 8)",
    )
    return parser.parse_args()


def _run_rows(directory: Path, at_once: int) -> int:
    options = (
        "-n",
        str(at_once),
        "--maxschedchunk=1",
        "-q",
        "-p",
        "no:cacheprovider",
        "--show-capture=no",
        "--tb=line",
        "-m",
        "nightly or not nightly",
    )
    rows = f"{_HERE / 'test_rows.py'}::{test_the_row_has_its_result.__name__}"
    command = [sys.executable, "-m", "pytest", *options, rows]
    environment = os.environ | {RECORDS: str(directory)}
    return subprocess.run(
        command, env=environment, stdout=sys.stderr, check=False, timeout=LIMIT_SECONDS
    ).returncode


def _records(directory: Path) -> Mapping[str, Record]:
    read = [
        Record.from_json(json.loads(path.read_text()))
        for path in directory.glob("*.json")
    ]
    missing = [
        Record(row.name, False, None, "", None, ("the row has no record",))
        for row in ROWS
    ]
    return {record.name: record for record in (*missing, *read)}


if __name__ == "__main__":
    sys.exit(main())
