"""Pauses pytest-timeout while a test waits for its device."""

import math
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import pytest


class _Timer(NamedTuple):
    settings: Any
    until: float
    """When it ends the test, on the monotonic clock."""


_TIMER: Final = pytest.StashKey[_Timer]()


class TimerNotes:
    """Hooks that track the timer of a test."""

    @pytest.hookimpl(optionalhook=True, tryfirst=True)
    def pytest_timeout_set_timer(self, item: pytest.Item, settings: Any) -> None:
        """Record the timer that pytest-timeout is about to set."""
        item.stash[_TIMER] = _Timer(settings, time.monotonic() + settings.timeout)

    @pytest.hookimpl(optionalhook=True, tryfirst=True)
    def pytest_timeout_cancel_timer(self, item: pytest.Item) -> None:
        """Forget the timer that pytest-timeout is about to cancel."""
        if _TIMER in item.stash:
            del item.stash[_TIMER]


@contextmanager
def timer_paused(item: pytest.Item) -> Generator[None]:
    """Pause a test's timer during the block; restart it with the remaining time."""
    timer = item.stash.get(_TIMER, None)
    if timer is None:
        yield
        return

    left = timer.until - time.monotonic()
    item.ihook.pytest_timeout_cancel_timer(item=item)
    try:
        yield
    finally:
        tenths = max(1, math.ceil(10 * left))  # shown in pytest-timeout's message
        item.ihook.pytest_timeout_set_timer(
            item=item, settings=timer.settings._replace(timeout=tenths / 10)
        )
