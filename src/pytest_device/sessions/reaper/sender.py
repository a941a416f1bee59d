"""Sends calls to the service concurrently and answers each exactly once, within a limited time."""

import os
import socket
import time
from collections.abc import Callable
from importlib import import_module
from typing import Final

from pytest_device.platforms import SYSTEM
from pytest_device.platforms.bare_python import bare_python
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


def start(endpoint: Endpoint) -> socket.socket:
    """Start a sender as a child that ends with its socket, so that its modules do not occupy the caller's memory.

    The token is sent over the socket only. Raises OSError.
    """
    channel = SYSTEM.spawn_child(bare_python(__name__), os.environ)
    channel.sendall(encode(endpoint))
    return channel


def main() -> None:
    """Send each call that arrives until the other end closes."""
    import threading

    # It takes longest: loaded before the first call arrives.
    import_module("pytest_device.sessions.reaper.http")
    channel = SYSTEM.await_channel()
    messages = Decoder[Endpoint | Call](Endpoint | Call)
    lock = threading.Lock()
    endpoint: Endpoint | None = None

    def answer(returned: Returned) -> None:
        with lock:
            try:
                channel.sendall(encode(returned))
            except OSError:  # the other end is gone
                return

    with channel:
        while data := received(channel):
            for message in messages.feed(data):
                if isinstance(message, Endpoint):
                    endpoint = message
                elif endpoint:
                    send(endpoint, message, answer)


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

    seen = bytearray()
    claim = threading.Lock()
    limit = _TimeLimit(call.seconds)

    def finish(answer: Answer) -> None:
        if claim.acquire(blocking=False):  # only the first one answers
            limit.cancel()
            on_answer(Returned(call.number, answer))

    def time_out() -> None:
        if limit.is_exceeded():
            finish(
                NoReply(
                    f"no complete response within {limit.seconds():.0f} s",
                    True,
                    bytes(seen),
                )
            )

    def make() -> None:
        finish(http.send(endpoint, call, seen, limit.change))

    try:
        for work in (time_out, make):
            threading.Thread(target=work, daemon=True).start()
    except RuntimeError as error:  # the system allows no more threads
        finish(NoReply(str(error), sent=False))


class _TimeLimit:
    """The time limit of one call, which may become shorter while it lasts."""

    def __init__(self, seconds: float) -> None:
        import threading

        self._change = threading.Condition()
        self._began = time.monotonic()
        self._latest = self._until = self._began + seconds
        self._is_cancelled = False

    def seconds(self) -> float:
        """Return the seconds from the start of the call to its limit."""
        return self._until - self._began

    def change(self, seconds: float | None) -> None:
        """Let the call end ``seconds`` from now, at the latest; at its first limit, if None."""
        with self._change:
            self._until = (
                self._latest
                if seconds is None
                else min(self._latest, time.monotonic() + seconds)
            )
            self._change.notify()

    def cancel(self) -> None:
        with self._change:
            self._is_cancelled = True
            self._change.notify()

    def is_exceeded(self) -> bool:
        """Wait until the limit is reached; False if it is cancelled before."""
        with self._change:
            while (
                not self._is_cancelled and (left := self._until - time.monotonic()) > 0
            ):
                self._change.wait(left)
            return not self._is_cancelled
