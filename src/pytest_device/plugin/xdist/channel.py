"""The channel between the coordinator of a pytest-xdist run and a worker, separate from pytest-xdist's own.

It is an execnet channel, so it also reaches workers on other machines. A worker sends the requirements of its tests
before it reports the end of collection to pytest-xdist, and progress for users while it waits; it learns which tests it
gets before it gets them, and that a signal ends the run. Before it creates a session it asks for permission, since equal
sessions of other workers may have failed; each question gets one answer.
"""

import os
import queue
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Protocol, assert_never

from pytest_device.plugin.xdist import messages
from pytest_device.scheduling.test_plan import TestPlan
from pytest_device.sessions.breaker import (
    Answer,
    AttemptId,
    Cause,
    LocalBreaker,
)
from pytest_device.sessions.reporter import RunReporter
from pytest_device.wire import MessageError

CHANNEL: Final = "device_channel"
"""Key in a worker's input: the worker's end."""
_ANSWER_SECONDS: Final = 10.0
"""Seconds to wait for an answer: a coordinator that takes longer is busy or gone, and a test must not wait for it."""


class Channel(Protocol):
    """The part of execnet's ``Channel`` in use; ``send`` raises OSError if the other end is gone."""

    def send(self, item: object) -> None: ...
    def setcallback(self, callback: Callable[[Any], Any]) -> None: ...


class WorkerChannel:
    """The coordinator's end; ``name`` is the worker's, ``breaker`` decides for the whole run.

    ``on_problem`` gets the reason if the worker sends something else than our messages.
    """

    def __init__(
        self,
        channel: Channel,
        reporter: RunReporter,
        name: str,
        breaker: LocalBreaker,
        on_problem: Callable[[str], None],
    ) -> None:
        self._channel = channel
        self._reporter = reporter
        self._name = name
        self._breaker = breaker
        self._on_problem = on_problem
        self._collected: messages.Collected | None = None
        channel.setcallback(self._receive)

    def _receive(self, data: bytes) -> None:
        try:
            message = messages.from_worker(data)
        except MessageError as error:
            self._on_problem(unreadable(f"worker {self._name}", error))
        else:
            self._handle(message)

    def _handle(self, message: messages.FromWorker) -> None:
        match message:
            case messages.Collected():
                self._collected = message
            case messages.Progress(text):
                self._reporter.progress(text)
            case messages.Preview(label, url):
                self._reporter.preview(label, url)
            case messages.MissingSafetyNet(net, text):
                self._reporter.warn(net, text)
            case _:
                self._record_attempt(message)

    def _record_attempt(self, message: messages.OfAttempt) -> None:
        match message:
            case messages.Ask(key, number):
                answer = self._breaker.ask(key, AttemptId(self._name, number))
                self.send(messages.Answered(number, answer))
            case messages.Succeeded(key, number):
                self._breaker.ready(key, AttemptId(self._name, number))
            case messages.Released(key, number):
                self._breaker.released(key, AttemptId(self._name, number))
            case messages.Failed(key, number, cause, is_final):
                self._breaker.failed(
                    key, AttemptId(self._name, number), cause, is_final=is_final
                )
            case messages.Used(number, seconds):
                self._breaker.used(AttemptId(self._name, number), seconds)
            case _:
                assert_never(message)

    @property
    def shard(self) -> str:
        """The line that describes the worker's shard, empty without one."""
        return "" if self._collected is None else self._collected.shard

    @property
    def plan(self) -> TestPlan | None:
        """The worker's collection, None until it is complete.

        Parsed on access, since that of one worker is enough.
        """
        if self._collected is None:
            return None

        return TestPlan.from_wire(self._collected.plan)

    def send(self, message: messages.FromCoordinator) -> None:
        """Send a message, unless the worker is gone."""
        with suppress(OSError):
            self._channel.send(messages.encode(message))

    def lost(self) -> None:
        """Release the attempts that the worker had started."""
        self._breaker.lost(self._name)


def unreadable(sender: str, error: MessageError) -> str:
    """Return the text about a message that this process cannot read."""
    return (
        f"{sender} sent a message that this version of pytest-device cannot read ({error}): "
        "install the same version on all machines of the run"
    )


class BreakerClient:
    """A worker's access to the run's breaker, which the coordinator holds for all workers; called from any thread."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._pid = os.getpid()
        self._answers: dict[int, queue.SimpleQueue[Answer]] = {}
        """Receives the answer to each question that waits for it, by the number of the attempt."""

    def on_answer(self, message: messages.Answered) -> None:
        # Without a question: it came after its timeout.
        if answers := self._answers.get(message.number):
            answers.put(message.answer)

    def ask(self, key: str, attempt: AttemptId) -> Answer:
        """Return the coordinator's answer, or to go without one."""
        number = attempt.number
        answers = queue.SimpleQueue[Answer]()
        self._answers[number] = answers
        try:
            if self._send(messages.Ask(key, number)):
                with suppress(queue.Empty):
                    return answers.get(timeout=_ANSWER_SECONDS)

            return None
        finally:
            del self._answers[number]

    def ready(self, key: str, attempt: AttemptId) -> None:
        self._send(messages.Succeeded(key, attempt.number))

    def failed(
        self, key: str, attempt: AttemptId, cause: Cause, *, is_final: bool
    ) -> None:
        self._send(messages.Failed(key, attempt.number, cause, is_final))

    def released(self, key: str, attempt: AttemptId) -> None:
        self._send(messages.Released(key, attempt.number))

    def used(self, attempt: AttemptId, seconds: float | None) -> None:
        self._send(messages.Used(attempt.number, seconds))

    def _send(self, message: messages.FromWorker) -> bool:
        """Send a message, unless the coordinator is gone or this is a forked child, which gets no answers."""
        if os.getpid() != self._pid:
            return False

        with suppress(OSError):
            self._channel.send(messages.encode(message))
            return True

        return False
