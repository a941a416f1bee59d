"""The session events of this process since its last test report."""

import time
from typing import Any

import pytest

from pytest_device.escape import escaped
from pytest_device.plugin.options import settings_of
from pytest_device.plugin.output.progress import Progress
from pytest_device.plugin.output.terminal import EVENTS, Terminal
from pytest_device.plugin.state import note_session
from pytest_device.redact import Redactor
from pytest_device.sessions.events import Attached, Created, Event, Note, TakenOver, masked, session_id_of, to_plain
from pytest_device.sessions.models import Session
from pytest_device.sessions.reporter import PreviewReporter


class EventLog:
    """The reporter of a process: masks events, shows them on its terminal, and attaches them to the next report.

    ``link`` shows lines if this process has no terminal.
    """

    def __init__(
        self, config: pytest.Config, redactor: Redactor, terminal: Terminal | None, link: PreviewReporter | None
    ) -> None:
        self._config, self._redactor, self._terminal = config, redactor, terminal
        self._link = terminal or link
        self._progress = Progress(config, terminal) if terminal else None
        self.sleep = self._progress.sleep if self._progress else time.sleep
        """Sleeps during waits for sessions, and shows them to the user."""
        self._events: list[Event] = []
        self.item: pytest.Item | None = None
        """The current or last test."""

    def event(self, event: Event) -> None:
        event = masked(event, self._redactor.text)
        self._events.append(event)
        if isinstance(event, Attached | Created | TakenOver) and self.item is not None:
            note_session(self.item, event.session)
        if self._progress:
            self._progress.note(event)
        if self._terminal:
            self._terminal.show_event(event)

    def note(self, text: str) -> None:
        self.event(Note(text))

    def progress(self, text: str) -> None:
        if self._link:
            self._link.progress(text)
        else:
            print(escaped(text))  # noqa: T201  # a worker without a channel to the coordinator

    def preview(self, session: Session) -> None:
        """Show where to watch a device, if requested."""
        settings = settings_of(self._config)
        if not (settings.preview or settings.preview_open):
            return
        config, label = session.remote_config, f"{session.platform} {session.type}"
        url = config and config.web_preview_url
        if self._link and url:
            self._link.preview(label, url)
        else:
            self.progress(f"{label}: no live preview")

    def session_ids(self) -> set[str]:
        """Return the session IDs of the events."""
        return {session_id for event in self._events if (session_id := session_id_of(event))}

    def take(self) -> list[Event]:
        """Return and clear the events; a report carries them from then on."""
        events, self._events = self._events, []
        return events

    def deliver(self) -> None:
        """Count the events that no report carries: here, or in the coordinator once it has this worker's output."""
        events = [to_plain(event) for event in self.take()]
        if self._terminal:
            self._terminal.count(events)
        else:
            output: dict[str, Any] = vars(self._config)["workeroutput"]
            output[EVENTS] = events
