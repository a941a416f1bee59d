"""A Redis server of the tests' own: nothing is written to disk, and it ends with the block."""

import shutil
import socket
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.waiting import eventually


class RedisServer:
    """A server on a port of loopback that can be taken away and brought back, empty."""

    def __init__(self, directory: Path, *options: str, encrypted: bool = False) -> None:
        self.port = _free_port()
        self.url = f"rediss://localhost:{self.port}" if encrypted else f"redis://127.0.0.1:{self.port}"
        ports = ("--port", "0", "--tls-port", str(self.port)) if encrypted else ("--port", str(self.port))
        address = ("--bind", "127.0.0.1", *ports, "--dir", str(directory))
        self._command = ("redis-server", *address, "--save", "", "--appendonly", "no", *options)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL)
        assert eventually(self._answers)

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
def redis_server(directory: Path, *options: str, encrypted: bool = False) -> Generator[RedisServer]:
    """Run a server; skip the test where there is none to run."""
    if shutil.which("redis-server") is None:
        pytest.skip("no redis-server")
    server = RedisServer(directory, *options, encrypted=encrypted)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
