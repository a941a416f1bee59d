"""The live preview of a session: screenshots of its device, taps and rotation, and the time left.

``routes(sessions, keys)`` are the routes below ``/preview/{session_id}/{key}``, the URL that ``keys.url("preview",
id)`` returns; pass them to ``create_app`` as ``more``. The key grants access.

Using the preview does not count as use of the controller: a forgotten browser window must not keep a session alive.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Final, get_args

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from pytest_device.errors import ControllerError
from pytest_device.redact import Redactor
from pytest_device.service.devices.base import (
    Device,
    Orientation,
    Screenshot,
    take_screenshot,
)
from pytest_device.service.keys import Keys
from pytest_device.service.lifecycle import Session
from pytest_device.service.page import document, parts
from pytest_device.service.replies import NOT_FOUND, RefusalError, invalid
from pytest_device.service.sessions import Sessions
from pytest_device.spec import TERMINAL, SessionType, Status

DEVICE_ERROR: Final = "DEVICE_ERROR"
"""The device failed; the message has the reason."""
NOT_RUNNING: Final = "NOT_RUNNING"
"""There is no device: the session is not ready yet, or has ended."""
_FILES: Final = Path(__file__).parent
_ORIENTATIONS: Final[tuple[Orientation, ...]] = get_args(Orientation)

MIN_SECONDS_BETWEEN: Final = 0.3
SHARE: Final = 4
"""Pause after a screenshot as a multiple of its duration, so that the device has most of its time for the test."""
MAX_SECONDS_BETWEEN: Final = 5.0
KEEP_SECONDS: Final = 30.0
"""Seconds for which an unused screenshot is kept."""


def routes(
    sessions: Sessions, keys: Keys, clock: Callable[[], float] = time.monotonic
) -> Sequence[BaseRoute]:
    """Return the routes of the previews; ``clock`` returns seconds, by which screenshots become due."""
    preview = _Preview(sessions, keys, Screens(clock))
    path = "/preview/{session_id}/{key}"
    return (
        document.files("preview", _FILES, "style.css", "script.js"),
        Route(path, preview.page, methods=["GET"]),
        Route(f"{path}/screen", preview.screen, methods=["GET"]),
        Route(f"{path}/tap", preview.tap, methods=["POST"]),
        Route(f"{path}/orientation", preview.rotate, methods=["POST"]),
    )


class _Preview:
    def __init__(self, sessions: Sessions, keys: Keys, screens: "Screens") -> None:
        self._sessions = sessions
        self._keys = keys
        self._screens = screens

    async def page(self, request: Request) -> Response:
        try:
            session = self._session(request)
        except RefusalError as refused:
            return document.error_page(refused, root="../../")

        record = self._sessions.runner.record(session.id)
        values = {
            **parts.of(session),
            **_values(session, self._sessions.device(session)),
            "times": parts.times(session, record.last_activity),
        }
        return document.page(request, _FILES / "page.html", values)

    async def screen(self, request: Request) -> Response:
        """Return a screenshot, after the end the last one; 204 if there is none, 503 if the device fails."""
        session = self._session(request)
        record = self._sessions.runner.record(session.id)
        device = self._sessions.device(session)
        if device:
            try:
                record.screenshot = await self._screens.screenshot(session.id, device)
            except ControllerError as error:
                raise _refused(503, error) from error

        if record.screenshot is None:
            return Response(status_code=204, headers=document.HEADERS)
        return document.image(request, record.screenshot)

    async def tap(self, request: Request) -> Response:
        body = await document.posted(request)
        x, y = _fraction(body, "x"), _fraction(body, "y")
        return await self._act(request, lambda device: device.tap(x, y))

    async def rotate(self, request: Request) -> Response:
        orientation = _orientation(await document.posted(request))
        return await self._act(request, lambda device: device.rotate(orientation))

    async def _act(
        self, request: Request, action: Callable[[Device], Awaitable[None]]
    ) -> Response:
        session, device = self._running(request)
        try:
            await action(device)
        except ControllerError as error:
            raise _refused(409, error) from error
        self._screens.has_changed(session.id)
        return Response(status_code=204, headers=document.HEADERS)

    def _session(self, request: Request) -> Session:
        session_id = request.path_params["session_id"]
        is_permitted = self._keys.fits(
            "preview", session_id, request.path_params["key"]
        )
        session = self._sessions.get(session_id) if is_permitted else None
        if session is None:
            message = "no preview at this address: it is mistyped, or the service was restarted"
            raise RefusalError(404, NOT_FOUND, message)
        return session

    def _running(self, request: Request) -> tuple[Session, Device]:
        session = self._session(request)
        device = self._sessions.device(session)
        if device is None:
            raise RefusalError(
                409, NOT_RUNNING, f"the session has no device: {_absence(session)}"
            )
        return session, device


def _fraction(body: Mapping[str, object], name: str) -> float:
    value = body.get(name)
    # True is a number in Python; NaN is not between the two.
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not 0 <= value <= 1
    ):
        raise invalid(
            f"{name} must be a fraction of the screen, from 0 to 1, not {str(value)[:80]}"
        )
    return value


def _orientation(body: Mapping[str, object]) -> Orientation:
    for orientation in _ORIENTATIONS:
        if body.get("orientation") == orientation:
            return orientation
    raise invalid(f"orientation must be one of {', '.join(_ORIENTATIONS)}")


def _refused(status: int, error: ControllerError) -> RefusalError:
    return RefusalError(status, DEVICE_ERROR, Redactor().text(str(error)))


def _values(session: Session, device: Device | None) -> Mapping[str, str]:
    """Return the values for the preview only: the device or its absence, and how taps affect the session."""
    platform = parts.PLATFORMS[session.platform]
    rule = escape(_rule(session))
    if device is not None:
        return {
            "device": escape(f"{device.name} · {platform}"),
            "screen": "live",
            "absence": "Connecting…",
            "rule": rule,
            "hidden_without_device": "",
        }

    return {
        "device": escape(platform),
        "screen": "none ended" if session.status in TERMINAL else "none",
        "absence": escape(_absence(session)),
        "rule": rule,
        "hidden_without_device": "hidden",
    }


def _absence(session: Session) -> str:
    """Return why a session has no visible device."""
    match session.status:
        case Status.NEW:
            return "The device is starting"
        case Status.IN_PROGRESS:
            return "The device of this session has no screen"
        case Status.STOPPED | Status.ERRORED:
            return "The session has ended. This is its last picture."


def _rule(session: Session) -> str:
    if session.status in TERMINAL:
        return ""
    if session.type is SessionType.WEB_PREVIEW_ONLY:
        return "This session has no controller: it ends at its time limit, or when it is stopped."
    idle = session.max_idle_time_minutes
    if idle is None:
        return "Using the preview does not count as use of the controller; a running test will see your taps."
    return (
        f"The session ends when its controller is not used for {idle} min. Using the preview does not count as use; "
        "a running test will see your taps."
    )


@dataclass(slots=True)
class _Screen:
    """A device's last screenshot, or the reason why there is none, and when (by the clock) the next is due."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    last: Screenshot | ControllerError | None = None
    due: float = 0.0
    changed: bool = True
    """Whether the device was used since its last screenshot began."""


class Screens:
    """Takes screenshots at a limited rate, for any number of viewers; ``clock`` returns seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._screens: dict[str, _Screen] = {}

    async def screenshot(self, session_id: str, device: Device) -> Screenshot:
        """Return a recent screenshot of a session's device. Raises ControllerError."""
        self._forget_old()
        screen = self._screens.setdefault(session_id, _Screen())
        async with screen.lock:
            if screen.last is None or screen.changed or self._clock() >= screen.due:
                await self._take(screen, device)
            if isinstance(screen.last, Screenshot):
                return screen.last
            raise ControllerError(str(screen.last))

    def has_changed(self, session_id: str) -> None:
        """Make the next screenshot of a session due at once."""
        if session_id in self._screens:
            self._screens[session_id].changed = True

    async def _take(self, screen: _Screen, device: Device) -> None:
        began = self._clock()
        screen.changed = False  # a tap during the screenshot makes the next one due
        try:
            screen.last = await take_screenshot(device)
        except ControllerError as error:
            screen.last = error

        now = self._clock()
        pause = max(MIN_SECONDS_BETWEEN, SHARE * (now - began))
        screen.due = now + min(pause, MAX_SECONDS_BETWEEN)

    def _forget_old(self) -> None:
        limit = self._clock() - KEEP_SECONDS
        self._screens = {
            session_id: screen
            for session_id, screen in self._screens.items()
            if screen.lock.locked() or screen.due > limit
        }
