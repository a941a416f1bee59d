"""The session events of a process since its last test report."""

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pytest

from pytest_device.escape import escaped
from pytest_device.plugin.options import settings_of
from pytest_device.plugin.output.terminal import (
    DISCARDED,
    EVENTS,
    RERUN,
    Terminal,
)
from pytest_device.plugin.state import note_session
from pytest_device.redact import Redactor
from pytest_device.sessions.events import (
    Attached,
    Created,
    Event,
    Note,
    TakenOver,
    masked,
    session_id_of,
    timed,
    to_plain,
)
from pytest_device.sessions.lifecycle import SLICE_SECONDS
from pytest_device.sessions.models import Session
from pytest_device.sessions.reporter import RunReporter, SafetyNet

if TYPE_CHECKING:
    from pluggy import HookCaller


class EventLog:
    """The reporter of a process: masks events, shows them on its terminal, and attaches them to the next report.

    ``link`` shows lines if this process has no terminal.
    """

    def __init__(
        self,
        config: pytest.Config,
        redactor: Redactor,
        terminal: Terminal | None,
        link: RunReporter | None,
    ) -> None:
        self._config = config
        self._redactor = redactor
        self._terminal = terminal
        self._link = terminal or link
        self._events: list[Event] = []
        self._made: list[pytest.TestReport] = []
        """The reports that nobody has logged yet."""
        self.item: pytest.Item | None = None
        """The current or last test."""

    def event(self, event: Event) -> None:
        """Record an event, with masked texts, and show it."""
        event = timed(masked(event, self._redactor.text), time.time())
        self._events.append(event)

        # From its beginning: a test that gets no device should name its session, too.
        if isinstance(event, Attached | Created | TakenOver) and self.item is not None:
            note_session(self.item, event.session)

        if self._terminal:
            self._terminal.show_event(event)

    def call_hook(self, hook: "HookCaller", **arguments: object) -> None:
        """Call a hook of the suite where an exception would lose a device or a report: it becomes a note instead."""
        try:
            hook(**arguments)
        except pytest.exit.Exception:
            raise
        # The latter two derive from BaseException only.
        except (
            Exception,  # noqa: BLE001  # of the suite, and reported
            pytest.fail.Exception,
            pytest.skip.Exception,
        ) as error:
            self.note(f"{hook.name} failed: {type(error).__name__}: {error}")

    def note(self, text: str) -> None:
        """Add a line to the summary at the end of the run."""
        self.event(Note(text))

    @staticmethod
    def sleep(seconds: float) -> None:
        """Sleep, and handle signals that came meanwhile; counts parts, since a suite may have frozen the clock."""
        while seconds > 0:
            time.sleep(min(seconds, SLICE_SECONDS))
            seconds -= SLICE_SECONDS

    def progress(self, text: str) -> None:
        """Show at once what this process waits for."""
        if self._link:
            self._link.progress(text)
        else:
            print(escaped(text))  # noqa: T201  # a worker without a channel to the coordinator

    def warn(self, net: SafetyNet, text: str) -> None:
        """Show that a safety net is missing, once per run."""
        text = self._redactor.text(text)
        if self._link:
            self._link.warn(net, text)
        else:
            print(escaped(text))  # noqa: T201  # a worker without a channel to the coordinator

    def preview(self, session: Session) -> None:
        """Show where to watch a device, if requested."""
        if not settings_of(self._config).preview:
            return

        config = session.remote_config
        # On Android, a service may have none.
        url = config.web_preview_url if config else None
        label = f"{session.platform} {session.type}"
        if self._link and url:
            self._link.preview(label, url)
        else:
            self.progress(f"{label}: no live preview")

    def session_ids(self) -> set[str]:
        """Return the IDs of the sessions with events that no report carries yet."""
        return set(filter(None, map(session_id_of, self._events)))

    def take(self) -> list[Event]:
        """Return and clear the events; a report carries them from then on."""
        events = self._events
        self._events = []
        return events

    def note_made(self, report: pytest.TestReport) -> None:
        """Note that a report is complete."""
        self._made.append(report)

    def note_logged(self, report: pytest.TestReport) -> None:
        """Let a report carry those that were made before it and that nobody has logged.

        Whoever repeats a test may discard the reports of some attempts, or only those of failures.
        """
        # That of a subtest is a copy with the same events.
        events = vars(report).get(EVENTS)
        for index, made in enumerate(self._made):
            if vars(made)[EVENTS] is events:
                vars(report)[DISCARDED] = self._plain(self._made[:index])
                del self._made[: index + 1]
                return

    def _plain(self, discarded: Iterable[pytest.TestReport]) -> list[dict[str, Any]]:
        """Return reports as plain values, which pytest-xdist can send; their failures don't fail the run."""
        plain: list[dict[str, Any]] = []
        for report in discarded:
            values = self._config.hook.pytest_report_to_serializable(
                config=self._config, report=report
            )
            if report.failed:
                values["outcome"] = RERUN
            plain.append(values)

        return plain

    def deliver(self) -> None:
        """Hand over what no report carries: here, or to the coordinator once it has this worker's output."""
        discarded = self._plain(self._made)
        events = [to_plain(event) for event in self.take()]
        self._made = []
        if self._terminal:
            self._terminal.log_discarded(discarded)
            self._terminal.count(events)
        else:
            output: dict[str, Any] = vars(self._config)["workeroutput"]
            output[DISCARDED] = discarded
            output[EVENTS] = events
