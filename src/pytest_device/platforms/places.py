"""Where each system keeps caches and state, where Node.js and browsers are installed, and how to write paths between places.

Plain values: those of one system can be read on another.
"""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePath
from typing import Final, Protocol, TypeVar

_NAME: Final = "pytest-device"
_VERSION: Final = re.compile(r"\d+(\.\d+){3}")
_NPM: Final = "node_modules/npm/bin/npm-cli.js"
_Path = TypeVar("_Path", bound=PurePath)


class Places(Protocol):
    """The places of one system, for a user with these environment variables and this home directory."""

    node_in_wheel: Path
    """Node.js in the package directory of the wheel that carries it."""
    npm: tuple[Path, ...]
    """Places of npm's script, from the directory of Node.js."""
    browser_names: tuple[str, ...]
    """Names of browsers on PATH, best first."""
    chromedriver: str
    """Name of chromedriver, on PATH and in a directory of its own."""

    def cache(self, environ: Mapping[str, str], home: Path) -> Path:
        """Return the directory of the programs that this package installs."""
        ...

    def state(self, environ: Mapping[str, str], home: Path) -> Path:
        """Return the directory of this package's state."""
        ...

    def browsers(self, environ: Mapping[str, str], home: Path) -> Iterator[Path]:
        """Yield the paths of browsers that are usually not on PATH, best first."""
        ...

    def browser_version(self, program: Path) -> str | None:
        """Return a browser's version where its program does not print it, None elsewhere."""
        ...

    def selenium_managers(self, processor: str) -> tuple[Path, ...]:
        """Return the places of Selenium Manager below the module of Selenium that carries it."""
        ...


class _UnixPlaces:
    node_in_wheel: Path = Path("bin/node")
    npm: tuple[Path, ...] = (Path("../lib") / _NPM,)
    browser_names: tuple[str, ...] = (
        "chromium",
        "chromium-browser",
        "google-chrome",
        "google-chrome-stable",
        "chrome",
        "microsoft-edge",
        "microsoft-edge-stable",
    )
    chromedriver: str = "chromedriver"

    def cache(self, environ: Mapping[str, str], home: Path) -> Path:
        return _below("XDG_CACHE_HOME", environ) or home / ".cache" / _NAME

    def state(self, environ: Mapping[str, str], home: Path) -> Path:
        return _below("XDG_STATE_HOME", environ) or home / ".local/state" / _NAME

    def browsers(self, environ: Mapping[str, str], home: Path) -> Iterator[Path]:
        del environ, home
        yield from ()  # packages put theirs on PATH

    def browser_version(self, program: Path) -> str | None:
        del program
        return None

    def selenium_managers(self, processor: str) -> tuple[Path, ...]:
        # Releases before those for ARM have one for x86_64 only.
        match processor:
            case "x86_64":
                return _selenium_managers("linux-x86_64", "linux")
            case "aarch64" | "arm64":
                return _selenium_managers("linux-arm64")
            case _:
                return ()


class _MacPlaces(_UnixPlaces):
    def cache(self, environ: Mapping[str, str], home: Path) -> Path:
        return _below("XDG_CACHE_HOME", environ) or home / "Library/Caches" / _NAME

    def browsers(self, environ: Mapping[str, str], home: Path) -> Iterator[Path]:
        del environ
        # An application for one user is in that user's directory.
        for directory in (Path("/Applications"), home / "Applications"):
            for name in ("Chromium", "Google Chrome", "Microsoft Edge"):
                yield directory / f"{name}.app/Contents/MacOS/{name}"

    def selenium_managers(self, processor: str) -> tuple[Path, ...]:
        del processor  # one program for both
        return _selenium_managers("macos")


class _WindowsPlaces:
    node_in_wheel: Path = Path("node.exe")
    npm: tuple[Path, ...] = (Path("lib") / _NPM, Path(_NPM))
    browser_names: tuple[str, ...] = ("chromium.exe", "chrome.exe", "msedge.exe")
    chromedriver: str = "chromedriver.exe"

    def cache(self, environ: Mapping[str, str], home: Path) -> Path:
        return _below("XDG_CACHE_HOME", environ) or _local(environ, home) / _NAME

    def state(self, environ: Mapping[str, str], home: Path) -> Path:
        return _below("XDG_STATE_HOME", environ) or _local(environ, home) / _NAME

    def browsers(self, environ: Mapping[str, str], home: Path) -> Iterator[Path]:
        installed_for_all = [
            Path(environ[name])
            for name in ("PROGRAMFILES", "PROGRAMFILES(X86)")
            if environ.get(name)
        ]
        for program in (
            "Chromium/Application/chrome.exe",
            "Google/Chrome/Application/chrome.exe",
            "Microsoft/Edge/Application/msedge.exe",
        ):
            for directory in (*installed_for_all, _local(environ, home)):
                yield directory / program

    def browser_version(self, program: Path) -> str | None:
        # `--version` opens a window there. The libraries are in a directory that is named like the version; during an
        # update there are two.
        try:
            names = [entry.name for entry in program.parent.iterdir()]
        except OSError:
            return ""

        versions = [name for name in names if _VERSION.fullmatch(name)]
        newest = max(
            versions,
            key=lambda version: [int(number) for number in version.split(".")],
            default="",
        )
        return f"{program.stem} {newest}" if newest else ""

    def selenium_managers(self, processor: str) -> tuple[Path, ...]:
        del processor  # Windows on ARM runs it, too
        return _selenium_managers("windows", name="selenium-manager.exe")


UNIX: Final[Places] = _UnixPlaces()
_BY_PLATFORM: Final[Mapping[str, Places]] = {
    "linux": UNIX,
    "darwin": _MacPlaces(),
    "win32": _WindowsPlaces(),
}


def places_on(platform: str) -> Places:
    """Return the places of a system, by its ``sys.platform``; an unknown one is taken for a Unix."""
    return _BY_PLATFORM.get(platform, UNIX)


def _selenium_managers(
    *directories: str, name: str = "selenium-manager"
) -> tuple[Path, ...]:
    return tuple(Path(directory, name) for directory in directories)


def _below(variable: str, environ: Mapping[str, str]) -> Path | None:
    """Return this package's directory below the one of a variable, None if that is unset or relative.

    The XDG specification ignores relative paths. Runs in different directories would not find each other's sessions.
    """
    directory = Path(environ.get(variable, ""))
    return directory / _NAME if directory.is_absolute() else None


def _local(environ: Mapping[str, str], home: Path) -> Path:
    return Path(environ.get("LOCALAPPDATA") or home / "AppData/Local")


def path_from(start: _Path, path: _Path) -> _Path:
    """Return a path as seen from a directory, the path itself if it is on another drive of Windows."""
    try:
        return type(path)(os.path.relpath(path, start))
    except ValueError:
        return path
