"""Runs a command until its own input ends: the program that started it stopped it, or was killed.

Started as a program of its own, by its path: it imports the standard library alone.
"""

import os
import signal
import subprocess
import sys
import threading
import time

GRACE_SECONDS = 3
"""Time for the command, and then for its children, to end by themselves, in seconds."""

_POLL_SECONDS = 0.05


def main(command: list[str]) -> int:
    """Start the command, and end it with its children when the input ends; return its exit status."""
    try:
        process = subprocess.Popen(  # noqa: S603  # the user's own setting
            command, stdin=subprocess.DEVNULL, start_new_session=True
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
    _signal(process.pid, signal.SIGTERM)
    try:
        process.wait(GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        _signal(process.pid, signal.SIGKILL)


def _end_children(group: int) -> None:
    """End what a command that has ended left in its group, such as the tunnel of a shell script."""
    deadline = time.monotonic() + GRACE_SECONDS
    is_left = _signal(group, signal.SIGTERM)
    while is_left and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
        is_left = _signal(group, 0)
    _signal(group, signal.SIGKILL)


def _signal(group: int, number: int) -> bool:
    """Send a signal to a group, 0 to ask only; return whether it has processes."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):  # macOS: only zombies are left
        return False
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
