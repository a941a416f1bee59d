"""Writes the report of a run to its directory: ``device-run.json``, and each event on request."""

import json
from dataclasses import asdict
from typing import Any, Final

import pytest

from pytest_device.report.directory import ReportDirectory
from pytest_device.report.fold import Entry
from pytest_device.report.lines import Incident
from pytest_device.report.phase import TestPhase
from pytest_device.report.run_report import RunReport
from pytest_device.sessions.events import VERSION, to_plain

OFF: Final = "off"
"""Value of ``device_report`` that writes nothing."""
REPORT_FILE: Final = "device-run.json"
EVENTS_FILE: Final = "device-events.ndjson"

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


class EventLines:
    """A fold that writes each entry as a line of JSON when it arrives, so that a killed run leaves its lines.

    What arrives before the run has a directory is written with the first entry after it. The first error that prevents
    writing is ``problem``; nothing is written after it.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._has_begun = False
        self._waiting: list[Entry] = []
        self.problem = ""

    def add(self, entry: Entry, /) -> None:
        """Write an entry."""
        if self.problem:
            return

        self._waiting.append(entry)

        directory = self._config.stash.get(DIRECTORY, None)
        if directory is None:
            return

        try:
            directory.make()
            # The directory may have the lines of an earlier run.
            mode = "a" if self._has_begun else "w"
            with directory.data_file(EVENTS_FILE).open(mode, encoding="utf-8") as file:
                for waiting in self._waiting:
                    file.write(f"{json.dumps(_plain(waiting))}\n")
        except OSError as error:
            self.problem = directory.problem(error)

        # Also after an error: nothing is written then, and nothing has to be kept.
        self._has_begun = True
        self._waiting.clear()


def _plain(entry: Entry) -> dict[str, Any]:
    match entry:
        case TestPhase():
            return {"version": VERSION, "event": "test-phase", **asdict(entry)}
        case Incident():
            return {"version": VERSION, "event": "incident", **asdict(entry)}
        case _:
            return to_plain(entry)
