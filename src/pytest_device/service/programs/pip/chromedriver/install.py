"""Installs chromedriver with pip into the current directory; the program that is started is written last."""  # noqa: INP001  it runs by itself

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

PACKAGE: Final = Path("chromedriver_py")
WITH_LIBRARIES: Final = """\
#!/bin/sh
here="${{0%/*}}"
export LD_LIBRARY_PATH="$here/lib${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"
exec "$here/{program}" "$@"
"""


def main(name: str, libraries: str, *pip: str) -> None:
    """Install, keep the program ``name`` alone, and check that it runs here.

    It runs with the ``libraries`` of the pinned browser; "" if the system has them.
    """
    _run(*pip)
    for other in set(PACKAGE.glob("chromedriver_*")) - {PACKAGE / name}:
        other.unlink()
    suffix = Path(name).suffix
    program = Path(f"program{suffix}")
    if libraries:
        shutil.copytree(libraries, "lib")
        program.write_text(WITH_LIBRARIES.format(program=PACKAGE / name))
    else:
        (PACKAGE / name).rename(program)
    program.chmod(0o755)
    _run(str(program.absolute()), "--version")
    program.rename(f"chromedriver{suffix}")


def _run(*command: str) -> None:
    if status := subprocess.run(command, check=False).returncode:  # noqa: S603  it comes from this package
        sys.exit(status)


if __name__ == "__main__":
    main(*sys.argv[1:])
