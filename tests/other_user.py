"""What another user of this machine tries: scripts that run as ``nobody``."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Final

import pytest

IS_POSSIBLE: Final = sys.platform == "linux" and os.geteuid() == 0
only_as_root: Final = pytest.mark.skipif(
    not IS_POSSIBLE, reason="only root on Linux can act as another user"
)

WAYS: Final = ("127.0.0.1", "::ffff:127.0.0.1", "localhost", "0.0.0.0")
"""Ways to an IPv4 port: a mapped address uses an IPv6 socket, which is in the kernel's other list."""

# This Python may be in root's home, where others can read nothing: it changes its user only after it has imported what
# the scripts need. Another Python, on PATH, may be missing.
_BECOME: Final = r"""
import encodings.idna, json, os, pwd, socket, sys

other = pwd.getpwnam(sys.argv[1])
os.setgroups([])
os.setgid(other.pw_gid)
os.setuid(other.pw_uid)
"""
_REQUESTS: Final = r"""
for address, port, sent in json.load(sys.stdin):
    with socket.create_connection((address, port), timeout=20) as connection:
        connection.sendall(sent.encode())
        answer = b""
        while part := connection.recv(65536):
            answer += part
    print(json.dumps(answer.decode(errors="replace")))
"""
_SEND_AND_CLOSE: Final = r"""
address, port, sent = json.load(sys.stdin)
with socket.create_connection((address, port), timeout=20) as connection:
    connection.sendall(sent.encode())
"""


def answers(
    port: int, requests: Sequence[str], ways: Sequence[str] = WAYS, user: str = "nobody"
) -> list[str]:
    """Send each request over each way as a user, on a connection of its own; return the answers."""
    sent = json.dumps([(way, port, request) for way in ways for request in requests])
    return [json.loads(line) for line in run(_REQUESTS, sent, user).splitlines()]


def send_and_close(way: str, port: int, request: str) -> None:
    """Send a request as another user, and close the connection at once."""
    run(_SEND_AND_CLOSE, json.dumps((way, port, request)), "nobody")


def request(method: str, path: str, port: int, *headers: str, body: str = "") -> str:
    """Return a request as text, for a server on a port of this machine; the server closes the connection after it."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{port}", *headers]
    return "\r\n".join(
        [*lines, "Connection: close", f"Content-Length: {len(body)}", "", body]
    )


def run(script: str, sent: str, user: str = "nobody") -> str:
    """Run a Python script as a user, with a text as its standard input; return what it printed.

    The script uses ``json``, ``socket`` and ``sys`` without importing them. Raises subprocess.CalledProcessError if it
    fails.
    """
    return subprocess.run(
        [sys.executable, "-c", f"{_BECOME}{script}", user],
        input=sent,
        cwd="/",
        env={},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout
