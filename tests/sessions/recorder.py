"""A reporter that remembers what it gets, for tests."""

from dataclasses import dataclass, field
from typing import Final

from pytest_device.sessions.events import Event
from pytest_device.sessions.reporter import Net, SilentReporter

SILENT: Final = SilentReporter()


@dataclass
class Recorder:
    events: list[Event] = field(default_factory=list[Event])
    notes: list[str] = field(default_factory=list[str])
    lines: list[str] = field(default_factory=list[str])
    warnings: list[tuple[Net, str]] = field(default_factory=list[tuple[Net, str]])

    def event(self, event: Event) -> None:
        self.events.append(event)

    def note(self, text: str) -> None:
        self.notes.append(text)

    def progress(self, text: str) -> None:
        self.lines.append(text)

    def warn(self, net: Net, text: str) -> None:
        self.warnings.append((net, text))
