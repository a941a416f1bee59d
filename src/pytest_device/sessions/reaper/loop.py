"""The reaper process: one single-threaded loop that moves messages between the run, the supervisor and the sender."""

import selectors
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from pytest_device.platforms import SYSTEM
from pytest_device.platforms.system import Watch
from pytest_device.sessions.reaper import messages, sender
from pytest_device.sessions.reaper.messages import Decoder, NoReply, Returned, encode
from pytest_device.sessions.reaper.supervisor import Supervisor

SENDER_IDLE_SECONDS: Final = 5.0
"""Seconds without calls after which a sender is stopped: its memory is worth more than starting another."""
POLL_SECONDS: Final = 1.0
"""Seconds between checks for processes on systems that cannot report their end."""


def main() -> None:
    """Detach, read the first message, which lists what to supervise, and run the loop."""
    SYSTEM.detach()
    channel = SYSTEM.await_channel()

    first = b""
    while b"\n" not in first:
        data = sender.received(channel)
        if not data:
            return
        first += data

    line, _, rest = first.partition(b"\n")
    (start,) = Decoder[messages.Start](messages.Start).feed(line + b"\n")
    channel.sendall(encode(messages.Ready()))
    ReaperLoop(channel, lambda: sender.start(start.endpoint), start).run(rest)


class ReaperLoop:
    """Receives requests from the run through a channel and reports their results.

    When the run closes the channel or one of its processes dies, it stops all live sessions; then it stays until the
    warm sessions are claimed or their time is up.
    """

    def __init__(
        self,
        channel: socket.socket,
        start_sender: Callable[[], socket.socket],
        start: messages.Start,
    ) -> None:
        self._channel = channel
        self._start_sender = start_sender
        self._supervisor = Supervisor(start, self._report)
        self._sender: socket.socket | None = None
        self._idle_since = 0.0
        self._requests = Decoder[messages.Request](messages.Request)
        self._answers = Decoder[Returned](Returned)
        self._unsent = b""
        self._selector = selectors.DefaultSelector()
        self._pids: list[int] = []
        channel.setblocking(False)
        self._selector.register(channel, selectors.EVENT_READ, self._use_channel)
        for pid in start.processes:
            self._follow(pid)

    def run(self, received: bytes = b"") -> None:
        """Return when the run has ended or is gone and no session is left to stop.

        ``received`` is the data that was already read from the channel.
        """
        # The first call is a few moments away, and an interpreter takes some to start.
        with suppress(OSError):  # tried again for that call
            self._open_sender()

        self._handle(received)

        while not self._supervisor.is_done or self._supervisor.has_warm:
            for call in self._supervisor.due_calls():
                self._send(call)

            self._stop_idle_sender()
            for key, _ in self._selector.select(self._pause()):
                key.data()

            if any(not SYSTEM.exists(pid) for pid in self._pids):
                self._supervisor.on_run_gone()

            self._supervisor.end_warm()

        self._channel.settimeout(POLL_SECONDS)
        self._report(messages.Ended())
        self._stop_sender()
        self._selector.close()

    def _pause(self) -> float | None:
        now = time.monotonic()
        due = self._supervisor.next_due()
        times = [] if due is None else [due]
        if self._sender is not None and not self._supervisor.open_calls:
            times.append(self._idle_since + SENDER_IDLE_SECONDS)

        if self._pids:
            times.append(now + POLL_SECONDS)

        return max(0.0, min(times) - now) if times else None

    # The run: its requests, its end, the reports to it.

    def _follow(self, pid: int) -> None:
        try:
            watch = SYSTEM.watch(pid)
        except ProcessLookupError:
            self._supervisor.on_run_gone()
            return

        if watch is None:
            self._pids.append(pid)
        else:
            self._selector.register(
                watch, selectors.EVENT_READ, lambda: self._on_end(watch)
            )

    def _on_end(self, watch: Watch) -> None:
        self._selector.unregister(watch)
        watch.close()
        self._supervisor.on_run_gone()

    def _use_channel(self) -> None:
        self._flush()

        try:
            data = self._channel.recv(sender.CHUNK_BYTES)
        except BlockingIOError:  # only writable
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
        """Send as much as the channel accepts; a suspended run (SIGSTOP) must not block this loop."""
        try:
            while self._unsent:
                self._unsent = self._unsent[self._channel.send(self._unsent) :]
        except BlockingIOError:
            pass
        except OSError:  # the run is gone
            self._unsent = b""

        if self._channel in self._selector.get_map():
            waiting = selectors.EVENT_WRITE if self._unsent else 0
            self._selector.modify(
                self._channel, selectors.EVENT_READ | waiting, self._use_channel
            )

    # The sender: calls, answers, end.

    def _send(self, call: messages.Call) -> None:
        try:
            self._open_sender().sendall(encode(call))
        # No process can be started, or the sender has just died.
        except OSError as error:
            self._on_answer(Returned(call.number, NoReply(str(error), sent=False)))

    def _open_sender(self) -> socket.socket:
        if self._sender is None:
            self._sender = self._start_sender()
            self._answers = Decoder[Returned](Returned)
            self._idle_since = time.monotonic()
            self._selector.register(
                self._sender, selectors.EVENT_READ, self._use_sender
            )

        return self._sender

    def _use_sender(self) -> None:
        data = sender.received(self._sender) if self._sender else b""
        if not data:
            self._stop_sender()

            for number in self._supervisor.open_calls:
                self._on_answer(
                    Returned(
                        number,
                        NoReply("the process that sent it was killed", sent=True),
                    )
                )

        for returned in self._answers.feed(data):
            self._on_answer(returned)

    def _on_answer(self, returned: Returned) -> None:
        self._idle_since = time.monotonic()
        self._supervisor.on_answer(returned)

    def _stop_idle_sender(self) -> None:
        if (
            not self._supervisor.open_calls
            and time.monotonic() - self._idle_since >= SENDER_IDLE_SECONDS
        ):
            self._stop_sender()

    def _stop_sender(self) -> None:
        if self._sender is not None:
            self._selector.unregister(self._sender)
            self._sender.close()
            self._sender = None
