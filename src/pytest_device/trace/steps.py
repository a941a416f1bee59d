"""Steps that a suite names itself: recorded in the trace of the current test, if there is one."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from pytest_device.trace.recorder import Recorder


class CurrentRecorder:
    """The recorder of the test that runs in this process now."""

    def __init__(self) -> None:
        self.recorder: Recorder | None = None


CURRENT: Final = CurrentRecorder()
"""Set by the plugin while a test is recorded: a step has no access to pytest."""


@contextmanager
def device_step(title: str) -> Generator[None]:
    """Show the block as a step in the trace of the test; without a trace, it does nothing.

    >>> with device_step("pay"):
    ...     total = 2 + 3
    """
    if CURRENT.recorder is None:
        yield
        return

    with CURRENT.recorder.step(title):
        yield
