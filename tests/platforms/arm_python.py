"""Builds an ARM Python for Linux that runs under qemu, from packages of Debian and PyPI.

The interpreter is Debian's. Its children are ARM programs, too: a wrapper is its ``sys.executable``, so that the kernel
need not know about qemu.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.platforms.foreign_python import (
    ForeignPython,
    MissingError,
    install_package,
    require,
    require_python,
)

PACKAGES: Final = "qemu-user-static debootstrap"
_EMULATOR: Final = "qemu-aarch64-static"
_RELEASE: Final = "bookworm"
"""Of Debian: the one whose Python is 3.11."""
_UNPACKED: Final = ("lib", "python3", "zlib1g")
"""Starts of the names of packages that the interpreter needs: its own, and libraries."""
_PLATFORMS: Final = ("manylinux_2_17_aarch64", "manylinux_2_28_aarch64")
_WRAPPER: Final = """#!/bin/sh
exec {emulator} -L {root} -0 "$0" {root}/usr/bin/python3.11 "$@"
"""


def check() -> None:
    """Raise MissingError if the machine lacks a program, or a permission."""
    require((_EMULATOR, "debootstrap", "dpkg-deb"), PACKAGES, "/usr/sbin")
    require_python()
    if os.geteuid() != 0:
        raise MissingError("needs root, as debootstrap does to fetch packages")


def build(directory: Path) -> ForeignPython:
    """Build it in a directory, or use what an earlier call built there; install this repository's wheel.

    Raises MissingError if the machine lacks a program, or a permission.
    """
    check()

    root = directory / "root"
    wrapper = _wrapper(directory)
    if not wrapper.exists():
        shutil.rmtree(root, ignore_errors=True)
        _unpack(directory / "download", root)
        # The last file: what is there without it is unfinished.
        emulator = shutil.which(_EMULATOR)
        wrapper.write_text(_WRAPPER.format(emulator=emulator, root=root))
        wrapper.chmod(0o755)

    install_package(root / "usr/lib/python3/dist-packages", _PLATFORMS)
    return python(directory)


def python(directory: Path) -> ForeignPython:
    """Return the one that ``build`` made there."""
    return ForeignPython(
        command=(str(_wrapper(directory)),),
        environ={
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(directory),
            "LANG": "C.UTF-8",
        },
    )


def _wrapper(directory: Path) -> Path:
    # Beside the interpreter, which looks for its library near its own program.
    return directory / "root/usr/bin/python-arm64"


def _unpack(download: Path, root: Path) -> None:
    """Unpack Debian's packages without running any: their scripts would need ARM programs."""
    shutil.rmtree(download, ignore_errors=True)
    log = subprocess.run(
        [
            "debootstrap",
            "--arch=arm64",
            "--variant=minbase",
            "--include=python3",
            "--download-only",
            _RELEASE,
            str(download),
        ],
        env={**os.environ, "PATH": f"{os.environ['PATH']}{os.pathsep}/usr/sbin"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    if log.returncode != 0:
        reason = log.stdout.strip().rpartition("\n")[2]
        raise MissingError(f"needs what debootstrap fetches: {reason}")

    root.mkdir(parents=True)
    for package in sorted(download.glob("var/cache/apt/archives/*.deb")):
        if package.name.startswith(_UNPACKED):
            subprocess.run(["dpkg-deb", "-x", str(package), str(root)], check=True)
    shutil.rmtree(download)


if __name__ == "__main__":
    # What `tox -e arm64` says before its tests would all be skipped.
    try:
        check()
    except MissingError as missing:
        sys.exit(f"tox -e arm64 {missing}")
