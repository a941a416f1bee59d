"""Cost of the local service compared with a bare route of the same server, and memory per session.

Uses real uvicorn over loopback with a store on disk; simulated devices hold 10,000 sessions in progress. Rounds of
all request types are interleaved, and each yields one ratio; the output has the median. Exits with 1 if a bar is
missed.
"""

import asyncio
import itertools
import json
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO, Final

import psutil
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from pytest_device.service.accounts import AccessToken, Account, Accounts, Role
from pytest_device.service.api import create_app
from pytest_device.service.runners.simulated import SimulatedRunner
from pytest_device.service.server import serve_requests
from pytest_device.service.sessions import Sessions
from pytest_device.service.store import Store
from pytest_device.service.web import listen
from pytest_device.spec import SESSIONS_PATH

HELD: Final = 10_000
ROUNDS: Final = 9
CONNECTIONS: Final = 8
BARS: Final[Mapping[str, float]] = {"get": 0.5, "create": 0.3, "stop": 0.3}
BAR_BYTES: Final = 2048
"""Of memory per held session."""
REQUESTS: Final[Mapping[str, int]] = {
    "bare": 2000,
    "get": 2000,
    "create": 600,
    "stop": 600,
}
"""Of each kind in a round."""

APP_ID: Final = "0b8e4d52-9c1f-4f3a-a7d6-5e2c8b9f1043"
TOKEN: Final = "made-up-token"
BODY: Final = json.dumps(
    {"appId": APP_ID, "platform": "android", "type": "appium", "maxDurationMinutes": 60}
).encode()


async def serve(directory: Path) -> None:
    """Serve the sessions beside a bare route until standard input ends; print the port on standard output."""

    async def bare(_request: Request) -> Response:
        return JSONResponse({})

    with (
        closing(Store.open(directory / "sessions.db")) as store,
        listen("127.0.0.1", 0) as listener,
    ):
        sessions = Sessions(
            store=store, runner=SimulatedRunner(clock=time.time), clock=time.time
        )
        accounts = Accounts(
            [Account(frozenset({APP_ID}), (AccessToken.of(TOKEN, Role.ADMIN),))]
        )
        service = create_app(
            sessions=sessions, accounts=accounts, base_url="http://127.0.0.1"
        )
        beside = Starlette(routes=[Route("/bare", bare)])

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await (beside if scope["path"] == "/bare" else service)(
                scope, receive, send
            )

        stop, loop = asyncio.Event(), asyncio.get_running_loop()

        def until_closed() -> None:
            sys.stdin.read()
            loop.call_soon_threadsafe(stop.set)

        threading.Thread(target=until_closed, daemon=True).start()
        await serve_requests(
            app,
            listener,
            sessions,
            stop,
            lambda: print(listener.getsockname()[1], flush=True),
        )


@contextmanager
def server(directory: Path) -> Iterator[tuple[psutil.Process, int]]:
    """Run the server as a process; give it and its port."""
    command = [sys.executable, __file__, "--serve", str(directory)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield psutil.Process(process.pid), int(_pipe(process.stdout).readline())
        finally:
            _pipe(process.stdin).close()
            process.wait(20)


def _pipe(pipe: IO[str] | None) -> IO[str]:
    if pipe is None:
        raise RuntimeError("started without pipes")
    return pipe


class Load:
    """Sends requests over a few kept connections, all in flight at once, with as little work as can be."""

    def __init__(self, port: int) -> None:
        self._sockets = [
            socket.create_connection(("127.0.0.1", port)) for _ in range(CONNECTIONS)
        ]

    def send(self, requests: Sequence[bytes]) -> list[bytes]:
        """Return the bodies of the answers, all of which must be successes."""
        bodies: list[bytes] = []
        for first in range(0, len(requests), CONNECTIONS):
            pairs = list(
                zip(self._sockets, requests[first : first + CONNECTIONS], strict=False)
            )
            for connection, request in pairs:
                connection.sendall(request)
            bodies += [_body(connection) for connection, _request in pairs]
        return bodies

    def close(self) -> None:
        """Close the connections."""
        for connection in self._sockets:
            connection.close()


def _body(connection: socket.socket) -> bytes:
    answer = connection.recv(65536)
    while b"\r\n\r\n" not in answer:
        answer += _more(connection)
    head, _, body = answer.partition(b"\r\n\r\n")
    if b" 200 " not in head[:16]:
        raise RuntimeError(answer.decode())
    length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n", 1)[0])
    while len(body) < length:
        body += _more(connection)
    return body


def _more(connection: socket.socket) -> bytes:
    part = connection.recv(65536)
    if not part:
        raise RuntimeError("the server closed the connection")
    return part


def request(method: str, path: str, body: bytes = b"") -> bytes:
    """Return a request as it goes over the wire."""
    lines = (
        f"{method} {path} HTTP/1.1",
        "Host: 127.0.0.1",
        f"Authorization: Bearer {TOKEN}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
    )
    return "\r\n".join((*lines, "", "")).encode() + body


def ids(bodies: Iterable[bytes]) -> list[str]:
    """Return the ids of the sessions in some answers."""
    return [json.loads(body)["data"]["id"] for body in bodies]


def rate(load: Load, requests: Sequence[bytes]) -> tuple[float, list[bytes]]:
    """Return requests per second, and the answers' bodies."""
    start = time.perf_counter()
    bodies = load.send(requests)
    return len(requests) / (time.perf_counter() - start), bodies


def rounds(load: Load, held: Sequence[str]) -> Iterator[Mapping[str, float]]:
    """Give the rates of each round."""
    every = itertools.cycle(held)
    bare, create = request("GET", "/bare"), request("POST", SESSIONS_PATH, BODY)
    for _ in range(ROUNDS):
        rates: dict[str, float] = {}
        rates["bare"], _answers = rate(load, [bare] * REQUESTS["bare"])
        gets = [
            request("GET", f"{SESSIONS_PATH}/{next(every)}")
            for _ in range(REQUESTS["get"])
        ]
        rates["get"], _answers = rate(load, gets)
        rates["create"], created = rate(load, [create] * REQUESTS["create"])
        stops = [request("POST", f"{SESSIONS_PATH}/{one}/stop") for one in ids(created)]
        rates["stop"], _answers = rate(load, stops)
        yield rates


def main() -> int:
    """Measure, print, and return the exit status."""
    with (
        tempfile.TemporaryDirectory() as directory,
        server(Path(directory)) as (process, port),
        closing(Load(port)) as load,
    ):
        warm = ids(load.send([request("POST", SESSIONS_PATH, BODY)] * 200))
        load.send([request("POST", f"{SESSIONS_PATH}/{one}/stop") for one in warm])
        before = process.memory_info().rss
        held = ids(load.send([request("POST", SESSIONS_PATH, BODY)] * HELD))
        load.send([request("GET", f"{SESSIONS_PATH}/{one}") for one in held])
        weight = (process.memory_info().rss - before) / HELD
        measured = list(rounds(load, held))
    return report(measured, weight)


def report(measured: Sequence[Mapping[str, float]], weight: float) -> int:
    """Print the results; return 1 if a bar is missed."""
    print(f"{HELD} sessions held, {ROUNDS} rounds, {CONNECTIONS} connections; medians")
    print(
        f"{'bare route':12} {statistics.median(rates['bare'] for rates in measured):8.0f} requests/s"
    )
    missed = weight > BAR_BYTES
    for kind, bar in BARS.items():
        ratio = statistics.median(rates[kind] / rates["bare"] for rates in measured)
        rates_per_second = statistics.median(rates[kind] for rates in measured)
        print(
            f"{kind:12} {rates_per_second:8.0f} requests/s   {ratio:.2f} of the bare route (bar: {bar:.2f})"
        )
        missed |= ratio < bar
    print(f"memory       {weight:8.0f} bytes per held session (bar: {BAR_BYTES})")
    return int(missed)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        asyncio.run(serve(Path(sys.argv[2])))
    else:
        sys.exit(main())
