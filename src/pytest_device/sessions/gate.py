"""Asks before each attempt whether it is made, and notes what came of it, for equal ones of the whole run."""

import hashlib
import json
import math
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from itertools import count
from typing import Final

from pytest_device.errors import DeviceError, LeaseTimeoutError, NotAttemptedError, UnauthorizedError
from pytest_device.sessions.breaker import EVERY, Answer, Cause, Judge, Ticket, Turn
from pytest_device.sessions.request import SessionRequest

ASK_AGAIN_SECONDS: Final = 0.2
"""Until then nothing has come of the attempts of others, which take many times as long."""
_LONGEST_SECONDS: Final = 600.0
"""No start of a driver takes longer."""
PASSING: Final = "infrastructure"
"""The verdict on what may pass by itself."""


class AlwaysOpen:
    """Lets every attempt be made."""

    def ask(self, key: str, ticket: Ticket) -> Answer:
        del key, ticket
        return Turn.GO

    def ready(self, key: str, ticket: Ticket) -> None: ...
    def failed(self, key: str, ticket: Ticket, cause: Cause, *, is_final: bool) -> None: ...
    def released(self, key: str, ticket: Ticket) -> None: ...
    def met(self, key: str, test: str) -> None: ...


class Gate:
    """The attempts of a process; ``verdict_of`` says whose fault an error is, ``mask`` hides secrets of its text."""

    def __init__(
        self,
        judge: Judge | None = None,
        *,
        verdict_of: Callable[[DeviceError], str] = lambda _error: PASSING,
        mask: Callable[[str], str] = str,
    ) -> None:
        self.judge = judge or AlwaysOpen()
        self._verdict_of, self._mask = verdict_of, mask
        self._numbers = count()

    def attempt(self, key: str) -> "Attempted":
        return Attempted(self, key, ("", next(self._numbers)))

    @contextmanager
    def attempting(self, key: str, test: str) -> Generator[None]:
        """Make an attempt of a test in the block; raises NotAttemptedError before it where equal ones have failed."""
        attempt, began = self.attempt(key), time.monotonic()
        while not attempt.may_begin(time.monotonic() - began, _LONGEST_SECONDS):
            time.sleep(ASK_AGAIN_SECONDS)
        try:
            yield
            attempt.ready()
        except DeviceError as error:
            attempt.failed(error)
            self.met(key, test)
            raise
        finally:
            attempt.release()

    def cause_of(self, error: DeviceError) -> Cause:
        return Cause(str(self._verdict_of(error)), self._mask(str(error).partition("\n")[0]))

    def met(self, key: str, test: str) -> None:
        """Note which test met the cause of failures, unless another one did before."""
        for one in (key, EVERY):
            self.judge.met(one, test)


class Attempted:
    """One attempt, from the question whether it is made to what came of it."""

    def __init__(self, gate: Gate, key: str, ticket: Ticket) -> None:
        self._gate, self._key, self._ticket = gate, key, ticket
        self._is_under_way = False
        self._failure: DeviceError | None = None

    def may_begin(self, waited_seconds: float = 0.0, limit_seconds: float = math.inf) -> bool:
        """Return whether it is made now, else ask again, until the limit: then it raises LeaseTimeoutError.

        Raises NotAttemptedError when it is not made at all; when it has failed itself before, that error.
        """
        answer = self._gate.judge.ask(self._key, self._ticket)
        if isinstance(answer, Cause):
            raise self._failure or NotAttemptedError(answer.text, verdict=answer.verdict, test=answer.test)
        self._is_under_way = answer is Turn.GO
        if not self._is_under_way and waited_seconds >= limit_seconds:
            raise LeaseTimeoutError(
                f"equal attempts of other workers have neither succeeded nor failed for {waited_seconds:.0f} s"
            )
        return self._is_under_way

    def ready(self) -> None:
        self._is_under_way = False
        self._gate.judge.ready(self._key, self._ticket)

    def failed(self, error: DeviceError, *, may_be_final: bool = True) -> None:
        """Note why it failed: what the suite has to correct is final."""
        self._is_under_way, self._failure = False, error
        cause = self._gate.cause_of(error)
        is_token, is_final = isinstance(error, UnauthorizedError), may_be_final and cause.verdict != PASSING
        key = EVERY if is_token else self._key
        self._gate.judge.failed(key, self._ticket, cause, is_final=is_token or is_final)

    def release(self) -> None:
        """Note that it was given up, unless something has come of it."""
        if self._is_under_way:
            self._is_under_way = False
            self._gate.judge.released(self._key, self._ticket)


def key_of(request: SessionRequest | None, more: object = None) -> str:
    """Return what is equal for equal requests, whatever their names; it shows nothing of them, which may be secret."""
    body = {name: value for name, value in (request.to_wire() if request else {}).items() if name != "name"}
    return hashlib.sha256(json.dumps([body, more], sort_keys=True, default=repr).encode()).hexdigest()
