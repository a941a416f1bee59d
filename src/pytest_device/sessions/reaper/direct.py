"""The reaper's work in the run's own process, where no other may or can be started: calls, without messages.

One thread decides, and each call has its own, so that an interrupted test never loses an answer. What is left when the
process ends is up to the next run.
"""

import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from pytest_device.sessions.reaper import sender
from pytest_device.sessions.reaper.messages import Report, Request, Returned, Start
from pytest_device.sessions.reaper.supervisor import Supervisor


class DirectCalls:
    """Takes requests and reports what came of them, until it is closed and all sessions are stopped."""

    def __init__(self, start: Start, report: Callable[[Report], None]) -> None:
        self._endpoint = start.endpoint
        self._supervisor = Supervisor(start, report)
        self._inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        threading.Thread(target=self._run, name="pytest-device-sessions", daemon=True).start()

    def send(self, request: Request) -> None:
        self._inbox.put(partial(self._supervisor.handle, request))

    def close(self) -> None:
        """Stop all sessions for as long as this process lives."""
        self._inbox.put(self._supervisor.on_run_gone)

    def _on_answer(self, returned: Returned) -> None:
        self._inbox.put(partial(self._supervisor.on_answer, returned))

    def _run(self) -> None:
        while not self._supervisor.is_done:
            for call in self._supervisor.due_calls():
                sender.send(self._endpoint, call, self._on_answer)
            due = self._supervisor.next_due()
            with suppress(queue.Empty):
                self._inbox.get(timeout=None if due is None else max(0.0, due - time.monotonic()))()
            self._supervisor.end_warm()
