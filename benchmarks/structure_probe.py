"""A pytest plugin for ``structure.py``: records the calls of a run on the way to the service."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any, Final

import pytest_device

SOURCE: Final = f"{Path(pytest_device.__file__).parent}{os.sep}"
_ACQUIRE: Final = "acquire"
"""The provider's method that gives a test its sessions."""
_CLIENTS: Final = ("sessions/reaper_client.py", "sessions/client.py")
"""Where the calls to the service are made, by way of the reaper or without it."""


class Calls:
    """Watches the main thread."""

    def __init__(self) -> None:
        self.create: list[str] = []
        self.stop: list[str] = []
        self._has_acquired = self._is_created = False

    def __call__(self, frame: FrameType, event: str, _argument: Any) -> None:
        """Record a call within the package."""
        if event != "call" or not frame.f_code.co_filename.startswith(SOURCE):
            return
        file, name = frame.f_code.co_filename.removeprefix(SOURCE), frame.f_code.co_name
        if self._has_acquired and not self._is_created:
            self.create.append(file)
            self._is_created = file in _CLIENTS and name == "create"
        elif not self._has_acquired and file.startswith("plugin/") and name == _ACQUIRE:
            self._has_acquired = True
            self.create.append(file)
        elif self._is_created and not self.stop and file in _CLIENTS and name == "stop":
            self.stop = list(_stack(frame))[::-1]


def _stack(frame: FrameType | None) -> Iterator[str]:
    """Yield the files of ours from a frame up to the hook; frames within dataclasses and generators count, too."""
    while frame:
        if frame.f_code.co_filename.startswith(SOURCE):
            yield frame.f_code.co_filename.removeprefix(SOURCE)
        frame = frame.f_back


CALLS: Final = Calls()


def pytest_runtestloop() -> None:
    """Start counting."""
    sys.setprofile(CALLS)


def pytest_unconfigure() -> None:
    """Save the counts."""
    sys.setprofile(None)
    Path(os.environ["STRUCTURE_REPORT"]).write_text(
        json.dumps({"create": CALLS.create, "stop": CALLS.stop})
    )
