"""One run on several machines without a shared disk, each with its own checkout, environment and state directory."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final, Self

import execnet
import pytest

from pytest_device.testing import FaultyService
from tests import forking
from tests.waiting import eventually

SERVER: Final = Path(execnet.__file__).parent / "script" / "socketserver.py"
SUITE: Final = """
import os, time
from pathlib import Path
import pytest

@pytest.mark.device(platform="android")
@pytest.mark.parametrize("n", range(4))
def test_driven(device_session, n):
    Path(f"ran-{n}").write_text(os.environ["DEVICE_STATE_DIR"])
    while Path("hold").exists():
        time.sleep(0.02)
"""


class Machine:
    """A directory that represents a machine: its checkout, home and state directory."""

    def __init__(self, directory: Path) -> None:
        self.checkout, self.home, self.state_dir = (
            directory / name for name in ("checkout", "home", "state")
        )
        for path in (self.checkout, self.home):
            path.mkdir(parents=True)
        (self.checkout / "pytest.ini").write_text("[pytest]\ntestpaths = test_it.py\n")
        (self.checkout / "test_it.py").write_text(SUITE)
        self.variables = {
            "HOME": str(self.home),
            "DEVICE_STATE_DIR": str(self.state_dir),
        }

    def remember(self, seconds: Mapping[str, float]) -> None:
        cache = self.checkout / ".pytest_cache" / "v" / "device"
        cache.mkdir(parents=True)
        (cache / "test_seconds").write_text(json.dumps(seconds))

    def popen(self) -> str:
        """Return the ``--tx`` option for a worker here, as a child process."""
        variables = (f"env:{name}={value}" for name, value in self.variables.items())
        return "//".join(["popen", f"chdir={self.checkout}", *variables])

    def ran(self) -> list[str]:
        """Return the numbers of the tests that ran here, none of which may have found another machine's state."""
        files = sorted(self.checkout.glob("ran-*"))
        # A file may just be written.
        assert {file.read_text() for file in files} <= {
            str(self.state_dir),
            "",
        }
        return [file.name.removeprefix("ran-") for file in files]

    def left(self) -> list[Path]:
        """Return the records of sessions and their owners here."""
        return list(self.state_dir.glob("runs/*/*"))

    def owner(self) -> int:
        """Return the one process that has sessions here."""
        (lock,) = (path for path in self.left() if path.suffix == ".lock")
        return int(lock.stem.split("-")[-2])

    def hold(self) -> None:
        """Block all tests until they are released."""
        (self.checkout / "hold").touch()

    def let_go(self) -> None:
        (self.checkout / "hold").unlink()


@pytest.fixture
def machines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, service: FaultyService
) -> list[Machine]:
    """Three machines; runs are started on the first."""
    del service
    for name in ("DEVICE_SHARE", "DEVICE_STATE_DIR"):
        monkeypatch.delenv(name)
    # Where pytest would have its cache.
    monkeypatch.delenv("TOX_ENV_DIR", raising=False)
    # The servers import what they load.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_PLUGINS", "xdist.plugin,pytest_device.plugin")
    found = [Machine(tmp_path / name) for name in ("here", "there", "elsewhere")]
    # Worth two boots.
    found[0].remember(
        dict.fromkeys((f"test_it.py::test_driven[{n}]" for n in range(4)), 600.0)
    )
    return found


def start(machine: Machine, *args: str) -> "subprocess.Popen[str]":
    return forking.LeanPopen(
        [sys.executable, "-m", "pytest", *args],
        cwd=machine.checkout,
        env=os.environ | machine.variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def run(machine: Machine, *args: str) -> str:
    with start(machine, *args) as process:
        return process.communicate()[0]


class Server:
    """A server of execnet on a machine, to have a worker there."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-u", SERVER, "127.0.0.1:0"],
            cwd=self._machine.checkout,
            env=os.environ | self._machine.variables,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout
        port = re.findall(r"\d+", self._process.stdout.readline())[-1]
        self.spec = f"socket=127.0.0.1:{port}//chdir={self._machine.checkout}"
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()


def workers(*specs: str) -> list[str]:
    return ["-d", *(part for spec in specs for part in ("--tx", spec))]


@pytest.fixture
def distributed(
    machines: list[Machine], request: pytest.FixtureRequest
) -> Generator[list[str]]:
    """Give the options for a worker on each of the other two machines: the run's child, or a server of execnet."""
    with ExitStack() as stack:
        yield workers(
            *(
                machine.popen()
                if kind == "child"
                else stack.enter_context(Server(machine)).spec
                for machine, kind in zip(machines[1:], request.param, strict=True)
            )
        )


@pytest.mark.parametrize(
    ("distributed", "dist"),
    [
        pytest.param(("child", "server"), [], id="by default"),
        pytest.param(
            *(("child", "child"), ["--dist=load"]),
            id="as chosen",
            marks=pytest.mark.nightly,
        ),
    ],
    indirect=["distributed"],
)
def test_workers_on_other_machines_have_their_own_devices(
    machines: list[Machine],
    service: FaultyService,
    distributed: list[str],
    dist: list[str],
) -> None:
    here, there, elsewhere = machines

    output = run(here, *distributed, *dist)

    assert "4 passed" in output
    assert sorted(there.ran() + elsewhere.ran()) == ["0", "1", "2", "3"]
    assert "devices: 2 created, 2 stopped (confirmed);" in output
    assert service.statuses() == ["stopped", "stopped"]
    assert here.left() + there.left() + elsewhere.left() == []


def test_a_worker_that_dies_on_another_machine_leaves_no_session_and_the_run_continues(
    machines: list[Machine], service: FaultyService
) -> None:
    here, there, _ = machines
    there.hold()

    with start(here, *workers(there.popen())) as process:
        assert eventually(lambda: bool(there.ran()))
        os.kill(there.owner(), signal.SIGKILL)
        assert eventually(lambda: service.statuses()[0] == "stopped")
        there.let_go()
        output, _ = process.communicate()

    assert "1 failed, 3 passed" in output
    assert service.statuses() == ["stopped", "stopped"]


@pytest.mark.parametrize("distributed", [("child", "server")], indirect=True)
@pytest.mark.parametrize(
    "how", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.nightly)]
)
def test_a_run_that_ends_early_leaves_no_session_on_any_machine(
    machines: list[Machine],
    service: FaultyService,
    distributed: list[str],
    how: signal.Signals,
) -> None:
    here, there, elsewhere = machines
    for machine in (there, elsewhere):
        machine.hold()

    with start(here, *distributed) as process:
        assert eventually(lambda: bool(there.ran() and elsewhere.ran()))
        process.send_signal(how)
        assert eventually(lambda: service.statuses() == ["stopped", "stopped"])
        process.communicate()


def test_sessions_left_on_a_machine_are_stopped_by_the_next_worker_there(
    machines: list[Machine], service: FaultyService
) -> None:
    here, there, _ = machines
    there.hold()
    with start(here, "--device-no-reaper", *workers(there.popen())) as process:
        assert eventually(lambda: bool(there.ran()))
        owner = there.owner()
        process.kill()
        os.kill(owner, signal.SIGKILL)
        process.communicate()
    assert service.statuses() == ["in-progress"]
    there.let_go()

    output = run(here, *workers(there.popen()))

    assert "stopped 1 session left by earlier runs: " in output
    assert service.statuses() == ["stopped", "stopped"]
    assert there.left() == []


@pytest.mark.parametrize("distributed", [("child", "server")], indirect=True)
def test_the_local_service_is_not_for_other_machines(
    machines: list[Machine], distributed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DEVICE_URL")

    with start(machines[0], "--device-local", *distributed) as process:
        output, _ = process.communicate()

    assert process.returncode == pytest.ExitCode.USAGE_ERROR
    assert (
        "ERROR: --device-local only serves this machine, but --tx names another one"
        in output
    )


def test_a_machine_without_a_token_is_a_usage_error(machines: list[Machine]) -> None:
    here, there, _ = machines
    there.variables["DEVICE_TOKEN"] = ""

    with start(here, *workers(there.popen())) as process:
        output, _ = process.communicate()

    assert process.returncode == pytest.ExitCode.USAGE_ERROR
    assert "ERROR: no access token: set the environment variable DEVICE_TOKEN" in output


@pytest.mark.nightly
def test_shards_on_independent_machines_make_up_the_suite(
    machines: list[Machine], service: FaultyService
) -> None:
    here, there, _ = machines

    with (
        start(here, "--device-shard=1/2") as first,
        start(there, "--device-shard=2/2") as second,
    ):
        outputs = [process.communicate()[0] for process in (first, second)]

    assert all("2 passed" in output for output in outputs)
    assert sorted(here.ran() + there.ran()) == ["0", "1", "2", "3"]
    assert service.statuses() == ["stopped", "stopped"]
