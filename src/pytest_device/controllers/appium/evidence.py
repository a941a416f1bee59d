"""What a device shows and logs when a test has failed, as far as it can be had within bounds."""

import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from pytest_device.controllers.appium.connection import capability, client_errors, has_no_answer, limited

if TYPE_CHECKING:
    from appium.webdriver.webdriver import WebDriver

T = TypeVar("T")

EVIDENCE_SECONDS: Final = 20.0
"""How long each piece of evidence may take."""
ALL_SECONDS: Final = 45.0
"""How long all of it may take."""
LOG_LINES: Final = 500

_PNG: Final = b"\x89PNG\r\n\x1a\n"
_LOG_TYPES: Final = "getAvailableLogTypes"
_LOG: Final = "getLog"
_LOGS: Final = ("logcat", "syslog", "crashlog", "browser")
"""What devices log, by Appium's names. The server's own log is not among them: it is no device's."""

_logger = logging.getLogger("pytest_device")


def evidence_of(started: "WebDriver", *, clock: Callable[[], float] = time.monotonic) -> Iterator[tuple[str, bytes]]:
    """Yield what the device shows and logs now, by file name; what cannot be had is logged and left out.

    Of a log the last 500 lines. It ends when the server is gone, and after 45 seconds.
    """
    asking = _Asking(started, clock)
    for name, read in (("screenshot.png", _screenshot), ("source.xml", _source), ("app.json", _facts)):
        if content := asking.had(name, read):
            yield name, content
    for kind in asking.had("log", _kinds_of_log) or ():
        if content := asking.had(f"{kind}.txt", partial(_log, kind)):
            yield f"{kind}.txt", content


class _Asking:
    """Asks for one piece after another, for as long as there are time and a server."""

    def __init__(self, started: "WebDriver", clock: Callable[[], float]) -> None:
        self._started, self._clock = started, clock
        self._until = clock() + ALL_SECONDS
        self._is_over = False

    def had(self, name: str, read: "Callable[[WebDriver], T]") -> T | None:
        """Return what ``read`` returns, None when it cannot be had."""
        seconds = min(EVIDENCE_SECONDS, self._until - self._clock())
        if self._is_over or seconds <= 0:
            return None
        try:
            with limited(self._started, seconds):
                return read(self._started)
        except client_errors() as error:
            _logger.warning("no %s of the device: %s", name, str(error).partition("\n")[0])
            self._is_over = has_no_answer(error) and not _is_late(error)
            return None


def _is_late(error: Exception) -> bool:
    from urllib3.exceptions import ReadTimeoutError

    return isinstance(error, ReadTimeoutError)


def _screenshot(started: "WebDriver") -> bytes:
    picture = started.get_screenshot_as_png()
    if not picture.startswith(_PNG):
        raise ValueError("the answer is no picture")
    return picture


def _source(started: "WebDriver") -> bytes:
    return started.page_source.encode()


def _facts(started: "WebDriver") -> bytes:
    """Return where the app was, as far as the device tells: not every driver knows every question."""
    from selenium.common.exceptions import WebDriverException

    questions: dict[str, Callable[[], object]] = {
        "context": lambda: started.current_context,
        "orientation": lambda: started.orientation,
    }
    if str(capability(started, "platformName")).casefold() == "android":
        questions |= {"package": lambda: started.current_package, "activity": lambda: started.current_activity}
    facts: dict[str, str] = {}
    for name, asked in questions.items():
        with suppress(WebDriverException):
            if isinstance(answer := asked(), str):
                facts[name] = answer
    return (json.dumps(facts, indent=2) + "\n").encode() if facts else b""


def _kinds_of_log(started: "WebDriver") -> Sequence[str]:
    from selenium.common.exceptions import WebDriverException

    try:
        # By their commands: the methods move between the two clients from version to version.
        offered = cast("object", started.execute(_LOG_TYPES)["value"])  # any answer may come
    except WebDriverException:  # a driver that has no logs does not know the question
        return ()
    return [kind for kind in _LOGS if kind in offered] if isinstance(offered, list) else ()


def _log(kind: str, started: "WebDriver") -> bytes:
    entries = started.execute(_LOG, {"type": kind})["value"][-LOG_LINES:]
    lines = "\n".join(map(_line, entries)).splitlines()[-LOG_LINES:]
    return "".join(f"{line}\n" for line in lines).encode(errors="replace")


def _line(entry: object) -> str:
    if not isinstance(entry, Mapping):
        return str(entry)
    known = cast("Mapping[str, Any]", entry)
    words = [_time(known.get("timestamp")), str(known.get("level", "")), str(known.get("message", ""))]
    return " ".join(filter(None, words))


def _time(milliseconds: object) -> str:
    if not isinstance(milliseconds, int | float):
        return ""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds")
    except (OverflowError, OSError, ValueError):  # no time of this calendar
        return ""
