"""The session limit across runs: on one machine, and on machines that share only a server."""

import re
import subprocess
import sys
from collections.abc import Generator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

import pytest

from pytest_device import DeviceClient
from pytest_device.sessions.quota import key_of
from pytest_device.sessions.quota.redis_store import RedisConfig, RedisStore
from pytest_device.sessions.reporter import SilentReporter
from pytest_device.testing import FaultyService
from tests.sessions.redis_server import RedisServer, redis_server
from tests.waiting import eventually

TESTS = """
import pytest

@pytest.mark.device(platform="android")
@pytest.mark.parametrize("number", range(2))
def test_one(device_session, number): pass
"""


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Generator[RedisServer]:
    with redis_server(
        tmp_path_factory.mktemp("redis"), "--requirepass", "open-sesame"
    ) as server:
        server.url = server.url.replace("//", "//:open-sesame@")
        yield server


@pytest.fixture
def settled(redis: RedisServer, service: FaultyService) -> RedisServer:
    """The server, which gives slots at once: a new one does so after 20 s."""
    config = RedisConfig(
        redis.url,
        "DEVICE_SLOTS_URL",
        key_of(service.url),
        SilentReporter(),
        settle_seconds=0,
    )
    RedisStore(config).check()
    return redis


@pytest.fixture
def limited(
    service: FaultyService, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> FaultyService:
    """The service, and a suite with a limit of one session."""
    pytester.makepyfile(TESTS)
    monkeypatch.setenv("DEVICE_MAX_SESSIONS", "1")
    return service


def run_side_by_side(pytester: pytest.Pytester, *state_dirs: Path) -> list[int]:
    """Run the suite once for each state directory, all at the same time; return their statuses."""
    command = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    with ExitStack() as runs:
        started = [
            runs.enter_context(
                subprocess.Popen(
                    [*command, f"--device-state-dir={one}"],
                    cwd=pytester.path,
                    stdout=subprocess.DEVNULL,
                )
            )
            for one in state_dirs
        ]
        return [run.wait(150) for run in started]


def were_one_after_the_other(service: FaultyService, count: int) -> bool:
    with DeviceClient(service.url, service.token) as client:
        sessions = [client.get(session["id"]) for session in service.sessions()]
    spans = sorted(
        (one.created_at, one.finished_at)
        for one in sessions
        if one.created_at and one.finished_at
    )
    return len(spans) == count and all(
        later >= end for (_, end), (later, _) in pairwise(spans)
    )


def test_runs_on_one_machine_share_the_limit(
    pytester: pytest.Pytester, limited: FaultyService, tmp_path: Path
) -> None:
    assert run_side_by_side(pytester, tmp_path / "state", tmp_path / "state") == [0, 0]

    assert were_one_after_the_other(limited, 4)


def test_runs_without_a_shared_disk_share_the_limit_through_a_server(
    pytester: pytest.Pytester,
    limited: FaultyService,
    settled: RedisServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DEVICE_SLOTS_URL", settled.url)

    assert run_side_by_side(pytester, tmp_path / "here", tmp_path / "there") == [0, 0]

    assert were_one_after_the_other(limited, 4)


HOLDS = """
import pathlib, time, pytest

@pytest.mark.device(platform="android")
def test_holds(device_session):
    pathlib.Path("held").touch()
    until = time.monotonic() + 60
    while not pathlib.Path("go").exists() and time.monotonic() < until:
        time.sleep(0.02)
"""


def test_a_worker_reports_immediately_what_it_waits_for(
    pytester: pytest.Pytester, limited: FaultyService, tmp_path: Path
) -> None:
    command = (
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        f"--device-state-dir={tmp_path / 'state'}",
    )
    holding, waiting = (
        pytester.makepyfile(**{name: text})
        for name, text in [("test_a", HOLDS), ("test_b", TESTS)]
    )
    with subprocess.Popen([*command, str(holding)], stdout=subprocess.DEVNULL) as first:
        assert eventually((pytester.path / "held").exists)
        with subprocess.Popen(
            [*command, "-n1", str(waiting)], stdout=subprocess.PIPE, text=True
        ) as second:
            assert second.stdout is not None
            lines = iter(second.stdout.readline, "")
            said = next(
                (
                    line
                    for line in lines
                    if re.search(r"device gw0 waited \d+ s for 1 of 1 sessions", line)
                ),
                "",
            )
            (pytester.path / "go").touch()
            rest = list(lines)

    assert "in use: 1 by " in said
    assert "2 passed" in rest[-1]
    assert any(
        line.startswith("devices: ") and line.endswith(" queued\n") for line in rest
    )
    assert (first.returncode, second.returncode) == (0, 0)
    assert were_one_after_the_other(limited, 3)


def test_the_servers_password_is_never_shown(
    pytester: pytest.Pytester,
    limited: FaultyService,
    settled: RedisServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DEVICE_SLOTS_URL", settled.url)
    pytester.makepyfile(
        """
        import os, pytest

        @pytest.mark.device(platform="android")
        def test_one(device_session):
            print(os.environ["DEVICE_SLOTS_URL"])
            assert device_session is None
        """
    )

    result = pytester.runpytest("-v", "--showlocals")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["device slots url: redis://[*][*][*]@127.0.0.1:* (DEVICE_SLOTS_URL)"]
    )
    assert "sesame" not in result.stdout.str() + result.stderr.str()
    assert limited.sessions() != []


@pytest.mark.parametrize("workers", ["-n0", "-n1"])
def test_an_unresponsive_server_is_a_configuration_error(
    pytester: pytest.Pytester, limited: FaultyService, workers: str
) -> None:
    result = pytester.runpytest(workers, "--device-slots-url=redis://localhost:1")

    reported = "*--device-max-sessions cannot be enforced: the Redis server of --device-slots-url does not respond*"
    (result.stderr if workers == "-n0" else result.stdout).fnmatch_lines([reported])
    assert limited.sessions() == []


@pytest.mark.parametrize(
    "workers", ["-n0", pytest.param("-n1", marks=pytest.mark.nightly)]
)
def test_without_the_client_the_extra_is_named(
    pytester: pytest.Pytester, limited: FaultyService, workers: str
) -> None:
    pytester.makeconftest("import sys; sys.modules['redis'] = None")

    result = pytester.runpytest_subprocess(
        workers, "--device-slots-url=redis://localhost"
    )

    reported = "*--device-slots-url needs the Redis client *: pip install 'pytest-device[[]redis]'"
    (result.stderr if workers == "-n0" else result.stdout).fnmatch_lines([reported])
    assert limited.sessions() == []
