"""Builds a Windows Python that runs under Wine, from packages of Debian and PyPI.

The panda3d wheel for Windows carries CPython's own DLL and extension modules; its pure modules are those of the Linux
Python of the same version. Two small programs that Wine or the wheel lacks are compiled here.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path
from typing import Final

from tests.platforms.foreign_python import (
    ForeignPython,
    MissingError,
    install_package,
    require,
    require_python,
)

PACKAGES: Final = "wine64 wine gcc-mingw-w64-x86-64-win32"
WINE_DIRECTORY: Final = "/usr/lib/wine"
"""Where Debian has ``wine64``, which is not on PATH."""
_COMPILER: Final = "x86_64-w64-mingw32-gcc"
_OBJDUMP: Final = "x86_64-w64-mingw32-objdump"

_WHEEL: Final = (
    "panda3d==1.10.16 "
    "--hash=sha256:37acfb92655c4226879f95c988e2ef1449a53c54486d6c1ebc00e2772429af82"
)
_RECIPES: Final = Path(__file__).parent / "recipes"
_LEFT_OUT: Final = shutil.ignore_patterns(
    "site-packages",
    "lib-dynload",
    "test",
    "idlelib",
    "tkinter",
    "ensurepip",
    "config-*",
)


def check() -> None:
    """Raise MissingError if the machine lacks a program."""
    require(("wine64", _COMPILER, _OBJDUMP), PACKAGES, WINE_DIRECTORY)
    require_python()


def build(directory: Path) -> ForeignPython:
    """Build it in a directory, or use what an earlier call built there; install this repository's wheel.

    Raises MissingError if the machine lacks a program.
    """
    check()

    home = directory / "python"
    if not (home / "python.exe").exists():
        shutil.rmtree(home, ignore_errors=True)
        _unpack(directory / "download", home)
        _forward_stable_interface(home)
        _compile(
            "process_prng.c", home / "bcryptprimitives.dll", "-shared", "-ladvapi32"
        )
        # The last file: what is there without it is unfinished.
        _compile("python.c", home / "python.exe", "-municode")

    install_package(home / "Lib/site-packages", ["win_amd64"], ["colorama"])
    return python(directory)


def python(directory: Path) -> ForeignPython:
    """Return the one that ``build`` made there."""
    wine = shutil.which("wine64") or f"{WINE_DIRECTORY}/wine64"
    return ForeignPython(
        command=(wine, str(directory / "python/python.exe")),
        environ={
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(directory),
            # Without one of UTF-8, Wine finds no files with other names than ASCII.
            "LANG": "C.UTF-8",
            "WINEPREFIX": str(directory / "wine"),
            "WINEDEBUG": "-all",
            # Wine offers to download .NET and a browser otherwise.
            "WINEDLLOVERRIDES": "mscoree,mshtml=",
        },
        drive="Z:",
    )


def _unpack(download: Path, home: Path) -> None:
    """Lay out the DLLs of Python itself beside python.exe, extension modules in DLLs, and pure modules in Lib."""
    download.mkdir(parents=True, exist_ok=True)
    requirements = download / "requirements.txt"
    requirements.write_text(_WHEEL)
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "--quiet",
            "download",
            "--no-deps",
            "--platform",
            "win_amd64",
            "--python-version",
            "3.11",
            "--implementation",
            "cp",
            "--only-binary=:all:",
            "--require-hashes",
            "--requirement",
            str(requirements),
        ],
        check=True,
        cwd=download,
    )

    extensions = home / "DLLs"
    extensions.mkdir(parents=True)
    with zipfile.ZipFile(next(download.glob("*.whl"))) as wheel:
        for name in wheel.namelist():
            folder, _, file = name.partition("/")
            if folder != "deploy_libs" or re.match("tcl|tk|_tkinter", file):
                continue
            is_of_python = re.match(r"python3|vcruntime|api-ms", file, re.IGNORECASE)
            target = home if is_of_python else extensions
            (target / file).write_bytes(wheel.read(name))
    shutil.rmtree(download)

    shutil.copytree(sysconfig.get_path("stdlib"), home / "Lib", ignore=_LEFT_OUT)


def _forward_stable_interface(home: Path) -> None:
    """Make python3.dll, which the wheel lacks: psutil and cryptography are linked to it."""
    dump = subprocess.run(
        [_OBJDUMP, "-p", str(home / "python311.dll")],
        check=True,
        capture_output=True,
        encoding="utf-8",
    )
    names = dump.stdout.partition("[Ordinal/Name Pointer] Table")[2]
    exports = re.findall(r"^\s+\[\s*\d+\] (\w+)$", names, re.MULTILINE)

    definition = home / "python3.def"
    lines = [f"  {name}=python311.{name}" for name in exports]
    definition.write_text("\n".join(["LIBRARY python3", "EXPORTS", *lines, ""]))
    subprocess.run(
        [
            _COMPILER,
            "-shared",
            "-nostdlib",
            "-Wl,--entry=0",
            "-o",
            "python3.dll",
            definition.name,
        ],
        check=True,
        cwd=home,
    )
    definition.unlink()


def _compile(source: str, target: Path, *flags: str) -> None:
    subprocess.run(
        [_COMPILER, "-O1", "-o", str(target), str(_RECIPES / source), *flags],
        check=True,
    )


if __name__ == "__main__":
    # What `tox -e windows` says before its tests would all be skipped.
    try:
        check()
    except MissingError as missing:
        sys.exit(f"tox -e windows {missing}")
