"""Calls that are made side by side, and waited for."""

import queue
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

_MOST: Final = 32
"""How many threads there are at most; a thread costs 8 MiB of address space, which containers may limit."""


def together(calls: Sequence[Callable[[], object]]) -> None:
    """Make all calls, the first of them in this thread; return when all have ended, raise what one of them raised.

    Each call has an end. An interrupt comes through after all of them; a second one does not wait.
    """
    if len(calls) == 1:  # as after nearly all tests: an error's traceback stays short
        calls[0]()
        return
    left: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()
    for call in calls:
        left.put(call)
    errors: list[BaseException] = []
    threads = [
        threading.Thread(target=_make, args=(left, errors), name="pytest-device-stop", daemon=True)
        for _ in calls[1:_MOST]
    ]
    try:
        for thread in threads:
            thread.start()
        _finish(left, errors, threads)
    except BaseException:
        _finish(left, errors, threads)
        raise
    if errors:
        raise max(errors, key=lambda error: not isinstance(error, Exception))  # an interrupt before all others


def _finish(
    left: queue.SimpleQueue[Callable[[], object]], errors: list[BaseException], threads: Sequence[threading.Thread]
) -> None:
    _make(left, errors)
    for thread in threads:
        if thread.is_alive():
            thread.join()


def _make(left: queue.SimpleQueue[Callable[[], object]], errors: list[BaseException]) -> None:
    with suppress(queue.Empty):
        while True:
            call = left.get_nowait()
            try:
                call()
            except BaseException as error:  # noqa: BLE001  # raised when all calls have ended
                errors.append(error)
