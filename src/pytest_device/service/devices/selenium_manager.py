"""Selenium Manager: finds or downloads a browser and the chromedriver of its version.

It comes with Selenium, a dependency of Appium's client. What it downloads is checked by no hash: users turn it on.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from platform import machine
from typing import Final, Self, cast

from pytest_device.errors import ConfigError
from pytest_device.platforms import SYSTEM
from pytest_device.service.logs import Log
from pytest_device.service.programs.cache import LIMIT_SECONDS, check_cache
from pytest_device.service.programs.program import COMMAND_SECONDS, outcome

TITLE: Final = "Selenium Manager"
_OPTIONS: Final = (
    "--browser",
    "chrome",
    "--output",
    "JSON",
    # Otherwise it tells a third party which browser and system it runs on.
    "--avoid-stats",
    # It would use a chromedriver of another version, too, and one on PATH was checked before.
    "--skip-driver-in-path",
)


@dataclass(frozen=True, slots=True)
class BrowserPair:
    """A browser and the chromedriver for it."""

    browser: Path
    chromedriver: Path


@dataclass(frozen=True, slots=True)
class SeleniumManager:
    """The program, and the directory that it downloads to."""

    program: Path
    directory: Path

    @classmethod
    def of_selenium(cls, cache_dir: Path) -> Self:
        """Return the one that the installed Selenium brings.

        Raises ConfigError if it brings none for this system, or others can write to the cache.
        """
        check_cache(cache_dir)
        selenium = find_spec("selenium")
        if selenium is None or selenium.origin is None:
            raise ConfigError(f"{TITLE} is missing: pip install selenium")

        package = Path(selenium.origin).parent / "webdriver/common"
        for location in SYSTEM.places.selenium_managers(machine()):
            if (package / location).is_file():
                return cls(package / location, cache_dir / "selenium")

        raise ConfigError(
            f"Selenium in {package.parent.parent} brings no {TITLE} for {SYSTEM.title} {machine()}"
        )

    async def installed(
        self, environ: Mapping[str, str], browser: Path | None
    ) -> BrowserPair | None:
        """Return what was downloaded before, without network access; None if something is missing.

        ``browser`` is the one to find a chromedriver for; without one, it takes its own.
        """
        pair, _ = await self._run(environ, browser, "--offline")
        return pair

    async def install(
        self, environ: Mapping[str, str], browser: Path | None, progress: Log
    ) -> BrowserPair:
        """Download what is missing. Raises ConfigError with the cause and the fix."""
        progress(f"{TITLE} downloads {wanted_for(browser)} to {self.directory}, once")
        pair, reason = await self._run(environ, browser, limit_seconds=LIMIT_SECONDS)
        if pair is None:
            raise ConfigError(
                f"{TITLE} installed no {wanted_for(browser)}: {reason}. Fix: check the network and the proxy, "
                "and SE_BROWSER_MIRROR_URL and SE_DRIVER_MIRROR_URL if they are set"
            )
        return pair

    async def _run(
        self,
        environ: Mapping[str, str],
        browser: Path | None,
        *options: str,
        limit_seconds: float = COMMAND_SECONDS,
    ) -> tuple[BrowserPair | None, str]:
        """Return the pair, or None and the reason.

        The exit status does not tell: it is 0 if nothing was found offline.
        """
        command: list[str | Path] = [self.program, *_OPTIONS]
        if browser:
            command += ["--browser-path", browser]
        command += [*options, "--cache-path", self.directory]

        finished = await outcome(command, environ=environ, limit_seconds=limit_seconds)
        return _parsed(finished.printed, finished.reason)


def wanted_for(browser: Path | None) -> str:
    """Return what it downloads, for messages."""
    return f"chromedriver for {browser}" if browser else "Chrome and chromedriver"


def _parsed(printed: str, reason: str) -> tuple[BrowserPair | None, str]:
    """Return the pair in a reply, or None and the reason."""
    try:
        reply = json.loads(printed)
    except ValueError:
        return None, reason

    result = _object(_object(reply).get("result"))
    match result.get("browser_path"), result.get("driver_path"):
        case [str(browser), str(driver)] if _are_files(browser, driver):
            return BrowserPair(Path(browser), Path(driver)), ""
        case _:
            message = result.get("message")
            return None, str(message or _last_warning(reply) or reason)


def _are_files(*paths: str) -> bool:
    return all(path and Path(path).is_file() for path in paths)


def _last_warning(reply: object) -> str:
    logs = _object(reply).get("logs")
    entries = cast("list[object]", logs) if isinstance(logs, list) else []
    for entry in reversed(entries):
        fields = _object(entry)
        if fields.get("level") in ("WARN", "ERROR"):
            return str(fields.get("message"))
    return ""


def _object(value: object) -> Mapping[str, object]:
    """Return a JSON object, an empty one for anything else."""
    return cast("Mapping[str, object]", value) if isinstance(value, dict) else {}
