"""Runs a command until its own input ends: the program that started it stopped it, or was killed.

Started as a program of its own, by its path: it imports the standard library alone.
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading

GRACE_SECONDS = 3
"""Time for the command to end by itself, in seconds."""


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
    return process.wait()


def _end_with_input(process: "subprocess.Popen[bytes]") -> None:
    while os.read(0, 1024):
        pass
    _signal(process, signal.SIGTERM)
    try:
        process.wait(GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        _signal(process, signal.SIGKILL)


def _signal(process: "subprocess.Popen[bytes]", number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)


if __name__ == "__main__":
    # Ctrl-C in a terminal reaches the whole group: this process ends with its input.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(main(sys.argv[1:]))
