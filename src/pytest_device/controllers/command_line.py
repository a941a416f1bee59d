"""Runs agent-device's command line program for one command."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from shutil import which
from typing import Any

from pytest_device.controllers.transport import as_mapping
from pytest_device.errors import ConfigError

_LAST = 1000


def printed(
    args: Sequence[str], environ: Mapping[str, str], *, program: Sequence[str], timeout_seconds: float
) -> Mapping[str, Any] | str:
    """Run the program; return its JSON output, or a sentence on how it ended without any.

    ``program`` is its command, found on PATH if empty. Raises ConfigError if it is not installed. The token is passed
    in the environment only.
    """
    found = list(program) or list(filter(None, [which("agent-device", path=environ.get("PATH"))]))
    if not found:
        raise ConfigError(
            "agent-device is not on PATH: npm install --global agent-device, or pass run(..., program=[...])"
        )
    try:
        ended = subprocess.run(  # noqa: S603  # no shell reads it
            [*found, *args, "--json"],
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="replace",
            timeout=timeout_seconds,
            check=False,
        )
    except OSError as error:
        raise ConfigError(f"agent-device cannot be run: {error.strerror or error}") from None
    except subprocess.TimeoutExpired:
        return f"agent-device {' '.join(args[:1])} took longer than {timeout_seconds:g} s"
    try:
        return as_mapping(json.loads(ended.stdout))
    except ValueError:
        output = (ended.stderr or ended.stdout).strip()[-_LAST:]
        return f"agent-device {' '.join(args[:1])} exited with status {ended.returncode}: {output}"
