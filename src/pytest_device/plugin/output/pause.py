"""Pauses a run so that the user can inspect the device of a failed test."""

import select
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any, TextIO

import pytest

from pytest_device.plugin.output.terminal import Terminal
from pytest_device.report.lines import with_pages
from pytest_device.sessions.models import Session


class Pause:
    """Shows URLs, and waits for Enter."""

    def __init__(self, config: pytest.Config, terminal: Terminal | None) -> None:
        self._config, self._terminal = config, terminal

    @cache  # noqa: B019  # one instance per run
    def is_possible(self) -> bool:
        """Return whether the user can press Enter: input and output are a terminal that select() supports."""
        reporter: Any = self._config.pluginmanager.get_plugin("terminalreporter")
        if (
            self._terminal is None
            or reporter is None
            or not reporter.isatty
            or sys.platform == "win32"
        ):
            return False
        with self._keyboard() as keyboard:
            return keyboard is not None and keyboard.isatty()

    def offer(self, sessions: Mapping[str, Session], *, keep: bool) -> bool:
        """Show where to find the devices, and wait if they are kept; return whether the user had access."""
        debugger = bool(self._config.getoption("usepdb", default=False))
        if self._terminal is None or not (debugger or (keep and self.is_possible())):
            return False
        for name, session in sessions.items():
            preview = (
                session.remote_config.web_preview_url if session.remote_config else None
            )
            shown = f"{session.platform} {session.type}{f' {name!r}' if name else ''}"
            self._show(with_pages(f"{shown}: session page:", [session.page]))
            if preview:
                self._show(with_pages(f"{shown}: live preview:", [preview]))
        if keep and not debugger:
            self._wait(min(session.limit_minutes for session in sessions.values()))
        return keep

    def _show(self, line: str) -> None:
        """Write a line, even under ``-q``: a wait that no user knows of would be billed."""
        if self._terminal is not None:
            self._terminal.show(line, even_if_quiet=True)

    def _wait(self, minutes: int) -> None:
        """Wait for Enter, at most for the maximum duration of the session."""
        self._show(
            f"kept for up to {minutes} minutes: press Enter to stop it and continue"
        )
        with self._keyboard() as keyboard:
            if keyboard and select.select([keyboard], [], [], minutes * 60)[0]:
                keyboard.readline()

    @contextmanager
    def _keyboard(self) -> Generator[TextIO | None]:
        """Provide the real standard input, without pytest's capturing."""
        capture: Any = self._config.pluginmanager.get_plugin("capturemanager")
        if capture:
            capture.suspend(in_=True)
        try:
            yield sys.__stdin__
        finally:
            if capture:
                capture.resume()
