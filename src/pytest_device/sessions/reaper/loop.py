"""The reaper as a process: one loop without threads moves messages between the run, the supervisor and the sender."""

import os
import selectors
import signal
import socket
import time
from collections.abc import Callable
from typing import Final

from pytest_device.sessions.reaper import messages, sender
from pytest_device.sessions.reaper.messages import Decoder, NoReply, Returned, encode
from pytest_device.sessions.reaper.supervisor import Supervisor

SENDER_IDLE_SECONDS: Final = 5.0
"""So long after its last answer a sender is stopped: its memory is worth more than the start of another."""
POLL_SECONDS: Final = 1.0
"""How often processes are looked for where the system cannot report their end."""

_IGNORED: Final = ("SIGINT", "SIGTERM", "SIGHUP", "SIGPIPE")
"""It ends by itself, once what it watches is stopped; nobody has to end it."""


def main() -> None:
    """Detach, read the first message, which says what to watch over, and watch."""
    if os.fork():
        os._exit(0)  # so that it is nobody's child: not a zombie, and not found by who ends a tree of processes
    for name in _IGNORED:
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # senders leave no zombies
    channel = socket.socket(fileno=0)
    first = b""
    while b"\n" not in first:
        data = sender.received(channel)
        if not data:
            return
        first += data
    line, _, rest = first.partition(b"\n")
    (start,) = Decoder[messages.Start](messages.Start).feed(line + b"\n")
    channel.sendall(encode(messages.Ready()))
    ReaperLoop(channel, lambda: sender.start(start.endpoint, channel), start).run(rest)


class ReaperLoop:
    """Takes requests from the run's end of a channel and reports what came of them.

    When the other end closes, or one of the processes dies, everything that is alive is stopped; then it stays with
    what is kept warm until that has been claimed or its time is over.
    """

    def __init__(
        self,
        channel: socket.socket,
        start_sender: Callable[[], socket.socket],
        start: messages.Start,
    ) -> None:
        self._channel, self._start_sender = channel, start_sender
        self._supervisor = Supervisor(start, self._report)
        self._sender: socket.socket | None = None
        self._idle_since = 0.0
        self._requests, self._answers = Decoder[messages.Request](messages.Request), Decoder[Returned](Returned)
        self._unsent = b""
        self._selector = selectors.DefaultSelector()
        self._pids: list[int] = []
        channel.setblocking(False)
        self._selector.register(channel, selectors.EVENT_READ, self._use_channel)
        for pid in start.processes:
            self._follow(pid)

    def run(self, received: bytes = b"") -> None:
        """Return when the run has ended or is gone and no session is left to be stopped.

        ``received`` is what has been read of the channel already.
        """
        self._handle(received)
        while not self._supervisor.is_done or self._supervisor.has_warm:
            for call in self._supervisor.due_calls():
                self._send(call)
            self._stop_idle_sender()
            for key, _ in self._selector.select(self._pause()):
                key.data()
            if any(not _exists(pid) for pid in self._pids):
                self._supervisor.on_run_gone()
            self._supervisor.end_warm()
        self._channel.settimeout(POLL_SECONDS)
        self._report(messages.Ended())
        self._stop_sender()
        self._selector.close()

    def _pause(self) -> float | None:
        now, due = time.monotonic(), self._supervisor.next_due()
        times = [] if due is None else [due]
        if self._sender is not None and not self._supervisor.open_calls:
            times.append(self._idle_since + SENDER_IDLE_SECONDS)
        if self._pids:
            times.append(now + POLL_SECONDS)
        return max(0.0, min(times) - now) if times else None

    # The run: its requests, its end, the reports to it.

    def _follow(self, pid: int) -> None:
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            self._supervisor.on_run_gone()
        except (AttributeError, OSError):  # a system that has none
            self._pids.append(pid)
        else:
            self._selector.register(handle, selectors.EVENT_READ, lambda: self._on_end(handle))

    def _on_end(self, handle: int) -> None:
        self._selector.unregister(handle)
        os.close(handle)
        self._supervisor.on_run_gone()

    def _use_channel(self) -> None:
        self._flush()
        try:
            data = self._channel.recv(sender.CHUNK_BYTES)
        except BlockingIOError:  # it was ready to be written to
            return
        except OSError:
            data = b""
        if not data:
            self._selector.unregister(self._channel)
            self._supervisor.on_run_gone()
        self._handle(data)

    def _handle(self, data: bytes) -> None:
        for request in self._requests.feed(data):
            self._supervisor.handle(request)

    def _report(self, report: messages.Report) -> None:
        self._unsent += encode(report)
        self._flush()

    def _flush(self) -> None:
        """Send what the channel takes; a suspended run (SIGSTOP) must not block this loop."""
        try:
            while self._unsent:
                self._unsent = self._unsent[self._channel.send(self._unsent) :]
        except BlockingIOError:
            pass
        except OSError:  # nobody reads it any more
            self._unsent = b""
        if self._channel in self._selector.get_map():
            waiting = selectors.EVENT_WRITE if self._unsent else 0
            self._selector.modify(self._channel, selectors.EVENT_READ | waiting, self._use_channel)

    # The sender: the calls to it, its answers, its end.

    def _send(self, call: messages.Call) -> None:
        try:
            if self._sender is None:
                self._sender, self._answers = self._start_sender(), Decoder[Returned](Returned)
                self._selector.register(self._sender, selectors.EVENT_READ, self._use_sender)
            self._sender.sendall(encode(call))
        except OSError as error:  # no process can be started, or the last one has just died
            self._on_answer(Returned(call.number, NoReply(str(error), sent=False)))

    def _use_sender(self) -> None:
        data = sender.received(self._sender) if self._sender else b""
        if not data:
            self._stop_sender()
            for number in self._supervisor.open_calls:
                self._on_answer(Returned(number, NoReply("the process that sent it was killed", sent=True)))
        for returned in self._answers.feed(data):
            self._on_answer(returned)

    def _on_answer(self, returned: Returned) -> None:
        self._idle_since = time.monotonic()
        self._supervisor.on_answer(returned)

    def _stop_idle_sender(self) -> None:
        if not self._supervisor.open_calls and time.monotonic() - self._idle_since >= SENDER_IDLE_SECONDS:
            self._stop_sender()

    def _stop_sender(self) -> None:
        if self._sender is not None:
            self._selector.unregister(self._sender)
            self._sender.close()
            self._sender = None


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError as error:
        return not isinstance(error, ProcessLookupError)
    return True
