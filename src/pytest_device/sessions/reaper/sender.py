"""Carries calls to the service side by side and answers each exactly once, within a bounded time."""

import os
import socket
from collections.abc import Callable
from typing import Any, Final

from pytest_device.sessions.reaper.messages import Lines, line
from pytest_device.sessions.reaper.service import Service

ANSWER_SECONDS: Final = 60.0
"""The longest a call may take as a whole, however steadily its bytes trickle in."""

_CHUNK_BYTES: Final = 64 * 1024


def in_child(service: Service, channel: socket.socket) -> socket.socket:
    """Start a courier as a child that ends with its socket; what it loads does not stay with the caller.

    The child closes the caller's own channel, so that the end of the caller is seen at its other end.
    """
    ours, theirs = socket.socketpair()
    if os.fork() == 0:
        try:
            ours.close()
            channel.close()
            serve(theirs, service)
        finally:
            os._exit(0)
    theirs.close()
    return ours


def in_thread(service: Service) -> socket.socket:
    """Start a courier as a thread that ends with its socket."""
    import threading

    ours, theirs = socket.socketpair()
    threading.Thread(target=serve, args=(theirs, service), name="pytest-device-courier", daemon=True).start()
    return ours


def serve(channel: socket.socket, service: Service) -> None:
    """Carry what each line asks until the other end closes: ``{"call": number, "method": …, "path": …, "body": …}``."""
    import threading

    lines, lock = Lines(), threading.Lock()

    def answer(**values: Any) -> None:
        with lock:
            try:
                channel.sendall(line(**values))
            except OSError:  # whoever asked is gone
                return

    with channel:
        while data := _received(channel):
            for asked in lines.feed(data):
                _carry(service, asked, answer)


def _received(channel: socket.socket) -> bytes:
    try:
        return channel.recv(_CHUNK_BYTES)
    except OSError:
        return b""


def _carry(service: Service, asked: dict[str, Any], answer: Callable[..., None]) -> None:
    """Answer when the call has ended, or when it has taken too long: name lookups cannot be interrupted."""
    import threading

    from pytest_device.sessions.reaper.http import call

    seen, claim = bytearray(), threading.Lock()

    def finish(**values: Any) -> None:
        if claim.acquire(blocking=False):  # the first to come answers
            patience.cancel()
            answer(call=asked["call"], body=bytes(seen).decode("latin-1"), **values)

    def carry() -> None:
        finish(**call(service, asked["method"], asked["path"], asked["body"], seen))

    problem = f"no complete answer within {ANSWER_SECONDS:.0f} s"
    patience = threading.Timer(ANSWER_SECONDS, finish, kwargs={"problem": problem, "sent": True})
    try:
        for thread in (patience, threading.Thread(target=carry)):
            thread.daemon = True
            thread.start()
    except RuntimeError as error:  # the system gives no more threads
        finish(problem=str(error), sent=False)
