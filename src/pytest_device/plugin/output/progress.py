"""The status line of a run that waits for devices: their states and waiting times."""

import os
import time
from dataclasses import dataclass
from typing import Final

import pytest

from pytest_device.plugin.output.terminal import Terminal, is_watched
from pytest_device.sessions.events import Created, Event, Note, Queued, StateChanged, detail_of
from pytest_device.spec import STATES, Status

_STEP_SECONDS: Final = 1.0
_STATE_LENGTH: Final = 40


@dataclass(frozen=True, slots=True)
class _Boot:
    label: str
    state: str
    since: float


class Progress:
    """Shows starting sessions while the code that waits for them sleeps."""

    def __init__(self, config: pytest.Config, terminal: Terminal) -> None:
        self._terminal = terminal
        self._is_watched = is_watched(config, os.environ)
        self._boots: dict[str, _Boot] = {}
        """Sessions that are not ready, by session ID; by label while the service has no capacity."""

    def note(self, event: Event) -> None:
        """Update the line for an event, which is already masked."""
        if isinstance(event, Note | Queued):
            return
        of = event.session
        if of.session_id:
            self._boots.pop(of.label, None)  # no longer waits for capacity
        if isinstance(event, Created | StateChanged):
            since = time.monotonic() - of.waited_seconds - (of.late_seconds or 0.0)
            state = detail_of(event) or Status.NEW
            self._boots[of.session_id or of.label] = _Boot(of.label, STATES.get(state, state), since)
        else:
            self._boots.pop(of.session_id, None)

    def sleep(self, seconds: float) -> None:
        """Sleep, and meanwhile show the awaited devices on a terminal."""
        if not (self._is_watched and self._boots):
            time.sleep(seconds)
            return
        until = time.monotonic() + seconds
        try:
            while (left := until - time.monotonic()) > 0:
                self._terminal.draw(f"  device {' · '.join(map(self._text, self._boots.values()))}")
                time.sleep(min(left, _STEP_SECONDS))
        finally:
            self._terminal.draw("")

    def _text(self, boot: _Boot) -> str:
        usual = self._terminal.history.usual_boot(boot.label)
        usually = "" if usual is None else f" (usually {usual:.0f} s)"
        return f"{boot.label}: {_plain(boot.state)}, {time.monotonic() - boot.since:.0f} s{usually}"


def _plain(text: str) -> str:
    """Return the start of a service's text, limited to single-column characters that don't move the cursor."""
    return "".join(sign if " " <= sign <= "~" else "?" for sign in " ".join(text.split())[:_STATE_LENGTH])
