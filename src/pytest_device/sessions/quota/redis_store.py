"""Slots for several machines: leases in a sorted set on a Redis server, which expire by its clock unless renewed."""

import os
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from platform import node
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import redis
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as NoConnectionError
from redis.exceptions import RedisError
from redis.exceptions import TimeoutError as NoReplyError
from redis.retry import Retry

from pytest_device.errors import ConfigError, LeaseTimeoutError
from pytest_device.options import Options
from pytest_device.redact import Redactor
from pytest_device.sessions.reporter import Reporter

SLOT_SECONDS: Final = 30.0
"""Seconds for which a dead machine keeps its slots, and for which the server may be unreachable unnoticed."""
_RENEWALS_PER_SLOT: Final = 3
_REPLY_SECONDS: Final = 5.0
_WAIT_SECONDS: Final = 2.0
"""Longest pause between two attempts: a claim that is woken too early or not at all looks again."""
SETTLE_SECONDS: Final = SLOT_SECONDS / _RENEWALS_PER_SLOT + 2 * _REPLY_SECONDS
"""Seconds after which every process has renewed its slots on a server that is new or has lost its data."""

_TOO_FEW, _TAKEN, _SETTLES = 1, 2, 3
_UNSETTLED: Final = "the Redis server is new or has lost its data: for a while, runs renew the slots that they hold"
_BASE: Final = """
local leases, queue, freed, left, started = unpack(KEYS)
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function wake(list, lasts)
  redis.call('LTRIM', list, 1, 0)
  redis.call('RPUSH', list, 1)
  redis.call('PEXPIRE', list, lasts)
end
-- Return whether runs may not have renewed their slots yet; the first one to ask sets the time for that.
local function settles(milliseconds)
  local settled = redis.call('GET', started) or now + milliseconds
  redis.call('SET', started, settled, 'EX', 2592000)
  return tonumber(settled) > now
end
"""
_CLAIM: Final = (
    _BASE
    + """
-- Return 0 behind another claim, 1 if there are too few slots, 2 with all of them; 3 while runs that hold some may not
-- have renewed them yet, so that the server may not know them.
local claim, count, limit, holder = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local lasts, skips_queue = ARGV[5], ARGV[6] == '1'
if settles(ARGV[7]) then return 3 end
redis.call('ZREMRANGEBYSCORE', leases, '-inf', now)
if not skips_queue then
  local first = redis.call('GET', queue)
  if first and first ~= claim then return 0 end
  redis.call('SET', queue, claim, 'PX', lasts)
end
if redis.call('ZCARD', leases) + count > limit then return 1 end
for number = 1, count do
  redis.call('ZADD', leases, now + lasts, claim .. ':' .. number .. ' ' .. holder)
end
redis.call('PEXPIRE', leases, lasts)
return 2
"""
)
_RENEW: Final = (
    _BASE
    + """
-- A lease that was lost is taken again, since its session runs. The first write is one that needs no memory.
redis.call('PEXPIRE', leases, ARGV[1])
settles(ARGV[2])
for number = 3, #ARGV do redis.call('ZADD', leases, now + ARGV[1], ARGV[number]) end
redis.call('PEXPIRE', leases, ARGV[1])
"""
)
_DROP: Final = (
    _BASE
    + """
-- Release leases, and the queue's first place if the claim has it.
for number = 3, #ARGV do redis.call('ZREM', leases, ARGV[number]) end
if redis.call('GET', queue) == ARGV[2] then
  redis.call('DEL', queue)
  wake(left, ARGV[1])
end
if #ARGV > 2 then wake(freed, ARGV[1]) end
"""
)


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
    sleep: Callable[[float], None] = time.sleep


class RedisStore:
    """The slots of a service on a Redis server. A thread renews those of this process while it holds any."""

    def __init__(self, config: RedisConfig) -> None:
        self.config = config
        self.has_answered = False
        password = urlsplit(config.url).password
        self._redactor = Redactor([unquote(password)] if password else [])
        self._client: Any = redis.Redis.from_url(
            config.url,
            socket_timeout=config.reply_seconds,
            socket_connect_timeout=config.reply_seconds,
            retry=Retry(NoBackoff(), 0),
            decode_responses=True,
            encoding_errors="replace",
            # Not the default before redis 6.
            **(
                {"ssl_check_hostname": True} if config.url.startswith("rediss:") else {}
            ),
        )
        self._claim, self._renew, self._drop = map(
            self._client.register_script, (_CLAIM, _RENEW, _DROP)
        )
        tag = f"{{pytest-device:{config.key}}}"
        names = ("leases", "queue", "freed", "left", "started")
        self._keys = [f"{tag}:{name}" for name in names]
        self._lasts = int(config.slot_seconds * 1000)
        self._settles = int(config.settle_seconds * 1000)
        self._held: dict[RedisSlot, None] = {}
        self._guard = threading.Lock()
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()

    def claim(self, count: int, limit: int, holder: str) -> "RedisClaim":
        return RedisClaim(
            self, count, limit, f"{holder} (process {os.getpid()} on {node()})"
        )

    def take(
        self, claim: str, count: int, limit: int, holder: str, *, skips_queue: bool
    ) -> int:
        """Try to take slots; see the script. Raises RedisError."""
        arguments = (
            claim,
            count,
            limit,
            holder,
            self._lasts,
            int(skips_queue),
            self._settles,
        )
        state = int(self._claim(keys=self._keys, args=arguments))
        self.has_answered = True
        return state

    def keep(self, slots: Sequence["RedisSlot"]) -> None:
        """Renew slots from now on."""
        with self._guard:
            self._held.update(dict.fromkeys(slots))
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._renew_all, name="pytest-device slots", daemon=True
                )
                self._thread.start()

    def has(self, slot: "RedisSlot") -> bool:
        return slot in self._held and os.getpid() == self._pid

    def release(self, slot: "RedisSlot") -> None:
        """Release a slot of this process."""
        if self.has(slot):
            # Held while the server drops it: otherwise a renewal might take it again.
            with self._guard:
                self._held.pop(slot, None)
                self.drop("", slot.lease)

    def drop(self, claim: str, *leases: str) -> None:
        """Release leases, and a claim's place in the queue; without a response they expire by themselves."""
        try:
            self._drop(keys=self._keys, args=(self._lasts, claim, *leases))
        except RedisError:
            return

    def await_change(self, seconds: float, *, is_first: bool) -> None:
        """Block until a slot is free or, behind another claim, until that is served. Raises RedisError."""
        _leases, _queue, freed, left, _started = self._keys
        # Redis 5 has whole seconds only.
        self._client.blpop(freed if is_first else left, max(1, int(seconds)))

    def holders(self) -> Sequence[str]:
        """Return who holds each slot. Raises RedisError."""
        leases: list[str] = self._client.zrange(self._keys[0], 0, -1)
        return sorted(lease.partition(" ")[2] for lease in leases)

    def describe(self, error: RedisError) -> str:
        """Describe an error, without secrets."""
        source = self.config.source
        text = f"the Redis server of {source} gives no slots ({error})"
        if isinstance(error, NoConnectionError | NoReplyError):
            text = f"the Redis server of {source} does not respond ({error})"
        return self._redactor.text(text)

    def check(self) -> None:
        """Raise ConfigError if the server is unreachable or refuses scripts."""
        try:
            self.take("", 0, 1, "", skips_queue=True)
        except RedisError as error:
            raise ConfigError(
                f"{Options.max_sessions.flag} cannot be enforced: {self.describe(error)}"
            ) from None

    def _renew_all(self) -> None:
        failures = 0
        while True:
            self.config.sleep(self.config.slot_seconds / _RENEWALS_PER_SLOT)
            with self._guard:
                if not self._held:
                    self._thread = None
                    return

                leases = [slot.lease for slot in self._held]
                try:
                    self._renew(
                        keys=self._keys, args=(self._lasts, self._settles, *leases)
                    )
                except RedisError as error:
                    failures += 1
                    problem = self.describe(error)
                else:
                    failures = 0

            if failures == _RENEWALS_PER_SLOT:
                self.config.reporter.note(
                    f"{Options.max_sessions.flag} is not enforced for now: for {self.config.slot_seconds:g} s {problem}"
                )


@dataclass(frozen=True, slots=True, eq=False)
class RedisSlot:
    """A slot: allows one session, and expires unless it is renewed."""

    store: RedisStore
    lease: str

    @property
    def is_held(self) -> bool:
        return self.store.has(self)

    def release(self) -> None:
        self.store.release(self)


class RedisClaim:
    """A claim on slots of a Redis server, under a unique name."""

    pause_seconds = _WAIT_SECONDS

    def __init__(self, store: RedisStore, count: int, limit: int, holder: str) -> None:
        self.slots: Sequence[RedisSlot] = ()
        self.is_first = False
        self._store = store
        self._count = count
        self._limit = limit
        self._holder = holder
        self._name = secrets.token_hex(8)
        self._reason = ""
        """Why the server gave no slots at the last attempt, if others don't hold them."""
        self._silent_since: float | None = None

    def try_acquire(self, *, skips_queue: bool) -> bool:
        """Take all slots or none; also returns False if the server has stopped responding.

        Raises ConfigError if it never responded, LeaseTimeoutError if it has not done so for as long as a slot lasts.
        """
        try:
            state = self._store.take(
                self._name,
                self._count,
                self._limit,
                self._holder,
                skips_queue=skips_queue,
            )
        except RedisError as error:
            self._explain(self._store.describe(error))
            return False

        self._silent_since = None
        self._reason = _UNSETTLED if state == _SETTLES else ""
        self.is_first = state in {_TOO_FEW, _SETTLES}
        if state != _TAKEN:
            return False

        self.slots = [
            RedisSlot(self._store, f"{self._name}:{number} {self._holder}")
            for number in range(1, self._count + 1)
        ]
        self._store.keep(self.slots)

        return True

    def _explain(self, problem: str) -> None:
        refusal = f"{Options.max_sessions.flag} cannot be enforced: "
        if not self._store.has_answered:
            raise ConfigError(f"{refusal}{problem}") from None

        self._reason = problem
        if self._silent_since is None:
            self._silent_since = time.monotonic()
        longest = self._store.config.slot_seconds
        if time.monotonic() - self._silent_since >= longest:
            raise LeaseTimeoutError(f"{refusal}for {longest:g} s {problem}") from None

    def wait(self, seconds: float) -> None:
        """Block until the next attempt may succeed, or so many seconds have passed."""
        try:
            self._store.await_change(seconds, is_first=self.is_first)
        except RedisError:
            # The server is away, or the account may not block.
            time.sleep(min(seconds, 1.0))

    def holders(self) -> Sequence[str]:
        try:
            return (
                [f"unknown, because {self._reason}"]
                if self._reason
                else self._store.holders()
            )
        except RedisError as error:
            return [f"unknown, because {self._store.describe(error)}"]

    def leave(self) -> None:
        self._store.drop(self._name)

    def withdraw(self) -> None:
        for slot in self.slots:
            self._store.release(slot)
        leases = (f"{self._name}:{n} {self._holder}" for n in range(1, self._count + 1))
        self._store.drop(self._name, *leases)
