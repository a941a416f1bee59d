"""A reporter that remembers what it gets."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from pytest_device.events import Event
from pytest_device.sessions.reporter import SafetyNet, SilentReporter

SILENT: Final = SilentReporter()


@dataclass
class RecordingReporter:
    """Stands in for the terminal and the files of a run: remembers all that is reported.

    ``on_progress`` is called with each line of progress.
    """

    events: list[Event] = field(default_factory=list[Event])
    notes: list[str] = field(default_factory=list[str])
    lines: list[str] = field(default_factory=list[str])
    warnings: list[tuple[SafetyNet, str]] = field(
        default_factory=list[tuple[SafetyNet, str]]
    )
    on_progress: Callable[[str], object] | None = None

    def event(self, event: Event) -> None:
        self.events.append(event)

    def note(self, text: str) -> None:
        self.notes.append(text)

    def progress(self, text: str) -> None:
        self.lines.append(text)
        if self.on_progress:
            self.on_progress(text)

    def warn(self, net: SafetyNet, text: str) -> None:
        self.warnings.append((net, text))

    def kinds(self) -> list[type[Event]]:
        """Return the types of the events."""
        return [type(event) for event in self.events]
