"""Passes the failed attempts of forked children to their parent and its later children."""

import json
import os
import time
from contextlib import suppress
from typing import Any, Final

from pytest_device.sessions.breaker import Breaker, Cause, Ticket

_CHUNK_BYTES: Final = 64 * 1024


class ForkedJudge(Breaker):
    """Decides in children based on the parent's knowledge at the fork; a pipe reports their results to the parent.

    Test reports would not do, since they are lost if a child dies.
    """

    def __init__(self, attempts: int) -> None:
        super().__init__(attempts, time.monotonic)
        self._ends = os.pipe()
        for end in self._ends:
            os.set_blocking(
                end, False
            )  # what does not fit is lost, and will be found again

    def ready(self, key: str, ticket: Ticket) -> None:
        super().ready(key, ticket)
        self._send("ready", key)

    def failed(self, key: str, ticket: Ticket, cause: Cause, *, is_final: bool) -> None:
        super().failed(key, ticket, cause, is_final=is_final)
        self._send("failed", key, *cause, is_final)

    def note_affected_test(self, key: str, test: str) -> None:
        super().note_affected_test(key, test)
        self._send("met", key, test)

    def learn(self) -> None:
        """Record in the parent the results of children."""
        with suppress(OSError):  # no more data
            while data := os.read(self._ends[0], _CHUNK_BYTES):
                for line in data.splitlines():
                    with suppress(ValueError):  # cut off because the pipe was full
                        self._note(json.loads(line))

    def close(self) -> None:
        for end in self._ends:
            os.close(end)

    def _send(self, *message: Any) -> None:
        with suppress(OSError):
            os.write(self._ends[1], json.dumps(message).encode() + b"\n")

    def _note(self, message: list[Any]) -> None:
        match message:
            case ["failed", key, *cause, is_final]:
                super().failed(key, ("", -1), Cause(*cause), is_final=is_final)
            case ["met", key, test]:
                super().note_affected_test(key, test)
            case [_, key]:
                super().ready(key, ("", -1))
            case _:
                raise ValueError(f"a message {message!r} of a child")
