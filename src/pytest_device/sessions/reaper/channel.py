"""The owner's end: a reaper started as a process, or as a thread where there can be none, and replaced if it dies."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from pytest_device.sessions.ledger import Ledger
from pytest_device.sessions.reaper import sender as courier
from pytest_device.sessions.reaper.loop import Watch
from pytest_device.sessions.reaper.messages import Lines, line
from pytest_device.sessions.reaper.service import Service

NAME: Final = "pytest-device-reaper"
"""Its last argument, by which people find it among the processes."""
READY_SECONDS: Final = 5.0
"""How long to wait for it to start; usually it has, beside other work."""

_PACKAGES: Final = str(Path(__file__).resolve().parents[3])
_PROGRAM: Final = (
    "import sys; sys.path.append(sys.argv[1]); from pytest_device.sessions.reaper.process import main; main()"
)
_KEPT_VARIABLES: Final = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH")
"""What Python itself may need to start; whatever else the run has in its environment is not the reaper's."""
_CHUNK_BYTES: Final = 64 * 1024


class Link:
    """Commands to a reaper, and what it tells.

    ``hear`` gets each line of it, in a thread of its own. When it dies, ``again`` gives the commands that a successor
    needs: the first one is a process again, the next a thread.
    """

    def __init__(
        self,
        service: Service,
        ledger: str | None,
        *,
        processes: list[int],
        leaves_word: bool,
        detached: bool,
        hear: Callable[[dict[str, Any]], None],
        again: Callable[[], Iterable[dict[str, Any]]],
        warn: Callable[[str], None],
    ) -> None:
        self._service, self._ledger = service, ledger
        self._processes, self._leaves_word = processes, leaves_word
        self._hear, self._again, self._warn = hear, again, warn
        self._ready = threading.Event()
        self._lock = threading.Lock()
        self._closed = False
        self._fate = "ended before its time"
        self._processes_left = 2 if detached else 0
        self._start()

    def await_ready(self) -> None:
        """Wait until a reaper takes commands; one that does not start in time is done without."""
        if not self._ready.wait(READY_SECONDS):
            self._processes_left = 0
            self._fate = f"did not start within {READY_SECONDS:.0f} s"
            with suppress(OSError):
                self._channel.shutdown(socket.SHUT_RDWR)  # should it still start, it ends at once, having done nothing
            self._ready.wait(READY_SECONDS)

    def send(self, command: dict[str, Any], *, sent: Callable[[], None] = lambda: None) -> bool:
        """Give a command; False when there is nobody to take it, and a successor is being started.

        ``sent`` is called once it is given, before a successor can be told what there is to know.
        """
        with self._lock:
            given = self._send(command)
            if given:
                sent()
            return given

    def _send(self, command: dict[str, Any]) -> bool:
        try:
            self._channel.sendall(line(**command))
        except OSError:
            self._ready.clear()
            return False
        return True

    def close(self) -> None:
        """Let go: what the reaper still has to do it does alone, or not at all if it is a thread."""
        self._closed = True
        with suppress(OSError):
            self._channel.shutdown(socket.SHUT_RDWR)

    def _start(self) -> None:
        channel: socket.socket | None = None
        if self._processes_left:
            self._processes_left -= 1
            try:
                channel = self._as_process()
            except OSError as error:
                self._processes_left = 0
                self._warn(f"no reaper process can be started ({error}): {_WITHOUT}")
        if channel is None:
            channel = self._as_thread()
        self._channel = channel
        threading.Thread(target=self._listen, args=(channel,), name="pytest-device-owner", daemon=True).start()

    def _listen(self, channel: socket.socket) -> None:
        lines = Lines()
        with channel:
            while data := _received(channel):
                for told in lines.feed(data):
                    if told["what"] == "ready":
                        self._ready.set()
                    elif told["what"] == "ended":  # as it was told to
                        self._closed = True
                    else:
                        self._hear(told)
        if not self._closed:
            self._replace()

    def _replace(self) -> None:
        self._ready.clear()
        if not self._processes_left:
            self._warn(f"the reaper process {self._fate}: {_WITHOUT}")
        with self._lock:  # what is sent meanwhile comes after what the successor has to know
            self._start()
            for command in self._again():
                self._send(command)

    def _as_process(self) -> socket.socket:
        """Start the reaper in a session of its own; the service's token goes through the channel only."""
        if not hasattr(os, "fork") or not sys.executable:
            raise OSError("this system cannot detach one")
        ours, theirs = socket.socketpair()
        command = [sys.executable, "-I", "-S", "-c", _PROGRAM, _PACKAGES, NAME]
        with theirs:
            process = subprocess.Popen(  # noqa: S603  # this interpreter, and a program of this module
                command,
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ},
                start_new_session=True,
            )
        # It detaches by forking at once: what was started here is over then.
        threading.Thread(target=process.wait, name="pytest-device-reaper-start", daemon=True).start()
        told = {"ledger": self._ledger, "processes": self._processes, "leaves_word": self._leaves_word}
        ours.sendall(line(service=self._service._asdict(), **told))
        return ours

    def _as_thread(self) -> socket.socket:
        ours, theirs = socket.socketpair()

        def watch() -> None:
            with theirs:
                ledger = Ledger(self._ledger) if self._ledger else None
                Watch(
                    theirs,
                    lambda: courier.in_thread(self._service),
                    ledger,
                    token=self._service.token,
                    leaves_word=self._leaves_word,
                    lingers=False,
                ).run()

        theirs.sendall(line(intent="", what="ready"))
        threading.Thread(target=watch, name=NAME, daemon=True).start()
        return ours


_WITHOUT: Final = "sessions are stopped by the run itself, and left to their limits if it is killed"


def _received(channel: socket.socket) -> bytes:
    try:
        return channel.recv(_CHUNK_BYTES)
    except OSError:
        return b""
