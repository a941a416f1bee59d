"""Decides whether to repeat attempts that equal ones have failed: a circuit breaker for each key.

    closed --failed, as often in a row as the limit, or finally--> open --pause--> half-open: one attempt
      ^                                                                                |
      +------------------------------------ ready -------------------------------------+

One breaker serves a whole run: each process asks, through its ``Gate``, before it creates a session.
"""

import hashlib
import json
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import count
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from pytest_device.errors import DeviceError, NotAttemptedError, UnauthorizedError

if TYPE_CHECKING:
    from pydantic import BaseModel

EVERY: Final = ""
"""Key of failures that affect all attempts, such as a rejected token."""
SLOTS: Final = "slots"
"""Key of the wait for an unresponsive slot store: one timed-out wait opens its circuit."""
ASK_AGAIN_SECONDS: Final = 0.2
"""Seconds between two requests for permission: the attempts of others take many times as long."""
WAIT_FOR_OTHERS_SECONDS: Final = 120.0
"""Seconds to wait for the drivers of other processes: most devices boot faster."""
WAIT_WITH_DEVICE_SECONDS: Final = (
    10.0  # others may need the device's slot; most drivers that fail do so sooner
)
TEMPORARY: Final = "infrastructure"
PAUSE_SECONDS: Final = 300.0
"""Seconds without attempts after temporary failures: a probe costs a session, and up to the wait's timeout."""
FEWEST_IN_A_ROW: Final = 2
"""A single failure may concern one session only; a run that does not retry starts has not seen a second one."""

Ticket = tuple[str, int]
"""An attempt: the process that makes it (empty for this one) and its number in that process."""


class Cause(NamedTuple):
    """Why attempts fail: the verdict, a text, and the first test that was affected."""

    verdict: str
    text: str
    test: str = ""


class Turn(StrEnum):
    """What an attempt may do now."""

    GO = "go"
    WAIT = "wait"
    """Others are starting, enough to reach the limit if they fail: ask again."""


Answer = Turn | Cause
"""A cause instead of a turn means that the attempt is refused."""


class Judge(Protocol):
    """Decides on attempts; called from any thread."""

    def ask(self, key: str, ticket: Ticket) -> Answer:
        """Return whether to make an attempt; if so, it counts as in progress until another call ends it."""
        ...

    def ready(self, key: str, ticket: Ticket) -> None:
        """Record a successful attempt."""
        ...

    def failed(self, key: str, ticket: Ticket, cause: Cause, *, is_final: bool) -> None:
        """Record a failed attempt; ``is_final`` if a retry would fail, too."""
        ...

    def released(self, key: str, ticket: Ticket) -> None:
        """Record that an attempt was abandoned before it succeeded or failed."""
        ...

    def note_affected_test(self, key: str, test: str) -> None:
        """Record the first test that was affected by the cause."""
        ...


@dataclass(slots=True)
class _Circuit:
    limit: int
    """Maximum number of consecutive failures."""
    failures: int = 0
    """Number of consecutive failures."""
    cause: Cause | None = None
    """Cause of the first of them, or the final cause."""
    is_final: bool = False
    since: float = 0.0
    """When the last failure occurred."""
    under_way: set[Ticket] = field(default_factory=set[Ticket])

    def fail(self, cause: Cause, *, is_final: bool, now: float) -> None:
        self.failures, self.since = self.failures + 1, now
        if self.cause is None or (is_final and not self.is_final):
            self.cause, self.is_final = cause, is_final


class Breaker:
    """The circuits of a run, all closed at first; ``limit`` is the maximum number of consecutive failures."""

    def __init__(self, limit: int, clock: Callable[[], float]) -> None:
        self._limit, self._clock = max(limit, FEWEST_IN_A_ROW), clock
        self._circuits: dict[str, _Circuit] = {}
        self._lock = threading.Lock()

    def ask(self, key: str, ticket: Ticket) -> Answer:
        with self._lock:
            for_all, circuit = self._of(EVERY), self._of(key)
            answer = (for_all.cause if for_all.is_final else None) or self._answer(
                circuit, ticket
            )
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
            return (
                Turn.GO if circuit.failures + len(others) < circuit.limit else Turn.WAIT
            )
        is_half_open = self._clock() - circuit.since >= PAUSE_SECONDS and not others
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

    def note_affected_test(self, key: str, test: str) -> None:
        with self._lock:
            circuit = self._of(key)
            if circuit.cause and not circuit.cause.test:
                circuit.cause = circuit.cause._replace(test=test)

    def lost(self, process: str) -> None:
        """Release the attempts of a process that has ended."""
        with self._lock:
            for circuit in self._circuits.values():
                circuit.under_way = {
                    ticket for ticket in circuit.under_way if ticket[0] != process
                }

    def _of(self, key: str) -> _Circuit:
        return self._circuits.setdefault(
            key, _Circuit(1 if key == SLOTS else self._limit)
        )


class NoBreaker:
    """Allows every attempt."""

    def ask(self, key: str, ticket: Ticket) -> Answer:
        del key, ticket
        return Turn.GO

    def ready(self, key: str, ticket: Ticket) -> None: ...
    def failed(
        self, key: str, ticket: Ticket, cause: Cause, *, is_final: bool
    ) -> None: ...
    def released(self, key: str, ticket: Ticket) -> None: ...
    def note_affected_test(self, key: str, test: str) -> None: ...


class Gate:
    """The attempts of a process; ``verdict_of`` classifies an error, ``mask`` hides secrets in its text."""

    def __init__(
        self,
        judge: Judge | None = None,
        *,
        verdict_of: Callable[[DeviceError], str] = lambda _error: TEMPORARY,
        mask: Callable[[str], str] = str,
    ) -> None:
        self.judge = judge or NoBreaker()
        self._verdict_of, self._mask = verdict_of, mask
        self._numbers = count()

    def attempt(self, key: str) -> "AttemptHandle":
        return AttemptHandle(self, key, ("", next(self._numbers)))

    def begin(
        self, keys: Iterable[str], patience_seconds: float
    ) -> "Mapping[str, AttemptHandle]":
        """Start attempts together once the breaker allows all or patience runs out; raises NotAttemptedError.

        A process that waits releases all of them, so that two processes never wait for each other.
        """
        attempts, began = {key: self.attempt(key) for key in keys}, time.monotonic()
        try:
            while (
                not all(one.may_begin() for one in attempts.values())
                and time.monotonic() - began < patience_seconds
            ):
                _release(attempts)
                time.sleep(ASK_AGAIN_SECONDS)
        except BaseException:
            _release(attempts)
            raise
        return attempts

    @contextmanager
    def attempting(
        self, key: str, test: str, attempt: "AttemptHandle | None" = None
    ) -> Generator[None]:
        """Run a test's attempt in the block; raises NotAttemptedError before it if equal attempts have failed."""
        attempt = attempt or self.attempt(key)
        try:
            attempt.may_begin()  # others may have failed since it began
            yield
            attempt.ready()
        except NotAttemptedError:
            raise
        except DeviceError as error:
            attempt.failed(error)
            self.note_affected_test(key, test)
            raise
        finally:
            attempt.release()

    def cause_of(self, error: DeviceError) -> Cause:
        return Cause(
            str(self._verdict_of(error)), self._mask(str(error).partition("\n")[0])
        )

    def note_affected_test(self, key: str, test: str) -> None:
        """Record the first test that was affected by the cause of failures."""
        for one in (key, EVERY):
            self.judge.note_affected_test(one, test)


class AttemptHandle:
    """One attempt, from the request for permission to its result."""

    def __init__(self, gate: Gate, key: str, ticket: Ticket) -> None:
        self._gate, self._key, self._ticket = gate, key, ticket
        self._is_under_way = False
        self._failure: DeviceError | None = None

    def may_begin(self) -> bool:
        """Return whether to make it now; if not, call again.

        Raises NotAttemptedError if it is refused, or its own error if it has failed before.
        """
        answer = self._gate.judge.ask(self._key, self._ticket)
        if isinstance(answer, Cause):
            raise self._failure or NotAttemptedError(
                answer.text, verdict=answer.verdict, test=answer.test
            )
        self._is_under_way |= answer is Turn.GO
        return self._is_under_way

    def ready(self) -> None:
        self._is_under_way = False
        self._gate.judge.ready(self._key, self._ticket)

    def failed(self, error: DeviceError, *, may_be_final: bool = True) -> None:
        """Record its failure; errors that the suite has to fix are final."""
        self._is_under_way, self._failure = False, error
        cause = self._gate.cause_of(error)
        is_token = isinstance(error, UnauthorizedError) and not error.is_page
        is_final, key = (
            may_be_final and cause.verdict != TEMPORARY,
            EVERY if is_token else self._key,
        )
        self._gate.judge.failed(key, self._ticket, cause, is_final=is_token or is_final)

    @property
    def is_refused(self) -> bool:
        """Return whether equal attempts have failed, without making this one."""
        try:
            self.may_begin()
        except DeviceError:
            return True
        self.release()
        return False

    def release(self) -> None:
        """Record that it was abandoned, unless it has succeeded or failed."""
        if self._is_under_way:
            self._is_under_way = False
            self._gate.judge.released(self._key, self._ticket)


def _release(attempts: Mapping[str, AttemptHandle]) -> None:
    for one in attempts.values():
        one.release()


def key_of(request: "BaseModel | None", more: object = None) -> str:
    """Return a key that equal requests share, whatever their names; a digest, since requests may hold secrets."""
    body = (
        request.model_dump(mode="json", exclude_none=True, exclude={"name"})
        if request
        else {}
    )
    return hashlib.sha256(
        json.dumps([body, more], sort_keys=True, default=repr).encode()
    ).hexdigest()
