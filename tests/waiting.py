"""Polls conditions that other processes fulfil, within a time limit."""

import time
from collections.abc import Callable


def eventually(condition: Callable[[], bool], seconds: float = 60.0) -> bool:
    """Poll until the condition holds; return False when the time limit passes first."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
