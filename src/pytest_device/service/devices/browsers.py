"""Selects the browser of a session, and installs what is missing.

It is this machine's own if it has a chromedriver of the same major version: on PATH, or the pinned one where that is for
this system. Otherwise it is that of Selenium Manager, if the user allows it, or the pinned browser on Linux x86_64.
"""

import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from platform import machine
from typing import Final, assert_never

from pytest_device.errors import ConfigError
from pytest_device.platforms import SYSTEM
from pytest_device.service.devices.availability import Availability, Origin
from pytest_device.service.devices.browser import (
    KIND,
    find_browsers,
    find_chromedriver,
)
from pytest_device.service.devices.selenium_manager import (
    TITLE,
    BrowserPair,
    SeleniumManager,
    wanted_for,
)
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
"""At most, for the pinned browser and its chromedriver: `doctor` names both before the first installation."""
DISK_MB: Final = 240

_DRIVER_FILES: Final = tuple(
    Path(__file__).parent.parent / "programs/pip/chromedriver" / name
    for name in ("requirements.txt", "install.py")
)
_DRIVERS: Final = {
    BUILT_FOR: "chromedriver_linux64",
    "Darwin arm64": "chromedriver_mac-arm64",
    "Darwin x86_64": "chromedriver_mac-x64",
    "Windows AMD64": "chromedriver_win64.exe",
}
"""The pinned package's chromedrivers, by the hardware that they are for."""
_DOWNLOADABLE: Final = (*_DRIVERS, "Windows ARM64")
"""The hardware that Chrome is published for, as Selenium Manager downloads it."""
SELENIUM_MANAGER_FLAG: Final = "--device-local-selenium-manager"
VERSION_SECONDS: Final = 10.0
"""Maximum seconds until a program prints its version; on macOS, the first start of a download is checked before."""
_INSTALL: Final = {
    "apt-get": "apt-get install chromium chromium-driver",
    "dnf": "dnf install chromium chromedriver",
    "apk": "apk add chromium chromium-chromedriver",
    "pacman": "pacman -S chromium",
    "zypper": "zypper install chromium chromedriver",
    "brew": "brew install --cask google-chrome chromedriver",
}
_BY_HAND: Final = "install Chromium, and chromedriver of its version, with both on PATH"
_VERSION: Final = re.compile(r"(?<!\d)(\d+)\.\d+\.\S+")


def hardware() -> str:
    """Return this machine's operating system and architecture, spelled as in ``BUILT_FOR``."""
    return f"{SYSTEM.title} {machine()}"


@dataclass(frozen=True, slots=True)
class Pinned:
    """The browser in a cache directory and the chromedriver of its version, installed or not.

    On other hardware than ``BUILT_FOR`` there is only the chromedriver, for the machine's own browser.
    """

    cache_dir: Path
    python: str = sys.executable
    by_hand: str = _BY_HAND
    built_for: str = BUILT_FOR

    @property
    def program(self) -> Path:
        """The browser."""
        return CHROMIUM.directory(self.cache_dir) / CHROMIUM.script

    @property
    def chromedriver(self) -> Path:
        """The matching chromedriver, for Appium."""
        return self._driver.directory / self._driver.proof

    @property
    def has_browser(self) -> bool:
        """Whether the pinned browser runs here."""
        return self.built_for == BUILT_FOR

    def fits(self, version: str) -> bool:
        """Return whether the pinned chromedriver is for a browser of this version, without the pinned one."""
        # Where there is a pinned browser, the libraries of its chromedriver come with it.
        return (
            not self.has_browser
            and self.built_for in _DRIVERS
            and _major(version) == _major(pinned_driver_version())
        )

    def missing(self, session_type: SessionType) -> list[str]:
        """Return the titles of the programs to install before a session of this type."""
        titles: list[str] = []
        if self.has_browser and not self.program.is_file():
            titles.append(CHROMIUM.title)
        if session_type is SessionType.APPIUM and not self._driver.installed:
            titles.append(self._driver.title)
        return titles

    async def install(
        self, toolbox: Toolbox, session_type: SessionType, progress: Log
    ) -> None:
        """Install missing programs for a session type. Raises ConfigError with the cause and the fix."""
        if self.has_browser and not self.program.is_file():
            await toolbox.get(CHROMIUM, progress)
        if session_type is SessionType.APPIUM:
            await toolbox.ensure(self._driver, progress)

    @property
    def _driver(self) -> Package:
        name = _DRIVERS[self.built_for]
        libraries = self.program.parent / "al2023/lib" if self.has_browser else ""
        version = pinned_driver_version()
        _, script = _DRIVER_FILES
        return Package(
            title=f"chromedriver {version}",
            directory=self.cache_dir
            / f"chromedriver-{version}-{digest(_DRIVER_FILES)}",
            proof=Path(f"chromedriver{Path(name).suffix}"),
            # The script takes the chromedriver's name, its libraries, and the command of pip that it runs.
            command=[self.python, script.name, name, libraries, self.python, *PIP],
            files=_DRIVER_FILES,
            by_hand=self.by_hand,
        )


def pinned_driver_version() -> str:
    """Return the version of the pinned chromedriver."""
    return pinned_in(_DRIVER_FILES[0]).partition("==")[2]


@dataclass(frozen=True, slots=True)
class _Own:
    """This machine's browser and chromedriver, and why a session cannot use them."""

    program: Path | None
    version: str
    chromedriver: Path | None
    problems: Sequence[str] = ()


async def find(
    environ: Mapping[str, str],
    session_type: SessionType,
    *,
    cache_dir: Path | None,
    built_for: str,
    selenium_manager: bool = False,
    limit_seconds: float = VERSION_SECONDS,
) -> Availability:
    """Return the browser for a session type: the machine's own if it is suitable.

    Arguments:
        environ: The environment to search, and of the programs that print their versions.
        session_type: The session type: only Appium needs a chromedriver.
        cache_dir: The directory for what may be installed; None to use only what this machine has.
        built_for: The hardware of this machine, see ``hardware``.
        selenium_manager: Whether Selenium Manager may download what is missing.
        limit_seconds: The maximum time until a program prints its version; a slower one counts as one that does not run.
    """
    own = await _own(environ, session_type, limit_seconds)
    availability = Availability(
        KIND,
        program=own.program,
        chromedriver=own.chromedriver,
        missing=", ".join(own.problems),
        about="" if own.problems else own.version,
        fix=install_line(environ) if own.problems else "",
    )
    if not own.problems or cache_dir is None:
        return availability

    pinned = Pinned(cache_dir, by_hand=availability.fix, built_for=built_for)
    try:
        check_cache(cache_dir)
        if pinned.fits(own.version):
            return _with_pinned_driver(availability, own, pinned)
        if selenium_manager:
            return await _managed(availability, environ, session_type, pinned, own)
    except ConfigError as error:
        return replace(availability, missing=f"{availability.missing}, and {error}")

    if pinned.has_browser:
        return _with_pinned(availability, pinned, session_type)
    return replace(availability, fix=f"{availability.fix}{_other_fix(built_for)}")


async def install(
    availability: Availability,
    toolbox: Toolbox,
    session_type: SessionType,
    progress: Log,
    *,
    built_for: str,
) -> Availability:
    """Install the missing programs of a browser; return it with them. Raises ConfigError with the cause and the fix."""
    match availability.origin:
        case Origin.MACHINE:
            return availability
        case Origin.PINNED | Origin.PINNED_DRIVER:
            pinned = Pinned(
                toolbox.cache_dir, by_hand=availability.fix, built_for=built_for
            )
            await pinned.install(toolbox, session_type, progress)
            return replace(availability, to_install="")
        case Origin.SELENIUM_MANAGER:
            return await _download(availability, toolbox, progress)
        case _:
            assert_never(availability.origin)


def _with_pinned_driver(
    availability: Availability, own: _Own, pinned: Pinned
) -> Availability:
    return replace(
        availability,
        chromedriver=pinned.chromedriver,
        missing="",
        about=f"{own.version} with the pinned chromedriver",
        to_install=" and ".join(pinned.missing(SessionType.APPIUM)),
        origin=Origin.PINNED_DRIVER,
    )


def _with_pinned(
    availability: Availability, pinned: Pinned, session_type: SessionType
) -> Availability:
    is_appium = session_type is SessionType.APPIUM
    unused = (
        f"{availability.program} is not used: {availability.missing}"
        if availability.program
        else ""
    )
    return replace(
        availability,
        program=pinned.program,
        chromedriver=pinned.chromedriver if is_appium else None,
        missing="",
        about=f"{CHROMIUM.title}, installed by pytest-device{unused and f'; {unused}'}",
        unused=unused,
        to_install=" and ".join(pinned.missing(session_type)),
        origin=Origin.PINNED,
    )


async def _managed(
    availability: Availability,
    environ: Mapping[str, str],
    session_type: SessionType,
    pinned: Pinned,
    own: _Own,
) -> Availability:
    """Return what Selenium Manager has downloaded, or will. Raises ConfigError if there is none for this system."""
    if pinned.built_for not in _DOWNLOADABLE:
        raise ConfigError(f"{TITLE} has no browser for {pinned.built_for}")

    manager = SeleniumManager.of_selenium(pinned.cache_dir)
    pair = await manager.installed(environ, own.program)
    if pair is None:
        return replace(
            availability,
            chromedriver=None,
            missing="",
            to_install=f"{wanted_for(own.program)} by {TITLE}",
            origin=Origin.SELENIUM_MANAGER,
        )

    ready = replace(
        availability,
        program=pair.browser,
        chromedriver=pair.chromedriver,
        missing="",
        about=f"installed by {TITLE}: {', '.join(own.problems)}",
        origin=Origin.SELENIUM_MANAGER,
    )
    if session_type is SessionType.APPIUM:
        await _check_pair(pair, environ)
    return ready


async def _download(
    availability: Availability, toolbox: Toolbox, progress: Log
) -> Availability:
    """Run Selenium Manager, and check what it downloaded."""
    manager = SeleniumManager.of_selenium(toolbox.cache_dir)
    own = availability.program
    pair = await manager.install(toolbox.environ, own, progress)

    version = await _check_pair(pair, toolbox.environ)
    return replace(
        availability,
        program=pair.browser,
        chromedriver=pair.chromedriver,
        about=f"{version}, installed by {TITLE}",
        to_install="",
    )


def install_line(environ: Mapping[str, str]) -> str:
    """Return the command that installs a browser on this machine."""
    path = os.pathsep.join([environ.get("PATH", ""), os.defpath])
    for tool, command in _INSTALL.items():
        if shutil.which(tool, path=path):
            return command
    return _BY_HAND


async def _check_pair(pair: BrowserPair, environ: Mapping[str, str]) -> str:
    """Return the browser's version. Raises ConfigError if its chromedriver is for another one, or does not run."""
    driver = await _driver_version(pair.chromedriver, environ, VERSION_SECONDS)
    browser = await _browser_version(pair.browser, environ, VERSION_SECONDS)
    problem = driver.problem or _mismatch(driver.text, browser)
    if problem:
        raise ConfigError(f"{TITLE} installed a pair that does not fit: {problem}")
    return browser


async def _own(
    environ: Mapping[str, str], session_type: SessionType, limit_seconds: float
) -> _Own:
    """Return the first browser of this machine that the session can use, or the first and why it cannot."""
    programs = find_browsers(environ)
    chromedriver = find_chromedriver(environ)
    problems = _absent(programs, chromedriver)
    if programs and session_type is not SessionType.APPIUM:
        version = await _browser_version(programs[0], environ, limit_seconds)
        return _Own(programs[0], version, chromedriver)

    driver = _Version()
    if chromedriver and session_type is SessionType.APPIUM:
        driver = await _driver_version(chromedriver, environ, limit_seconds)
    if driver.problem:
        problems.append(driver.problem)
    if not programs:
        return _Own(None, "", chromedriver, problems)

    candidates: list[_Own] = []
    for program in programs:
        version = await _browser_version(program, environ, limit_seconds)
        mismatch = _mismatch(driver.text, version, " on PATH")
        its_problems = [*problems, mismatch] if mismatch else problems
        candidates.append(_Own(program, version, chromedriver, its_problems))
    return _best(candidates)


def _best(candidates: Sequence[_Own]) -> _Own:
    """Return the first browser without problems; otherwise the one that the pinned chromedriver is for, or the first."""
    for own in candidates:
        if not own.problems:
            return own

    pinned_major = _major(pinned_driver_version())
    for own in candidates:
        if _major(own.version) == pinned_major:
            return own
    return candidates[0]


def _absent(programs: Sequence[Path], chromedriver: Path | None) -> list[str]:
    problems: list[str] = []
    if not programs:
        problems.append("no Chromium is on PATH")
    if not chromedriver:
        problems.append("chromedriver is not on PATH")
    return problems


def _mismatch(driver: str, browser: str, origin: str = "") -> str:
    """Return how the major versions differ, "" if they do not; an unknown version is assumed to match."""
    driver_major, browser_major = _major(driver), _major(browser)
    if not driver_major or not browser_major or driver_major == browser_major:
        return ""
    return (
        f"chromedriver {driver_major}{origin} does not match Chromium {browser_major}"
    )


def _major(version: str) -> str:
    match = _VERSION.search(version)
    return match[1] if match else ""


@dataclass(frozen=True, slots=True)
class _Version:
    """What a program prints as its version, or why it does not run."""

    text: str = ""
    problem: str = ""


async def _driver_version(
    chromedriver: Path, environ: Mapping[str, str], limit_seconds: float
) -> _Version:
    """Ask chromedriver: the wrong architecture and a quarantine are found by starting it alone."""
    try:
        printed = await ask(
            [chromedriver, "--version"], environ=environ, limit_seconds=limit_seconds
        )
    except ConfigError as error:
        return _Version(problem=f"chromedriver does not run: {error}")
    return _Version(_first_line(printed))


async def _browser_version(
    program: Path, environ: Mapping[str, str], limit_seconds: float
) -> str:
    # On Windows, asking the program would open a window.
    version = SYSTEM.places.browser_version(program)
    if version is not None:
        return version

    try:
        printed = await ask(
            [program, "--version"], environ=environ, limit_seconds=limit_seconds
        )
    except ConfigError:  # starting it reports the problem in detail
        return ""
    return _first_line(printed)


def _first_line(printed: str) -> str:
    return printed.strip().partition("\n")[0]


def _other_fix(built_for: str) -> str:
    """Return the ways beside the system's packages, "" if there are none."""
    if built_for not in _DOWNLOADABLE:
        return ""

    pinned = ""
    if built_for in _DRIVERS:
        pinned = f", or a browser of version {_major(pinned_driver_version())}"
    return f"{pinned}, or let {TITLE} download it: {SELENIUM_MANAGER_FLAG}"
