"""Decides whether equal attempts are made again after one has failed: a circuit breaker for each key.

    closed --failed, as often in a row as the limit, or finally--> open --pause--> half-open: one attempt
      ^                                                                                |
      +------------------------------------ ready -------------------------------------+

Standard library only. One breaker serves a whole run: each of its processes asks before it creates a session.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple, Protocol

EVERY: Final = ""
"""The key whose failures hold for all attempts, such as a refused token."""
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
            answer = (for_all.cause if for_all.is_final else None) or self._answer(circuit)
            if answer is Turn.GO:
                circuit.under_way.add(ticket)
            return answer

    def _answer(self, circuit: _Circuit) -> Answer:
        if circuit.cause is None:
            return Turn.GO
        if circuit.is_final:
            return circuit.cause
        if circuit.failures < self._limit:
            return Turn.GO if circuit.failures + len(circuit.under_way) < self._limit else Turn.WAIT
        is_half_open = self._clock() - circuit.since >= self._pause and not circuit.under_way
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
        return self._circuits.setdefault(key, _Circuit())
