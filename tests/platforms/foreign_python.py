"""A Python for another system or processor that runs on this machine, with the package in it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
EXTRAS: Final = "app,auth,local,redis,services,trace"
VERSION: Final = "3.11"


class MissingError(Exception):
    """This machine lacks something; the message is one line with the command that installs it."""


@dataclass(frozen=True)
class ForeignPython:
    """A Python of another system: the start of its command, and what it needs in its environment."""

    command: tuple[str, ...]
    environ: Mapping[str, str]
    drive: str = ""
    """Where it finds the root of this machine's files, if that has a name."""

    def start(
        self, arguments: Sequence[str], *, cwd: Path, environ: Mapping[str, str]
    ) -> subprocess.Popen[str]:
        """Start it with pipes for all three streams: Wine gives no other kind to a program without a console."""
        return subprocess.Popen(
            [*self.command, *arguments],
            cwd=cwd,
            env={**self.environ, **environ},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            # A run that hangs is ended with its workers.
            start_new_session=True,
        )


def require(programs: Sequence[str], packages: str, searched: str = "") -> None:
    """Raise MissingError unless all programs are there."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), searched])
    missing = [program for program in programs if not shutil.which(program, path=path)]
    if missing:
        raise MissingError(
            f"needs {', '.join(missing)} of this system, which no test installs: "
            f"apt-get install --no-install-recommends {packages}"
        )


def require_python() -> None:
    """Raise MissingError unless this Python has the version whose standard library the foreign one takes."""
    if "{}.{}".format(*sys.version_info) != VERSION:
        raise MissingError(
            f"needs a Python {VERSION} of this system, for its standard library"
        )


def install_package(
    site: Path, platforms: Sequence[str], more: Sequence[str] = ()
) -> None:
    """Install this repository's wheel, new, and what it depends on for other platforms, unless it is there.

    ``more`` names what pip leaves out because it reads the conditions of dependencies for its own system.
    """
    wheels = site.parent / "wheels"
    shutil.rmtree(wheels, ignore_errors=True)
    _pip("wheel", "--no-deps", "--wheel-dir", str(wheels), str(ROOT))
    wheel = next(wheels.glob("*.whl"))

    target = ["--target", str(site), "--upgrade", "--no-compile"]
    if (site / "pytest_device").exists():
        # pip would keep files that the new wheel no longer has.
        shutil.rmtree(site / "pytest_device")
        _pip("install", *target, "--no-deps", str(wheel))
        return

    _pip(
        "install",
        *target,
        *(f"--platform={name}" for name in platforms),
        "--python-version",
        VERSION,
        "--implementation",
        "cp",
        "--only-binary=:all:",
        f"{wheel}[{EXTRAS}]",
        *more,
    )


def _pip(*arguments: str) -> None:
    subprocess.run(
        [sys.executable, "-m", "pip", "--quiet", *arguments], check=True, cwd="/"
    )
