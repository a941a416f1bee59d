"""The guard process. A module of its own: asyncio, which `guard` needs, takes half of the time that imports take."""

import json
import sys
from pathlib import Path

from pytest_device.platforms import SYSTEM
from pytest_device.service.programs.processes import remove


def main() -> None:
    """Read directories, one JSON string per line, until the end of the file; then stop and remove them."""
    SYSTEM.ignore_signals()  # meant for the service, whose end closes the pipe anyway
    directories = [Path(json.loads(line)) for line in sys.stdin]
    remove(directories)


if __name__ == "__main__":
    main()
