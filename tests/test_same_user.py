"""Which of our servers another user of the machine can use, over each way to reach a loopback port."""

import asyncio
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from pytest_device import same_user
from pytest_device.auth.provider import Client, IdentityProvider
from pytest_device.notifications.endpoint import PushEndpoint
from pytest_device.platforms import SYSTEM
from pytest_device.service.apps.site import serving
from pytest_device.spec import SESSIONS_PATH
from pytest_device.updates.service import DeviceUpdateService
from tests.fakes.local_service import TOKEN, data
from tests.other_user import WAYS, answers, only_as_root, request, send_and_close
from tests.service.process import ServiceProcess, config, running
from tests.waiting import eventually

REFUSED = "HTTP/1.1 403 "
ACCEPTED = "HTTP/1.1 200 "


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    with running(config(tmp_path_factory.mktemp("service"))) as service:
        yield service


def port_of(url: str) -> int:
    return httpx.URL(url).port or 0


def posted(path: str, port: int) -> str:
    """Return a request as one of the service's own pages sends it."""
    origin = f"Origin: http://127.0.0.1:{port}"
    return request(
        "POST", path, port, origin, "Content-Type: application/json", body="{}"
    )


def requests_of(session_id: str, port: int) -> list[str]:
    """Return a request for each door of the service."""
    read = (
        "/",
        "/page/style.css",
        "/openapi.json",
        "/testing/sessions",
        f"/sessions/{session_id}",
        f"/sessions/{session_id}/facts",
        f"/sessions/{session_id}/log",
        f"{SESSIONS_PATH}/{session_id}",
        f"/preview/{session_id}/key",
        f"/preview/{session_id}/key/screen",
        f"/controllers/{session_id}/key/health",
        f"/appium/{session_id}/key/status",
        f"/devices/{session_id}/key/apps",
    )
    written = (f"/preview/{session_id}/key/tap", f"/sessions/{session_id}/stop")
    return [
        *(
            request("GET", path, port, f"Authorization: Bearer {TOKEN}")
            for path in read
        ),
        *(posted(path, port) for path in written),
    ]


@only_as_root
def test_another_user_gets_no_answer_of_the_local_service(
    service: ServiceProcess,
) -> None:
    session_id, port = data(service.create())["id"], port_of(service.url)

    told = answers(port, requests_of(session_id, port))

    assert [answer for answer in told if not answer.startswith(REFUSED)] == []
    assert [
        answer
        for answer in told
        if same_user.REFUSAL not in answer or session_id in answer
    ] == []
    assert data(service.get(session_id))["status"] == "in-progress"


@only_as_root
def test_the_user_of_the_local_service_gets_an_answer_over_each_way(
    service: ServiceProcess,
) -> None:
    port = port_of(service.url)

    told = answers(port, [request("GET", "/", port)], user="root")

    assert [answer[: len(ACCEPTED)] for answer in told] == [ACCEPTED] * len(WAYS)


@only_as_root
def test_another_user_gets_no_answer_over_ipv6(tmp_path: Path) -> None:
    with running(config(tmp_path, host="::1")) as service:
        port = port_of(service.url)
        [refused] = answers(port, [request("GET", "/", port)], ["::1"])
        [accepted] = answers(port, [request("GET", "/", port)], ["::1"], user="root")

    assert refused.startswith(REFUSED)
    assert accepted.startswith(ACCEPTED)


def is_listed_as_closed(port: int) -> bool:
    """Return whether a client's end of a connection to this port is closed and acknowledged (FIN_WAIT2)."""
    rows = [
        row.split()
        for path in ("tcp", "tcp6")
        for row in Path("/proc/net", path).read_text().splitlines()
    ]
    return any(row[2].endswith(f":{port:04X}") and row[3] == "05" for row in rows)


@only_as_root
@pytest.mark.parametrize("way", WAYS)
def test_a_connection_that_was_closed_before_its_lookup_is_refused(
    service: ServiceProcess, way: str
) -> None:
    session_id, port = data(service.create())["id"], port_of(service.url)

    # It accepts the connection only after its end.
    os.kill(service.process.pid, signal.SIGSTOP)
    try:
        send_and_close(way, port, posted(f"/sessions/{session_id}/stop", port))
        # From then on, the kernel reports root as its user.
        assert eventually(lambda: is_listed_as_closed(port))
    finally:
        os.kill(service.process.pid, signal.SIGCONT)
    with httpx.Client(
        base_url=service.url, headers={"Authorization": f"Bearer {TOKEN}"}
    ) as accepted_after_it:
        state = data(accepted_after_it.get(f"{SESSIONS_PATH}/{session_id}"))["status"]

    assert state == "in-progress"


@only_as_root
def test_another_user_cannot_read_a_web_build(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("the build")

    async def told() -> tuple[list[str], list[str]]:
        async with serving(tmp_path) as url:
            port = port_of(url)
            asked = [request("GET", "/", port)]
            refused = await asyncio.to_thread(answers, port, asked)
            served = await asyncio.to_thread(answers, port, asked, user="root")
            return refused, served

    refused, served = asyncio.run(told())

    assert [
        answer
        for answer in refused
        if not answer.startswith(REFUSED) or "the build" in answer
    ] == []
    assert [answer for answer in served if "the build" not in answer] == []


def addresses_of_listeners(process: psutil.Process) -> set[str]:
    return {
        str(next(iter(connection.laddr)))
        for connection in psutil.net_connections("inet")
        if connection.pid == process.pid and connection.status == psutil.CONN_LISTEN
    }


def test_the_local_service_listens_on_this_machine_only(
    service: ServiceProcess,
) -> None:
    assert addresses_of_listeners(psutil.Process(service.process.pid)) == {"127.0.0.1"}


def test_services_of_tests_listen_on_this_machine_only() -> None:
    with (
        IdentityProvider(clients=[Client("app", ["my://r"])]),
        DeviceUpdateService(),
        PushEndpoint(),
    ):
        assert addresses_of_listeners(psutil.Process()) == {"127.0.0.1"}


@only_as_root
def test_services_that_apps_must_reach_answer_every_user() -> None:
    with (
        IdentityProvider(clients=[Client("app", ["my://r"])]) as provider,
        DeviceUpdateService() as updates,
        PushEndpoint() as endpoint,
    ):
        ports = [
            port_of(url)
            for url in (provider.local_url, updates.local_url, endpoint.base_url)
        ]
        told = [
            answer
            for port in ports
            for answer in answers(port, [request("GET", "/", port)])
        ]

    assert len(told) == 3 * len(WAYS)
    assert [
        answer
        for answer in told
        if answer.startswith(REFUSED) or not answer.startswith("HTTP/1.1 ")
    ] == []


@pytest.fixture(params=["over netlink", "in the lists"])
def lookup(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Let the system show the users of connections in one way only."""
    if request.param == "in the lists":
        monkeypatch.delattr(socket, "AF_NETLINK", raising=False)
    else:
        monkeypatch.setattr(Path, "read_bytes", no_file)
    same_user.shows_users.cache_clear()
    yield
    monkeypatch.undo()
    same_user.shows_users.cache_clear()


def no_file(path: Path) -> bytes:
    raise FileNotFoundError(path)


@pytest.mark.skipif(
    not same_user.shows_users(),
    reason="this system does not show the users of connections",
)
@pytest.mark.parametrize(
    ("host", "way"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("127.0.0.1", "::ffff:127.0.0.1"),
        ("::1", "::1"),
        ("::", "127.0.0.1"),
        ("::", "::ffff:127.0.0.1"),
    ],
)
@pytest.mark.usefixtures("lookup")
def test_the_user_of_a_connection_is_found(host: str, way: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server(
        (host, 0), family=family, dualstack_ipv6=host == "::"
    ) as listener:
        client = socket.create_connection((way, listener.getsockname()[1]))
        accepted, peer = listener.accept()
        here = accepted.getsockname()
        with accepted:
            with client:
                assert same_user.shows_users()
                assert SYSTEM.connection_user(peer, here) == os.geteuid()
                assert same_user.is_permitted(peer, here)

            assert SYSTEM.connection_user(peer, here) is None
            assert not same_user.is_permitted(peer, here)
            assert not same_user.is_permitted(None, here)


@pytest.mark.skipif(
    not same_user.shows_users(),
    reason="this system does not show the users of connections",
)
@pytest.mark.usefixtures("lookup")
def test_a_socket_that_listens_on_the_clients_port_is_not_taken_for_its_connection() -> (
    None
):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        assert SYSTEM.connection_user(listener.getsockname(), ("127.0.0.1", 1)) is None


def test_a_system_that_shows_no_users_permits_everyone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(socket, "AF_NETLINK", raising=False)
    monkeypatch.setattr(Path, "read_bytes", no_file)
    same_user.shows_users.cache_clear()
    try:
        assert not same_user.shows_users()
        assert same_user.is_permitted(("127.0.0.1", 1), ("127.0.0.1", 2))
    finally:
        same_user.shows_users.cache_clear()
