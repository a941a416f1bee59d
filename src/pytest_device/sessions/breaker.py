"""Decides whether equal attempts are made again after one has failed: a circuit breaker for each key.

    closed --failed, as often in a row as the limit, or finally--> open --pause--> half-open: one attempt
      ^                                                                                |
      +------------------------------------ ready -------------------------------------+

One breaker serves a whole run: each of its processes asks, through its ``Gate``, before it creates a session.
"""

import hashlib
import json
import math
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import count
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from pytest_device.errors import DeviceError, LeaseTimeoutError, NotAttemptedError, UnauthorizedError

if TYPE_CHECKING:
    from pydantic import BaseModel

EVERY: Final = ""
"""The key whose failures hold for all attempts, such as a refused token."""
SLOTS: Final = "slots"
"""The key of waiting for a store of slots that does not answer: one wait in vain opens its circuit."""
ASK_AGAIN_SECONDS: Final = 0.2
"""Until then nothing has come of the attempts of others, which take many times as long."""
OTHERS_SECONDS: Final = 120.0
"""For how long to wait for drivers of other processes: most boots take less."""
BRIEFLY_SECONDS: Final = 10.0  # with a device, for whose slot others may wait: most refusals of a driver come sooner
PASSING: Final = "infrastructure"  # may pass by itself
PAUSE_SECONDS: Final = 300.0
"""How long no attempt is made after failures that may pass: a probe costs a session, and up to the wait time-out."""
FEWEST_IN_A_ROW: Final = 2
"""A single failure may be a session's own; a run that does not retry a start has not seen a second one yet."""

Ticket = tuple[str, int]
"""An attempt: the process that makes it, empty for this one, and its number there."""


class Cause(NamedTuple):
    """Why attempts fail: whose fault it is, in words, and the test that met it first."""

    verdict: str
    text: str
    test: str = ""


class Turn(StrEnum):
    """What an attempt may do now."""

    GO = "go"
    WAIT = "wait"
    """Others are starting, of which as many fail as may: ask again."""


Answer = Turn | Cause
"""A cause where nothing is attempted."""


class Judge(Protocol):
    """Decides on attempts; called from any thread."""

    def ask(self, key: str, ticket: Ticket) -> Answer:
        """Return whether to make an attempt, which then counts as under way until one of the other calls ends it."""
        ...

    def ready(self, key: str, ticket: Ticket) -> None:
        """Note an attempt that succeeded."""
        ...

    def failed(self, key: str, ticket: Ticket, cause: Cause, *, is_final: bool) -> None:
        """Note an attempt that failed, finally if it will always fail."""
        ...

    def released(self, key: str, ticket: Ticket) -> None:
        """Note an attempt that was given up before anything came of it."""
        ...

    def met(self, key: str, test: str) -> None:
        """Note which test met the cause."""
        ...


@dataclass(slots=True)
class _Circuit:
    limit: int
    """How many attempts may fail in a row."""
    failures: int = 0
    """How many attempts have failed in a row."""
    cause: Cause | None = None
    """That of the first of them, or the final one."""
    is_final: bool = False
    since: float = 0.0
    """When the last of them failed."""
    under_way: set[Ticket] = field(default_factory=set[Ticket])

    def fail(self, cause: Cause, *, is_final: bool, now: float) -> None:
        self.failures, self.since = self.failures + 1, now
        if self.cause is None or (is_final and not self.is_final):
            self.cause, self.is_final = cause, is_final


class Breaker:
    """The circuits of a run, all closed at first; ``limit`` is how many attempts may fail in a row."""

    def __init__(self, limit: int, clock: Callable[[], float], pause_seconds: float = PAUSE_SECONDS) -> None:
        self._limit, self._clock, self._pause = max(limit, FEWEST_IN_A_ROW), clock, pause_seconds
        self._circuits: dict[str, _Circuit] = {}
        self._lock = threading.Lock()

    def ask(self, key: str, ticket: Ticket) -> Answer:
        with self._lock:
            for_all, circuit = self._of(EVERY), self._of(key)
            answer = (for_all.cause if for_all.is_final else None) or self._answer(circuit, ticket)
            if answer is Turn.GO:
                circuit.under_way.add(ticket)
            return answer

    def _answer(self, circuit: _Circuit, ticket: Ticket) -> Answer:
        others = circuit.under_way - {ticket}
        if circuit.cause is None:
            return Turn.GO
        if circuit.is_final:
            return circuit.cause
        if circuit.failures < circuit.limit:
            return Turn.GO if circuit.failures + len(others) < circuit.limit else Turn.WAIT
        is_half_open = self._clock() - circuit.since >= self._pause and not others
        return Turn.GO if is_half_open else circuit.cause

    def ready(self, key: str, ticket: Ticket) -> None:
        with self._lock:
            circuit = self._of(key)
            circuit.under_way.discard(ticket)
            if not circuit.is_final:
                circuit.failures, circuit.cause = 0, None

    def failed(self, key: str, ticket: Ticket, cause: Cause, *, is_final: bool) -> None:
        with self._lock:
            for circuit in self._circuits.values():
                circuit.under_way.discard(ticket)
            self._of(key).fail(cause, is_final=is_final, now=self._clock())

    def released(self, key: str, ticket: Ticket) -> None:
        with self._lock:
            self._of(key).under_way.discard(ticket)

    def met(self, key: str, test: str) -> None:
        with self._lock:
            circuit = self._of(key)
            if circuit.cause and not circuit.cause.test:
                circuit.cause = circuit.cause._replace(test=test)

    def lost(self, process: str) -> None:
        """Give up the attempts of a process that is gone."""
        with self._lock:
            for circuit in self._circuits.values():
                circuit.under_way = {ticket for ticket in circuit.under_way if ticket[0] != process}

    def _of(self, key: str) -> _Circuit:
        return self._circuits.setdefault(key, _Circuit(1 if key == SLOTS else self._limit))


class NoBreaker:
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
        self.judge = judge or NoBreaker()
        self._verdict_of, self._mask = verdict_of, mask
        self._numbers = count()

    def attempt(self, key: str) -> "Attempted":
        return Attempted(self, key, ("", next(self._numbers)))

    def begin(self, keys: Iterable[str], patience_seconds: float) -> "Mapping[str, Attempted]":
        """Return attempts, under way once those of others leave room or patience is over; raises NotAttemptedError.

        All of them begin together: whoever waits holds none that another one waits for.
        """
        attempts, began = {key: self.attempt(key) for key in keys}, time.monotonic()
        try:
            while not all(one.may_begin() for one in attempts.values()) and time.monotonic() - began < patience_seconds:
                _release(attempts)
                time.sleep(ASK_AGAIN_SECONDS)
        except BaseException:
            _release(attempts)
            raise
        return attempts

    @contextmanager
    def attempting(self, key: str, test: str, begun: "Attempted | None" = None) -> Generator[None]:
        """Make an attempt of a test in the block; raises NotAttemptedError before it where equal ones have failed."""
        attempt = begun or self.attempt(key)
        try:
            attempt.may_begin()  # others may have failed since it has begun
            yield
            attempt.ready()
        except NotAttemptedError:
            raise
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
        self._is_under_way |= answer is Turn.GO
        if not self._is_under_way and waited_seconds >= limit_seconds:
            raise LeaseTimeoutError(
                f"identical attempts by other workers have neither succeeded nor failed for {waited_seconds:.0f} s"
            )
        return self._is_under_way

    def ready(self) -> None:
        self._is_under_way = False
        self._gate.judge.ready(self._key, self._ticket)

    def failed(self, error: DeviceError, *, may_be_final: bool = True) -> None:
        """Note why it failed: what the suite has to correct is final."""
        self._is_under_way, self._failure = False, error
        cause = self._gate.cause_of(error)
        is_token = isinstance(error, UnauthorizedError) and not error.is_page
        is_final, key = may_be_final and cause.verdict != PASSING, EVERY if is_token else self._key
        self._gate.judge.failed(key, self._ticket, cause, is_final=is_token or is_final)

    @property
    def is_refused(self) -> bool:
        """Return whether equal ones have failed, without making it."""
        try:
            self.may_begin()
        except DeviceError:
            return True
        self.release()
        return False

    def release(self) -> None:
        """Note that it was given up, unless something has come of it."""
        if self._is_under_way:
            self._is_under_way = False
            self._gate.judge.released(self._key, self._ticket)


def _release(attempts: Mapping[str, Attempted]) -> None:
    for one in attempts.values():
        one.release()


def key_of(request: "BaseModel | None", more: object = None) -> str:
    """Return what is equal for equal requests, whatever their names; it shows nothing of them, which may be secret."""
    body = request.model_dump(mode="json", exclude_none=True, exclude={"name"}) if request else {}
    return hashlib.sha256(json.dumps([body, more], sort_keys=True, default=repr).encode()).hexdigest()
