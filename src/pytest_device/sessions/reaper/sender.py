"""Sends calls to the service concurrently and answers each exactly once, within a limited time."""

import os
import socket
from collections.abc import Callable
from typing import Final

from pytest_device.sessions.reaper.messages import (
    Answer,
    Call,
    Decoder,
    Endpoint,
    NoReply,
    Returned,
    encode,
)

CHUNK_BYTES: Final = 64 * 1024


def start(endpoint: Endpoint, channel: socket.socket) -> socket.socket:
    """Start a sender as a child that ends with its socket, so that its modules do not occupy the caller's memory.

    The child closes the caller's own channel, so that its other end notices the end of the caller.
    """
    ours, theirs = socket.socketpair()
    if os.fork() == 0:
        try:
            ours.close()
            channel.close()
            _serve(theirs, endpoint)
        finally:
            os._exit(0)
    theirs.close()
    return ours


def _serve(channel: socket.socket, endpoint: Endpoint) -> None:
    """Send each call that arrives until the other end closes."""
    import threading

    calls, lock = Decoder[Call](Call), threading.Lock()

    def answer(returned: Returned) -> None:
        with lock:
            try:
                channel.sendall(encode(returned))
            except OSError:  # the other end is gone
                return

    with channel:
        while data := received(channel):
            for call in calls.feed(data):
                send(endpoint, call, answer)


def received(channel: socket.socket) -> bytes:
    """Return the available data, nothing once the other end is gone."""
    try:
        return channel.recv(CHUNK_BYTES)
    except OSError:
        return b""


def send(endpoint: Endpoint, call: Call, on_answer: Callable[[Returned], None]) -> None:
    """Answer when the call ends, or when its time is up: name lookups cannot be interrupted."""
    import threading

    from pytest_device.sessions.reaper import http

    seen, claim = bytearray(), threading.Lock()

    def finish(answer: Answer) -> None:
        if claim.acquire(blocking=False):  # only the first one answers
            timer.cancel()
            on_answer(Returned(call.number, answer))

    def time_out() -> None:
        finish(
            NoReply(
                f"no complete response within {call.seconds:.0f} s", True, bytes(seen)
            )
        )

    timer = threading.Timer(call.seconds, time_out)
    try:
        for thread in (
            timer,
            threading.Thread(target=lambda: finish(http.send(endpoint, call, seen))),
        ):
            thread.daemon = True
            thread.start()
    except RuntimeError as error:  # the system allows no more threads
        finish(NoReply(str(error), sent=False))
