"""The reaper as a process: what it survives, what it costs, that it keeps the token secret, how it ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from pytest_device.testing import FaultyService
from tests.sessions.reaper_clients import (
    created_ids,
    entries,
    owning_elsewhere,
    reaper_client,
    reapers,
    request_at,
    states,
)
from tests.waiting import eventually

pytestmark = [
    pytest.mark.every_python,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="ends processes as Unix does"),
]

BAR_KB = 15 * 1024


def the_reaper(mark: str) -> psutil.Process:
    assert eventually(lambda: len(reapers(mark)) == 1)
    return reapers(mark)[0]


def resident_kb(process: psutil.Process) -> int:
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0])


def kill_group(process: "subprocess.Popen[str]") -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def test_the_sessions_of_a_killed_process_group_are_stopped(
    service: FaultyService, tmp_path: Path
) -> None:
    with owning_elsewhere(service, tmp_path, sessions=3) as process:
        created = created_ids(process)

        kill_group(process)

        assert eventually(lambda: service.statuses() == ["stopped"] * 3)
    assert eventually(lambda: set(states(tmp_path)) == {"stopped"})
    assert {entry.session_id for entry in entries(tmp_path)} == set(created)


def test_a_session_whose_owner_was_killed_during_the_create_call_is_stopped(
    service: FaultyService, tmp_path: Path
) -> None:
    with owning_elsewhere(service, tmp_path, sessions=0) as process:
        created_ids(process)
        service.add_fault("create", "delay", seconds=3600)
        assert process.stdin is not None
        process.stdin.close()
        assert eventually(lambda: ("create", None) in service.requests())

        kill_group(process)

        service.remove_faults()
        assert eventually(lambda: service.statuses() == ["stopped"])


def test_a_failed_stop_is_retried_after_the_owner_is_gone(
    service: FaultyService, tmp_path: Path
) -> None:
    service.add_fault("stop", "lose-request")
    service.add_fault("stop", "reply", status=503, body="{}", skip=0)
    with owning_elsewhere(service, tmp_path) as process:
        created_ids(process)

        kill_group(process)

        assert eventually(lambda: service.statuses() == ["stopped"])


def test_a_forked_child_that_holds_the_pipe_does_not_hide_the_end_of_the_owner(
    service: FaultyService, tmp_path: Path
) -> None:
    with owning_elsewhere(service, tmp_path, fork=True) as process:
        created_ids(process)
        (child,) = psutil.Process(process.pid).children()

        process.kill()
        process.wait()

        assert eventually(lambda: service.statuses() == ["stopped"])
        assert child.is_running()
        child.kill()


def test_the_end_of_a_followed_process_counts_as_the_end_of_the_owner(
    service: FaultyService, tmp_path: Path
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE
    ) as controller:
        with reaper_client(service, tmp_path, follow=(controller.pid,)) as client:
            client.create(request_at(service))

            controller.kill()

            assert eventually(lambda: service.statuses() == ["stopped"])
        controller.wait()


def test_the_reaper_is_detached_from_the_runs_processes(
    service: FaultyService, tmp_path: Path, mark: str
) -> None:
    with reaper_client(service, tmp_path) as client:
        client.create(request_at(service))
        reaper = the_reaper(mark)

        assert reaper.ppid() != os.getpid()
        assert reaper.pid not in [
            child.pid for child in psutil.Process().children(recursive=True)
        ]
        assert os.getsid(reaper.pid) != os.getsid(0)
        assert os.getpgid(reaper.pid) != os.getpgid(0)
        assert reaper.cwd() == "/"


def test_the_reaper_does_not_expose_the_token(
    service: FaultyService, tmp_path: Path, mark: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEVICE_TOKEN", service.token)
    with reaper_client(service, tmp_path) as client:
        client.create(request_at(service))
        reaper = the_reaper(mark)
        everyone = [reaper, *reaper.children()]

        assert not any(
            service.token in text for one in everyone for text in one.cmdline()
        )
        assert not any(
            service.token in text for one in everyone for text in one.environ().values()
        )
        files = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert any(path.suffix == ".json" for path in files)
        assert not any(service.token.encode() in path.read_bytes() for path in files)


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_the_reaper_uses_little_memory(
    service: FaultyService, tmp_path: Path, mark: str
) -> None:
    with reaper_client(service, tmp_path) as client:
        idle = resident_kb(the_reaper(mark))
        client.create(request_at(service))

        assert idle < BAR_KB
        assert resident_kb(the_reaper(mark)) < BAR_KB


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_that_end_a_run_do_not_end_the_reaper(
    service: FaultyService, tmp_path: Path, mark: str, number: signal.Signals
) -> None:
    with reaper_client(service, tmp_path) as client:
        session = client.create(request_at(service))
        reaper = the_reaper(mark)

        reaper.send_signal(number)

        assert client.stop(session.id).status == "stopped"
        assert the_reaper(mark).pid == reaper.pid


def test_the_reaper_ends_with_an_owner_that_left_nothing(
    service: FaultyService, tmp_path: Path, mark: str
) -> None:
    with reaper_client(service, tmp_path) as client:
        the_reaper(mark)

        client.close(5)

        assert eventually(lambda: reapers(mark) == [])


def test_the_reaper_ends_when_all_sessions_of_a_killed_owner_are_stopped(
    service: FaultyService, tmp_path: Path, mark: str
) -> None:
    with owning_elsewhere(service, tmp_path) as process:
        created_ids(process)

        kill_group(process)

        assert eventually(lambda: reapers(mark) == [])
    assert service.statuses() == ["stopped"]
