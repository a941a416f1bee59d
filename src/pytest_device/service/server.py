"""The running service: its port, its runner, its sweep and its end."""

import asyncio
import errno
import shutil
import signal
import socket
import struct
import time
from collections.abc import Callable, Coroutine, Generator, Sequence
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Final

import uvicorn
from filelock import FileLock, Timeout
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from pytest_device.errors import ConfigError
from pytest_device.redact import is_loopback
from pytest_device.service.api import Refuses, create_app, refuse_none
from pytest_device.service.apps.builds import Builds
from pytest_device.service.config import ServiceConfig
from pytest_device.service.effects import ConnectionLostError
from pytest_device.service.faults import Faults, FaultyRunner
from pytest_device.service.keys import Keys
from pytest_device.service.logs import LOGGER, logging_to
from pytest_device.service.runners.base import Runner
from pytest_device.service.runners.simulated import SimulatedRunner
from pytest_device.service.sessions import Sessions
from pytest_device.service.store import Store

SWEEP_SECONDS: Final = 0.5
"""How late a limit strikes at most when nobody asks."""
GRACE_SECONDS: Final = 2
"""How long requests under way may go on when the service ends."""
_SIGNALS: Final = ("SIGINT", "SIGTERM", "SIGHUP")


@dataclass(frozen=True, slots=True)
class Progress:
    """What the service is busy with before it is ready."""

    text: str


@dataclass(frozen=True, slots=True)
class Ready:
    """The service answers at ``url``."""

    url: str
    app_id: str


Announce = Callable[[Progress | Ready], None]
Watch = Callable[[Callable[[], None]], None]
Routes = Callable[[Sessions], Sequence[BaseRoute]]


def serve(config: ServiceConfig, announce: Announce, *, watch: Watch | None = None) -> None:
    """Run the service until SIGINT, SIGTERM or SIGHUP; then stop its sessions, end their programs and return.

    ``watch`` is given a function that ends the service too and may be called from any thread. Call it in the main
    thread. Raises ConfigError with the cause and the fix when the service cannot start.
    """
    try:
        asyncio.run(_serve(config, announce, watch))
    finally:
        if config.temporary:
            shutil.rmtree(config.state_dir, ignore_errors=True)  # its parent does so too, unless it was killed


async def _serve(config: ServiceConfig, announce: Announce, watch: Watch | None) -> None:
    loop, stop = asyncio.get_running_loop(), asyncio.Event()

    def end() -> None:
        with suppress(RuntimeError):  # the loop is closed: the service has ended by itself
            loop.call_soon_threadsafe(stop.set)

    if watch:
        watch(end)
    with logging_to(config.log_path, config.token), _signals(end):
        try:
            async with AsyncExitStack() as stack:
                await _live(config, announce, stop, stack)
        except Exception:
            LOGGER.exception("the service failed")
            raise


async def _live(config: ServiceConfig, announce: Announce, stop: asyncio.Event, stack: AsyncExitStack) -> None:
    """Build the service up, let it answer, and leave on the stack how it is taken down, last first."""
    stack.enter_context(_only_one(config.state_dir))
    listener = stack.enter_context(listen(config.host, config.port))
    host = f"[{config.host}]" if ":" in config.host else config.host
    url = f"http://{host}:{listener.getsockname()[1]}"
    runner, routes, refuses = await _runner(config, url, announce, stop, stack)
    if stop.is_set():
        return
    store = Store.open(config.state_dir / "sessions.db")
    stack.callback(store.close)
    faults = Faults() if config.testing else None
    runner = FaultyRunner(runner, faults, time.time) if faults else runner
    client_url = Builds(config.builds_dir).client_url
    sessions = Sessions(store=store, runner=runner, clock=time.time, log=LOGGER.info, client_url=client_url)
    stack.callback(sessions.stop_all, "the service was ended")
    app = create_app(
        sessions=sessions,
        accounts=config.accounts(),
        base_url=url,
        any_host=not is_loopback(config.host),
        faults=faults,
        more=routes(sessions),
        refuses=refuses,
    )
    await answer(app, listener, sessions, stop, lambda: announce(Ready(url, config.app_id)))


async def _runner(
    config: ServiceConfig, url: str, announce: Announce, stop: asyncio.Event, stack: AsyncExitStack
) -> tuple[Runner, Routes, Refuses]:
    """Return the runner, prepared, what its sessions publish at the service's own address, and what it refuses."""
    if config.runner == "simulated":
        simulated = SimulatedRunner(clock=time.time, boot_seconds=config.boot_seconds, base_url=url)
        return simulated, lambda _sessions: simulated.routes(), refuse_none
    from pytest_device.service import gateway, preview
    from pytest_device.service.devices import routes as devices
    from pytest_device.service.runners.programs import Folders, ProgramsRunner

    keys = Keys(url)
    folders = Folders(config.state_dir, config.cache_dir, builds=config.builds_dir)
    runner = ProgramsRunner(keys=keys, folders=folders, log=LOGGER.info)
    http = await stack.enter_async_context(gateway.client())
    stack.push_async_callback(runner.close)
    runner.end_leftovers()
    await _unless(stop, runner.prepare(lambda text: announce(Progress(text)), config.types, config.requests))

    def published(sessions: Sessions) -> Sequence[BaseRoute]:
        return (
            *gateway.routes(runner, keys, http),
            *devices.routes(runner, keys, directory=runner.directory, note=runner.note),
            *preview.routes(sessions, keys),
        )

    return runner, published, runner.refusal


async def _unless(stop: asyncio.Event, work: Coroutine[Any, Any, None]) -> None:
    """Carry out some work, or as much of it as is done when the service is to end."""
    working, stopping = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not working.done():
        working.cancel()
    with suppress(asyncio.CancelledError):
        await working


async def answer(
    app: ASGIApp, listener: socket.socket, sessions: Sessions, stop: asyncio.Event, ready: Callable[[], None]
) -> None:
    """Answer requests on a listening socket and sweep the sessions until ``stop`` is set; call ``ready`` before."""

    async def over_sockets(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await app(scope, receive, send)
        except ConnectionLostError as lost:
            _close(server, scope, reset=lost.reset)
            while (await receive())["type"] != "http.disconnect":
                pass  # an application that returns before that has forgotten to answer, the server would say

    async def sweep() -> None:
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            sessions.sweep()

    async def end() -> None:
        await stop.wait()
        server.should_exit = True

    server = _Server(
        uvicorn.Config(
            over_sockets,
            http="h11",  # it bounds the size of headers
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=GRACE_SECONDS,
        ),
        ready,
    )
    # A sweep that fails takes the service down: better no service than one whose limits do not hold.
    async with asyncio.TaskGroup() as group:
        others = [group.create_task(sweep()), group.create_task(end())]
        await server.serve([listener])
        for task in others:
            task.cancel()


class _Server(uvicorn.Server):
    """Tells when it answers, and leaves the signals to those who run it."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


def _close(server: uvicorn.Server, scope: Scope, *, reset: bool) -> None:
    """Close the connection of a request: with what was written so far, or at once by a reset."""
    for connection in tuple(server.server_state.connections):
        transport = connection.transport
        if transport.get_extra_info("peername")[:2] == tuple(scope["client"]):
            if reset:
                not_even_linger = struct.pack("ii", 1, 0)
                transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, not_even_linger)
            transport.close()


@contextmanager
def _signals(end: Callable[[], None]) -> Generator[None]:
    def handler(_number: int, _frame: FrameType | None) -> None:
        end()

    numbers = [getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)]
    # What the parent ignores stays ignored, SIGHUP under nohup for one.
    before = {number: signal.getsignal(number) for number in numbers if signal.getsignal(number) != signal.SIG_IGN}
    for number in before:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


@contextmanager
def _only_one(state_dir: Path) -> Generator[None]:
    lock = FileLock(state_dir / "service.lock", mode=0o600)
    try:
        state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock.acquire(blocking=False)
    except Timeout as error:
        raise ConfigError(f"another service is using {state_dir}: end it, or choose another state_dir") from error
    except OSError as error:
        raise ConfigError(f"state_dir {state_dir} cannot be used ({error.strerror}): choose another") from error
    try:
        yield
    finally:
        lock.release()


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket. Raises ConfigError that names the port, the host and the fix."""
    try:
        listener = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            fix = "end the program that uses it, or choose another port, or 0 for a free one"
            raise ConfigError(f"port {port} of {host} is in use: {fix}") from error
        raise ConfigError(f"cannot listen on port {port} of {host} ({error}): choose another host or port") from error
    # Connections inherit it; asyncio sets it only on sockets of another making. Without it an answer, written as head
    # and body, waits 40 ms for the acknowledgement of its head.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener
