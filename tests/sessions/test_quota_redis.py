"""Slots on a Redis server: renewed, lost and reclaimed, and the reports when the server is away."""

import os
import threading
from collections.abc import Callable, Generator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import redis
import trustme

from pytest_device import ConfigError, LeaseTimeoutError
from tests.sessions.redis_server import RedisServer, redis_server
from tests.sessions.slots import (
    Machine,
    another_process,
    has_taken,
    leases_on,
    release,
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
def client(running_server: RedisServer) -> Generator[Any]:
    with client_of(running_server) as client:
        yield client


def client_of(server: RedisServer) -> Any:
    return redis.Redis(port=server.port, decode_responses=True)


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
        match=rf"in use: 1 by run b gw1 \(process {os.getpid()} on .+\)\.",
    ):
        machine().slots().acquire(1)
    release(held)


def test_only_slots_that_are_held_are_renewed(
    machine: Callable[[], Machine], client: Any, tmp_path: Path
) -> None:
    here = machine()
    (released, kept) = here.slots(3).acquire(2)
    withdrawn = here.store.claim(1, 3, "run a")
    assert withdrawn.try_acquire(skips_queue=False)
    assert len(leases_on(client, tmp_path.name)) == 3

    released.release()
    released.release()
    withdrawn.withdraw()
    (before,) = leases_on(client, tmp_path.name).values()

    assert renew_until(
        here, lambda: max(leases_on(client, tmp_path.name).values()) > before
    )
    assert (released.is_held, kept.is_held) == (False, True)
    assert len(leases_on(client, tmp_path.name)) == 1
    release([kept])
    assert leases_on(client, tmp_path.name) == {}


def test_a_server_that_lost_its_data_gives_no_slot_until_others_have_renewed_theirs(
    own_server: RedisServer,
) -> None:
    here = Machine(own_server.url, "key")
    held = here.slots().acquire(1)
    there = Machine(own_server.url, "key", settle_seconds=3600)
    with client_of(own_server) as client:
        client.flushall()

        with pytest.raises(
            LeaseTimeoutError, match=r"unknown, because .* has lost its"
        ):
            there.slots().acquire(1)
        assert renew_until(here, lambda: len(leases_on(client, "key")) == 1)
        client.set("{pytest-device:key}:started", 0)

    with pytest.raises(LeaseTimeoutError, match="in use: 1 by run a"):
        there.slots().acquire(1)
    release(held)
    release(there.wait_for_slot())


@pytest.mark.parametrize("is_first", [True, False])
def test_a_waiting_claim_is_woken(
    machine: Callable[[], Machine], *, is_first: bool
) -> None:
    """The first by a slot that is released, another one by the first that leaves."""
    held = machine().slots().acquire(1)
    first, second = (machine().store.claim(1, 1, "run b") for _ in range(2))
    assert [claim.try_acquire(skips_queue=False) for claim in (first, second)] == [
        False
    ] * 2
    waiting = first if is_first else second
    thread = threading.Thread(target=waiting.wait, args=(30,))
    thread.start()

    release(held)
    first.leave()

    thread.join(20)
    assert not thread.is_alive()


def test_without_memory_slots_are_renewed_and_released_but_not_given(
    own_server: RedisServer,
) -> None:
    here = Machine(own_server.url, "key")
    held = here.slots(2).acquire(1)
    with client_of(own_server) as client:
        (before,) = leases_on(client, "key").values()
        client.config_set("maxmemory", 1)

        assert renew_until(
            here, lambda: max(leases_on(client, "key").values()) > before
        )
        with pytest.raises(LeaseTimeoutError, match=r"gives no slots \(.*memory"):
            here.slots(2).acquire(1)
        release(held)
        assert leases_on(client, "key") == {}


def test_a_server_that_stays_away_is_reported_once_and_slots_are_taken_up_again(
    own_server: RedisServer,
) -> None:
    here = Machine(own_server.url, "key")
    held = here.slots().acquire(1)
    own_server.stop()

    assert renew_until(here, lambda: here.warnings != [])
    own_server.start()
    with client_of(own_server) as client:
        assert renew_until(here, lambda: len(leases_on(client, "key")) == 1)

    (text,) = here.warnings
    assert text.startswith(
        "--device-max-sessions is not enforced for now: for 30 s the Redis server of DEVICE_SLOTS_URL does not respond"
    )
    release(held)


@pytest.mark.parametrize(
    "options",
    [
        ("--rename-command", "EVALSHA", ""),
        ("--replicaof", "127.0.0.1 1"),
        ("--maxmemory", "1"),
    ],
)
def test_a_server_that_cannot_keep_slots_is_a_configuration_error(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    with redis_server(tmp_path, *options) as server:
        machine = Machine(server.url, "key")
        with pytest.raises(ConfigError, match="--device-max-sessions cannot be") as it:
            machine.store.check()
        with pytest.raises(ConfigError, match="the Redis server of DEVICE_SLOTS_URL"):
            machine.slots().acquire(1)

    assert "gives no slots" in str(it.value)


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


def test_a_server_that_is_away_for_as_long_as_a_slot_lasts_ends_the_wait(
    own_server: RedisServer,
) -> None:
    here = Machine(own_server.url, "key", slot_seconds=0.5)
    release(here.slots().acquire(1))
    own_server.stop()

    with pytest.raises(
        LeaseTimeoutError, match=r"cannot be enforced: for 0\.5 s .* does not respond"
    ):
        here.slots(timeout_seconds=10_000_000).acquire(1)


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
