"""Where a process reports what happens while it has sessions: one place for events and texts."""

from typing import Protocol

from pytest_device.sessions.events import Event


class Reporter(Protocol):
    """Is reported to from one thread; what happens in others waits in a ``Relay``, or is a note."""

    def event(self, event: Event) -> None:
        """Report what happened to a session."""
        ...

    def note(self, text: str) -> None:
        """Report something about the run as a whole, for its end."""
        ...

    def progress(self, text: str) -> None:
        """Report at once what a test waits for."""
        ...
