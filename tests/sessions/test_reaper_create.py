"""The reaper's side of a create call, which may take as long as its session: units of the reaper, without its process.

The run's side is in ``test_late_create``.
"""

import socket
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from pytest_device.sessions.ledger import Entry, Ledger
from pytest_device.sessions.reaper import sender
from pytest_device.sessions.reaper.http import send
from pytest_device.sessions.reaper.messages import (
    Answered,
    Call,
    Create,
    Endpoint,
    NoReply,
    Reply,
    Report,
    Returned,
    Start,
    Stop,
)
from pytest_device.sessions.reaper.supervisor import Supervisor
from tests.fakes.local_service import BASE_URL
from tests.waiting import eventually

TOKEN: Final = "open-sesame-open"
ID: Final = "7d7a1f0e-0f4c-4f2e-9b0a-0c9d6a1f2b3d"
MINUTES: Final = 35
CREATED: Final = (
    b'{"data": {"id": "%s", "status": "new", "maxDurationMinutes": 30}}' % ID.encode()
)
ENTRY: Final = Entry(
    "0" * 32,
    "main",
    BASE_URL,
    "android appium",
    "a test",
    "2026-01-01T00:00:00+00:00",
    MINUTES,
)


@pytest.fixture
def reports() -> list[Report]:
    return []


@pytest.fixture
def supervisor(reports: list[Report], tmp_path: Path) -> Supervisor:
    start = Start(
        Endpoint(BASE_URL, TOKEN),
        str(tmp_path),
        (),
        leaves_tombstones=False,
        gone_seconds=60.0,
    )
    return Supervisor(start, reports.append)


def created_by(supervisor: Supervisor) -> Call:
    supervisor.handle(Create(ENTRY, "{}"))
    (call,) = supervisor.due_calls()
    return call


def test_a_create_call_may_last_as_long_as_its_session(supervisor: Supervisor) -> None:
    call = created_by(supervisor)

    assert (MINUTES - 1) * 60 < call.seconds <= MINUTES * 60


def test_the_run_neither_ends_the_call_nor_forgets_it(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    call = created_by(supervisor)

    supervisor.handle(Stop(ENTRY.intent))
    supervisor.on_run_gone()

    assert not supervisor.is_done
    assert supervisor.open_calls == [call.number]
    assert [entry.state for entry in Ledger(str(tmp_path)).read()[0]] == ["asked"]


def test_a_late_session_is_stopped_for_as_long_as_it_may_run(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    call = created_by(supervisor)
    supervisor.on_run_gone()

    supervisor.on_answer(Returned(call.number, Reply(200, CREATED)))

    (stop,) = supervisor.due_calls()
    assert stop.path.endswith(f"{ID}/stop")
    assert [
        (entry.state, entry.session_id) for entry in Ledger(str(tmp_path)).read()[0]
    ] == [("live", ID)]


def test_a_call_without_a_response_is_lost_at_the_sessions_limit(
    supervisor: Supervisor, reports: list[Report], tmp_path: Path
) -> None:
    answers: list[Returned] = []
    call = created_by(supervisor)._replace(seconds=0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        sender.send(endpoint_of(silent), call, answers.append)
        assert eventually(lambda: bool(answers))

    supervisor.on_answer(answers[0])

    (report,) = reports
    assert isinstance(report, Answered)
    assert isinstance(report.answer, NoReply)
    assert report.answer.sent
    assert [entry.state for entry in Ledger(str(tmp_path)).read()[0]] == ["lost"]


def endpoint_of(server: socket.socket) -> Endpoint:
    return Endpoint(f"http://127.0.0.1:{server.getsockname()[1]}", TOKEN)


@contextmanager
def answering(*parts: bytes) -> Generator[socket.socket]:
    """Provide a server that answers one call with these parts, and then keeps the connection open."""
    over = threading.Event()

    def serve() -> None:
        near, _ = server.accept()
        with near:
            near.recv(65536)
            for part in parts:
                near.sendall(part)
            over.wait(30)

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            over.set()
            thread.join(10)


def test_a_response_that_has_started_must_be_complete_soon() -> None:
    answers: list[Returned] = []
    half = (
        b'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{"data": {"id": "%s"'
        % ID.encode()
    )
    call = Call(1, "POST", "/v2/x", "{}", seconds=3600, reply_seconds=2)
    with answering(half) as server:
        sender.send(endpoint_of(server), call, answers.append)

        assert eventually(lambda: bool(answers))

    (answer,) = answers
    assert isinstance(answer.answer, NoReply)
    assert ID.encode() in answer.answer.body  # so that the session can be stopped


def test_an_interim_response_does_not_shorten_the_call() -> None:
    limits: list[float | None] = []
    final = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
    with answering(b"HTTP/1.1 102 Processing\r\n\r\n", final) as server:
        answer = send(
            endpoint_of(server),
            Call(1, "POST", "/v2/x", "{}"),
            bytearray(),
            limits.append,
        )

    assert answer == Reply(200, b"{}")
    assert limits == [60.0, None, 60.0]


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_the_system_probes_the_silent_connection_of_a_create_call() -> None:
    with answering() as server:
        port, call = (
            server.getsockname()[1],
            Call(1, "POST", "/v2/x", "{}", seconds=3600),
        )
        threading.Thread(
            target=send, args=(endpoint_of(server), call, bytearray()), daemon=True
        ).start()

        assert eventually(lambda: f"{port:04X}" in _probed_ports())


def _probed_ports() -> list[str]:
    """Return the remote ports of established connections whose keepalive timer is running."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return [
        row[2].partition(":")[2]
        for row in rows
        if row[3] == "01" and row[5].startswith("02:")
    ]
