"""Claims on slots of a Redis server, compared with a model that looks at all of them at each step."""

import sys
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

import pytest
import redis
from hypothesis import given
from hypothesis import strategies as st

from pytest_device.sessions.quota.redis_store import (
    RedisClaim,
    RedisConfig,
    RedisStore,
)
from pytest_device.sessions.reporter import SilentReporter
from tests.sessions.redis_server import RedisServer, redis_server

TAG = "{pytest-device:key}:2"


@dataclass(eq=False)
class Waiting:
    """A claim as the model sees it."""

    claim: RedisClaim
    order: tuple[int, int] | None = None
    """Its urgency and number in the queue."""


@dataclass
class Model:
    """The rules: all or none, in order of urgency and arrival, from the slots that no earlier claim may use."""

    queue: list[Waiting] = field(default_factory=list[Waiting])
    taken: dict[int, Waiting] = field(default_factory=dict[int, Waiting])
    number: int = 0

    def enter(self, claim: Waiting, urgency: int) -> None:
        if claim.order is None or urgency < claim.order[0]:
            self.leave(claim)
            self.number += 1
            claim.order = (urgency, self.number)
            self.queue.append(claim)

    def leave(self, claim: Waiting) -> None:
        if claim in self.queue:
            self.queue.remove(claim)

    def free_for(self, claim: Waiting) -> list[int]:
        """Return the slots that it gets now, empty if it must wait."""
        before = [
            other.claim.limit
            for other in self.queue
            if claim.order is None or (other.order or (0, 0)) < claim.order
        ]
        usable = range(max(before, default=0), claim.claim.limit)
        free = [number for number in usable if number not in self.taken]
        return free[: claim.claim.count] if len(free) >= claim.claim.count else []

    def look(self, claim: Waiting) -> list[int]:
        granted = self.free_for(claim)
        if granted:
            self.leave(claim)
            self.taken |= dict.fromkeys(granted, claim)
        return granted

    def end(self, claim: Waiting) -> None:
        self.leave(claim)
        self.taken = {
            number: holder for number, holder in self.taken.items() if holder != claim
        }


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[RedisServer]:
    with redis_server(tmp_path_factory.mktemp("redis")) as running:
        yield running


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@given(st.data())
def test_claims_are_served_as_the_rules_say(
    server: RedisServer, data: st.DataObject
) -> None:
    config = RedisConfig(
        server.url,
        "DEVICE_SLOTS_URL",
        "key",
        SilentReporter(),
        settle_seconds=0,
        sleep=end_thread,
    )
    store, model, claims = RedisStore(config), Model(), list[Waiting]()
    limits = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=3, unique=True))
    client: Any = redis.Redis(port=server.port, protocol=2, decode_responses=True)
    client.flushall()
    try:
        for _ in range(data.draw(st.integers(5, 40))):
            act = data.draw(st.sampled_from(["new", "look", "look", "end", "die"]))
            if act == "new" or not claims:
                most = data.draw(st.sampled_from(limits))
                count = data.draw(st.integers(1, most))
                claims.append(Waiting(store.claim(count, most, "a run")))
                look(client, model, claims[-1])
                queue(model, claims[-1], urgent=data.draw(st.booleans()))
                continue
            claim = data.draw(st.sampled_from(claims))
            match act:
                case "look":
                    queue(model, claim, urgent=data.draw(st.booleans()))
                    look(client, model, claim)
                case "end":
                    claim.claim.withdraw()
                    model.end(claim)
                    claims.remove(claim)
                case _:
                    kill(client, claim.claim)
                    model.end(claim)
                    claims.remove(claim)
                    store.renew(())  # as any other process does
            check(client, model)
    finally:
        for claim in claims:
            claim.claim.withdraw()
        client.close()


def end_thread(_seconds: float) -> None:
    """End the thread that renews slots: those of killed processes must not be renewed."""
    sys.exit()


def queue(model: Model, claim: Waiting, *, urgent: bool) -> None:
    """Let a claim without slots join the queue, which is a look if its place is a new one."""
    if claim.claim.slots:
        return
    before = claim.order
    model.enter(claim, 0 if urgent else 1)
    if claim.order != before:
        granted = model.look(claim)
        claim.claim.queue(urgent=urgent)
        assert numbers_of(claim.claim) == granted


def look(client: Any, model: Model, claim: Waiting) -> None:
    if claim.claim.slots:
        return
    if client.llen(f"{TAG}:wake:{claim.claim.name}"):
        claim.claim.wait(1)  # as it does before each look
    granted = model.look(claim)
    assert claim.claim.try_acquire() == bool(granted)
    assert numbers_of(claim.claim) == granted


def numbers_of(claim: RedisClaim) -> list[int]:
    return [slot.number for slot in claim.slots]


def kill(client: Any, claim: RedisClaim) -> None:
    """Let what its process has on the server expire."""
    name = claim.name
    client.zadd(f"{TAG}:waiting", {name: 1}, xx=True)
    for number in numbers_of(claim):
        client.zadd(f"{TAG}:ends", {str(number): 1}, xx=True)


def check(client: Any, model: Model) -> None:
    """Check what the server has, and that it has woken each claim that can be served."""
    assert set(client.zrange(f"{TAG}:taken", 0, -1)) == set(map(str, model.taken))
    assert client.zcard(f"{TAG}:queue") == len(model.queue)
    for claim in model.queue:
        name = claim.claim.name
        can_be_served = bool(model.free_for(claim))
        assert can_be_served <= bool(client.llen(f"{TAG}:wake:{name}"))
