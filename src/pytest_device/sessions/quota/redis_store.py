"""Slots for several machines, on a Redis server: they expire unless they are renewed.

A queue place expires, too, unless its claim keeps trying. A claim that cannot be served blocks until a script wakes it,
on the only connection that a waiting process needs. Nothing depends on that: it also looks once per period.

A slot that expired, for example because the server restarted, is renewed if no other process took it. So that none can,
a server that has started, or has lost its data, gives no slot until every process has renewed those it holds.
"""

import json
import os
import re
import secrets
import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from platform import node
from random import SystemRandom
from time import monotonic, sleep
from typing import Any, Final, NamedTuple, TypeVar, cast
from urllib.parse import unquote, urlsplit

import redis
from redis.backoff import NoBackoff
from redis.exceptions import (
    AskError,
    AuthenticationError,
    ClusterDownError,
    InvalidResponse,
    MasterDownError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    ResponseError,
    TryAgainError,
)
from redis.retry import Retry

from pytest_device.errors import ConfigError, LeaseTimeoutError
from pytest_device.options import Options
from pytest_device.redact import Redactor
from pytest_device.sessions.breaker import SLOTS, LocalBreaker, Permits
from pytest_device.sessions.quota.claim import NOT_QUEUED, Blocker, Claim
from pytest_device.sessions.quota.scripts import (
    DROP,
    KEYS,
    LOOK,
    RENEW,
    STAY,
    WAITED,
)
from pytest_device.sessions.reporter import Reporter

SLOT_SECONDS: Final = 30.0
"""Seconds for which a dead machine keeps its slots, and for which the server may be unreachable unnoticed."""
_RENEWALS_PER_SLOT: Final = 3
_RENEWALS_PER_TICKET: Final = 2.1
"""Fewer: a renewal that fails is repeated within a second, and what is lost is only a place in the queue. More than two,
so that the ticket before expires later than a claim looks, unless its process is dead."""
_REPLY_SECONDS: Final = 5.0
SETTLE_SECONDS: Final = SLOT_SECONDS / _RENEWALS_PER_SLOT + 2 * _REPLY_SECONDS
"""Seconds after the start of a server until every process has renewed its slots.

A renewal that failed just before is repeated after one period; until it fails, it waits for a connection and a reply.
"""
_MARGIN_SECONDS: Final = 0.5
"""The server lets a slot expire this much earlier, so that the next claim has it when its time is over."""
_JUMP_SECONDS: Final = 10.0
"""A server's clock that is ahead by more has been set: no reply takes that long. The scripts have the same limit."""
_RECONNECT_SECONDS: Final = (0.3, 1.0)
"""Range of pauses while the server does not respond. Random: thousands of processes reconnect to one that restarts."""
_UNBLOCKED_SECONDS: Final = 1.0
"""Pause of a claim whose account may not use BLPOP."""
_HIGHEST_LIMIT: Final = 10**10 - 1
"""Limits are sorted as texts of ten digits."""

_REFUSALS: Final[tuple[tuple[tuple[type[RedisError], ...], str, str], ...]] = (
    (
        (OutOfMemoryError,),
        "OOM command not allowed",
        "has no memory left: increase its maxmemory",
    ),
    (
        # The second is a kind of ClusterDownError.
        (ReadOnlyError, MasterDownError),
        "READONLY|MASTERDOWN",
        "is a read-only replica: use the address of its primary",
    ),
    (
        (AskError, ClusterDownError, TryAgainError),
        "CLUSTERDOWN|MOVED|TRYAGAIN",
        "is a node of a cluster that does not serve the keys of these slots: use the address of the node that does",
    ),
    (
        (AuthenticationError,),
        "NOAUTH|WRONGPASS",
        "does not accept the user and password: correct those of DEVICE_SLOTS_URL in the environment",
    ),
    (
        (InvalidResponse,),
        "NOPROTO",
        "does not speak RESP2, the protocol of Redis 5: use a server that does",
    ),
    (
        (NoPermissionError,),
        "no permissions|can't run this command",
        "does not allow this user the scripts of slots: allow it the commands that docs/limits.md lists",
    ),
    (
        (),
        "called from",
        "lacks a command of the scripts of slots: use Redis 5 or newer",
    ),
    (
        (),
        "[Uu]nknown command",
        "does not run Lua scripts: use a server that does",
    ),
    (
        (ResponseError,),
        "^ERR ",
        "returned an error",
    ),
)
"""What a server refuses: the error, or a pattern of its text within the error of a script, and what it means."""

Reply = TypeVar("Reply")

# Not seeded: workers with equal seeds would reconnect in step.
_pause: Final = SystemRandom().uniform


@contextmanager
def _checked_replies() -> Generator[None]:
    """Raise RedisError also for what the client's parser of replies raises: for a length that is no number, for example."""
    try:
        yield
    except (ValueError, RecursionError) as error:
        if isinstance(error, RedisError):
            raise
        raise InvalidResponse(f"invalid reply: {error}") from error


class Look(NamedTuple):
    """The reply to a look for slots; times are in milliseconds."""

    took: int
    numbers: Sequence[int]
    first: int
    """The first slot that the claim may use: those before are waited for by others."""
    is_first: int
    """Whether it is the first claim of its limit, or has no ticket."""
    settles: int
    """Until the server gives slots; 0 if that does not keep the claim waiting."""
    next_look: int
    """Until a slot or a claim expires that keeps it waiting."""
    now: int
    older: int
    """How many slots runs of an older version hold."""


class Renewal(NamedTuple):
    """The reply to a renewal: the numbers of slots that others have, and as in ``Look``."""

    lost: Sequence[int]
    now: int
    older: int


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


def _parse_waited(reply: Any) -> tuple[int, dict[int, str]]:
    """Return the number of claims before a claim, and the holder of each slot by its number."""
    ahead, pairs = reply
    holders = {
        int(number): text.partition(" ")[2]
        for number, text in zip(pairs[::2], pairs[1::2], strict=True)
    }

    return int(ahead), holders


class RedisStore:
    """The slots of a service on a Redis server, by its scripts. A forked child must create its own."""

    def __init__(self, config: RedisConfig) -> None:
        self.config = config
        self.renewer = SlotRenewer(self)
        self.has_answered = False
        self._waiting = config.permits.new(SLOTS)
        """Fails with a claim that is withdrawn while the server does not respond, so that the next ones don't wait for
        it."""
        self._is_given_up = False
        parts = urlsplit(config.url)
        password = unquote(parts.password) if parts.password else None
        self._redactor = Redactor([password] if password else [])
        self._client = redis.Redis(
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
            protocol=2,  # of every server; newer clients would ask for 3
            decode_responses=True,
            encoding_errors="replace",
        )
        self._look, self._stay, self._waited, self._renew, self._drop = map(
            self._client.register_script, (LOOK, STAY, WAITED, RENEW, DROP)
        )
        # The keys of another format need another number.
        tag = f"{{pytest-device:{config.key}}}"
        self._keys = [*(f"{tag}:2:{name}" for name in KEYS), f"{tag}:slots"]
        self._replied_at: tuple[int, float] | None = None
        """The server's clock at its last reply, in milliseconds, and this machine's."""
        self._noted = set[str]()

    def claim(self, count: int, limit: int, holder: str) -> "RedisClaim":
        return RedisClaim(
            self, count, limit, f"{holder} (process {os.getpid()} on {node()})"
        )

    def look(
        self, claim: str, count: int, limit: int, words: str, urgency: str
    ) -> Look:
        """Ask for slots. Raises RedisError."""
        expected = self._expected_time()
        look = self._run(
            self._look,
            lambda reply: Look(*reply),
            claim,
            count,
            min(limit, _HIGHEST_LIMIT),
            words,
            urgency,
            self._slot_milliseconds,
            self._settle_milliseconds,
            expected,
        )
        self._note_reply(expected, look.now, look.older)

        return look

    def stay(self, claim: str) -> float | None:
        """Renew the ticket of a claim that is not the first one. Raises RedisError.

        Return the seconds until the ticket before it expires; None if the claim must look.
        """
        milliseconds = self._run(self._stay, int, claim, self._slot_milliseconds)
        return milliseconds / 1000 if milliseconds >= 0 else None

    def renew(self, slots: Iterable["RedisSlot"]) -> Sequence[int]:
        """Return the numbers of lost slots. Raises RedisError."""
        expected = self._expected_time()
        renewed = [
            {"number": slot.number, "claim": slot.claim, "words": slot.words}
            for slot in slots
        ]
        renewal = self._run(
            self._renew,
            lambda reply: Renewal(*reply),
            self._slot_milliseconds,
            self._settle_milliseconds,
            expected,
            json.dumps(renewed),
        )
        self._note_reply(expected, renewal.now, renewal.older)

        return renewal.lost

    def drop(self, claim: str, number: int | None = None) -> None:
        """Release a claim's slots, or one of them; without a response they expire by themselves."""
        try:
            self._run(
                self._drop, lambda _reply: None, claim, "" if number is None else number
            )
        except RedisError:
            return

    def wait(self, claim: str, seconds: float) -> bool:
        """Block for so many seconds; return whether a script has woken the claim before. Raises RedisError."""
        # Redis 5 has whole seconds only.
        if (whole := int(seconds)) < 1:
            sleep(seconds)
            return False

        try:
            return self._pop(f"{self._keys[KEYS.index('wake')]}:{claim}", whole)
        except ResponseError:
            # The account may not block.
            sleep(min(seconds, _UNBLOCKED_SECONDS))
            return True

    def _pop(self, name: str, seconds: int) -> bool:
        """Pop from a list that may be empty for so many seconds.

        With ``client.blpop``, the timeout of replies would have to be as long for all commands.
        """
        pool: Any = self._client.connection_pool
        try:
            connection = pool.get_connection()
        except TypeError:  # before redis 5.3
            connection = pool.get_connection("BLPOP")

        try:
            connection.send_command("BLPOP", name, seconds)
            # Then the reply is late: reading it ends by the timeout of all replies.
            connection.can_read(timeout=seconds)
            with _checked_replies():
                return connection.read_response() is not None
        except BaseException:
            # Its reply may still come.
            connection.disconnect()
            raise
        finally:
            pool.release(connection)

    def waited(self, claim: str, limit: int) -> Blocker:
        """Return who holds the first ``limit`` slots, and how many claims are before this one. Raises RedisError."""
        ahead, holders = self._run(self._waited, _parse_waited, claim)
        return Blocker(
            [text for number, text in sorted(holders.items()) if number < limit], ahead
        )

    @property
    def _slot_milliseconds(self) -> int:
        return int((self.config.slot_seconds - _MARGIN_SECONDS) * 1000)

    @property
    def _settle_milliseconds(self) -> int:
        return int(self.config.settle_seconds * 1000)

    def _expected_time(self) -> int | str:
        """Return what the server's clock should show, in milliseconds; empty before its first reply."""
        if self._replied_at is None:
            return ""
        then, seconds = self._replied_at
        return then + int((self.config.clock() - seconds) * 1000)

    def _note_reply(self, expected: int | str, now: int, older: int) -> None:
        self._replied_at = (now, self.config.clock())
        source = self.config.source

        if isinstance(expected, int) and now - expected > _JUMP_SECONDS * 1000:
            self.note_once(
                "clock",
                f"the clock of the Redis server of {source} was set forward by {(now - expected) / 1000:.0f} s, or this "
                f"machine slept: all slots last for {self.config.settle_seconds:g} s, so that runs can renew theirs",
            )

        if older:
            self.note_once(
                "older",
                f"{older} sessions hold slots of {source} by an older version of pytest-device, which counts its own "
                f"only: there may be more sessions than {Options.max_sessions.flag} allows. Update it on all machines",
            )

    def note_once(self, key: str, text: str) -> None:
        """Add a line to the summary, unless it has one with the same key."""
        if key not in self._noted:
            self._noted.add(key)
            self.config.reporter.note(text)

    def _run(
        self,
        script: Callable[..., Any],
        parse: Callable[[Any], Reply],
        *arguments: str | int,
    ) -> Reply:
        """Run a script; raises RedisError, also if its reply cannot be parsed."""
        with _checked_replies():
            answer = script(keys=self._keys, args=arguments)

        try:
            reply = parse(answer)
        except (TypeError, ValueError) as error:
            raise ResponseError(f"{answer!r} is not a reply of its scripts") from error

        self.has_answered = True
        if self._is_given_up:
            self._is_given_up = False
            self._waiting.ready()

        return reply

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
        for types, pattern, meaning in _REFUSALS:
            if isinstance(error, types) or re.search(pattern, str(error)):
                return self._redactor.text(
                    f"the Redis server of {self.config.source} {meaning} ({error})"
                )

        return self._redactor.text(
            f"the Redis server of {self.config.source} does not respond ({error})"
        )

    def note_unsettled(self) -> str:
        """Return why the server gives no slots yet; noted once for the summary."""
        reason = (
            f"the Redis server of {self.config.source} is new, has restarted or has lost its data: for up to "
            f"{self.config.settle_seconds:g} s, runs renew the slots that they hold"
        )
        self.note_once("unsettled", f"a session waited because {reason}")

        return reason

    def eviction_policy(self) -> str | None:
        """Return the policy by which the server evicts keys; None if it evicts none, or doesn't show it.

        A server without a maximum of memory never evicts.
        """
        try:
            # Its stub has no type for the names of sections.
            with _checked_replies():
                memory: Any = cast("Any", self._client).info("memory")
        except RedisError:
            return None  # INFO is optional: slots work without it

        policy: str = memory.get("maxmemory_policy", "noeviction")
        return policy if memory.get("maxmemory") and policy != "noeviction" else None

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
    """A slot: allows one session, and expires unless it is renewed."""

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
        self._store = store
        self._config = store.config
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

        self._renewed_at = self._config.clock()
        self._is_warned = False

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

    def __init__(self, store: RedisStore, count: int, limit: int, holder: str) -> None:
        super().__init__(count, limit, holder)
        self._store = store
        self.name = secrets.token_hex(8)
        self._slots: list[RedisSlot] = []
        self._reason = ""
        """Why the server gave no slots at the last attempt, if others don't hold them."""
        self._pause_seconds = 0.0
        self._is_unanswered = False
        self._stays_as = NOT_QUEUED
        """The urgency of its ticket while it need not look: it was not the first claim, and has not been woken."""

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
            if self._stays():
                return False
            look = self._store.look(
                self.name, self.count, self.limit, self.holder, urgency
            )
        except RedisError as error:
            self._explain(error)
            return False

        self._is_unanswered = False

        if look.took:
            self._slots = [
                RedisSlot(self._store.renewer, self.name, number, self.holder)
                for number in look.numbers
            ]
            self._store.renewer.keep(self._slots)

            return True

        self.is_behind = look.first > 0
        self._stays_as = NOT_QUEUED if look.is_first else self.urgency
        self._reason = self._store.note_unsettled() if look.settles else ""
        self._pause_seconds = min(self._period, look.next_look / 1000)

        return False

    def _stays(self) -> bool:
        """Renew its ticket and return True, if that is all it has to do."""
        if self._stays_as == NOT_QUEUED or self._stays_as != self.urgency:
            return False

        seconds = self._store.stay(self.name)
        if seconds is None:
            return False

        self._is_unanswered = False
        self._pause_seconds = min(self._period, seconds)
        return True

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
        self._reason = reason
        self._stays_as = NOT_QUEUED
        self._pause_seconds = _pause(*_RECONNECT_SECONDS)

    @property
    def _period(self) -> float:
        return self._store.config.slot_seconds / _RENEWALS_PER_TICKET

    @property
    def pause_seconds(self) -> float:
        return self._pause_seconds

    def wait(self, seconds: float) -> None:
        """Block until it is woken, or so many seconds have passed."""
        try:
            if not self._is_unanswered:
                if self._store.wait(self.name, seconds):
                    self._stays_as = NOT_QUEUED
                return
        except RedisError:
            # The next look reports it.
            seconds = min(seconds, _pause(*_RECONNECT_SECONDS))

        sleep(seconds)

    def blocked_by(self) -> Blocker:
        if not self._reason:
            try:
                return self._store.waited(self.name, self.limit)
            except RedisError as error:
                self._explain(error)

        return Blocker((f"unknown, because {self._reason}",), 0)

    def leave(self) -> None:
        """Do nothing: taking the slots ended the queue place."""

    def withdraw(self) -> None:
        for slot in self._slots:
            self._store.renewer.release(slot)
        if self._is_unanswered:
            self._store.give_up()
        self._store.drop(self.name)
