"""Runs the service: start, sweep and shutdown."""

import asyncio
import shutil
import signal
import socket
import struct
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Final

from filelock import FileLock, Timeout
from starlette.types import ASGIApp, Receive, Scope, Send

from pytest_device.asgi_server import Server
from pytest_device.directory_permissions import check_private
from pytest_device.errors import ConfigError
from pytest_device.platforms import SYSTEM
from pytest_device.redact import is_loopback
from pytest_device.service.api import create_app
from pytest_device.service.apps.builds import Builds
from pytest_device.service.backend import backend, check_system
from pytest_device.service.config import ServiceConfig
from pytest_device.service.effects import ConnectionLostError
from pytest_device.service.faults import Faults, FaultyRunner
from pytest_device.service.lifecycle import Session
from pytest_device.service.logs import LOGGER, logging_to
from pytest_device.service.sessions import Sessions
from pytest_device.service.store import Store
from pytest_device.service.web import LocalProtocol, listen

SWEEP_SECONDS: Final = 0.5
"""Maximum delay in seconds until a limit takes effect without requests."""
GRACE_SECONDS: Final = 2
"""Maximum seconds for requests in progress when the service stops."""


@dataclass(frozen=True, slots=True)
class Progress:
    """A step of the startup."""

    text: str


@dataclass(frozen=True, slots=True)
class Ready:
    """The service accepts requests at ``url``."""

    url: str
    app_id: str


@dataclass(frozen=True, slots=True)
class Changed:
    """A session's status changed."""

    session: Session


Announce = Callable[[Progress | Ready | Changed], None]
Watch = Callable[[Callable[[], None]], None]


def serve(
    config: ServiceConfig, announce: Announce, *, watch: Watch | None = None
) -> None:
    """Run the service until a signal of this system asks it to end; then stop its sessions and their processes, and return.

    Must be called in the main thread, which receives the signals.

    Arguments:
        config: The configuration.
        announce: Called with each event of the service.
        watch: Called with a function that also stops the service and may be called from any thread.

    Raises:
        ConfigError: The service cannot start; the message has the cause and the fix.
    """
    try:
        asyncio.run(_serve(config, announce, watch))
    finally:
        if config.temporary:
            # The parent removes it, too, unless it was killed.
            shutil.rmtree(config.state_dir, ignore_errors=True)


async def _serve(
    config: ServiceConfig, announce: Announce, watch: Watch | None
) -> None:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()

    def end() -> None:
        # The loop is closed: the service has already stopped.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(stop.set)

    if watch:
        watch(end)

    with logging_to(config.log_path, config.token), _signals(end):
        try:
            async with AsyncExitStack() as stack:
                await _live(config, announce, stop, stack)
        except ConfigError:
            raise  # its message is for the user who starts the service
        except Exception:
            LOGGER.exception("the service failed")
            raise


async def _live(
    config: ServiceConfig,
    announce: Announce,
    stop: asyncio.Event,
    stack: AsyncExitStack,
) -> None:
    """Start the service and handle requests; closing the stack stops it, in reverse order."""
    # Before the port: a free one would not help.
    check_system(config)
    stack.enter_context(_locked(config.state_dir))
    listener = stack.enter_context(listen(config.host, config.port))
    host = f"[{config.host}]" if ":" in config.host else config.host
    url = f"http://{host}:{listener.getsockname()[1]}"

    built = await backend(config, url, stack)
    await _run_until_stopped(stop, built.prepare(lambda text: announce(Progress(text))))
    if stop.is_set():
        return

    store = Store.open(config.state_dir / "sessions.db")
    stack.callback(store.close)
    faults = Faults() if config.testing else None
    runner = FaultyRunner(built.runner, faults, time.time) if faults else built.runner
    sessions = Sessions(
        store=store,
        runner=runner,
        clock=time.time,
        log=LOGGER.info,
        client_url=Builds(config.builds_dir).client_url,
        changed=lambda session: announce(Changed(session)),
    )
    stack.callback(sessions.stop_all, "the service was stopped")

    app = create_app(
        sessions=sessions,
        accounts=config.accounts(),
        base_url=url,
        any_host=not is_loopback(config.host),
        faults=faults,
        more=built.routes(sessions),
        refuses=built.refuses,
        max_sessions=config.max_sessions,
    )
    await serve_requests(
        app, listener, sessions, stop, lambda: announce(Ready(url, config.app_id))
    )


async def _run_until_stopped(stop: asyncio.Event, work: Awaitable[None]) -> None:
    """Run a task until it is done or the service must stop."""
    working = asyncio.ensure_future(work)
    stopping = asyncio.ensure_future(stop.wait())
    await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)

    stopping.cancel()
    if not working.done():
        working.cancel()
    with suppress(asyncio.CancelledError):
        await working


async def serve_requests(
    app: ASGIApp,
    listener: socket.socket,
    sessions: Sessions,
    stop: asyncio.Event,
    ready: Callable[[], None],
) -> None:
    """Handle requests on a listening socket, call ``ready``, and sweep the sessions until ``stop`` is set."""

    async def over_sockets(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await app(scope, receive, send)
        except ConnectionLostError as lost:
            _close(server, scope, reset=lost.reset)
            while (await receive())["type"] != "http.disconnect":
                pass  # returning earlier would make uvicorn log a missing response

    async def sweep() -> None:
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            sessions.sweep()

    async def end() -> None:
        await stop.wait()
        server.stop()

    server = Server(
        over_sockets, protocol=LocalProtocol, grace_seconds=GRACE_SECONDS, ready=ready
    )
    # A failed sweep stops the service: better no service than one that does not enforce its limits.
    async with asyncio.TaskGroup() as group:
        background = [group.create_task(sweep()), group.create_task(end())]
        await server.serve([listener])
        for task in background:
            task.cancel()


def _close(server: Server, scope: Scope, *, reset: bool) -> None:
    """Close a request's connection: after the data written so far, or at once with a reset."""
    for connection in tuple(server.server_state.connections):
        transport = connection.transport
        if transport.get_extra_info("peername")[:2] != tuple(scope["client"]):
            continue

        if reset:
            # Lingering for 0 seconds drops unsent data and makes the system send a reset.
            linger_for_0_seconds = struct.pack("ii", 1, 0)
            transport.get_extra_info("socket").setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, linger_for_0_seconds
            )
        transport.close()


@contextmanager
def _signals(end: Callable[[], None]) -> Generator[None]:
    def handler(_number: int, _frame: FrameType | None) -> None:
        end()

    previous_handlers = dict[int, Any]()
    for name in SYSTEM.signals:
        number = getattr(signal, name)
        previous = signal.getsignal(number)
        # Signals that the parent ignores stay ignored, such as SIGHUP under nohup.
        if previous != signal.SIG_IGN:
            previous_handlers[number] = previous
            signal.signal(number, handler)

    try:
        yield
    finally:
        for number, previous in previous_handlers.items():
            signal.signal(number, previous)


@contextmanager
def _locked(state_dir: Path) -> Generator[None]:
    """Keep other services out of a directory. Raises ConfigError if one uses it already, or if it cannot be used."""
    lock = FileLock(state_dir / "service.lock", mode=0o600)
    try:
        state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        check_private(state_dir)
        lock.acquire(blocking=False)
    except Timeout as error:
        raise ConfigError(
            f"another service is using {state_dir}: stop it, or choose another state_dir"
        ) from error
    except OSError as error:
        raise ConfigError(
            f"state_dir {state_dir} cannot be used ({error.strerror}): choose another"
        ) from error

    try:
        yield
    finally:
        lock.release()
