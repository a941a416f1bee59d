"""The channel between the coordinator of a pytest-xdist run and a worker, separate from pytest-xdist's own.

It is an execnet channel, so it also reaches workers on other machines. A worker sends the requirements of its tests
before it reports the end of collection to pytest-xdist, and progress for users while it waits; it learns which tests it
gets before it gets them or, if the user chose how to distribute tests, which devices are no longer needed. Before it
creates a session it asks for permission, since equal sessions of other workers may have failed; each question gets one
answer.
"""

import os
import queue
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Final, Protocol

from pytest_device.scheduling.test_plan import TestPlan
from pytest_device.sessions.breaker import Answer, Breaker, Cause, Ticket, Turn
from pytest_device.sessions.reporter import PreviewReporter

CHANNEL: Final = "device_channel"
"""Key in a worker's input: the worker's end."""
ASSIGNED: Final = "assigned"
OVER: Final = "over"
ANSWER: Final = "answer"
_ANSWER_SECONDS: Final = 10.0
"""Seconds to wait for an answer: a coordinator that takes longer is busy or gone, and a test must not wait for it."""


class Channel(Protocol):
    """The part of execnet's ``Channel`` in use; ``send`` raises OSError if the other end is gone."""

    def send(self, item: object) -> None: ...
    def setcallback(self, callback: Callable[[Any], Any]) -> None: ...


class WorkerChannel:
    """The coordinator's end; ``name`` is the worker's, ``breaker`` decides for the whole run."""

    def __init__(
        self, channel: Channel, reporter: PreviewReporter, name: str, breaker: Breaker
    ) -> None:
        self._channel, self._reporter = channel, reporter
        self._name, self._breaker = name, breaker
        self._plan: str | None = None
        self.shard = ""
        """The line that describes the shard."""
        self.pid: int | None = None
        """Process ID of the worker, known with the plan."""
        channel.setcallback(self._on_message)

    def _on_message(self, message: tuple[Any, ...] | str) -> None:
        match message:
            case str():
                self._reporter.progress(message)
            case ("preview", str(label), str(url)):
                self._reporter.preview(label, url)
            case ("ask", str(key), int(number)):
                self._send(
                    ANSWER,
                    [number, *_plain(self._breaker.ask(key, (self._name, number)))],
                )
            case ("ready", str(key), int(number)):
                self._breaker.ready(key, (self._name, number))
            case ("released", str(key), int(number)):
                self._breaker.released(key, (self._name, number))
            case (
                "failed",
                str(key),
                int(number),
                str(verdict),
                str(text),
                bool(is_final),
            ):
                self._breaker.failed(
                    key, (self._name, number), Cause(verdict, text), is_final=is_final
                )
            case ("met", str(key), str(test)):
                self._breaker.note_affected_test(key, test)
            case _:
                self.pid, self._plan, self.shard = message

    @property
    def plan(self) -> TestPlan | None:
        """The worker's collection, None until it is complete; parsed on access, since that of one worker is enough."""
        return None if self._plan is None else TestPlan.from_wire(self._plan)

    def send(self, what: str, numbers: Iterable[int]) -> None:
        """Notify the worker, unless it is gone."""
        self._send(what, list(numbers))

    def lost(self) -> None:
        """Release the attempts that the worker had started."""
        self._breaker.lost(self._name)

    def _send(self, what: str, values: list[Any]) -> None:
        with suppress(OSError):
            self._channel.send((what, values))


def _plain(answer: Answer) -> list[str]:
    return list(answer) if isinstance(answer, Cause) else [str(answer)]


class RemoteJudge:
    """A worker's access to the run's breaker, which the coordinator holds for all workers; called from any thread."""

    def __init__(self, channel: Channel) -> None:
        self._channel, self._pid = channel, os.getpid()
        self._asked: dict[int, queue.SimpleQueue[Answer]] = {}

    def on_answer(self, number: int, *answer: str) -> None:
        if asked := self._asked.get(number):
            asked.put(Turn(answer[0]) if len(answer) == 1 else Cause(*answer))

    def ask(self, key: str, ticket: Ticket) -> Answer:
        """Return the coordinator's answer, or GO without one."""
        _, number = ticket
        self._asked[number] = answers = queue.SimpleQueue[Answer]()
        try:
            if self._send("ask", key, number):
                with suppress(queue.Empty):
                    return answers.get(timeout=_ANSWER_SECONDS)
            return Turn.GO
        finally:
            del self._asked[number]

    def ready(self, key: str, ticket: Ticket) -> None:
        self._send("ready", key, ticket[1])

    def failed(self, key: str, ticket: Ticket, cause: Cause, *, is_final: bool) -> None:
        self._send("failed", key, ticket[1], cause.verdict, cause.text, is_final)

    def released(self, key: str, ticket: Ticket) -> None:
        self._send("released", key, ticket[1])

    def note_affected_test(self, key: str, test: str) -> None:
        self._send("met", key, test)

    def _send(self, *message: Any) -> bool:
        """Send a message, unless the coordinator is gone or this is a forked child, which gets no answers."""
        if os.getpid() != self._pid:
            return False
        with suppress(OSError):
            self._channel.send(message)
            return True
        return False
