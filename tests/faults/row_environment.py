"""The environment of a row: a service, optionally behind a faulty network, and the runs with all their processes."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, cast

import httpx
import psutil
import redis

from pytest_device.sessions.quota import key_of
from pytest_device.sessions.quota.redis_store import RedisConfig, RedisStore
from pytest_device.sessions.reporter import SilentReporter
from pytest_device.spec import SESSIONS_PATH
from pytest_device.testing import FaultyService
from tests import forking
from tests.faults import processes
from tests.faults.network import Network, network
from tests.faults.row import Row
from tests.sessions.redis_server import RedisServer, redis_server

PATIENCE_SECONDS: Final = 120.0
"""How long a row waits for its moment."""
POLL_SECONDS: Final = 0.1
LEAN: Final = (
    "-p",
    "no:cacheprovider",
    "-p",
    "no:anyio",
    "-p",
    "no:html",
    "-p",
    "no:metadata",
    "-p",
    "no:pytest_jsonreport",
    "--assert=plain",
)
"""Leaves out what no row is about: a third of the time that a run needs to start."""
ENDED: Final = frozenset({"stopped", "errored"})
_SETTINGS: Final = {
    "DEVICE_POLL_INTERVAL_SECONDS": "0.1",
    "DEVICE_WAIT_TIMEOUT_SECONDS": "20",
    "DEVICE_STOP_TIMEOUT_SECONDS": "15",
    "DEVICE_SHARE": "test",  # so that there are many sessions to lose; the rows about sharing override it
    "DEVICE_START_ATTEMPTS": "1",
}
_OF_THE_RUN_AROUND: Final = ("DEVICE_", "PYTEST_", "COV_", "TOX_", "XDG_STATE_HOME")


class RowEnvironment:
    """The environment of one row; its ``arm``, ``start``, ``when`` and ``fault`` use the public methods."""

    def __init__(
        self,
        directory: Path,
        row: Row,
        service: FaultyService,
        between: Network | None,
        slots: RedisServer | None,
        popen: "type[subprocess.Popen[bytes]]",
    ) -> None:
        self.directory = directory
        self.state = directory / "state"
        self.service = service
        self.runs: list[subprocess.Popen[bytes]] = []
        self.readers: list[subprocess.Popen[bytes]] = []
        """Processes that only read the output of a run."""
        self.struck_at: float | None = None
        self._row = row
        self._between = between
        self._slots = slots
        self._popen = popen
        self._not_ours = {process.pid for process in processes.below()}
        """Processes that existed before the row, such as the service."""

    # What a row does

    def start(
        self, *options: str, suite: Mapping[str, str] | None = None, **more: Any
    ) -> "subprocess.Popen[bytes]":
        """Start pytest in its own process group, with its output in a file."""
        self.write_suite(suite)
        command = [sys.executable, "-m", "pytest", *LEAN, *self._row.options, *options]
        return self.launch(command, **more)

    def write_suite(self, suite: Mapping[str, str] | None = None) -> None:
        """Write the files of a suite, by default the row's own."""
        for name, text in (suite or self._row.suite).items():
            (self.directory / name).write_text(text)

    def launch(self, command: Sequence[str], **more: Any) -> "subprocess.Popen[bytes]":
        """Start a program in the environment and process group of a run, with its output in a file."""
        with (self.directory / f"output-{len(self.runs)}").open("wb") as output:
            started: dict[str, Any] = {
                "cwd": self.directory,
                "env": self.environment(),
                "stdin": subprocess.DEVNULL,
                "stdout": output,
                "stderr": subprocess.STDOUT,
                "process_group": 0,
            }
            self.runs.append(self._popen(command, **(started | more)))
        return self.run

    def environment(self) -> dict[str, str]:
        """Return the environment variables of the run, without those of the surrounding run."""
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(_OF_THE_RUN_AROUND)
        }
        return inherited | _SETTINGS | {
            "DEVICE_URL": self._between.url if self._between else self.service.url,
            "DEVICE_TOKEN": self.service.token,
            "DEVICE_APP_ID": self.service.app_id,
            "DEVICE_STATE_DIR": str(self.state),
            "FAULT_DIRECTORY": str(self.directory),
            "PYTEST_DEBUG_TEMPROOT": str(self.directory),  # a run removes what earlier ones left there
            **({"DEVICE_SLOTS_URL": self._slots.url} if self._slots else {}),
            **{name: value.format(directory=self.directory) for name, value in self._row.settings.items()},
        }  # fmt: skip

    @property
    def run(self) -> "subprocess.Popen[bytes]":
        """The newest run."""
        return self.runs[-1]

    @property
    def network(self) -> Network:
        """The network in front of the service. Raises RuntimeError for a row without one."""
        if self._between is None:
            raise RuntimeError("the row has no network")
        return self._between

    def empty_redis(self) -> None:
        """Kill the Redis server and start it again without data. Raises RuntimeError for a row without one."""
        server = self._redis_server()
        self.strike()
        server.stop()
        server.start()
        self._not_ours.add(server.pid)

    def kill_redis(self) -> None:
        """Kill the Redis server. Raises RuntimeError for a row without one."""
        server = self._redis_server()
        self.strike()
        server.stop()

    def fill_redis(self) -> None:
        """Let the Redis server have no memory left. Raises RuntimeError for a row without one."""
        server = self._redis_server()
        self.strike()
        client: Any = redis.Redis(port=server.port, protocol=2)
        with client:
            client.config_set("maxmemory", 1)

    def _redis_server(self) -> RedisServer:
        if self._slots is None:
            raise RuntimeError("the row has no Redis server")
        return self._slots

    def strike(self) -> None:
        """Record the time of the fault, unless it is recorded already."""
        self.struck_at = self.struck_at or time.time()

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the main process of the newest run."""
        self.strike()
        self.run.send_signal(number)

    def send_group(self, number: signal.Signals) -> None:
        """Send a signal to the process group of the newest run."""
        self.strike()
        os.killpg(self.run.pid, number)

    def send_to(self, pid: int, number: signal.Signals) -> None:
        """Send a signal to one process of a run."""
        if pid not in {process.pid for process in self.processes()}:
            raise RuntimeError(f"process {pid} does not belong to this row")
        self.strike()
        os.kill(pid, number)

    def wait_reached(self, count: int = 1) -> list[int]:
        """Wait until ``count`` processes of the run have called ``reached()``; return their IDs."""
        self.wait_for(
            lambda: len(self._reached()) >= count, f"{count} calls of reached()"
        )
        return self._reached()

    def worker(self) -> int:
        """Return the process ID of a worker of the newest run."""
        self.wait_for(lambda: bool(self._workers()), "a worker")
        return self._workers()[0].pid

    def _workers(self) -> Sequence[psutil.Process]:
        """Return the children of the newest run that work in its directory, the only ones that do."""
        children = psutil.Process(self.run.pid).children()
        return [
            child for child in children if processes.works_in(child, self.directory)
        ]

    def wait_request(self, operation: str) -> None:
        """Wait until the service is handling a request of an operation."""
        self.wait_for(
            lambda: (operation, None) in self.service.requests(),
            f"a {operation} request in progress",
        )

    def wait_requests(self, operation: str, count: int) -> None:
        """Wait until the service has received ``count`` requests of an operation."""
        self.wait_for(
            lambda: self.count(operation) >= count, f"{count} {operation} requests"
        )

    def wait_status(self, status: str) -> None:
        """Wait until a session has a status."""
        self.wait_for(
            lambda: status in self.service.statuses(), f"a session with status {status}"
        )

    def wait_for(
        self,
        condition: Callable[[], bool],
        what: str,
        seconds: float = PATIENCE_SECONDS,
    ) -> None:
        """Poll until a condition holds. Raises TimeoutError."""
        if not patiently(condition, seconds):
            raise TimeoutError(f"timed out after {seconds:.0f} s waiting for {what}")

    def count(self, operation: str) -> int:
        """Return how many requests of an operation the service has received."""
        return [seen for seen, _ in self.service.requests()].count(operation)

    def reapers(self) -> list[psutil.Process]:
        """Return the processes that left the process tree of the run."""
        return [
            one
            for one in processes.orphans()
            if one.pid not in self._not_ours | self._started()
        ]

    def wait_reapers(self, count: int = 1) -> list[psutil.Process]:
        """Wait until ``count`` processes have left the process tree of the run; return them."""
        self.wait_for(lambda: len(self.reapers()) >= count, f"{count} reapers")
        return self.reapers()

    def kill_all(self) -> None:
        """Kill everything the row started except the service, as when a container is killed."""
        self.strike()
        processes.kill_at_once(self.processes())
        self.wait_for(lambda: not self.processes(), "the killed processes to exit")

    def again(self, *, suite: Mapping[str, str], **settings: str) -> None:
        """Run pytest again with the same state directory and other settings, and wait until it exits."""
        self.start(suite=suite, env=self.environment() | settings)
        self.run.wait(PATIENCE_SECONDS)

    def command(self, *arguments: str, **settings: str) -> None:
        """Run ``pytest-device`` with arguments and other settings, and wait until it exits."""
        # Not as a fork: the process that forks commands would be left behind by the first row with one.
        command = [sys.executable, *forking.COMMAND, *arguments]
        self.launch(
            command, executable=sys.executable, env=self.environment() | settings
        )
        self.run.wait(PATIENCE_SECONDS)

    def ledger(self) -> list[Path]:
        """Return the ledger entries in the state directory."""
        return sorted(self.state.glob("runs/*/*.json"))

    def happen(self, session_id: str, what: str) -> None:
        """Make a session reach its limit (``expire``) or its programs crash (``fail``)."""
        self.strike()
        self._ask("POST", f"/testing/sessions/{session_id}/{what}")

    def end_faults(self) -> None:
        """Remove all faults from the service; its sessions stay."""
        self._ask("POST", "/testing/reset")

    # What the judge checks

    def processes(self) -> list[psutil.Process]:
        """Return every live process of the row."""
        processes.bury(self._not_ours | self._started())
        for started in (*self.runs, *self.readers):
            started.poll()
        return [
            process
            for process in processes.below()
            if process.pid not in self._not_ours
        ]

    def output(self) -> str:
        """Return the output of all runs so far."""
        return "".join(
            path.read_text(errors="replace")
            for path in sorted(self.directory.glob("output-*"))
        )

    def alive(self) -> list[dict[str, Any]]:
        """Return the live sessions."""
        return [
            session
            for session in self.service.sessions()
            if session["status"] not in ENDED
        ]

    def session(self, session_id: str) -> dict[str, Any]:
        """Return a session as the service reports it to clients."""
        return cast(
            "dict[str, Any]", self._ask("GET", f"{SESSIONS_PATH}/{session_id}")["data"]
        )

    def _ask(self, method: str, path: str) -> Any:
        headers = {"Authorization": f"Bearer {self.service.token}"}
        reply = httpx.request(
            method,
            f"{self.service.url}{path}",
            headers=headers,
            trust_env=False,
            verify=False,
        )
        return reply.raise_for_status().json()

    def reached_at(self) -> float | None:
        """Return when a test first called ``reached()`` (Unix seconds)."""
        return min(
            (path.stat().st_mtime for path in self.directory.glob("reached-*")),
            default=None,
        )

    def network_struck_at(self) -> float | None:
        """Return when the network first interfered (Unix seconds)."""
        return self._between.struck_at if self._between else None

    def _started(self) -> set[int]:
        return {started.pid for started in (*self.runs, *self.readers)}

    def _reached(self) -> list[int]:
        return sorted(
            int(path.name.removeprefix("reached-"))
            for path in self.directory.glob("reached-*")
        )

    def close(self) -> None:
        """Kill all processes of the row and wait for their end."""
        processes.kill_at_once(self.processes())
        for started in (*self.runs, *self.readers):
            started.wait()
        patiently(lambda: not self.processes(), PATIENCE_SECONDS)


def patiently(condition: Callable[[], bool], seconds: float) -> bool:
    """Return True soon after the condition holds, False after a timeout.

    The interval is long because each poll asks the service or scans all processes, in many rows at once. It grows with
    a long wait.
    """
    start = time.monotonic()
    while not condition():
        waited = time.monotonic() - start
        if waited > seconds:
            return False
        time.sleep(max(POLL_SECONDS, waited / 20))
    return True


@contextmanager
def row_environment(
    directory: Path,
    row: Row,
    service: FaultyService,
    popen: "type[subprocess.Popen[bytes]]",
) -> Generator[RowEnvironment]:
    """Create the environment of a row around a service, and clean it up; ``popen`` starts its programs."""
    processes.adopt_orphans()
    forking.ready()  # before the row, to which it does not belong
    service.reset()
    with ExitStack() as stack:
        between = stack.enter_context(network(service.url)) if row.network else None
        slots = stack.enter_context(_redis(directory, service)) if row.redis else None
        built = RowEnvironment(directory, row, service, between, slots, popen)
        stack.callback(built.close)
        yield built


@contextmanager
def _redis(directory: Path, service: FaultyService) -> Generator[RedisServer]:
    """Run a Redis server that gives slots at once; a new one waits until others may have renewed theirs."""
    with redis_server(directory) as server:
        config = RedisConfig(
            server.url,
            "DEVICE_SLOTS_URL",
            key_of(service.url),
            SilentReporter(),
            settle_seconds=0,
        )
        RedisStore(config).check()
        yield server
