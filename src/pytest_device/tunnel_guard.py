"""Runs a command until its own input ends: the program that started it stopped it, or was killed.

A program of its own, on the standard library alone.
"""

import os
import subprocess
import sys
import threading
import time

from pytest_device.platforms import SYSTEM

GRACE_SECONDS = 3
"""Time for the command, and then for its children, to end by themselves, in seconds."""

_POLL_SECONDS = 0.05


def main() -> int:
    """Start the command, and end it with its children when the input ends; return its exit status."""
    command = sys.argv[1:]
    try:
        process = subprocess.Popen(  # noqa: S603  # the user's own setting
            command,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            creationflags=SYSTEM.creation_flags,
        )
    except OSError as error:
        sys.stdout.write(f"{command[0]}: {error.strerror}\n")
        return 127

    threading.Thread(target=_end_with_input, args=(process,), daemon=True).start()
    status = process.wait()
    _end_children(process.pid)

    return status


def _end_with_input(process: "subprocess.Popen[bytes]") -> None:
    while os.read(0, 1024):
        pass

    SYSTEM.terminate_group(process.pid)
    try:
        process.wait(GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        SYSTEM.kill_group(process.pid)


def _end_children(group: int) -> None:
    """End what a command that has ended left in its group, such as the tunnel of a shell script."""
    deadline = time.monotonic() + GRACE_SECONDS
    is_left = SYSTEM.terminate_group(group)
    while is_left and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
        is_left = SYSTEM.has_group(group)

    SYSTEM.kill_group(group)
