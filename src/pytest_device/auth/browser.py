"""Browsers for a sign-in: a callable or the test's driver."""

import inspect
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol, TypeAlias, cast, get_args

from pytest_device.auth.secret_values import learn_url
from pytest_device.errors import AuthConfigError, hides_frames
from pytest_device.oauth import is_redirect

__tracebackhide__ = hides_frames

BrowserOutcome: TypeAlias = Literal["success", "cancel", "dismiss", "locked"]

POLL_SECONDS: Final = 0.05


@dataclass(frozen=True, slots=True)
class BrowserResult:
    """Outcome of a browser session; on success, ``url`` is the redirect."""

    type: BrowserOutcome
    url: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        learn_url(self.url)


@dataclass(frozen=True, slots=True)
class BrowserSession:
    """Browser session from ``url`` to ``return_url``; ``deadline`` is in seconds of the monotonic clock."""

    url: str = field(repr=False)
    return_url: str
    deadline: float
    dismissed: threading.Event = field(default_factory=threading.Event, compare=False)

    def wait(self, seconds: float = POLL_SECONDS) -> bool:
        """Wait up to ``seconds`` and return whether the session is open. Raises TimeoutError after the deadline."""
        if self.remaining() <= 0:
            raise TimeoutError(
                "the user did not finish signing in before timeout_seconds"
            )

        return not self.dismissed.wait(seconds)

    def remaining(self) -> float:
        """Return the number of seconds until the deadline."""
        return self.deadline - time.monotonic()


class Driver(Protocol):
    """Methods of an Appium or Selenium driver that a sign-in uses."""

    current_url: Any

    def get(self, url: str) -> None:
        """Load a page."""


class Browser(Protocol):
    """Interface of a browser that opens a page and returns after its redirect."""

    def open(self, session: BrowserSession) -> BrowserResult:
        """Open ``session.url`` and wait until it redirects to ``session.return_url`` or the session ends."""
        ...


AnyBrowser: TypeAlias = Browser | Driver | Callable[..., object]


def browser_of(browser: AnyBrowser) -> Browser:
    """Wrap a driver or a callable as a browser. Raises AuthConfigError for any other type."""
    if hasattr(browser, "get") and hasattr(browser, "current_url"):
        return DriverBrowser(cast("Driver", browser))
    if hasattr(browser, "open"):
        return cast("Browser", browser)
    if callable(browser):
        return _CallableBrowser(browser)

    raise AuthConfigError(f"browser {browser!r} must be a driver or a callable")


@dataclass(frozen=True, slots=True)
class _CallableBrowser:
    function: Callable[..., object]

    def open(self, session: BrowserSession) -> BrowserResult:
        """Call the function with the URL, and with the redirect URI if it takes two arguments."""
        arguments: tuple[str, ...] = (session.url, session.return_url)
        try:
            inspect.signature(self.function).bind(*arguments)
        except TypeError:
            arguments = (session.url,)

        return _result(self.function(*arguments))


def _result(returned: object) -> BrowserResult:
    """Return the outcome that a function returned. Raises AuthConfigError for any other value."""
    if isinstance(returned, BrowserResult):
        return returned
    if returned is None:
        return BrowserResult("cancel")
    if isinstance(returned, str):
        return BrowserResult("success", returned)

    if isinstance(returned, Mapping):
        pairs = cast("Mapping[str, Any]", returned)
        outcome: Any = pairs.get("type")
        url = pairs.get("url")
        if outcome in get_args(BrowserOutcome) and isinstance(url, str | None):
            return BrowserResult(outcome, url)

    raise AuthConfigError(
        "a browser must return a URL, None if canceled, or a mapping with type and url"
    )


@dataclass(frozen=True, slots=True)
class DriverBrowser:
    """Browser on the device of the test; ``act`` completes the sign-in form."""

    driver: Driver
    act: Callable[[], object] | None = None

    def open(self, session: BrowserSession) -> BrowserResult:
        """Open the page and poll the current URL until it matches the redirect URI."""
        self.driver.get(session.url)
        if self.act:
            self.act()

        while True:
            url = str(self.driver.current_url)
            if is_redirect(url, session.return_url):
                return BrowserResult("success", url)
            if not session.wait():
                return BrowserResult("dismiss")


class SessionLock:
    """Lock that allows one open browser session per process; `dismiss` ends it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: BrowserSession | None = None

    @contextmanager
    def opened(self, session: BrowserSession) -> Generator[bool]:
        """Yield True while the session is open, or False if another session is open already."""
        if not self._lock.acquire(blocking=False):
            yield False
            return

        self._open = session
        try:
            yield True
        finally:
            self._open = None
            self._lock.release()

    def dismiss(self) -> None:
        """End the open session, if any."""
        session = self._open
        if session is not None:
            session.dismissed.set()
