"""Polls conditions that other processes fulfil, within a time limit."""

import time
from collections.abc import Callable


def eventually(condition: Callable[[], bool], seconds: float = 60.0) -> bool:
    """Poll until the condition holds, less often with time; return False when the time limit passes first."""
    start = time.monotonic()
    while not condition():
        waited = time.monotonic() - start
        if waited > seconds:
            return False
        time.sleep(min(0.02 + waited / 20, 0.1))
    return True
