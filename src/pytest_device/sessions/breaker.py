"""Decides whether to repeat attempts that equal ones have failed: a circuit breaker for each key.

    closed --failed, as often in a row as the limit, or finally--> open --pause--> half-open: one attempt
      ^                                                                                |
      +------------------------------------ ready -------------------------------------+

One breaker serves a whole run: each process asks, through its ``Permits``, before it creates a session. It also knows
what the whole run may use: retries and device minutes.

While a gateway fails in front of the service, all create calls fail alike and cost nothing but time. The circuit of
the key ``CREATE`` therefore pauses before it opens.
"""

import hashlib
import json
import threading
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from pytest_device.errors import (
    DeviceError,
    NotAttemptedError,
    StatusError,
    UnauthorizedError,
)
from pytest_device.http_status import GATEWAY_ERRORS
from pytest_device.spec import POLL_INTERVAL_SECONDS
from pytest_device.verdict import Verdict

if TYPE_CHECKING:
    from pydantic import BaseModel

    from pytest_device.sessions.budget import Budget

EVERY: Final = ""
"""Key of failures that affect all attempts, such as a rejected token."""
CREATE: Final = "create"
"""Key of create calls that fail in front of the service, whatever they request."""
BUDGET: Final = "budget"
"""Key that asks whether the run still has device minutes for a session that waits for capacity."""
RETRY: Final = "retry"
"""Key that asks for one more run of a test whose device failed."""
ASK_AGAIN_SECONDS: Final = 0.2
"""Shortest pause between two requests for permission: the attempts of others take many times as long."""
PAUSE_SECONDS: Final = 300.0
"""Seconds without attempts after temporary failures: a probe costs a session, and up to the wait's timeout."""
OUTAGE_PAUSES: Final = (3, 6)
"""Pauses after the first and second failure in front of the service, in poll intervals of up to five seconds (15 s and
30 s by default): a deployment takes longer than a retried call, but rarely a minute."""
OUTAGE_PROBE: Final = 12
"""Pause after the last failure, in such intervals (60 s by default): a probe usually costs nothing."""
MIN_FAILURES: Final = 2
"""A single failure may concern one session only; a run that does not retry starts has not seen a second one."""

_RUN_RETRIES: Final = 10
"""Maximum number of retries of tests in a run: more failures of devices are a problem of the service, not of a device."""
_ERRORS: Final = range(400, 600)


class AttemptId(NamedTuple):
    """An attempt: the process that makes it (empty for this one) and its number in that process."""

    process: str
    number: int


class Cause(NamedTuple):
    """Why attempts fail: the verdict and a text.

    ``calls`` is the number of create calls, with pauses in between, that have failed in front of the service.
    """

    verdict: Verdict
    text: str
    calls: int = 0


class Pause(NamedTuple):
    """Ask again in ``seconds``: create calls fail in front of the service."""

    seconds: float
    cause: Cause


Answer = Pause | Cause | None
"""None lets the attempt be made now; a cause refuses it."""


class Breaker(Protocol):
    """Decides on attempts; called from any thread."""

    def ask(self, key: str, attempt: AttemptId) -> Answer:
        """Return whether to make an attempt; if so, it counts as in progress until another call ends it."""
        ...

    def ready(self, key: str, attempt: AttemptId) -> None:
        """Record a successful attempt."""
        ...

    def failed(
        self, key: str, attempt: AttemptId, cause: Cause, *, is_final: bool
    ) -> None:
        """Record a failed attempt; ``is_final`` if a retry would fail, too."""
        ...

    def released(self, key: str, attempt: AttemptId) -> None:
        """Record that an attempt was abandoned before it succeeded or failed."""
        ...

    def used(self, attempt: AttemptId, seconds: float | None) -> None:
        """Record that the use of the session of an attempt begins or, with its ``seconds``, has ended."""
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
    under_way: set[AttemptId] = field(default_factory=set[AttemptId])

    def begin(self, attempt: AttemptId) -> None:
        self.under_way.add(attempt)

    def fail(
        self,
        cause: Cause,
        attempt: AttemptId,  # noqa: ARG002  # an outage uses it
        *,
        is_final: bool,
        now: float,
    ) -> None:
        self.failures += 1
        self.since = now
        self._note(cause, is_final=is_final)

    def _note(self, cause: Cause, *, is_final: bool) -> None:
        if self.cause is None or (is_final and not self.is_final):
            self.cause = cause
            self.is_final = is_final

    def succeed(self) -> None:
        if not self.is_final:
            self.failures = 0
            self.cause = None

    def answer(self, attempt: AttemptId, now: float) -> Answer:
        if self.cause is None:
            return None
        if self.is_final:
            return self.cause
        if self.failures < self.limit:
            return None

        is_probed = bool(self.under_way - {attempt})
        is_half_open = now - self.since >= PAUSE_SECONDS and not is_probed
        return None if is_half_open else self.cause


@dataclass(slots=True)
class _OutageCircuit(_Circuit):
    """Failures in front of the service; ``failures`` counts rounds, each with a pause after it.

    Attempts that began before a failure belong to its round, since they show nothing new.
    """

    interval: float = POLL_INTERVAL_SECONDS
    has_succeeded: bool = False
    """Whether the service has ever created a session for this run."""
    before: set[AttemptId] = field(default_factory=set[AttemptId])
    """Attempts that began before the last failure."""

    def begin(self, attempt: AttemptId) -> None:
        self.under_way.add(attempt)
        self.before.discard(attempt)

    def fail(
        self, cause: Cause, attempt: AttemptId, *, is_final: bool, now: float
    ) -> None:
        if attempt in self.before:
            return

        self.failures += cause.calls
        self.since = now
        self.before = set(self.under_way)
        self._note(cause, is_final=is_final and self.failures >= self.limit)

    def succeed(self) -> None:
        _Circuit.succeed(self)
        self.has_succeeded = True
        self.before.clear()

    def answer(self, attempt: AttemptId, now: float) -> Answer:
        if self.cause is None:
            return None
        if self.is_final:
            return self.cause

        is_open = self.failures >= self.limit
        pause = OUTAGE_PROBE if is_open else OUTAGE_PAUSES[self.failures - 1]
        seconds_left = self.since + pause * self.interval - now
        is_probed = bool(self.under_way - self.before - {attempt})
        if seconds_left <= 0 and not is_probed:
            return None
        if is_open:
            return self.cause

        return Pause(max(seconds_left, ASK_AGAIN_SECONDS), self.cause)


class LocalBreaker:
    """Decides in this process: the circuits of a run, all closed at first; ``limit`` is the maximum number of consecutive failures.

    ``interval_seconds`` is the poll interval, by which the pauses during an outage are measured.
    """

    def __init__(
        self,
        limit: int,
        clock: Callable[[], float],
        *,
        interval_seconds: float = POLL_INTERVAL_SECONDS,
    ) -> None:
        self._limit = max(limit, MIN_FAILURES)
        self._clock = clock
        self._outage = _OutageCircuit(
            len(OUTAGE_PAUSES) + 1,
            interval=min(interval_seconds, float(POLL_INTERVAL_SECONDS)),
        )
        self._circuits: dict[str, _Circuit] = {CREATE: self._outage}
        self._lock = threading.Lock()

    def ask(self, key: str, attempt: AttemptId) -> Answer:
        with self._lock:
            for_all = self._of(EVERY)
            circuit = self._of(key)
            if for_all.is_final and for_all.cause:
                return for_all.cause

            answer = circuit.answer(attempt, self._clock())
            if answer is None:
                circuit.begin(attempt)

            return answer

    def ready(self, key: str, attempt: AttemptId) -> None:
        with self._lock:
            circuit = self._of(key)
            circuit.under_way.discard(attempt)
            circuit.succeed()

    def failed(
        self, key: str, attempt: AttemptId, cause: Cause, *, is_final: bool
    ) -> None:
        with self._lock:
            # A token that has worked: its process does not know that.
            if key == EVERY and self._outage.has_succeeded:
                key = CREATE
                cause = cause._replace(calls=max(cause.calls, 1))
            for circuit in self._circuits.values():
                circuit.under_way.discard(attempt)
            self._of(key).fail(cause, attempt, is_final=is_final, now=self._clock())

    def released(self, key: str, attempt: AttemptId) -> None:
        with self._lock:
            self._of(key).under_way.discard(attempt)

    def used(self, attempt: AttemptId, seconds: float | None) -> None: ...

    def lost(self, process: str) -> None:
        """Release the attempts of a process that has ended."""
        with self._lock:
            for circuit in self._circuits.values():
                circuit.under_way = {
                    attempt
                    for attempt in circuit.under_way
                    if attempt.process != process
                }

    def _of(self, key: str) -> _Circuit:
        return self._circuits.setdefault(key, _Circuit(self._limit))


class RunBreaker(LocalBreaker):
    """Decides for all processes of a run, in the process that has the terminal; also limits what the whole run may use.

    ``budget`` is its device minutes, None without a limit.
    """

    def __init__(
        self,
        limit: int,
        clock: Callable[[], float],
        *,
        interval_seconds: float,
        budget: "Budget | None",
    ) -> None:
        super().__init__(limit, clock, interval_seconds=interval_seconds)
        self._retries_left = _RUN_RETRIES
        self._budget = budget
        # Workers ask from several threads.
        self._quota_lock = threading.Lock()

    def ask(self, key: str, attempt: AttemptId) -> Answer:
        """Return whether to make an attempt, which the run's limits may forbid."""
        if key == RETRY:
            return self._take_retry()
        needs_minutes = key in {CREATE, BUDGET}
        if needs_minutes and self._budget and (text := self._budget.refusal()):
            return Cause(Verdict.BUDGET, text)
        return super().ask(key, attempt)

    def used(self, attempt: AttemptId, seconds: float | None) -> None:
        """Count the use of a session in the budget, from its beginning on."""
        if self._budget is None:
            return
        if seconds is None:
            self._budget.begin(*attempt)
        else:
            self._budget.end(*attempt, seconds)

    def lost(self, process: str) -> None:
        """Release the attempts of a process that has ended, and end the use of its sessions."""
        super().lost(process)
        if self._budget:
            self._budget.lost(process)

    def _take_retry(self) -> Answer:
        with self._quota_lock:
            if self._retries_left == 0:
                return Cause(
                    Verdict.INFRASTRUCTURE,
                    f"the run's {_RUN_RETRIES} retries are used up",
                )

            self._retries_left -= 1

        return None


class AllowAll:
    """Allows every attempt."""

    def ask(self, key: str, attempt: AttemptId) -> Answer:
        del key, attempt
        return None

    def ready(self, key: str, attempt: AttemptId) -> None: ...
    def failed(
        self, key: str, attempt: AttemptId, cause: Cause, *, is_final: bool
    ) -> None: ...
    def released(self, key: str, attempt: AttemptId) -> None: ...
    def used(self, attempt: AttemptId, seconds: float | None) -> None: ...


class Permits:
    """Hands out a process's permits for attempts; ``verdict_of`` classifies an error, ``mask`` hides secrets in its text."""

    def __init__(
        self,
        breaker: Breaker | None = None,
        *,
        verdict_of: Callable[[DeviceError], Verdict] = lambda _error: (
            Verdict.INFRASTRUCTURE
        ),
        mask: Callable[[str], str] = str,
    ) -> None:
        self.breaker = breaker or AllowAll()
        self.has_worked = False
        """Whether the service has accepted a call of this process."""
        self._verdict_of = verdict_of
        self._mask = mask
        self._numbers = count()

    def new(self, key: str) -> "BreakerPermit":
        """Return the permit for an attempt; it asks the breaker when the attempt is about to begin."""
        return BreakerPermit(self, key, AttemptId("", next(self._numbers)))

    def check_budget(self) -> None:
        """Raise NotAttemptedError if the run's device minutes are used up."""
        permit = self.new(BUDGET)
        permit.may_begin()
        permit.release()

    def new_use(self) -> "SessionUse":
        """Return the record of the use of a session, which has not begun."""
        return SessionUse(self.breaker, AttemptId("", next(self._numbers)))

    def begin(self, keys: Iterable[str]) -> "Mapping[str, BreakerPermit]":
        """Start attempts together; raises NotAttemptedError if one is refused."""
        permits = {key: self.new(key) for key in keys}
        try:
            for permit in permits.values():
                permit.may_begin()
        except BaseException:
            for permit in permits.values():
                permit.release()
            raise

        return permits

    @contextmanager
    def attempting(
        self, key: str, permit: "BreakerPermit | None" = None
    ) -> Generator[None]:
        """Run a test's attempt in the block; raises NotAttemptedError before it if equal attempts have failed."""
        permit = permit or self.new(key)
        try:
            # Others may have failed since it began.
            permit.may_begin()
            yield
            permit.ready()
        except NotAttemptedError:
            raise
        except DeviceError as error:
            permit.failed(error)
            raise
        finally:
            permit.release()

    def cause_of(self, error: DeviceError) -> Cause:
        return Cause(self._verdict_of(error), self._mask(str(error).partition("\n")[0]))


class SessionUse:
    """The use of a session by a process, which the run pays for."""

    def __init__(self, breaker: Breaker, attempt: AttemptId) -> None:
        self._breaker = breaker
        self._attempt = attempt

    def begin(self) -> None:
        """Record that the session exists, or that the process has taken it over."""
        self._breaker.used(self._attempt, None)

    def end(self, seconds: float) -> None:
        """Record that the session has ended, or is left to others, after ``seconds``."""
        self._breaker.used(self._attempt, seconds)


class BreakerPermit:
    """The permit for one attempt, from the request to the result of the attempt."""

    def __init__(self, permits: Permits, key: str, attempt: AttemptId) -> None:
        self._permits = permits
        self._key = key
        self._attempt = attempt
        self._is_under_way = False
        self._failure: DeviceError | None = None
        self.pause: Pause | None = None
        """Why it may not begin yet, if create calls fail."""

    def may_begin(self) -> bool:
        """Return whether to make it now; if not, call again.

        Raises NotAttemptedError if it is refused, or its own error if it has failed before.
        """
        answer = self._permits.breaker.ask(self._key, self._attempt)
        if isinstance(answer, Cause):
            raise self._failure or NotAttemptedError(
                answer.text, verdict=answer.verdict
            )

        self.pause = answer if isinstance(answer, Pause) else None
        self._is_under_way |= answer is None

        return self._is_under_way

    def ready(self) -> None:
        self._is_under_way = False
        self._permits.breaker.ready(self._key, self._attempt)

    def failed(
        self, error: DeviceError, *, may_be_final: bool = True, calls: int = 0
    ) -> None:
        """Record its failure; errors that the suite has to fix are final.

        With ``calls``, that many create calls have failed in front of the service or with a token that has worked.
        """
        self._is_under_way = False
        self._failure = error
        cause = self._permits.cause_of(error)._replace(calls=calls)
        is_token = isinstance(error, UnauthorizedError) and not error.is_page
        is_final = may_be_final and not cause.verdict.is_temporary and not calls
        key = EVERY if is_token and not calls else self._key
        self._permits.breaker.failed(
            key, self._attempt, cause, is_final=is_token or is_final
        )

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
            self._permits.breaker.released(self._key, self._attempt)


def is_outage(error: BaseException) -> bool:
    """Return whether a create call failed in front of the service: at a gateway, a firewall or a proxy."""
    if not isinstance(error, StatusError):
        return False
    return error.status in GATEWAY_ERRORS or (error.is_page and error.status in _ERRORS)


def key_of(request: "BaseModel | None", more: object = None) -> str:
    """Return a key that equal requests share, whatever their names; a digest, since requests may hold secrets."""
    body: dict[str, object] = {}
    if request:
        body = request.model_dump(mode="json", exclude_none=True, exclude={"name"})

    text = json.dumps([body, more], sort_keys=True, default=repr)
    return hashlib.sha256(text.encode()).hexdigest()
