"""Writes the report of a run to its directory: ``device-run.json``."""

import json
from typing import Final

import pytest

from pytest_device.report.directory import ReportDirectory
from pytest_device.report.run_report import RunReport

OFF: Final = "off"
"""Value of ``device_report`` that writes nothing."""
REPORT_FILE: Final = "device-run.json"

DIRECTORY: Final = pytest.StashKey[ReportDirectory]()
"""The directory of the run's report; a run without one writes none."""


def save_report(report: RunReport, config: pytest.Config) -> str | None:
    """Save the report of a run; return the error message if it cannot be written, else None."""
    directory = config.stash.get(DIRECTORY, None)
    if directory is None:
        return None

    try:
        directory.make()
        data = report.to_json(directory.run, directory.shard)
        text = json.dumps(data, indent=2)
        directory.data_file(REPORT_FILE).write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        # The same text as for the blobs, so that the run notes it only once.
        return directory.problem(error)

    return None
