"""Writes the report of a run to its directory: ``device-run.json``, and each event on request."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import pytest

from pytest_device.report.directory import ReportDirectory
from pytest_device.report.fold import Entry
from pytest_device.report.lines import Incident
from pytest_device.report.phase import TestPhase
from pytest_device.report.run_report import RunReport
from pytest_device.sessions.events import VERSION, to_plain
from pytest_device.settings import Settings

OFF: Final = "off"
"""Value of ``device_report`` that writes nothing."""
REPORT_FILE: Final = "device-run.json"
EVENTS_FILE: Final = "device-events.ndjson"


def directory_of(settings: Settings, config: pytest.Config) -> Path | None:
    """Return the directory of the run's report, None if it writes none."""
    if settings.report == OFF:
        return None
    return config.invocation_params.dir / settings.report


def make_directory(directory: Path) -> None:
    """Create the report's directory, which stays out of git. Raises OSError."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / ".gitignore").write_text("*\n", "utf-8")


def save_report(
    settings: Settings, report: RunReport, config: pytest.Config
) -> str | None:
    """Save the report of a run; return the error message if it cannot be written, else None."""
    directory = directory_of(settings, config)
    if directory is None:
        return None
    try:
        make_directory(directory)
        text = json.dumps(report.to_json(), indent=2)
        (directory / REPORT_FILE).write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        return not_saved(directory, error)
    return None


def not_saved(directory: Path, error: OSError) -> str:
    """Return the same text as for the blobs in the directory, so that the run notes it only once."""
    return ReportDirectory(directory, "").problem(error)


class EventLines:
    """A fold that writes each entry as a line of JSON when it arrives, so that a killed run leaves its lines.

    The first error that prevents writing is ``problem``; nothing is written after it.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._has_begun = False
        self.problem = ""

    def add(self, entry: Entry, /) -> None:
        """Write an entry."""
        if self.problem:
            return
        try:
            mode = "a" if self._has_begun else "w"
            if not self._has_begun:
                make_directory(self._directory)
            with (self._directory / EVENTS_FILE).open(mode, encoding="utf-8") as file:
                file.write(json.dumps(_plain(entry)) + "\n")
            self._has_begun = True
        except OSError as error:
            self.problem = not_saved(self._directory, error)


def _plain(entry: Entry) -> dict[str, Any]:
    match entry:
        case TestPhase():
            return {"version": VERSION, "event": "test-phase", **asdict(entry)}
        case Incident():
            return {"version": VERSION, "event": "incident", **asdict(entry)}
        case _:
            return to_plain(entry)
