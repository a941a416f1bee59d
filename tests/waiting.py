"""Waits for other processes and threads, within a time limit."""

import threading
import time
from collections.abc import Callable


def eventually(condition: Callable[[], bool], seconds: float = 60.0) -> bool:
    """Poll until the condition holds, ever less often; return False when the time limit passes first."""
    deadline = time.monotonic() + seconds
    pause = 0.02
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
        # Some conditions ask a service, or read all processes of the machine.
        pause = min(0.1, pause * 1.1)
    return True


class Checkpoint:
    """A point at which another thread waits, at most a minute, until the test lets it go."""

    def __init__(self) -> None:
        self.reached, self.may_go = threading.Event(), threading.Event()

    def wait(self) -> None:
        """Wait here; called by the other thread."""
        self.reached.set()
        self.may_go.wait(60)
