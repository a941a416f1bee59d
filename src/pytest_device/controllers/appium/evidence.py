"""Collects evidence from a device whose test failed: screen contents and logs, within time limits."""

import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from pytest_device.controllers.appium.connection import (
    capability,
    client_errors,
    has_no_answer,
    limited,
)

if TYPE_CHECKING:
    from appium.webdriver.webdriver import WebDriver

T = TypeVar("T")

EVIDENCE_SECONDS: Final = 20.0
"""Maximum seconds for each piece of evidence."""
ALL_SECONDS: Final = 45.0
"""Maximum seconds for all evidence of a test."""
LOG_LINES: Final = 500

_PNG: Final = b"\x89PNG\r\n\x1a\n"
_LOG_TYPES: Final = "getAvailableLogTypes"
_LOG: Final = "getLog"
_LOGS: Final = ("logcat", "syslog", "crashlog", "browser")
"""Device logs, by Appium's names; the server's own log is not a device log."""

_logger = logging.getLogger("pytest_device")


def evidence_of(
    started: "WebDriver",
    *,
    seconds: float = ALL_SECONDS,
    missing: Callable[[str], object] = _logger.warning,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[tuple[str, bytes]]:
    """Yield what the device shows and logs now, by file name; ends when the server is gone.

    Logs are limited to their last 500 lines.

    Arguments:
        started: The driver.
        seconds: The maximum time for all pieces.
        missing: Called with a line for each piece that can't be read.
        clock: Returns seconds.
    """
    collector = _Collector(started, clock, clock() + seconds, missing)
    for name, read in (
        ("screenshot.png", _screenshot),
        ("source.xml", _source),
        ("app.json", _facts),
    ):
        content = collector.read(name, read)
        if content:
            yield name, content

    yield from _logs(collector)


def logs_of(
    started: "WebDriver",
    *,
    seconds: float = ALL_SECONDS,
    missing: Callable[[str], object] = _logger.warning,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[tuple[str, bytes]]:
    """Yield the device's logs since they were last read, by file name; the arguments are those of ``evidence_of``."""
    yield from _logs(_Collector(started, clock, clock() + seconds, missing))


def _logs(collector: "_Collector") -> Iterator[tuple[str, bytes]]:
    for kind in collector.read("log", _kinds_of_log) or ():
        content = collector.read(f"{kind}.txt", partial(_log, kind))
        if content:
            yield f"{kind}.txt", content


class _Collector:
    """Reads one piece after another, while there is time and the server responds."""

    def __init__(
        self,
        started: "WebDriver",
        clock: Callable[[], float],
        until: float,
        missing: Callable[[str], object],
    ) -> None:
        self._started = started
        self._clock = clock
        self._until = until
        self._missing = missing
        self._is_over = False

    def read(self, name: str, read: "Callable[[WebDriver], T]") -> T | None:
        """Return the result of ``read``, None if it fails."""
        from urllib3.exceptions import ReadTimeoutError

        seconds = min(EVIDENCE_SECONDS, self._until - self._clock())
        if self._is_over or seconds <= 0:
            return None

        try:
            with limited(self._started, seconds):
                return read(self._started)
        except client_errors() as error:
            reason = str(error).partition("\n")[0]
            self._missing(f"no {name} of the device: {reason}")
            # After a timeout, the server may still respond to the next command.
            is_late = isinstance(error, ReadTimeoutError)
            self._is_over = has_no_answer(error) and not is_late
            return None


def _screenshot(started: "WebDriver") -> bytes:
    picture = started.get_screenshot_as_png()
    if not picture.startswith(_PNG):
        raise ValueError("the response is not an image")
    return picture


def _source(started: "WebDriver") -> bytes:
    from pytest_device.trace.tree import without_typed_secrets

    return without_typed_secrets(started.page_source).encode()


def _facts(started: "WebDriver") -> bytes:
    """Return the state of the app, as far as its driver supports the queries."""
    from selenium.common.exceptions import WebDriverException

    queries = {
        "context": "current_context",
        "orientation": "orientation",
        "time": "device_time",
    }
    if str(capability(started, "platformName")).casefold() == "android":
        queries |= {"package": "current_package", "activity": "current_activity"}

    facts: dict[str, str] = {}
    for name, attribute in queries.items():
        with suppress(WebDriverException):
            value = getattr(started, attribute)
            if isinstance(value, str):
                facts[name] = value

    if not facts:
        return b""
    return (json.dumps(facts, indent=2) + "\n").encode()


def _kinds_of_log(started: "WebDriver") -> Sequence[str]:
    from selenium.common.exceptions import WebDriverException

    try:
        # By command name: the methods moved between the two clients over time.
        offered = cast("object", started.execute(_LOG_TYPES)["value"])  # of any type
    except WebDriverException:  # a driver without logs
        return ()

    if not isinstance(offered, list):
        return ()
    return [kind for kind in _LOGS if kind in offered]


def _log(kind: str, started: "WebDriver") -> bytes:
    entries = started.execute(_LOG, {"type": kind})["value"][-LOG_LINES:]
    text = "\n".join(_line(entry) for entry in entries)
    lines = text.splitlines()[-LOG_LINES:]  # an entry may have several
    return "".join(f"{line}\n" for line in lines).encode(errors="replace")


def _line(entry: object) -> str:
    if not isinstance(entry, Mapping):
        return str(entry)

    fields = cast("Mapping[str, Any]", entry)
    words = [
        _time(fields.get("timestamp")),
        str(fields.get("level", "")),
        str(fields.get("message", "")),
    ]
    return " ".join(word for word in words if word)


def _time(milliseconds: object) -> str:
    if not isinstance(milliseconds, int | float):
        return ""

    try:
        time = datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (OverflowError, OSError, ValueError):  # not a valid time
        return ""
    return time.isoformat(timespec="milliseconds")
