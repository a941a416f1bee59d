"""Makes several calls at once, and waits for all of them."""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

_MAX_THREADS: Final = 32
"""Maximum number of threads; each takes 8 MiB of address space, which containers may limit."""


def run_concurrently(calls: Sequence[Callable[[], object]]) -> None:
    """Make all calls concurrently, in this thread and others; return when all have ended, or raise one of their errors.

    Each call ends by itself. An interrupt is raised after all calls; a second one does not wait.
    """
    # As after nearly all tests: without a thread, the traceback of an error is short.
    if len(calls) == 1:
        calls[0]()
        return

    remaining = deque(calls)
    errors = list[BaseException]()

    def work() -> None:
        while call := _taken(remaining):
            try:
                call()
            except BaseException as error:  # noqa: BLE001  # raised once all calls have ended
                errors.append(error)

    threads = [
        threading.Thread(target=work, name="pytest-device-stop", daemon=True)
        for _ in calls[1:_MAX_THREADS]
    ]
    try:
        # Without room for more threads, as in a small container, those that there are make all calls.
        with suppress(RuntimeError):
            for thread in threads:
                thread.start()

        _finish(work, threads)
    except BaseException:
        _finish(work, threads)
        raise

    if errors:
        # Interrupts take precedence.
        raise max(errors, key=lambda error: not isinstance(error, Exception))


def _taken(calls: deque[Callable[[], object]]) -> Callable[[], object] | None:
    # Not by the length: another thread may take the last one meanwhile.
    try:
        return calls.popleft()
    except IndexError:
        return None


def _finish(work: Callable[[], None], threads: Sequence[threading.Thread]) -> None:
    work()
    for thread in threads:
        if thread.is_alive():
            thread.join()
