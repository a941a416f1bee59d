"""The service as a child process: reads its configuration from standard input, reports events on standard output.

The first line in is the configuration as JSON. Each line out is an event as JSON: ``progress`` with ``text``, then
``ready`` with ``url`` and ``app_id``, or ``error`` with ``text`` and exit status 1. The service stops its
sessions and exits when standard input is closed, or when the parent process exits.
"""

import os
import sys
from pathlib import Path

from pytest_device.errors import ConfigError
from pytest_device.programs import cache_directory
from pytest_device.service.config import parse
from pytest_device.service.parent import first_line, report, watch
from pytest_device.service.server import Changed, Progress, Ready, serve


def main() -> int:
    """Run the service; return the exit status."""
    parent = os.getppid()
    try:
        config = parse(first_line(), cache_dir=cache_directory(os.environ, Path.home()))
        serve(config, _announce, watch=lambda end: watch(parent, end))
    except ConfigError as error:
        report(event="error", text=str(error))
        return 1
    return 0


def _announce(event: Progress | Ready | Changed) -> None:
    match event:
        case Progress(text):
            report(event="progress", text=text)
        case Ready(url, app_id):
            report(event="ready", url=url, app_id=app_id)
        case Changed():
            pass  # the run polls its sessions itself


if __name__ == "__main__":
    sys.exit(main())
