"""Programs that commands install in the cache, once, with their progress on standard error."""

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_device.escape import escaped
from pytest_device.programs import cache_directory

if TYPE_CHECKING:
    from pytest_device.service.programs.toolchain import Toolbox


@contextmanager
def toolbox() -> Generator["Toolbox"]:
    """Provide the programs of the cache; those that are being installed end with the block.

    Raises ImportError without the extra for the local service.
    """
    from pytest_device.service.programs.guard import Guard
    from pytest_device.service.programs.toolchain import Toolbox

    guard = Guard(environ=os.environ, log=show_progress)
    try:
        yield Toolbox(guard, os.environ, cache_directory(os.environ, Path.home()))
    finally:
        guard.close()


def show_progress(line: str) -> None:
    # Standard output has only the result of a command.
    print(escaped(line), file=sys.stderr)
