"""Who is informed of what happens to sessions."""

from typing import Protocol

from pytest_device.sessions.events import Event


class ProgressReporter(Protocol):
    """Shows lines to a person who waits."""

    def progress(self, text: str) -> None:
        """Show a line at once."""
        ...


class Reporter(ProgressReporter, Protocol):
    """Gets what happens while sessions are provided; each call may come from another thread."""

    def event(self, event: Event) -> None:
        """Take an event of a session."""
        ...

    def note(self, text: str) -> None:
        """Take a line for the summary at the end of the run."""
        ...


class SilentReporter:
    """Reports nothing."""

    def event(self, event: Event) -> None: ...
    def note(self, text: str) -> None: ...
    def progress(self, text: str) -> None: ...
