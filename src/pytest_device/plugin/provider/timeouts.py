"""Pauses pytest-timeout while a test waits for its device, and explains its end of a driver's start."""

import math
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import pytest

from pytest_device.errors import ControllerError


class _Timer(NamedTuple):
    settings: Any
    until: float
    """When it ends the test, on the monotonic clock."""
    limit: float
    """Seconds that the test may take in total; ``settings`` has the rest after a pause."""


_GRACE_SECONDS: Final = 1.0
"""Seconds that a driver's start has to end by itself when the test's time is over."""
_MIN_SECONDS: Final = 0.1
_LIMIT: Final = pytest.StashKey[float]()
"""The limit of a timer that was paused."""
_TIMER: Final = pytest.StashKey[_Timer]()


class TimerNotes:
    """Hooks that track the timer of a test."""

    @pytest.hookimpl(optionalhook=True, tryfirst=True)
    def pytest_timeout_set_timer(self, item: pytest.Item, settings: Any) -> None:
        """Record the timer that pytest-timeout is about to set."""
        limit = item.stash.get(_LIMIT, settings.timeout)
        item.stash[_TIMER] = _Timer(
            settings, time.monotonic() + settings.timeout, limit
        )

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
        _start(item, timer, left)


class _TestTimeoutError(Exception):
    """The test's time ended during the start of its driver."""


@contextmanager
def timeout_explained(item: pytest.Item, page: str) -> Generator[None]:
    """Start a driver in the block, in ``start_limited``; raises ControllerError if the test's time ended in there.

    What is between the two, such as the breaker, does not count it as a failed start: the short timeout of one test is
    no reason to refuse the drivers of others. ``page`` is the session page.
    """
    timer = item.stash.get(_TIMER, None)
    began = time.monotonic()
    try:
        yield
    except _TestTimeoutError:
        limit = f" of {timer.limit:g} s" if timer else ""
        seconds = time.monotonic() - began
        raise ControllerError(
            f"the test's timeout{limit} (pytest-timeout) ended while the Appium driver was starting, after "
            f"{seconds:.1f} s of the start; the wait for the device does not count. Increase the timeout, or see the "
            f"session page for the reason (session page: {page})"
        ) from None


@contextmanager
def start_limited(
    item: pytest.Item, lost: Callable[[], None]
) -> Generator[float | None]:
    """Yield the maximum seconds of a driver's start in the block: what is left of the test's time.

    Without a timer, yield None. pytest-timeout would raise its own error deep in the driver's client, and list what
    every thread does: its timer is only the second limit here, for a start that ignores the first. ``lost`` is called
    if the server may go on with it.
    """
    timer = item.stash.get(_TIMER, None)
    if timer is None:
        yield None
        return

    left = timer.until - time.monotonic()
    item.ihook.pytest_timeout_cancel_timer(item=item)
    _start(item, timer, left + _GRACE_SECONDS)
    has_started = False
    try:
        yield max(_MIN_SECONDS, left)
        has_started = True
    except (ControllerError, pytest.fail.Exception):
        if time.monotonic() < timer.until:
            raise

        lost()
        raise _TestTimeoutError from None
    finally:
        item.ihook.pytest_timeout_cancel_timer(item=item)
        left = timer.until - time.monotonic()
        # After a start within the grace period, too: the test would have no limit.
        if has_started or left > 0:
            _start(item, timer, left)


def _start(item: pytest.Item, timer: _Timer, seconds: float) -> None:
    item.stash[_LIMIT] = timer.limit
    tenths = max(1, math.ceil(10 * seconds))  # shown in pytest-timeout's message
    item.ihook.pytest_timeout_set_timer(
        item=item, settings=timer.settings._replace(timeout=tenths / 10)
    )
