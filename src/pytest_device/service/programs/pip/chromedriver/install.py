"""Installs chromedriver with pip into the current directory; the script that finds its libraries is written last."""  # noqa: INP001  it runs by itself

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

PACKAGE: Final = Path("chromedriver_py")
PLATFORM: Final = "chromedriver_linux64"
PROGRAM: Final = f"""\
#!/bin/sh
here="${{0%/*}}"
export LD_LIBRARY_PATH="$here/lib${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"
exec "$here/{PACKAGE}/{PLATFORM}" "$@"
"""


def main(pip: list[str], libraries: Path) -> None:
    """Install, remove the files for other systems, and check that it runs here, with the libraries of the browser."""
    _run(*pip)
    for other in set(PACKAGE.glob("chromedriver_*")) - {PACKAGE / PLATFORM}:
        other.unlink()
    shutil.copytree(libraries, "lib")
    program = Path("program")
    program.write_text(PROGRAM)
    program.chmod(0o755)
    _run("./program", "--version")
    program.rename("chromedriver")


def _run(*command: str) -> None:
    if status := subprocess.run(command, check=False).returncode:  # noqa: S603  it comes from this package
        sys.exit(status)


if __name__ == "__main__":
    main(sys.argv[2:], Path(sys.argv[1]))
