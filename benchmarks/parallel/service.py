"""The local service in a separate process, with a boot time per device kind, and its records of a run."""

import asyncio
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO, Any, Final

from pytest_device.service.accounts import AccessToken, Account, Accounts, Role
from pytest_device.service.api import create_app
from pytest_device.service.lifecycle import Session
from pytest_device.service.runners.simulated import SimulatedRunner
from pytest_device.service.server import serve_requests
from pytest_device.service.sessions import Sessions
from pytest_device.service.store import Store
from pytest_device.service.web import listen

APP_ID: Final = "0b8e4d52-9c1f-4f3a-a7d6-5e2c8b9f1043"
TOKEN: Final = "made-up-token"


class Service:
    """A running service at ``url``."""

    def __init__(self, url: str, store: Path) -> None:
        self.url = url
        self._store = store
        self._reported: set[str] = set()

    def sessions(self) -> list[Session]:
        """Return those that were created since the last call, with the moments that the service wrote down."""
        with closing(Store.open(self._store)) as store:
            new = [
                session for session in store.load() if session.id not in self._reported
            ]
        self._reported.update(session.id for session in new)
        return new


@contextmanager
def service(directory: Path, boots: Mapping[str, float]) -> Iterator[Service]:
    """Run the service.

    ``boots`` are seconds by platform, type and, if a request has one, device identifier, with a blank in between.
    """
    command = [sys.executable, "-m", "benchmarks.parallel.service", str(directory)]
    root = Path(__file__).parents[2]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root
    ) as process:
        stdin, stdout = _pipes(process)
        try:
            stdin.write(json.dumps(boots) + "\n")
            stdin.flush()
            yield Service(stdout.readline().strip(), directory / "sessions.db")
        finally:
            stdin.close()
            process.wait(20)


async def serve(directory: Path) -> None:
    """Serve until standard input ends; print the address on standard output."""
    boots: Mapping[str, float] = json.loads(sys.stdin.readline())
    with (
        closing(Store.open(directory / "sessions.db")) as store,
        listen("127.0.0.1", 0) as listener,
    ):
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        runner = SimulatedRunner(
            clock=time.time, boot_seconds=lambda body: boots[_kind(body)], base_url=url
        )
        sessions = Sessions(store=store, runner=runner, clock=time.time)
        accounts = Accounts(
            [Account(frozenset({APP_ID}), (AccessToken.of(TOKEN, Role.ADMIN),))]
        )
        app = create_app(
            sessions=sessions, accounts=accounts, base_url=url, more=runner.routes()
        )
        stop, loop = asyncio.Event(), asyncio.get_running_loop()

        def until_closed() -> None:
            sys.stdin.read()
            loop.call_soon_threadsafe(stop.set)

        threading.Thread(target=until_closed, daemon=True).start()
        await serve_requests(
            app, listener, sessions, stop, lambda: print(url, flush=True)
        )


def _kind(request: Mapping[str, Any]) -> str:
    parts = (request["platform"], request["type"], request.get("deviceIdentifier"))
    return " ".join(part for part in parts if part)


def _pipes(process: "subprocess.Popen[str]") -> tuple[IO[str], IO[str]]:
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("started without pipes")
    return process.stdin, process.stdout


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1])))
