"""The protocol of a report: a fold over what happens in a run."""

from typing import Protocol, TypeAlias

from pytest_device.report.lines import Incident
from pytest_device.report.phase import TestPhase
from pytest_device.sessions.events import Event

Entry: TypeAlias = Event | Incident | TestPhase
"""What a report is made of: events of sessions, errors that are not the tests' own, and the phases of tests."""


class Fold(Protocol):
    """A report that is built entry by entry.

    It gets each entry of the run once, in order of arrival and with masked texts, in the process that has the terminal:
    pytest-xdist's coordinator, or the only process.
    """

    def add(self, entry: Entry, /) -> None: ...
