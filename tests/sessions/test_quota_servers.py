"""Redis servers that cannot keep slots, or not reliably: each is named in one line, and none exceeds the limit in silence."""

import json
import socket
import threading
import time
from collections.abc import Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis

from pytest_device import ConfigError, LeaseTimeoutError
from tests.sessions.redis_server import RedisServer, free_port, redis_server
from tests.sessions.slots import Machine, let_expire, release, settle, slots_on
from tests.waiting import eventually


def client_of(server: RedisServer) -> Any:
    return redis.Redis(port=server.port, protocol=2, decode_responses=True)


@pytest.fixture
def server(tmp_path: Path) -> Generator[RedisServer]:
    with redis_server(tmp_path) as running:
        yield running


def refused(url: str) -> str:
    """Return the error of a run that begins with this server."""
    machine = Machine(url, "key")
    with pytest.raises(ConfigError, match="--device-max-sessions cannot be") as caught:
        machine.store.check()
    with pytest.raises(ConfigError) as of_worker:
        machine.slots().acquire(1)
    # Before the server's own text, which names a line of the script.
    said, said_to_worker = (
        str(it.value).partition(" (")[0] for it in (caught, of_worker)
    )
    assert said == said_to_worker
    return str(caught.value)


def fill_memory(client: Any) -> None:
    client.config_set("maxmemory", 1)


def test_a_read_only_replica_is_refused(tmp_path: Path, server: RedisServer) -> None:
    with redis_server(tmp_path, "--replicaof", f"127.0.0.1 {server.port}") as replica:
        assert "is a read-only replica: use the address of its primary" in refused(
            replica.url
        )


def test_a_server_without_memory_is_refused(server: RedisServer) -> None:
    with client_of(server) as client:
        fill_memory(client)

    assert "has no memory left: increase its maxmemory" in refused(server.url)


@pytest.mark.parametrize("command", ["EVALSHA", "SCRIPT"])
def test_a_server_without_scripts_is_refused(tmp_path: Path, command: str) -> None:
    with redis_server(tmp_path, "--rename-command", command, "") as server:
        assert "does not run Lua scripts" in refused(server.url)


def test_a_server_without_a_command_of_the_scripts_is_refused(tmp_path: Path) -> None:
    with redis_server(tmp_path, "--rename-command", "HINCRBY", "") as server:
        machine = Machine(server.url, "key")
        machine.store.check()  # changes nothing yet
        with pytest.raises(LeaseTimeoutError, match="lacks a command of the scripts"):
            machine.slots().acquire(1)


@pytest.mark.parametrize("denied", ["-evalsha", "-hset"])
def test_an_account_without_the_commands_is_refused(
    server: RedisServer, denied: str
) -> None:
    with client_of(server) as client:
        client.execute_command(
            "ACL",
            "SETUSER",
            "someone",
            "on",
            ">open-sesame",
            "~*",
            "&*",
            "+@all",
            denied,
        )
    url = server.url.replace("//", "//someone:open-sesame@")

    text = refused(url)

    assert "does not allow this user the scripts of slots" in text
    assert "sesame" not in text


def test_an_account_that_may_not_block_gets_slots_by_polling(
    server: RedisServer,
) -> None:
    with client_of(server) as client:
        client.execute_command(
            "ACL", "SETUSER", "someone", "on", ">secret", "~*", "+@all", "-blpop"
        )
    url = server.url.replace("//", "//someone:secret@")
    held = Machine(url, "key").slots().acquire(1)
    with a_waiting_claim(Machine(url, "key")) as slots:
        assert eventually(lambda: waiting_on(server) == 1)
        release(held)

        assert eventually(lambda: len(slots) == 1)


@pytest.mark.parametrize(
    "reply",
    [b"-NOPROTO this server speaks RESP3\r\n", b"_\r\n", b"%1\r\n+a\r\n,1.5\r\n"],
)
def test_a_server_that_speaks_resp3_only_is_refused(reply: bytes) -> None:
    with a_server_that_replies(reply) as url:
        assert "does not speak RESP2" in refused(url)


@pytest.mark.parametrize(
    "reply",
    [b":x\r\n", b"$x\r\n", b"*x\r\n", b"*1\r\n" * 3000 + b":1\r\n"],
    ids=["number", "length", "items", "levels"],
)
def test_a_malformed_reply_is_refused(reply: bytes) -> None:
    with a_server_that_replies(reply) as url:
        assert "does not speak RESP2" in refused(url)


@pytest.mark.parametrize(
    ("reply", "meaning"),
    [
        (b"-MASTERDOWN Link with MASTER is down", "is a read-only replica: use"),
        (b"-NOAUTH Authentication required.", "does not accept the user and pass"),
        (b"-WRONGPASS invalid username-password pair", "does not accept the user"),
        (b"-BUSY Redis is busy running a script.", "returned an error (BUSY"),
        (b"-MISCONF Redis is unable to persist", "returned an error (MISCONF"),
    ],
)
def test_an_error_of_the_server_is_not_a_missing_response(
    reply: bytes, meaning: str
) -> None:
    with a_server_that_replies(reply + b"\r\n") as url:
        assert meaning in refused(url)


def test_a_reply_that_no_script_gives_is_refused() -> None:
    with a_server_that_replies(b"+OK\r\n") as url:
        assert "'OK' is not a reply of its scripts" in refused(url)


def test_a_cluster_of_one_node_keeps_slots(tmp_path: Path) -> None:
    with cluster_node(tmp_path) as node:
        with client_of(node) as client:
            client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
            assert eventually(lambda: is_cluster_ready(client))
        held = Machine(node.url, "key").slots().acquire(1)
        with a_waiting_claim(Machine(node.url, "key")) as slots:
            assert eventually(lambda: waiting_on(node) == 1)
            release(held)

            assert eventually(lambda: len(slots) == 1)


def test_a_node_of_a_cluster_without_the_keys_is_refused(tmp_path: Path) -> None:
    with ExitStack() as stack:
        nodes = list[RedisServer]()
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            node = cluster_node(tmp_path / name)
            nodes.append(stack.enter_context(node))
        first, second = (stack.enter_context(client_of(node)) for node in nodes)
        first.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
        bus = int(first.config_get("cluster-port")["cluster-port"])
        second.execute_command("CLUSTER", "MEET", "127.0.0.1", nodes[0].port, bus)
        assert eventually(lambda: is_cluster_ready(second))

        text = refused(nodes[1].url)

    assert "is a node of a cluster that does not serve the keys of these slots" in text
    assert str(nodes[0].port) in text


def cluster_node(directory: Path) -> AbstractContextManager[RedisServer]:
    # By default the port of the cluster is 10,000 higher, which may be too high.
    options = ("--cluster-enabled", "yes", "--cluster-port", str(free_port()))
    return redis_server(directory, *options)


def is_cluster_ready(client: Any) -> bool:
    state = str(client.execute_command("CLUSTER", "INFO"))
    return "cluster_state:ok" in state.replace(
        "'cluster_state': 'ok'", "cluster_state:ok"
    )


def test_without_memory_slots_are_renewed_and_released_but_not_given(
    server: RedisServer,
) -> None:
    here = Machine(server.url, "key")
    held = here.slots(2).acquire(1)
    with client_of(server) as client:
        before = slots_on(client, "key")
        fill_memory(client)

        def is_renewed() -> bool:
            here.renew()
            return slots_on(client, "key")["0"] > before["0"]

        assert eventually(is_renewed)
        with pytest.raises(LeaseTimeoutError, match="has no memory left: increase"):
            here.slots(2).acquire(1)
        release(held)
        assert slots_on(client, "key") == {}
        client.config_set("maxmemory", 0)

    release(here.slots(2).acquire(2))


@pytest.mark.parametrize("name", ["ends", "taken", "holders", "server"])
def test_a_server_that_has_evicted_a_key_gives_no_slot_until_others_have_renewed_theirs(
    server: RedisServer, name: str
) -> None:
    here = Machine(server.url, "key")
    held = here.slots(2).acquire(1)
    with client_of(server) as client:
        assert client.delete(f"{{pytest-device:key}}:2:{name}") == 1
        there = Machine(server.url, "key", settle_seconds=3600)

        assert there.slots(2).try_acquire(1) is None
        here.renew()
        assert eventually(lambda: set(slots_on(client, "key")) == {"0"})
    assert there.slots(2).try_acquire(1) is None
    assert (held[0].is_held, here.warnings) == (True, [])
    release(held)


HOUR = 3600


def set_clock(client: Any, seconds: float, *machines: Machine) -> None:
    """Set the server's clock forward: what it stores is as much older then, and so are the machines' clocks."""
    let_expire(client, "key", seconds)
    for machine in machines:
        machine.clock.sleep(-seconds)


def test_a_clock_that_is_set_forward_gives_nobody_the_slot_of_a_running_session(
    server: RedisServer,
) -> None:
    here, there = (Machine(server.url, "key", settle_seconds=25) for _ in range(2))
    for machine in (here, there):
        machine.store.check()
    with client_of(server) as client:
        settle(client, "key")
        held = here.slots().acquire(1)
        set_clock(client, HOUR, here, there)

        assert there.slots().try_acquire(1) is None
        here.renew()
        remaining = slots_on(client, "key")["0"] - time.time() * 1000
    assert 15_000 < remaining <= 30_000
    (text,) = there.warnings
    assert text.startswith(
        "the clock of the Redis server of DEVICE_SLOTS_URL was set forward by 3600 s"
    )
    assert held[0].is_held
    release(held)


def test_a_clock_that_is_set_back_lets_no_slot_last_longer(server: RedisServer) -> None:
    here, there = Machine(server.url, "key"), Machine(server.url, "key")
    held = here.slots().acquire(1)
    with client_of(server) as client:
        set_clock(client, -HOUR)

        assert there.slots().try_acquire(1) is None
        assert slots_on(client, "key")["0"] - time.time() * 1000 <= 30_000
    release(held)


def test_slots_of_an_older_version_are_reported(server: RedisServer) -> None:
    here = Machine(server.url, "key")
    with client_of(server) as client:
        for number, seconds in ((0, 30), (1, -30)):
            slot = {"ends": (time.time() + seconds) * 1000, "claim": "a", "words": "b"}
            client.hset("{pytest-device:key}:slots", str(number), json.dumps(slot))

        held = here.slots(3).acquire(1)
        release(here.slots(3).acquire(1))
        old = client.hgetall("{pytest-device:key}:slots")

    (text,) = here.warnings
    assert text == (
        "1 sessions hold slots of DEVICE_SLOTS_URL by an older version of pytest-device, which counts its own only: "
        "there may be more sessions than --device-max-sessions allows. Update it on all machines"
    )
    assert set(old) == {"0", "1"}
    release(held)


def test_a_claim_is_woken_by_a_release(server: RedisServer) -> None:
    here = Machine(server.url, "key")
    release(
        here.slots().acquire(1)
    )  # so that the server knows the script that releases
    held = here.slots().acquire(1)
    with (
        client_of(server) as client,
        a_waiting_claim(Machine(server.url, "key")) as slots,
    ):
        # Not before it blocks: it would look at once.
        assert eventually(lambda: client.info("clients")["blocked_clients"] == 1)
        looks = client.info("commandstats")["cmdstat_evalsha"]["calls"]
        release(held)
        assert eventually(lambda: len(slots) == 1)
        more = client.info("commandstats")["cmdstat_evalsha"]["calls"] - looks

    assert more == 2  # the release, and the look that it caused


def test_a_waiting_process_needs_one_connection(server: RedisServer) -> None:
    held = Machine(server.url, "key").slots().acquire(1)
    with client_of(server) as client:
        before = client.info("clients")["connected_clients"]
        with a_waiting_claim(Machine(server.url, "key")) as slots:
            assert eventually(lambda: client.info("clients")["blocked_clients"] == 1)
            assert client.info("clients")["connected_clients"] == before + 1
            release(held)
            assert eventually(lambda: len(slots) == 1)


@contextmanager
def a_waiting_claim(machine: Machine) -> Generator[list[Any]]:
    """Wait for the only slot in another thread, in real time; provide what it got."""
    taken = list[Any]()
    thread = threading.Thread(target=lambda: taken.extend(machine.wait_for_slot()))
    thread.start()
    try:
        yield taken
    finally:
        thread.join(60)
        release(taken)


def waiting_on(server: RedisServer) -> int:
    with client_of(server) as client:
        return int(client.zcard("{pytest-device:key}:2:queue"))


@contextmanager
def a_server_that_replies(reply: bytes) -> Generator[str]:
    """Listen, and answer each command with the same reply."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection:
                    while connection.recv(65536):
                        connection.sendall(reply)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"redis://127.0.0.1:{listening.getsockname()[1]}"
