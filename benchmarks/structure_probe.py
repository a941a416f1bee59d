"""A pytest plugin for ``structure.py``: records the calls within the package, with their times."""

import json
import os
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any, Final

# Loads nothing that a run would load later.
from pytest_device.wire import (
    __file__ as a_module,
)

SOURCE: Final = f"{Path(a_module).parent}{os.sep}"
_OPTIMIZED: Final = 1
"""The flag of functions, which module and class bodies lack."""
CALLS: Final[list[tuple[float, str, str]]] = []


def record(frame: FrameType, event: str, _argument: Any) -> None:
    """Record a call of a function of ours; a generator that continues counts, too."""
    code = frame.f_code
    is_ours = event == "call" and code.co_filename.startswith(SOURCE)

    if is_ours and code.co_flags & _OPTIMIZED and not code.co_name.startswith("<"):
        CALLS.append(
            (time.time(), code.co_filename.removeprefix(SOURCE), code.co_qualname)
        )


sys.setprofile(record)


def pytest_unconfigure() -> None:
    """Save the calls."""
    sys.setprofile(None)
    Path(os.environ["STRUCTURE_REPORT"]).write_text(json.dumps(CALLS))
