"""A process's sessions end, whatever happens to the calls, the reaper and the test."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import psutil
import pytest

from pytest_device import (
    ConfigError,
    DeviceClient,
    ForbiddenError,
    NotFoundError,
    StopDelayedError,
    TransportError,
    UnexpectedReplyError,
)
from pytest_device.events import Gone, StopFailed, Stopped, detail_of, session_id_of
from pytest_device.testing import FaultyService
from tests.fakes.clock import FakeClock
from tests.fakes.reporter import RecordingReporter
from tests.sessions.pool_harness import PoolHarness, requirement
from tests.sessions.reaper_clients import (
    RUN,
    either_way,
    entries,
    entry_of,
    reaper_client,
    reaper_client_at,
    reapers,
    request_at,
    states,
)
from tests.sessions.references import ref_of
from tests.waiting import eventually

pytestmark = [
    pytest.mark.every_python,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="ends processes as Unix does"),
]
NOT_FOUND = '{"errors": [{"code": "NOT_FOUND"}]}'


def next_reaper(mark: str, former: int = 0) -> int:
    """Wait for a reaper outside the previous one's process session; return its ID."""

    def found() -> list[int]:
        with suppress(ProcessLookupError):  # a sender that ended in this moment
            return [
                process.pid
                for process in reapers(mark)
                if os.getsid(process.pid) != former
            ]
        return []

    assert eventually(lambda: len(found()) == 1)
    return found()[0]


def kill_reaper(mark: str, former: int = 0) -> int:
    """Kill the reaper that follows a former one; return its session."""
    pid = next_reaper(mark, former)
    session = os.getsid(pid)
    os.kill(pid, signal.SIGKILL)
    return session


def has_replaced_reaper() -> bool:
    """Return whether this process does the work of a reaper itself."""
    return "pytest-device-sessions" in {thread.name for thread in threading.enumerate()}


@either_way
def test_a_session_is_in_the_ledger_from_its_creation_to_its_stop(
    service: FaultyService, tmp_path: Path, *, is_detached: bool
) -> None:
    with reaper_client(service, tmp_path, is_detached=is_detached) as client:
        session = client.create(request_at(service, "my test"))
        (entry,) = entries(tmp_path)
        assert (entry.session_id, entry.state, entry.name) == (
            str(session.id),
            "live",
            "my test",
        )
        assert (entry.service, entry.url, entry.minutes) == (
            service.url,
            session.url,
            15,
        )

        assert client.stop(session.id).status == "stopped"

        assert entries(tmp_path) == []
        assert service.statuses() == ["stopped"]
        assert client.close(5) == []


def test_a_session_is_in_the_ledger_before_its_create_call(
    service: FaultyService, tmp_path: Path
) -> None:
    service.add_fault("create", "delay", seconds=3600)
    with reaper_client(service, tmp_path) as client:
        creating = threading.Thread(target=client.create, args=(request_at(service),))
        creating.start()
        assert eventually(lambda: ("create", None) in service.requests())
        assert states(tmp_path) == ["asked"]
        service.remove_faults()
        creating.join(60)


@either_way
def test_closing_stops_the_remaining_sessions(
    service: FaultyService, tmp_path: Path, *, is_detached: bool
) -> None:
    with reaper_client(service, tmp_path, is_detached=is_detached) as client:
        session = client.create(request_at(service))

        events = client.close(60)

    assert [(type(event), session_id_of(event)) for event in events] == [
        (Stopped, str(session.id))
    ]
    assert service.statuses() == ["stopped"]
    assert not (tmp_path / "runs" / RUN).exists()


def test_fifty_sessions_are_stopped_concurrently(
    service: FaultyService, tmp_path: Path
) -> None:
    with reaper_client(service, tmp_path) as client:
        for _ in range(50):
            client.create(request_at(service))
        service.add_fault("stop", "delay", seconds=3600, times=None)
        closing = threading.Thread(target=client.close, args=(60,))

        closing.start()

        assert eventually(lambda: service.requests().count(("stop", None)) == 50)
        service.remove_faults()
        closing.join(60)
    assert service.statuses() == ["stopped"] * 50


@either_way
def test_an_interrupted_create_leaves_nothing_running(
    service: FaultyService, tmp_path: Path, *, is_detached: bool
) -> None:
    service.add_fault("create", "delay", seconds=3600)

    def interrupt() -> None:
        eventually(lambda: ("create", None) in service.requests())
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    interrupting = threading.Thread(target=interrupt)
    with reaper_client(service, tmp_path, is_detached=is_detached) as client:
        interrupting.start()
        with pytest.raises(KeyboardInterrupt) as interrupted:
            client.create(request_at(service))

        assert not client.leaves_unknown(interrupted.value)
        service.remove_faults()
        assert eventually(lambda: service.statuses() == ["stopped"])
        assert [type(event) for event in client.close(60)] == [Stopped]
    interrupting.join(60)


@either_way
def test_a_lost_create_response_stays_in_the_ledger_and_is_reported(
    service: FaultyService, tmp_path: Path, *, is_detached: bool
) -> None:
    service.add_fault("create", "lose-answer")
    with reaper_client(service, tmp_path, is_detached=is_detached) as client:
        with pytest.raises(TransportError) as lost:
            client.create(request_at(service))

        assert lost.value.sent
        assert client.leaves_unknown(lost.value)
        assert states(tmp_path) == ["lost"]


@either_way
def test_a_404_from_a_gateway_does_not_prove_that_a_session_stopped(
    service: FaultyService, tmp_path: Path, *, is_detached: bool
) -> None:
    with reaper_client(service, tmp_path, is_detached=is_detached) as client:
        session = client.create(request_at(service))
        service.add_fault("stop", "reply", status=404, body="<html>no such page</html>")

        assert client.stop(session.id).status == "stopped"

    assert service.statuses() == ["stopped"]
    assert [operation for operation, _ in service.requests()] == [
        "create",
        "stop",
        "get",
        "stop",
    ]


def test_a_create_call_that_a_killed_reaper_never_received_is_not_reported_as_lost(
    service: FaultyService, tmp_path: Path, mark: str
) -> None:
    for _ in range(8):  # the call has to come before the end of the reaper is noticed
        with reaper_client(service, tmp_path) as client:
            client.stop(client.create(request_at(service)).id)
            kill_reaper(mark)
            with suppress(TransportError):
                client.stop(client.create(request_at(service)).id)

            assert eventually(lambda: set(service.statuses()) == {"stopped"})


@either_way
def test_a_create_that_was_never_sent_leaves_no_entry(
    service: FaultyService, tmp_path: Path, *, is_detached: bool
) -> None:
    service.add_fault("create", "reply", status=403, body="{}")
    with reaper_client(service, tmp_path, is_detached=is_detached) as client:
        with pytest.raises(ForbiddenError) as refused:
            client.create(request_at(service))

        assert not client.leaves_unknown(refused.value)
        assert entries(tmp_path) == []


@either_way
def test_a_session_with_a_damaged_create_response_is_stopped(
    service: FaultyService, tmp_path: Path, *, is_detached: bool
) -> None:
    service.add_fault("create", "change", fields={"status": 5})
    with reaper_client(service, tmp_path, is_detached=is_detached) as client:
        with pytest.raises(UnexpectedReplyError) as broken:
            client.create(request_at(service))

        assert broken.value.session_id
        assert client.stop(broken.value.session_id).status == "stopped"


def test_a_slow_stop_continues_during_the_next_test(
    service: FaultyService, tmp_path: Path
) -> None:
    service.add_fault("stop", "reply", status=503, body="{}", times=None)
    with reaper_client(service, tmp_path, stop_seconds=3) as client:
        session = client.create(request_at(service))

        with pytest.raises(StopDelayedError, match="503"):
            client.stop(session.id)

        service.remove_faults()
        assert eventually(lambda: service.statuses() == ["stopped"])
        assert [type(event) for event in client.close(60)] == [Stopped]


@either_way
@pytest.mark.parametrize("status", [401, 409])
def test_a_refused_stop_delays_no_test_and_is_retried(
    service: FaultyService, tmp_path: Path, status: int, *, is_detached: bool
) -> None:
    service.add_fault("stop", "reply", status=status, body="{}", times=None)
    with reaper_client(
        service, tmp_path, is_detached=is_detached, stop_seconds=3600
    ) as client:
        session = client.create(request_at(service))

        # Not the patience of a test's end, which lasts longer than the test.
        with pytest.raises(StopDelayedError, match=f"status {status}"):
            client.stop(session.id)

        service.remove_faults()
        assert [type(event) for event in client.close(60)] == [Stopped]
    assert service.statuses() == ["stopped"]
    assert entries(tmp_path) == []


@either_way
@pytest.mark.parametrize("status", [204, 404, 500])
def test_a_session_is_looked_up_before_its_stop_counts_as_unconfirmed(
    service: FaultyService, tmp_path: Path, status: int, *, is_detached: bool
) -> None:
    service.add_fault("stop", "reply", status=status, carried_out=True, times=None)
    with reaper_client(service, tmp_path, is_detached=is_detached) as client:
        session = client.create(request_at(service))

        assert client.stop(session.id).status == "stopped"

        assert [operation for operation, _ in service.requests()] == [
            "create",
            "stop",
            "get",
        ]
        assert entries(tmp_path) == []


@either_way
@pytest.mark.parametrize(
    ("gone_seconds", "close_seconds", "expected"),
    [(0.2, 60, [Gone]), (60.0, 2, [StopFailed, "live"])],
)
def test_a_known_session_is_gone_after_a_minute_of_404(
    service: FaultyService,
    tmp_path: Path,
    gone_seconds: float,
    close_seconds: float,
    expected: list[object],
    *,
    is_detached: bool,
) -> None:
    client = reaper_client_at(
        service, tmp_path, is_detached=is_detached, gone_seconds=gone_seconds
    )
    client.get(client.create(request_at(service)).id)
    for operation in ("stop", "get"):
        service.add_fault(operation, "reply", status=404, body=NOT_FOUND, times=None)

    (event,) = client.close(close_seconds)

    assert [type(event), *states(tmp_path)] == expected


@either_way
@pytest.mark.parametrize(
    ("status", "body"), [(404, "<html>no such page</html>"), (404, "{}")]
)
def test_only_the_services_own_404_makes_a_session_gone(
    service: FaultyService, tmp_path: Path, status: int, body: str, *, is_detached: bool
) -> None:
    with reaper_client(
        service, tmp_path, is_detached=is_detached, gone_seconds=0
    ) as client:
        client.get(client.create(request_at(service)).id)
        service.add_fault("stop", "reply", status=status, body=body)
        service.add_fault("get", "reply", status=status, body=body)

        assert [type(event) for event in client.close(60)] == [Stopped]
    assert service.statuses() == ["stopped"]


@either_way
def test_a_session_that_no_poll_has_seen_is_never_gone(
    service: FaultyService, tmp_path: Path, *, is_detached: bool
) -> None:
    service.add_fault(
        "create", "change", fields={"id": "9a9a9a9a-0f4c-4f2e-9b0a-0c9d6a1f2b3c"}
    )
    with reaper_client(
        service, tmp_path, is_detached=is_detached, gone_seconds=0
    ) as client:
        client.create(request_at(service))

        (event,) = client.close(5)

    assert isinstance(event, StopFailed)
    assert "returned 404 for a session" in event.reason


@either_way
def test_a_stop_of_an_unknown_id_raises_the_services_error(
    service: FaultyService, tmp_path: Path, *, is_detached: bool
) -> None:
    with reaper_client(service, tmp_path, is_detached=is_detached) as client:
        with pytest.raises(NotFoundError):
            client.stop("9a9a9a9a-0f4c-4f2e-9b0a-0c9d6a1f2b3c")

        assert client.close(5) == []


def test_a_session_that_cannot_be_stopped_in_time_is_reported_with_its_possible_cost(
    service: FaultyService, tmp_path: Path
) -> None:
    service.add_fault("stop", "reply", status=500, body="{}", times=None)
    client = reaper_client_at(service, tmp_path, is_detached=False)
    session = client.create(request_at(service))

    (event,) = client.close(3)

    assert (type(event), session_id_of(event), ref_of(event).url) == (
        StopFailed,
        str(session.id),
        session.url,
    )
    assert "500" in detail_of(event)
    assert ref_of(event).minutes == 15
    service.remove_faults()
    # The thread goes on for as long as this process.
    assert eventually(lambda: service.statuses() == ["stopped"])


@either_way
def test_a_session_that_cannot_be_stopped_within_its_limit_is_given_up(
    service: FaultyService, tmp_path: Path, *, is_detached: bool
) -> None:
    service.add_fault("stop", "reply", status=500, body="{}", times=None)
    with (
        reaper_client(service, tmp_path, is_detached=is_detached) as client,
        DeviceClient(service.url, service.token) as other,
    ):
        session = other.create(request_at(service))
        client.register(entry_of(str(session.id), service, minutes=0))

        (event,) = client.close(30)

    assert isinstance(event, StopFailed)
    assert service.requests().count(("stop", 500)) == 1


@either_way
def test_a_kept_session_keeps_running_and_is_recorded_as_kept(
    service: FaultyService, tmp_path: Path, *, is_detached: bool
) -> None:
    with reaper_client(service, tmp_path, is_detached=is_detached) as client:
        session = client.create(request_at(service))

        client.keep(session.id)

        assert client.close(5) == []
    assert [(entry.session_id, entry.state) for entry in entries(tmp_path)] == [
        (str(session.id), "kept")
    ]
    assert ("stop", 200) not in service.requests()


def test_a_killed_reaper_is_replaced_by_one_that_stops_its_sessions(
    service: FaultyService, tmp_path: Path, mark: str
) -> None:
    recorder = RecordingReporter()
    with reaper_client(service, tmp_path, reporter=recorder) as client:
        session = client.create(request_at(service))
        next_reaper(mark, kill_reaper(mark))

        assert [(type(event), session_id_of(event)) for event in client.close(60)] == [
            (Stopped, str(session.id))
        ]

    assert service.statuses() == ["stopped"]
    assert (recorder.notes, recorder.warnings) == ([], [])
    assert entries(tmp_path) == []


@pytest.mark.skipif(not hasattr(signal, "SIGPIPE"), reason="no such signal")
def test_a_killed_reaper_does_not_end_a_run_that_restored_the_action_of_sigpipe(
    service: FaultyService, tmp_path: Path, mark: str
) -> None:
    script = f"""
import ctypes, os, pathlib, signal, sys
from tests.sessions.reaper_clients import Served, reaper_client_at, request_at

served = Served({service.url!r}, os.environ["DEVICE_TOKEN"], {service.app_id!r})
client = reaper_client_at(served, pathlib.Path({str(tmp_path)!r}))
session = client.create(request_at(served))
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
sys.setswitchinterval(60)
print(flush=True)
# Holds the interpreter's lock, so that no other thread notices the end of the reaper.
ctypes.PyDLL(None).getchar()
client.stop(session.id)
client.close(10)
"""
    with subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=Path(__file__).parents[2],
        env=os.environ | {"DEVICE_TOKEN": service.token},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as run:
        assert run.stdout is not None
        run.stdout.readline()
        reaper = psutil.Process(next_reaper(mark))
        reaper.kill()
        assert eventually(lambda: not reaper.is_running())
        run.communicate("\n", timeout=60)

    assert run.returncode == 0
    assert service.statuses() == ["stopped"]


def test_a_reaper_killed_twice_is_not_replaced_again_and_that_is_reported(
    service: FaultyService, tmp_path: Path, mark: str
) -> None:
    recorder = RecordingReporter()
    with reaper_client(service, tmp_path, reporter=recorder) as client:
        client.create(request_at(service))
        kill_reaper(mark, kill_reaper(mark))
        assert eventually(has_replaced_reaper)

        client.create(request_at(service))

        ((net, text),) = recorder.warnings
        assert [type(event) for event in client.close(60)] == [Stopped] * 2
    assert service.statuses() == ["stopped"] * 2
    assert net == "reaper"
    assert "they run until their limits" in text
    assert len(recorder.warnings) == 1


def test_without_a_required_reaper_no_session_is_created(
    service: FaultyService, tmp_path: Path, mark: str
) -> None:
    with reaper_client(
        service, tmp_path, requirement="--device-require-ledger"
    ) as client:
        client.create(request_at(service))
        kill_reaper(mark, kill_reaper(mark))
        assert eventually(has_replaced_reaper)

        with pytest.raises(
            ConfigError,
            match="No session was requested, because --device-require-ledger is set",
        ):
            client.create(request_at(service))

    assert service.statuses() == ["stopped"]


def test_a_reaper_killed_during_a_create_call_leaves_its_result_unknown(
    service: FaultyService, tmp_path: Path, mark: str
) -> None:
    service.add_fault("create", "delay", seconds=3600)

    def kill() -> None:
        eventually(lambda: ("create", None) in service.requests())
        for process in reapers(mark):
            for sender in process.children():
                sender.kill()
            with suppress(ProcessLookupError):
                process.kill()

    killing = threading.Thread(target=kill)
    with reaper_client(service, tmp_path) as client:
        killing.start()
        with pytest.raises(TransportError) as lost:
            client.create(request_at(service))
        killing.join(60)

        assert client.leaves_unknown(lost.value)


def test_a_create_call_that_is_not_sent_because_the_run_ends_is_not_retried(
    service: FaultyService, tmp_path: Path
) -> None:
    with reaper_client(service, tmp_path) as client:
        clock = FakeClock()
        harness = PoolHarness(client, clock)
        need = requirement(app_id=service.app_id)
        harness.use(need, again=False)
        client.on_termination()
        began = clock()

        with pytest.raises(TransportError, match="the run is ending"):
            harness.use(need, again=False)

        assert clock() == began


def test_a_process_that_outlives_the_run_it_follows_creates_no_session_and_does_not_wait(
    service: FaultyService, tmp_path: Path, mark: str
) -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as run:
        client = reaper_client_at(service, tmp_path, follow=(run.pid,))
        client.create(request_at(service))
    assert eventually(lambda: not reapers(mark))

    with pytest.raises(TransportError, match="the run is ending") as refused:
        client.create(request_at(service))

    client.close(10)
    assert not refused.value.sent
    assert service.statuses() == ["stopped"]


def test_no_process_is_started_if_the_reaper_is_disabled(
    service: FaultyService, tmp_path: Path, mark: str
) -> None:
    with reaper_client(service, tmp_path, is_detached=False) as client:
        session = client.create(request_at(service))

        assert reapers(mark) == []
        assert client.stop(session.id).status == "stopped"


def test_an_unwritable_ledger_is_reported_once_and_prevents_no_stop(
    service: FaultyService, tmp_path: Path
) -> None:
    recorder = RecordingReporter()
    with reaper_client(service, tmp_path / "state", reporter=recorder) as client:
        created = [client.create(request_at(service)) for _ in range(2)]
        shutil.rmtree(tmp_path / "state")
        (tmp_path / "state").touch()

        for session in created:
            client.stop(session.id)

    assert service.statuses() == ["stopped"] * 2
    assert {text.partition(" (")[0] for _, text in recorder.warnings} == {
        "the ledger cannot be written"
    }


def test_without_a_writable_ledger_a_session_is_created_with_a_warning(
    service: FaultyService, tmp_path: Path
) -> None:
    recorder = RecordingReporter()
    with reaper_client(service, tmp_path / "state", reporter=recorder) as client:
        shutil.rmtree(tmp_path / "state")
        (tmp_path / "state").touch()
        client.create(request_at(service))
        assert {net for net, _ in recorder.warnings} == {"ledger"}

    assert service.statuses() == ["stopped"]


def test_without_a_required_ledger_no_session_is_created(
    service: FaultyService, tmp_path: Path
) -> None:
    with reaper_client(
        service, tmp_path / "state", requirement="--device-require-ledger"
    ) as client:
        shutil.rmtree(tmp_path / "state")
        (tmp_path / "state").touch()

        with pytest.raises(
            ConfigError,
            match="No session was requested, because --device-require-ledger is set",
        ):
            client.create(request_at(service))

    assert service.requests() == []


FREEZES: Final = """
import datetime, random, secrets, uuid
frozen = datetime.datetime(2001, 1, 1, tzinfo=datetime.UTC)

class Frozen(datetime.datetime):
    @classmethod
    def now(cls, tz=None): return frozen

datetime.datetime = Frozen
uuid.uuid4 = lambda: uuid.UUID(int=1)
secrets.token_hex = lambda size=16: "0" * 2 * size
secrets.token_bytes = lambda size=16: bytes(size)
random.seed(1)

import json, sys
from pathlib import Path
from tests.sessions.reaper_clients import Served, reaper_client_at, request_at

served = Served(**json.loads(sys.stdin.readline()))
clients = [reaper_client_at(served, Path(sys.argv[1])) for _ in range(2)]
for client in [*clients, *clients]:
    client.create(request_at(served))
print("created", flush=True)
sys.stdin.read()
"""


def test_entries_are_distinct_and_dated_in_a_suite_that_freezes_time_and_randomness(
    service: FaultyService, tmp_path: Path
) -> None:
    command = [sys.executable, "-c", FREEZES, str(tmp_path)]
    pipes: dict[str, Any] = {
        "stdin": subprocess.PIPE,
        "stdout": subprocess.PIPE,
        "text": True,
    }
    with subprocess.Popen(command, cwd=Path(__file__).parents[2], **pipes) as process:
        where = {"url": service.url, "token": service.token, "app_id": service.app_id}
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(where) + "\n")
        process.stdin.flush()
        assert process.stdout.readline() == "created\n"
        found = entries(tmp_path)
        process.kill()

    assert {entry.session_id for entry in found} == {
        session["id"] for session in service.sessions()
    }
    assert len(found) == 4
    assert all(datetime.fromisoformat(entry.asked_at).year > 2001 for entry in found)
    assert eventually(lambda: service.statuses() == ["stopped"] * 4)
