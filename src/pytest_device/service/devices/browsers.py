"""Selects the browser of a session: this machine's own, or the pinned one, which is installed once per user."""

import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from platform import machine
from typing import Final

from pytest_device.errors import ConfigError
from pytest_device.platforms import SYSTEM
from pytest_device.service.devices.browser import find_chromedriver, find_chromium
from pytest_device.service.devices.chromium import KIND
from pytest_device.service.devices.found import Found
from pytest_device.service.logs import Log
from pytest_device.service.programs.cache import Package, check_cache
from pytest_device.service.programs.program import ask
from pytest_device.service.programs.toolchain import (
    CHROMIUM,
    PIP,
    Toolbox,
    digest,
    pinned_in,
)
from pytest_device.spec import SessionType

BUILT_FOR: Final = "Linux x86_64"
"""Operating system and architecture of the pinned browser."""
DOWNLOAD_MB: Final = 120
DISK_MB: Final = 240

_DRIVER_FILES: Final = tuple(
    Path(__file__).parent.parent / "programs/pip/chromedriver" / name
    for name in ("requirements.txt", "install.py")
)
_INSTALL: Final = {
    "apt-get": "apt-get install chromium chromium-driver",
    "dnf": "dnf install chromium chromedriver",
    "apk": "apk add chromium chromium-chromedriver",
    "pacman": "pacman -S chromium",
    "zypper": "zypper install chromium chromedriver",
    "brew": "brew install --cask google-chrome chromedriver",
}
_BY_HAND: Final = "install Chromium, and chromedriver of its version, with both on PATH"
_VERSION: Final = re.compile(r"(\d+)\.\d+\.\S+")


def hardware() -> str:
    """Return this machine's operating system and architecture, spelled as in ``BUILT_FOR``."""
    return f"{SYSTEM.title} {machine()}"


@dataclass(frozen=True, slots=True)
class Pinned:
    """The browser in a cache directory and the chromedriver of its version, installed or not."""

    cache_dir: Path
    python: str = sys.executable
    by_hand: str = _BY_HAND

    @property
    def program(self) -> Path:
        """The browser."""
        return CHROMIUM.directory(self.cache_dir) / CHROMIUM.script

    @property
    def chromedriver(self) -> Path:
        """The matching chromedriver, for Appium."""
        return self._driver.directory / self._driver.proof

    def missing(self, session_type: SessionType) -> list[str]:
        """Return the titles of the programs to install before a session of this type."""
        needs_driver = session_type is SessionType.APPIUM and not self._driver.installed
        return [
            *([] if self.program.is_file() else [CHROMIUM.title]),
            *([self._driver.title] if needs_driver else []),
        ]

    async def install(
        self, toolbox: Toolbox, session_type: SessionType, progress: Log
    ) -> None:
        """Install missing programs for a session type. Raises ConfigError with the cause and the fix."""
        if not self.program.is_file():
            await toolbox.get(CHROMIUM, progress)
        if session_type is SessionType.APPIUM:
            await toolbox.ensure(self._driver, progress)

    @property
    def _driver(self) -> Package:
        libraries = self.program.parent / "al2023/lib"
        version = pinned_in(_DRIVER_FILES[0]).partition("==")[2]
        return Package(
            title=f"chromedriver {version}",
            directory=self.cache_dir
            / f"chromedriver-{version}-{digest(_DRIVER_FILES)}",
            proof=Path("chromedriver"),
            command=[
                *(self.python, _DRIVER_FILES[1].name, libraries),
                *(self.python, *PIP),
            ],
            files=_DRIVER_FILES,
            by_hand=self.by_hand,
        )


async def find(
    environ: Mapping[str, str],
    session_type: SessionType,
    *,
    cache_dir: Path | None,
    built_for: str,
) -> Found:
    """Return the browser for a session type: the machine's own if it is suitable, otherwise the pinned one.

    Nothing is installed without a ``cache_dir``.
    """
    program, driver = find_chromium(environ), find_chromedriver(environ)
    versions = [
        await _version(one, environ) if one else "" for one in (program, driver)
    ]
    lacking = (
        list(_lacking(program, driver, versions))
        if session_type is SessionType.APPIUM or not program
        else []
    )
    fix = install_line(environ)
    if not lacking:
        return Found(KIND, program=program, chromedriver=driver, about=versions[0])
    if cache_dir is None or built_for != BUILT_FOR:
        return Found(KIND, (), program, driver, missing=", ".join(lacking), fix=fix)
    try:
        check_cache(cache_dir)
    except ConfigError as error:
        return Found(
            KIND,
            (),
            program,
            driver,
            missing=f"{', '.join(lacking)}, and {error}",
            fix=fix,
        )
    pinned = Pinned(cache_dir, by_hand=fix)
    unused = f"; {program} is not used: {', '.join(lacking)}" if program else ""
    return Found(
        KIND,
        program=pinned.program,
        chromedriver=pinned.chromedriver
        if session_type is SessionType.APPIUM
        else None,
        about=f"{CHROMIUM.title}, installed by pytest-device{unused}",
        to_install=" and ".join(pinned.missing(session_type)),
        fix=fix,
    )


def install_line(environ: Mapping[str, str]) -> str:
    """Return the command that installs a browser on this machine."""
    path = os.pathsep.join([environ.get("PATH", ""), os.defpath])
    return next(
        (line for tool, line in _INSTALL.items() if shutil.which(tool, path=path)),
        _BY_HAND,
    )


def _lacking(
    program: Path | None, driver: Path | None, versions: list[str]
) -> Iterator[str]:
    """Yield why Appium cannot use this machine's browser; an unknown version is assumed to match."""
    if not program:
        yield "no Chromium is on PATH"
    if not driver:
        yield "chromedriver is not on PATH"
    majors = [found[1] for version in versions if (found := _VERSION.search(version))]
    if program and driver and len(set(majors)) > 1:
        yield f"chromedriver {majors[1]} on PATH does not match Chromium {majors[0]}"


async def _version(program: Path, environ: Mapping[str, str]) -> str:
    try:
        printed = await ask([program, "--version"], environ=environ)
    except ConfigError:  # starting it reports the problem in detail
        return ""
    return printed.strip().partition("\n")[0]
