"""Runs a module of this package on the standard library alone, which starts in a few milliseconds."""

import sys
from pathlib import Path
from typing import Final

_PROGRAM: Final = (
    "import sys; sys.path.append(sys.argv.pop(1)); from importlib import import_module; "
    "sys.exit(import_module(sys.argv.pop(1)).main())"
)
_PACKAGES: Final = str(Path(__file__).resolve().parents[2])


def bare_python(module: str, *arguments: str) -> list[str]:
    """Return the command that calls ``main`` of a module, which returns an exit status or None; ``sys.argv`` has the arguments.

    No site packages, no user's settings, and nothing from the working directory.
    """
    return [sys.executable, "-I", "-S", "-c", _PROGRAM, _PACKAGES, module, *arguments]
