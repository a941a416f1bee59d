"""Slots on a Redis server: renewed, lost and reclaimed, and the reports when the server is away."""

import os
import re
import time
from collections.abc import Callable, Generator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import redis
import trustme

from pytest_device import ConfigError, LeaseTimeoutError
from tests.fakes.reporter import RecordingReporter
from tests.sessions.redis_server import RedisServer, redis_server
from tests.sessions.slots import (
    Machine,
    another_process,
    has_taken,
    release,
    settle,
    slots_on,
    workers,
)
from tests.sessions.tls_relay import tls_relay
from tests.waiting import eventually


@pytest.fixture(scope="module")
def running_server(tmp_path_factory: pytest.TempPathFactory) -> Generator[RedisServer]:
    with redis_server(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def own_server(tmp_path: Path) -> Generator[RedisServer]:
    """A server that the test can stop."""
    with redis_server(tmp_path) as server:
        yield server


@pytest.fixture
def machine(running_server: RedisServer, tmp_path: Path) -> Callable[[], Machine]:
    return lambda: Machine(running_server.url, tmp_path.name)


@pytest.fixture
def held_slots(
    running_server: RedisServer, tmp_path: Path
) -> Generator[Callable[[], dict[str, float]]]:
    """Return which slots there are on the server."""
    with redis.Redis(port=running_server.port, decode_responses=True) as client:
        yield lambda: slots_on(client, tmp_path.name)


def renew_until(here: Machine, condition: Callable[[], bool]) -> bool:
    """Renew until something has come of it that the milliseconds of a slot's end can show."""

    def holds_after_a_renewal() -> bool:
        here.renew()
        return condition()

    return eventually(holds_after_a_renewal)


def test_the_holder_is_named_with_its_machine(machine: Callable[[], Machine]) -> None:
    held = machine().slots(holder="run b gw1").acquire(1)

    with pytest.raises(
        LeaseTimeoutError,
        match=rf"in use: 1 by run b gw1 \(process {os.getpid()} on .+\); position in .*: 1",
    ):
        machine().slots().acquire(1)
    release(held)


def test_a_released_slot_is_removed_from_the_server(
    machine: Callable[[], Machine], held_slots: Callable[[], dict[str, float]]
) -> None:
    (first, second) = machine().slots(2).acquire(2)
    assert set(held_slots()) == {"0", "1"}

    first.release()
    first.release()
    assert (first.is_held, second.is_held, set(held_slots())) == (False, True, {"1"})

    second.release()
    assert held_slots() == {}


def test_a_slot_is_renewed_repeatedly(
    machine: Callable[[], Machine], held_slots: Callable[[], dict[str, float]]
) -> None:
    here = machine()
    held = here.slots(2).acquire(2)
    before = max(held_slots().values())

    assert renew_until(here, lambda: min(held_slots().values()) > before)
    release(held)


def test_a_slot_that_the_server_lost_is_reclaimed(
    machine: Callable[[], Machine],
    held_slots: Callable[[], dict[str, float]],
    running_server: RedisServer,
) -> None:
    here = machine()
    held = here.slots().acquire(1)
    with redis.Redis(port=running_server.port) as client:
        client.flushall()

    here.renew()

    assert eventually(lambda: set(held_slots()) == {"0"})
    assert here.warnings == []
    release(held)


def test_a_slot_that_went_to_another_process_is_reported_and_not_reclaimed(
    machine: Callable[[], Machine],
    held_slots: Callable[[], dict[str, float]],
    running_server: RedisServer,
) -> None:
    here, there = machine(), machine()
    (lost,) = here.slots().acquire(1)
    with redis.Redis(port=running_server.port) as client:
        client.flushall()
    taken = there.slots().acquire(1)

    here.renew()

    assert eventually(lambda: here.warnings != [])
    (text,) = here.warnings
    assert text == (
        "1 of this run's slots went to other runs while DEVICE_SLOTS_URL was unreachable for more than 30 s: "
        "there may be more sessions than --device-max-sessions allows"
    )
    assert not lost.is_held
    lost.release()
    assert set(held_slots()) == {"0"}
    release(taken)


@pytest.mark.parametrize(
    "has_snapshot", [False, True], ids=["empty", "with an old snapshot"]
)
def test_a_server_that_restarted_gives_no_slot_until_others_have_renewed_theirs(
    tmp_path: Path, *, has_snapshot: bool
) -> None:
    with redis_server(tmp_path) as server:
        here = Machine(server.url, "key")
        release(here.slots().acquire(1))
        if has_snapshot:
            with redis.Redis(port=server.port) as client:
                client.save()  # the next start reads it: it has the marker of this one
        held = here.slots().acquire(1)
        server.stop()
        server.start()

        # A process that has lost no connection, since it had none.
        there = Machine(server.url, "key", settle_seconds=3600)
        assert there.slots().try_acquire(1) is None
        here.renew()
        with redis.Redis(port=server.port, decode_responses=True) as client:
            assert eventually(lambda: set(slots_on(client, "key")) == {"0"})
            settle(client, "key")

        with pytest.raises(LeaseTimeoutError, match="in use: 1 by run a"):
            there.slots().acquire(1)
        assert (held[0].is_held, here.warnings) == (True, [])

        release(held)
        release(there.wait_for_slot())


def test_the_wait_begins_with_the_first_renewal(own_server: RedisServer) -> None:
    Machine(own_server.url, "key", settle_seconds=0).store.renew(())

    release(Machine(own_server.url, "key", settle_seconds=3600).wait_for_slot())


def test_a_slot_of_a_new_server_waits_and_says_why_once(
    own_server: RedisServer,
) -> None:
    here = Machine(own_server.url, "key", settle_seconds=3600)
    reason = (
        "the Redis server of DEVICE_SLOTS_URL is new, has restarted or has lost its data: for up to 3600 s, runs "
        "renew the slots that they hold"
    )

    for _ in range(2):
        with pytest.raises(
            LeaseTimeoutError,
            match=f"in use: 1 by unknown, because {re.escape(reason)}",
        ):
            here.slots().acquire(1)

    assert here.warnings == [f"a session waited because {reason}"]


def test_a_new_server_gives_slots_after_its_wait(own_server: RedisServer) -> None:
    began = time.monotonic()

    release(Machine(own_server.url, "key", settle_seconds=1).wait_for_slot())

    assert time.monotonic() - began > 0.9
    assert Machine(own_server.url, "key", settle_seconds=3600).slots().try_acquire(1)


def test_an_account_that_may_not_read_the_servers_run_still_gets_slots(
    tmp_path: Path,
) -> None:
    with redis_server(tmp_path, "--rename-command", "INFO", "") as server:
        release(Machine(server.url, "key").slots().acquire(1))


def test_an_unusable_response_costs_no_slot(machine: Callable[[], Machine]) -> None:
    here, other = machine(), machine().slots(3).acquire(1)
    first = here.store.look("a claim", 1, 3, "run a", "")
    release(other)

    second = here.store.look("a claim", 1, 3, "run a", "")

    assert (first.took, first.numbers) == (second.took, second.numbers) == (1, [1])


def test_a_withdrawn_claim_is_not_renewed(
    machine: Callable[[], Machine], held_slots: Callable[[], dict[str, float]]
) -> None:
    here = machine()
    kept = here.slots(2).acquire(1)
    claim = here.store.claim(1, 2, "run a")
    assert claim.try_acquire()
    claim.withdraw()
    before = max(held_slots().values())
    assert renew_until(here, lambda: max(held_slots().values()) > before)
    assert set(held_slots()) == {"0"}
    release(kept)


def test_all_data_expires_a_day_after_the_last_run(
    machine: Callable[[], Machine], running_server: RedisServer, tmp_path: Path
) -> None:
    held = machine().slots().acquire(1)
    with pytest.raises(LeaseTimeoutError):
        machine().slots(timeout_seconds=1).acquire(1)

    with redis.Redis(port=running_server.port, decode_responses=True) as client:
        keys = [
            f"{{pytest-device:{tmp_path.name}}}:2:{name}"
            for name in ("ends", "taken", "holders", "grants")
        ]
        assert all(0 < client.ttl(key) <= 24 * 3600 for key in keys)
    release(held)


def test_each_attempt_renews_the_queue_place(
    machine: Callable[[], Machine], running_server: RedisServer, tmp_path: Path
) -> None:
    held, seen = machine().slots().acquire(1), list[float]()
    client: Any = redis.Redis(port=running_server.port, decode_responses=True)
    with client:

        def look(text: str) -> None:
            assert "waited" in text
            seen.extend(
                ends
                for _, ends in client.zrange(
                    f"{{pytest-device:{tmp_path.name}}}:2:waiting",
                    0,
                    -1,
                    withscores=True,
                )
            )

        reporter = RecordingReporter(on_progress=look)
        with pytest.raises(LeaseTimeoutError):
            machine().slots(timeout_seconds=70, reporter=reporter).acquire(1)

    assert len(seen) == 3
    assert seen[0] < seen[2]
    release(held)


def test_a_slot_released_with_its_queue_place_is_not_renewed(
    machine: Callable[[], Machine], held_slots: Callable[[], dict[str, float]]
) -> None:
    here, others = machine(), machine().slots(2).acquire(2)

    def free_one_meanwhile() -> bool:
        others.pop().release()
        return False

    (slot,) = here.slots(2).acquire(1, free_one_meanwhile)
    release(others)
    rest = here.slots(2).acquire(1)
    slot.release()
    before = max(held_slots().values())
    assert renew_until(here, lambda: max(held_slots().values()) > before)
    assert len(held_slots()) == 1
    release(rest)


def test_after_a_day_the_server_has_no_data_but_its_marker(
    machine: Callable[[], Machine], running_server: RedisServer, tmp_path: Path
) -> None:
    held = machine().slots().acquire(1)
    with pytest.raises(LeaseTimeoutError):
        machine().slots().acquire(1)

    with redis.Redis(port=running_server.port, decode_responses=True) as client:
        left: dict[str, Any] = {
            key: client.ttl(key) for key in client.keys(f"*{tmp_path.name}*")
        }

    marker = left.pop(f"{{pytest-device:{tmp_path.name}}}:2:server")
    assert 86_400 < marker <= 30 * 86_400
    assert len(left) == 4
    assert all(0 < seconds <= 86_400 for seconds in left.values())
    release(held)


def test_no_repr_contains_the_url() -> None:
    machine = Machine("redis://:open-sesame@localhost", "key")

    assert "sesame" not in repr(machine.config)
    assert "sesame" not in repr(machine.store)


def test_a_server_that_never_responds_is_a_configuration_error(tmp_path: Path) -> None:
    here = Machine("redis://user:open-sesame@127.0.0.1:1", tmp_path.name)

    with pytest.raises(
        ConfigError,
        match=r"--device-max-sessions cannot be enforced: .* of DEVICE_SLOTS_URL does not",
    ) as it:
        here.slots().acquire(1)

    assert "sesame" not in str(it.value)


def test_a_wrong_password_is_a_configuration_error_that_does_not_show_it(
    tmp_path: Path,
) -> None:
    with redis_server(tmp_path, "--requirepass", "open-sesame") as server:
        right, wrong = (
            server.url.replace("//", f"//:{password}@")
            for password in ("open-sesame", "open-barley")
        )
        release(Machine(right, "key").slots().acquire(1))

        with pytest.raises(ConfigError, match="DEVICE_SLOTS_URL") as caught:
            Machine(wrong, "key").slots().acquire(1)

    assert "open-" not in str(caught.value)


def test_a_server_that_goes_away_is_waited_for_and_then_reported(
    own_server: RedisServer,
) -> None:
    here = Machine(own_server.url, "key")
    release(here.slots().acquire(1))
    own_server.stop()

    with pytest.raises(
        LeaseTimeoutError,
        match=r"in use: 1 by unknown, because .* DEVICE_SLOTS_URL does not respond",
    ):
        here.slots().acquire(1)


def test_after_one_timeout_other_tests_do_not_wait_for_the_server(
    own_server: RedisServer,
) -> None:
    here = Machine(own_server.url, "key")
    release(here.slots().acquire(1))
    own_server.stop()
    with pytest.raises(LeaseTimeoutError, match=r"waited \d+ s"):
        here.slots().acquire(1)

    for _ in range(2):
        with pytest.raises(
            LeaseTimeoutError,
            match="an earlier test has waited for it until its timeout",
        ):
            here.slots(timeout_seconds=10_000).acquire(1)

    own_server.start()
    release(here.slots().acquire(1))


def test_after_one_timeout_other_processes_of_the_run_do_not_wait(
    own_server: RedisServer,
) -> None:
    first, second = workers(own_server.url, "key", 2)
    for worker in (first, second):
        release(worker.slots().acquire(1))
    own_server.stop()
    with pytest.raises(LeaseTimeoutError, match=r"waited \d+ s"):
        first.slots().acquire(1)

    with pytest.raises(
        LeaseTimeoutError, match="an earlier test has waited for it until its timeout"
    ):
        second.slots(timeout_seconds=10_000).acquire(1)

    own_server.start()
    for worker in (first, second):
        release(worker.slots().acquire(1))
    own_server.stop()
    with pytest.raises(LeaseTimeoutError, match=r"waited \d+ s"):
        second.slots().acquire(1)


def test_a_server_that_stays_away_is_reported_once(own_server: RedisServer) -> None:
    here = Machine(own_server.url, "key")
    held = here.slots().acquire(1)
    own_server.stop()
    for _ in range(3):
        here.clock.sleep(30)
        here.renew()

    assert eventually(lambda: here.warnings != [])
    assert here.warnings[0].startswith(
        "--device-max-sessions is not enforced for now: for 30 s the Redis server of DEVICE_SLOTS_URL does not respond"
    )
    own_server.start()
    with redis.Redis(port=own_server.port, decode_responses=True) as client:
        # Taken up again.
        assert renew_until(here, lambda: list(slots_on(client, "key")) == ["0"])
    assert len(here.warnings) == 1

    own_server.stop()

    def is_warned_later() -> bool:
        # Its thread may note an earlier renewal only after the clock was set.
        here.clock.sleep(30)
        here.renew()
        return len(here.warnings) > 1

    assert eventually(is_warned_later)
    assert len(here.warnings) == 2, here.warnings
    release(held)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks")
def test_a_forked_child_does_not_release_its_parents_slots(
    running_server: RedisServer, tmp_path: Path
) -> None:
    there = Machine(running_server.url, tmp_path.name)
    with another_process(running_server.url, 1, key=tmp_path.name, fork=True) as parent:
        assert has_taken(parent)

        assert there.slots().try_acquire(1) is None


@pytest.mark.parametrize("name", ["localhost", "elsewhere.example"])
def test_a_tls_server_needs_a_trusted_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    with (
        redis_server(tmp_path) as server,
        tls_relay(server.port, authority.issue_cert(name)) as port,
    ):
        url = f"rediss://localhost:{port}"
        with pytest.raises(ConfigError, match="certificate"):
            Machine(url, "key").slots().acquire(1)

        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
        with (
            nullcontext()
            if name == "localhost"
            else pytest.raises(ConfigError, match="mismatch")
        ):
            release(Machine(url, "key").slots().acquire(1))
