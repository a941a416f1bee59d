"""Slots for several machines, on a Redis server: they expire unless they are renewed.

A queue place expires, too, unless its claim keeps trying.
A slot that expired, for example because the server restarted, is renewed if no other process took it. So that none can,
a server that has started, or has lost its data, gives no slot until every process has renewed those it holds.
"""

import json
import os
import secrets
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from platform import node
from time import monotonic, sleep
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from pytest_device.errors import ConfigError, LeaseTimeoutError
from pytest_device.options import Options
from pytest_device.redact import Redactor
from pytest_device.sessions.breaker import SLOTS, LocalBreaker, Permits
from pytest_device.sessions.quota.claim import NOT_QUEUED, Blocker, Claim
from pytest_device.sessions.quota.scripts import DROP, LOOK, RENEW
from pytest_device.sessions.reporter import Reporter

SLOT_SECONDS: Final = 30.0
"""Seconds for which a dead machine keeps its slots, and for which the server may be unreachable unnoticed."""
_RENEWALS_PER_SLOT: Final = 3
_REPLY_SECONDS: Final = 5.0
SETTLE_SECONDS: Final = SLOT_SECONDS / _RENEWALS_PER_SLOT + 2 * _REPLY_SECONDS
"""Seconds after the start of a server until every process has renewed its slots.

A renewal that failed just before is repeated after one period; until it fails, it waits for a connection and a reply.
"""


@dataclass(frozen=True, slots=True)
class RedisConfig:
    """Settings of the connection and the slots; ``source`` names the setting that the URL came from."""

    url: str = field(repr=False)
    source: str
    key: str
    reporter: Reporter
    slot_seconds: float = SLOT_SECONDS
    reply_seconds: float = _REPLY_SECONDS
    settle_seconds: float = SETTLE_SECONDS
    clock: Callable[[], float] = monotonic
    sleep: Callable[[float], None] = sleep
    permits: Permits = field(
        default_factory=lambda: Permits(LocalBreaker(1, monotonic))
    )
    """Shared by the run's processes: whether one of them has waited for a response until the timeout."""


class RedisStore:
    """The slots of a service on a Redis server, by its scripts. A forked child must create its own."""

    def __init__(self, config: RedisConfig) -> None:
        self.config = config
        self.renewer = SlotRenewer(self)
        self.has_answered = False
        self._waiting = config.permits.new(SLOTS)
        """Fails with a claim that is withdrawn while the server does not respond, so that the next ones don't wait for
        it."""
        self._is_given_up = self._is_unsettled = False
        parts = urlsplit(config.url)
        password = unquote(parts.password) if parts.password else None
        self._redactor = Redactor([password] if password else [])
        client = redis.Redis(
            host=parts.hostname or "",
            port=parts.port or 6379,
            db=int(parts.path.strip("/") or 0),
            username=unquote(parts.username) if parts.username else None,
            password=password,
            ssl=parts.scheme == "rediss",
            ssl_check_hostname=True,  # not the default before redis 6
            socket_timeout=config.reply_seconds,
            socket_connect_timeout=config.reply_seconds,
            retry=Retry(NoBackoff(), 0),
            decode_responses=True,
            encoding_errors="replace",
        )
        self._look, self._renew, self._drop = map(
            client.register_script, (LOOK, RENEW, DROP)
        )
        self._keys = [
            f"{{pytest-device:{config.key}}}:{name}"
            for name in ("slots", "queue", "count", "server")
        ]

    def claim(self, count: int, most: int, holder: str) -> "RedisClaim":
        return RedisClaim(
            self, count, most, f"{holder} (process {os.getpid()} on {node()})"
        )

    def look(self, claim: str, count: int, most: int, words: str, urgency: str) -> Any:
        """Ask for slots.

        Return whether it took them, the first usable slot, the number of earlier claims, slots or holders, and whether
        the server gives slots already.
        """
        return self._run(
            self._look,
            claim,
            count,
            most,
            words,
            urgency,
            self._slot_milliseconds,
            self._settle_milliseconds,
        )

    def renew(self, slots: Iterable["RedisSlot"]) -> Sequence[int]:
        """Return the numbers of lost slots."""
        renewed = [
            {"number": slot.number, "claim": slot.claim, "words": slot.words}
            for slot in slots
        ]
        lost: Sequence[int] = self._run(
            self._renew,
            self._slot_milliseconds,
            json.dumps(renewed),
            self._settle_milliseconds,
        )
        return lost

    def drop(self, claim: str, number: int | None = None) -> None:
        """Release a claim's slots, or one of them; without a response they expire by themselves."""
        try:
            self._run(self._drop, claim, "" if number is None else number)
        except RedisError:
            return

    @property
    def _slot_milliseconds(self) -> int:
        return int(self.config.slot_seconds * 1000)

    @property
    def _settle_milliseconds(self) -> int:
        return int(self.config.settle_seconds * 1000)

    def _run(self, script: Callable[..., Any], *arguments: str | int) -> Any:
        answer = script(keys=self._keys, args=arguments)
        self.has_answered = True
        if self._is_given_up:
            self._is_given_up = False
            self._waiting.ready()
        return answer

    @property
    def is_given_up(self) -> bool:
        """Return whether a test of the run has waited until its timeout since the last response."""
        self._is_given_up = self._is_given_up or self._waiting.is_refused
        return self._is_given_up

    def give_up(self) -> None:
        """Keep the run's other tests from waiting for a response."""
        self._is_given_up = True
        self._waiting.failed(LeaseTimeoutError("the Redis server does not respond"))

    def describe(self, error: RedisError) -> str:
        """Describe an error, without secrets."""
        return self._redactor.text(
            f"the Redis server of {self.config.source} does not respond ({error})"
        )

    def note_unsettled(self) -> str:
        """Return why the server gives no slots yet; noted once for the summary."""
        reason = (
            f"the Redis server of {self.config.source} is new, has restarted or has lost its data: for up to "
            f"{self.config.settle_seconds:g} s, runs renew the slots that they hold"
        )
        if not self._is_unsettled:
            self._is_unsettled = True
            self.config.reporter.note(f"a session waited because {reason}")
        return reason

    def check(self) -> None:
        """Raise ConfigError if the server is unreachable or refuses scripts."""
        try:
            self.renew(())  # so that a new server settles while the run starts
        except RedisError as error:
            raise ConfigError(
                f"{Options.max_sessions.flag} cannot be enforced: {self.describe(error)}"
            ) from None


@dataclass(frozen=True, slots=True, eq=False)
class RedisSlot:
    """The permission to have one session, as long as it is renewed."""

    renewer: "SlotRenewer"
    claim: str
    number: int
    words: str

    @property
    def is_held(self) -> bool:
        return self.renewer.has(self)

    def release(self) -> None:
        self.renewer.release(self)


class SlotRenewer:
    """Renews the slots of this process, in a thread that runs while it holds any."""

    def __init__(self, store: RedisStore) -> None:
        self._store, self._config = store, store.config
        self._slots: dict[RedisSlot, None] = {}
        self._guard = threading.Lock()
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()
        self._renewed_at = self._config.clock()
        self._is_warned = False

    def has(self, slot: RedisSlot) -> bool:
        return slot in self._slots and os.getpid() == self._pid

    def keep(self, slots: Iterable[RedisSlot]) -> None:
        """Start renewing slots."""
        with self._guard:
            self._slots.update(dict.fromkeys(slots))
            if self._thread is None:
                self._renewed_at = self._config.clock()
                self._thread = threading.Thread(
                    target=self._run, name="pytest-device slots", daemon=True
                )
                self._thread.start()

    def release(self, slot: RedisSlot) -> None:
        """Release a slot of this process."""
        if self.has(slot):
            with self._guard:  # held while the server drops it: otherwise a renewal might take it again
                self._slots.pop(slot, None)
                self._store.drop(slot.claim, slot.number)

    def _run(self) -> None:
        while True:
            self._config.sleep(self._config.slot_seconds / _RENEWALS_PER_SLOT)
            try:
                if not self._renew_all():
                    return
            except RedisError as error:
                self._on_failure(error)

    def _renew_all(self) -> bool:
        """Renew all slots; False if there are none and the thread must end."""
        with self._guard:
            if not self._slots:
                self._thread = None
                return False
            numbers = self._store.renew(self._slots)
            lost = [slot for slot in self._slots if slot.number in numbers]
            for slot in lost:
                self._slots.pop(slot)
        self._renewed_at, self._is_warned = self._config.clock(), False
        if lost:
            self._config.reporter.note(
                f"{len(lost)} of this run's slots went to other runs while {self._config.source} was unreachable for "
                f"more than {self._config.slot_seconds:g} s: there may be more sessions than "
                f"{Options.max_sessions.flag} allows"
            )
        return True

    def _on_failure(self, error: RedisError) -> None:
        if (
            self._config.clock() - self._renewed_at >= self._config.slot_seconds
            and not self._is_warned
        ):
            self._is_warned = True
            self._config.reporter.note(
                f"{Options.max_sessions.flag} is not enforced for now: for {self._config.slot_seconds:g} s "
                f"{self._store.describe(error)}"
            )


class RedisClaim(Claim):
    """A claim on slots of a Redis server, under a unique name."""

    def __init__(self, store: RedisStore, count: int, most: int, holder: str) -> None:
        super().__init__(count, most, holder)
        self._store = store
        self._name = secrets.token_hex(8)
        self._slots: list[RedisSlot] = []
        self._blocked_by = Blocker((), 0)
        self._is_unanswered = False

    @property
    def slots(self) -> Sequence[RedisSlot]:
        return self._slots

    def try_acquire(self) -> bool:
        """Take all requested slots or none; also returns False if the server has stopped responding.

        Raises ConfigError if it never responded, LeaseTimeoutError if an earlier claim's wait timed out.
        """
        if self._slots:
            return True
        urgency = "" if self.urgency == NOT_QUEUED else str(self.urgency)
        try:
            took, first, ahead, found, is_settled = self._store.look(
                self._name, self.count, self.most, self.holder, urgency
            )
        except RedisError as error:
            self._explain(error)
            return False
        self._is_unanswered = False
        if took:
            self._slots = [
                RedisSlot(self._store.renewer, self._name, number, self.holder)
                for number in found
            ]
            self._store.renewer.keep(self._slots)
            return True
        if not is_settled:
            found = [f"unknown, because {self._store.note_unsettled()}"]
        self.is_behind, self._blocked_by = first > 0, Blocker(found, ahead)
        return False

    def _explain(self, error: RedisError) -> None:
        reason = self._store.describe(error)
        if not self._store.has_answered:
            raise ConfigError(
                f"{Options.max_sessions.flag} cannot be enforced: {reason}"
            ) from None
        if self._store.is_given_up:
            raise LeaseTimeoutError(
                f"{Options.max_sessions.flag} cannot be enforced: {reason}, and an earlier test has "
                "waited for it until its timeout"
            ) from None
        self._is_unanswered = True
        self._blocked_by = Blocker((f"unknown, because {reason}",), 0)

    def blocked_by(self) -> Blocker:
        return self._blocked_by

    def leave(self) -> None:
        """Do nothing: taking the slots ended the queue place."""

    def withdraw(self) -> None:
        for slot in self._slots:
            self._store.renewer.release(slot)
        if self._is_unanswered:
            self._store.give_up()
        self._store.drop(self._name)
