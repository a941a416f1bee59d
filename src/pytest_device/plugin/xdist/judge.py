"""A worker's connection to the run's breaker, which the coordinator holds for all workers."""

import os
import queue
from contextlib import suppress
from typing import Any, Final

from pytest_device.plugin.xdist.channel import ASK, Channel
from pytest_device.sessions.breaker import Answer, Cause, Ticket, Turn

_ANSWER_SECONDS: Final = 10.0
"""Seconds to wait for an answer: a coordinator that takes longer is busy or gone, and a test must not wait for it."""


class RemoteJudge:
    """Asks the coordinator; called from any thread."""

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
            if self._send(ASK, key, number):
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
