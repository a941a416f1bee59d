"""A create call stays open until its session would have ended by itself: a late response still names a session."""

import os
import re
import socket
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final
from uuid import UUID

import httpx
import pytest

from pytest_device import (
    CreateDelayedError,
    DeviceClient,
    SessionRequest,
    WaitPolicy,
    lease,
)
from pytest_device.events import CreateUnknown, Event, Note, Stopped, detail_of
from pytest_device.report.lines import line_of
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
from pytest_device.sessions.reaper_client import ReaperConfig
from pytest_device.sessions.states import Phase
from pytest_device.testing import FaultyService
from tests.fakes.http_server import scripted_server, unavailable
from tests.fakes.local_service import APP_ID, BASE_URL
from tests.fakes.network import FakeNetwork
from tests.fakes.reporter import RecordingReporter
from tests.sessions.reaper_clients import (
    DETACHED,
    IN_THE_RUN,
    RUN,
    Served,
    reaper_client,
    reaper_client_at,
    reapers,
    request_at,
)
from tests.waiting import Checkpoint, eventually

pytestmark = pytest.mark.skipif(
    not hasattr(os, "fork"), reason="ends processes as Unix does"
)

TOKEN: Final = "open-sesame-open"
ID: Final = "7d7a1f0e-0f4c-4f2e-9b0a-0c9d6a1f2b3d"
MINUTES: Final = 35
CREATED: Final = (
    b'{"data": {"id": "%s", "status": "new", "maxDurationMinutes": 30}}' % ID.encode()
)
REQUEST: Final = SessionRequest.from_arguments(
    app_id=APP_ID, platform="android", type="appium"
)
IMPATIENT: Final = replace(DETACHED, min_create_seconds=0.2)
GIVES_UP: Final = 0.2
either_way = pytest.mark.parametrize(
    "config",
    [IMPATIENT, replace(IN_THE_RUN, min_create_seconds=0.2)],
    ids=["with a reaper", "without"],
)


def states(state_dir: Path) -> list[str]:
    return [entry.state for entry in Ledger(str(state_dir / "runs" / RUN)).read()[0]]


# The reaper.


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


def entry() -> Entry:
    return Entry(
        "0" * 32,
        "main",
        BASE_URL,
        "android appium",
        "a test",
        "2026-01-01T00:00:00+00:00",
        MINUTES,
    )


def created_by(supervisor: Supervisor) -> Call:
    supervisor.handle(Create(entry(), "{}"))
    (call,) = supervisor.due_calls()
    return call


def test_a_create_call_may_last_as_long_as_its_session(supervisor: Supervisor) -> None:
    call = created_by(supervisor)

    assert (MINUTES - 1) * 60 < call.seconds <= MINUTES * 60


def test_the_run_neither_ends_the_call_nor_forgets_it(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    call = created_by(supervisor)

    supervisor.handle(Stop(entry().intent))
    supervisor.on_run_gone()

    assert not supervisor.is_done
    assert supervisor.open_calls == [call.number]
    assert [one.state for one in Ledger(str(tmp_path)).read()[0]] == [Phase.CREATING]


def test_a_late_session_is_stopped_for_as_long_as_it_may_run(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    call = created_by(supervisor)
    supervisor.on_run_gone()

    supervisor.on_answer(Returned(call.number, Reply(200, CREATED)))

    (stop,) = supervisor.due_calls()
    assert stop.path.endswith(f"{ID}/stop")
    assert [(one.state, one.session_id) for one in Ledger(str(tmp_path)).read()[0]] == [
        (Phase.LIVE, ID)
    ]


def test_a_call_without_a_response_is_lost_at_the_sessions_limit(
    supervisor: Supervisor, reports: list[Report], tmp_path: Path
) -> None:
    answers: list[Returned] = []
    call = created_by(supervisor)._replace(seconds=0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        sender.send(endpoint_of(silent), call, answers.append)
        assert eventually(lambda: bool(answers), 20)

    supervisor.on_answer(answers[0])

    (report,) = reports
    assert isinstance(report, Answered)
    assert isinstance(report.answer, NoReply)
    assert report.answer.sent
    assert [one.state for one in Ledger(str(tmp_path)).read()[0]] == [Phase.LOST]


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
    call = Call(1, "POST", "/v2/x", "{}", seconds=3600, reply_seconds=0.5)
    with answering(half) as server:
        sender.send(endpoint_of(server), call, answers.append)

        assert eventually(lambda: bool(answers), 20)

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

        assert eventually(lambda: f"{port:04X}" in _probed_ports(), 20)


def _probed_ports() -> list[str]:
    """Return the remote ports of established connections whose keepalive timer is running."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return [
        row[2].partition(":")[2]
        for row in rows
        if row[3] == "01" and row[5].startswith("02:")
    ]


# The run.


def kinds(events: list[Event]) -> list[type[Event]]:
    return [type(event) for event in events]


@either_way
def test_a_session_that_is_created_after_its_test_has_given_up_is_stopped_and_reported(
    service: FaultyService, tmp_path: Path, config: ReaperConfig
) -> None:
    service.add_fault("create", "delay", seconds=1)
    with reaper_client(service, tmp_path, config) as client:
        with pytest.raises(
            CreateDelayedError, match=r"no response within 0 s\. The call stays open"
        ) as delayed:
            client.create(request_at(service), timeout_seconds=GIVES_UP)

        assert not client.leaves_unknown(delayed.value)  # not yet
        events = client.close(20)

    assert service.statuses() == ["stopped"]
    assert kinds(events) == [Note, Stopped]
    assert re.fullmatch(
        r"the response to a create call arrived after \d+ s, when its test had given up: android appium named 'a test': "
        "stopped",
        detail_of(events[0]),
    )
    assert not (tmp_path / "runs" / RUN).exists()


def test_the_end_of_the_run_does_not_wait_for_a_response_that_its_reaper_awaits(
    service: FaultyService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{tmp_path}")
    service.add_fault("create", "delay", seconds=4)
    with reaper_client(
        service, tmp_path, replace(IMPATIENT, late_seconds=0.2)
    ) as client:
        with pytest.raises(CreateDelayedError):
            client.create(request_at(service), timeout_seconds=GIVES_UP)
        began = time.monotonic()

        (event,) = client.close(60)

        assert time.monotonic() - began < 3
        assert states(tmp_path) == [Phase.CREATING]
    assert isinstance(event, CreateUnknown)
    assert event.awaited_until
    assert event.session.minutes == 15
    assert line_of(event) == (
        "android appium: no response to the create call yet: a session named 'a test' may be running for up to 15 "
        f"minutes. Until {event.awaited_until}, the reaper waits for the response, and stops the session as soon as it "
        "has its ID"
    )
    assert eventually(lambda: service.statuses() == ["stopped"])
    # For the next run to report.
    assert eventually(lambda: states(tmp_path) == [Phase.STOPPED])
    assert eventually(lambda: not reapers(str(tmp_path)))


def test_without_a_reaper_the_end_of_the_run_waits_and_says_that_nobody_does_afterwards(
    service: FaultyService, tmp_path: Path
) -> None:
    service.add_fault("create", "delay", seconds=4)
    config = replace(IN_THE_RUN, min_create_seconds=0.2, late_seconds=0.2)
    client = reaper_client_at(service, tmp_path, config)
    with pytest.raises(CreateDelayedError):
        client.create(request_at(service), timeout_seconds=GIVES_UP)
    began = time.monotonic()

    (event,) = client.close(1)

    assert time.monotonic() - began >= 1
    assert isinstance(event, CreateUnknown)
    assert not event.awaited_until
    # As long as this process lives.
    assert eventually(lambda: service.statuses() == ["stopped"])


def test_a_create_call_that_is_refused_late_leaves_nothing(tmp_path: Path) -> None:
    checkpoint = Checkpoint()
    with scripted_server(unavailable(checkpoint, {"Retry-After": "5"})) as server:
        served = Served(server.url, TOKEN, str(UUID(int=1)))
        client = reaper_client_at(served, tmp_path, IMPATIENT)
        with pytest.raises(CreateDelayedError):
            client.create(request_at(served), timeout_seconds=GIVES_UP)
        checkpoint.may_go.set()

        events = client.close(20)

    assert kinds(events) == [Note]
    assert detail_of(events[0]).endswith("refused, no session was created")
    assert not (tmp_path / "runs" / RUN).exists()


def test_a_long_wait_for_the_response_is_shown(
    service: FaultyService, tmp_path: Path
) -> None:
    service.add_fault("create", "delay", seconds=1)
    recorder = RecordingReporter()
    with reaper_client(
        service, tmp_path, replace(DETACHED, progress_seconds=0.4), recorder
    ) as client:
        client.create(request_at(service))

    assert (
        recorder.lines[0] == "android appium: no response to the create call after 0 s"
    )


def test_a_direct_create_call_waits_as_long_as_its_test(
    client: DeviceClient, network: FakeNetwork
) -> None:
    silences: dict[str, float] = {}

    def noted(
        request: httpx.Request, carry_out: Callable[[], httpx.Response]
    ) -> httpx.Response:
        silences[request.method] = request.extensions["timeout"]["read"]
        return carry_out()

    network.faults = {"create": [noted], "get": [noted]}
    clock = network.clock

    with lease(
        client,
        REQUEST,
        policy=WaitPolicy(timeout_seconds=300),
        clock=clock,
        sleep=clock.sleep,
    ):
        pass

    assert silences == {"POST": 300, "GET": 30}
