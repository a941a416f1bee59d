"""The channel between the coordinator of a pytest-xdist run and a worker, beside pytest-xdist's own.

It is one of execnet, so it reaches workers on other machines, too. A worker sends what its tests need before it reports
to pytest-xdist that it has collected them, and what a person is to read while it waits; it receives which tests it gets
before it gets them, and, where the user has chosen another way to distribute them, which devices are over.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Final, Protocol

from pytest_device.scheduling.test_plan import TestPlan
from pytest_device.sessions.reporter import ProgressReporter

CHANNEL: Final = "device_channel"
"""Key of a worker's input: the worker's end."""
ASSIGNED: Final = "assigned"
OVER: Final = "over"


class Channel(Protocol):
    """The part of execnet's ``Channel`` in use: ``send`` raises OSError if the other end is gone."""

    def send(self, item: object) -> None: ...
    def setcallback(self, callback: Callable[[Any], Any]) -> None: ...


class WorkerChannel:
    """The coordinator's end."""

    def __init__(self, channel: Channel, reporter: ProgressReporter) -> None:
        self._channel, self._reporter = channel, reporter
        self._plan: str | None = None
        self.shard = ""
        """Which part of the suite it is."""
        self.pid: int | None = None
        """The worker's process, known with the plan."""
        channel.setcallback(self._on_message)

    def _on_message(self, message: tuple[int, str, str] | str) -> None:
        if isinstance(message, str):
            self._reporter.progress(message)
            return
        self.pid, self._plan, self.shard = message

    @property
    def plan(self) -> TestPlan | None:
        """What the worker has collected, None until it has; read here, since that of one worker will do."""
        return None if self._plan is None else TestPlan.from_wire(self._plan)

    def send(self, what: str, numbers: Iterable[int]) -> None:
        """Notify the worker, unless it is gone."""
        with suppress(OSError):
            self._channel.send((what, list(numbers)))
