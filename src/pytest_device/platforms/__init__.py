"""The operating system: chosen once, and asked for nowhere else.

Standard library alone: the reaper and the programs of the local service import it, too.
"""

import sys
from typing import Final

from pytest_device.platforms.system import System

if sys.platform == "linux":
    from pytest_device.platforms.linux import Linux as _System
elif sys.platform == "darwin":
    from pytest_device.platforms.darwin import Darwin as _System
elif sys.platform == "win32":
    from pytest_device.platforms.windows import Windows as _System
else:
    from pytest_device.platforms.posix import Posix as _System

SYSTEM: Final[System] = _System()
"""This system."""
