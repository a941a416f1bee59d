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
    """Return the command of a process that calls ``main`` of a module, with the arguments in ``sys.argv``.

    It imports neither site packages nor anything from the working directory, and reads no user's settings.

    Arguments:
        module: the full name of a module of this package. Its ``main`` returns an exit status or None.
        arguments: the arguments of the program.
    """
    return [sys.executable, "-I", "-S", "-c", _PROGRAM, _PACKAGES, module, *arguments]
