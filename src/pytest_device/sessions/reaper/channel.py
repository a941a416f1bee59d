"""The run's side: starts a reaper process, replaces it if it dies, or does its work in-process if none can run."""

import os
import queue
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Final, NamedTuple

from pytest_device.platforms import SYSTEM
from pytest_device.platforms.bare_python import bare_python
from pytest_device.sessions.reaper import messages
from pytest_device.sessions.reaper.messages import (
    Decoder,
    Report,
    Request,
    Start,
    encode,
)
from pytest_device.sessions.reaper.sender import received
from pytest_device.sessions.reaper.sender import send as send_call
from pytest_device.sessions.reaper.supervisor import Supervisor
from pytest_device.wire import MessageError

NAME: Final = "pytest-device-reaper"
"""Its last command-line argument, which identifies it in process lists."""
READY_SECONDS: Final = 30.0
"""Seconds to wait for its start; usually it has already started in the meantime.

A Python may need more than five on a busy machine, or with a virus scanner, and a run without it leaks if it is killed.
"""

_MODULE: Final = "pytest_device.sessions.reaper.loop"
_KEPT_VARIABLES: Final = (
    "PATH",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    "DYLD_FALLBACK_LIBRARY_PATH",
)
"""Variables that Python may need to start; the rest of the run's environment is withheld."""
_NO_SIGNAL: Final = getattr(socket, "MSG_NOSIGNAL", 0)
"""Keeps a killed reaper from ending a run whose suite has restored the default action of SIGPIPE."""


class NoReaper(NamedTuple):
    """No reaper process supervises the sessions anymore."""

    problem: str


class ReaperLimited(NamedTuple):
    """There are ends of a run that its reaper process does not survive."""

    limit: str


class DirectCalls:
    """The reaper's work in the run's own process, where no other may or can be started: direct calls, no messages.

    One thread decides, and each call has its own thread, so that an interrupted test never loses a response. The next
    run stops the sessions that are left when the process ends.
    """

    def __init__(self, start: Start, report: Callable[[Report], None]) -> None:
        self._endpoint = start.endpoint
        self._supervisor = Supervisor(start, report)
        self._inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        threading.Thread(
            target=self._run, name="pytest-device-sessions", daemon=True
        ).start()

    def send(self, request: Request) -> None:
        self._inbox.put(partial(self._supervisor.handle, request))

    def close(self) -> None:
        """Stop all sessions for as long as this process lives."""
        self._inbox.put(self._supervisor.on_run_gone)

    def _on_answer(self, returned: messages.Returned) -> None:
        self._inbox.put(partial(self._supervisor.on_answer, returned))

    def _run(self) -> None:
        while not self._supervisor.is_done:
            for call in self._supervisor.due_calls():
                send_call(self._endpoint, call, self._on_answer)

            due = self._supervisor.next_due()
            with suppress(queue.Empty):
                self._inbox.get(
                    timeout=None if due is None else max(0.0, due - time.monotonic())
                )()

            self._supervisor.end_warm()


class ReaperChannel:
    """Sends requests to a reaper.

    ``on_report`` gets each of its reports, in another thread. If the reaper dies, ``restore`` yields the requests that
    its successor needs: the first successor is a process again, the next is the run itself, as is the first reaper
    unless ``detached``.
    """

    def __init__(
        self,
        start: Start,
        *,
        detached: bool,
        on_report: Callable[
            [messages.SessionReport | messages.LedgerFailed | NoReaper | ReaperLimited],
            None,
        ],
        restore: Callable[[], Iterable[Request]],
    ) -> None:
        self._first = start
        self._on_report = on_report
        self._restore = restore
        self._ready = threading.Event()
        self._lock = threading.Lock()
        self._closed = False
        self._fate = "ended unexpectedly"
        self._processes_left = 2 if detached else 0
        self._start()

    def await_ready(self) -> None:
        """Wait until a reaper accepts requests, or has ended; replace one that does not start in time."""
        if not self._ready.wait(READY_SECONDS):
            self._processes_left = 0
            self._fate = f"did not start within {READY_SECONDS:.0f} s"
            self._hang_up()  # if it still starts, it ends at once without doing anything
            self._ready.wait(READY_SECONDS)

    def send(
        self, request: Request, *, on_sent: Callable[[], None] = lambda: None
    ) -> bool:
        """Send a request; False if the reaper has ended, or is gone and a successor is being started.

        ``on_sent`` is called after sending, before ``restore`` may be called for a successor.
        """
        with self._lock:
            is_sent = self._send(request)
            if is_sent:
                on_sent()
            return is_sent

    def try_send(self, request: Request) -> bool:
        """Send a request unless another send is in progress, perhaps in the code that a signal handler interrupted."""
        if not self._lock.acquire(blocking=False):
            return False

        try:
            self._write(request)
        except OSError:  # the reaper is gone
            return False
        finally:
            self._lock.release()

        return True

    def _send(self, request: Request) -> bool:
        try:
            self._write(request)
        except OSError:
            # Nothing replaces a reaper that has ended as requested.
            if not self._closed:
                self._ready.clear()
            return False

        return True

    def _write(self, request: Request) -> None:
        if isinstance(self._reaper, DirectCalls):
            self._reaper.send(request)
        else:
            self._reaper.sendall(encode(request), _NO_SIGNAL)

    @property
    def is_detached(self) -> bool:
        """Whether the reaper is a process, which outlives this one."""
        return not isinstance(self._reaper, DirectCalls)

    def close(self) -> None:
        """Close the channel; a reaper process finishes on its own."""
        self._closed = True
        self._hang_up()

    def _hang_up(self) -> None:
        if isinstance(self._reaper, DirectCalls):
            self._reaper.close()
            return
        with suppress(OSError):
            self._reaper.shutdown(socket.SHUT_RDWR)

    def _start(self) -> None:
        channel = self._spawned()
        if channel is None:
            self._reaper: DirectCalls | socket.socket = DirectCalls(
                self._first, self._receive
            )
            self._ready.set()
        else:
            self._reaper = channel
            threading.Thread(
                target=self._listen,
                args=(channel,),
                name="pytest-device-reports",
                daemon=True,
            ).start()

    def _spawned(self) -> socket.socket | None:
        if not self._processes_left:
            return None

        self._processes_left -= 1
        try:
            return _spawn(
                self._first, lambda text: self._on_report(ReaperLimited(text))
            )
        except OSError as error:
            self._processes_left = 0
            self._on_report(NoReaper(f"no reaper process can be started ({error})"))
            return None

    def _listen(self, channel: socket.socket) -> None:
        reports = Decoder[Report](Report)

        with channel:
            try:
                while data := received(channel):
                    for report in reports.feed(data):
                        self._receive(report)
            except MessageError as error:
                self._fate = f"cannot be understood ({error})"

        if not self._closed:
            self._replace()

    def _receive(self, report: Report) -> None:
        match report:
            case messages.Ready():
                self._ready.set()
            case messages.Ended():
                self._closed = True
                self._ready.set()
            case _:
                self._on_report(report)

    def _replace(self) -> None:
        self._ready.clear()
        if not self._processes_left:
            self._on_report(NoReaper(f"the reaper process {self._fate}"))

        with self._lock:  # later requests must follow those that restore the successor
            self._start()
            for request in self._restore():
                self._send(request)


def _spawn(start: Start, note: Callable[[str], None]) -> socket.socket:
    """Start a reaper in its own process session; pass the service's token through the channel only."""
    if not sys.executable:
        raise OSError("the path of this Python is unknown")

    environ = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    channel = SYSTEM.spawn_guardian(bare_python(_MODULE, NAME), environ, note)
    channel.sendall(encode(start))

    return channel
