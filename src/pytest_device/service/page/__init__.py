"""The session pages: details, timeline and log of a session, a button to stop it, and the list of all sessions.

They need no token: the server answers only the user who started the service.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from pytest_device.redact import Redactor
from pytest_device.same_user import shows_users
from pytest_device.service.devices.chromium import Chromium
from pytest_device.service.lifecycle import Session
from pytest_device.service.page import document, parts
from pytest_device.service.replies import (
    NOT_FOUND,
    RefusalError,
    timestamp,
    to_document,
)
from pytest_device.service.sessions import Sessions
from pytest_device.spec import TERMINAL

STOPPED_HERE: Final = "requested on the session page"
_FILES: Final = Path(__file__).parent


def routes(
    sessions: Sessions, base_url: str, find: Callable[[str], Session]
) -> Sequence[BaseRoute]:
    """Return the routes; ``find`` returns a session by ID or raises RefusalError."""
    pages = _Pages(sessions, base_url, find)
    return (
        document.common_files(),
        document.files(
            "page", _FILES, "style.css", "live.js", "session.js", "index.js"
        ),
        Route("/", pages.index, methods=["GET"]),
        Route("/sessions/{session_id}", pages.page, methods=["GET"]),
        Route("/sessions/{session_id}/facts", pages.facts, methods=["GET"]),
        Route("/sessions/{session_id}/log", pages.log, methods=["GET"]),
        Route("/sessions/{session_id}/console", pages.console, methods=["GET"]),
        Route("/sessions/{session_id}/picture", pages.picture, methods=["GET"]),
        Route("/sessions/{session_id}/stop", pages.stop, methods=["POST"]),
    )


class _Pages:
    def __init__(
        self, sessions: Sessions, base_url: str, find: Callable[[str], Session]
    ) -> None:
        self._sessions = sessions
        self._base_url = base_url
        self._find = find

    async def index(self, request: Request) -> Response:
        """List the newest sessions."""
        self._sessions.sweep()
        newest = sorted(
            self._sessions, key=lambda session: session.created_at, reverse=True
        )
        return document.page(request, _FILES / "index.html", parts.index(newest))

    async def page(self, request: Request) -> Response:
        try:
            session = self._of(request)
        except RefusalError as refused:
            return document.error_page(refused, root="../")
        return document.page(request, _FILES / "session.html", self._parts(session))

    async def facts(self, request: Request) -> Response:
        """Return the page's content for programs: the session without connection details, and its timeline."""
        session = self._of(request)
        facts = to_document(session, self._base_url, None)
        del facts["remoteConfig"], facts["applicationArchiveUrl"]  # may hold a secret

        record = self._sessions.runner.record(session.id)
        device = self._sessions.device(session)
        facts |= {
            "device": record.device_name,
            # A run needs it for adb: of the controllers, only Appium names the device.
            "udid": device.tools.capabilities.get("appium:udid") if device else None,
            "reason": session.reason and Redactor().text(session.reason),
            "failedByRequest": record.failed_by_request,
            "timeline": [
                {"at": timestamp(entry.at), "text": entry.text}
                for entry in parts.entries_of(session, record.entries)
            ],
        }
        return JSONResponse({"data": facts}, headers=document.HEADERS)

    async def log(self, request: Request) -> Response:
        log = self._sessions.runner.record(self._of(request).id).output.text
        return PlainTextResponse(Redactor().text(log), headers=document.HEADERS)

    async def console(self, request: Request) -> Response:
        """Return the last console lines of a device that is a browser: time, level and text."""
        device = self._sessions.device(self._of(request))
        lines = device.lines if isinstance(device, Chromium) else ()
        text = "".join(
            f"{timestamp(line.at)} {line.level} {line.text}\n" for line in lines
        )
        return PlainTextResponse(text, headers=document.HEADERS)

    async def picture(self, request: Request) -> Response:
        """Return the last screenshot of an ended session. 404 if there is none, or if other users could see it."""
        session = self._of(request)
        screenshot = self._sessions.runner.record(session.id).screenshot
        if screenshot is None or not _shows_picture(session):
            raise RefusalError(404, NOT_FOUND, "no picture of this session")
        return document.image(request, screenshot)

    async def stop(self, request: Request) -> Response:
        await document.posted(request)
        session = self._sessions.stop(self._of(request).id, STOPPED_HERE)
        return JSONResponse(
            {"data": {"status": session.status}}, headers=document.HEADERS
        )

    def _of(self, request: Request) -> Session:
        return self._find(request.path_params["session_id"])

    def _preview(self, session: Session) -> str:
        """Return the path of the live preview, empty if it is not here, or if other users could see the page."""
        remote_config = self._sessions.remote_config(session) or {}
        url = str(remote_config.get("webPreviewUrl", ""))
        is_here = url.startswith(f"{self._base_url}/")
        if not is_here or not shows_users():
            return ""
        return url.removeprefix(self._base_url)

    def _parts(self, session: Session) -> Mapping[str, str]:
        record = self._sessions.runner.record(session.id)
        device = self._sessions.device(session)
        if record.screenshot is not None and _shows_picture(session):
            screen = parts.last_picture(session)
        else:
            screen = parts.screen(self._preview(session), device)

        return {
            **parts.of(session),
            "times": parts.times(session, record.last_activity),
            "screen": screen,
            "facts": parts.facts(session, record.device_name),
            "timeline": parts.timeline(session, record.entries),
            **parts.log(Redactor().text(record.output.text)),
        }


def _shows_picture(session: Session) -> bool:
    """Return whether a session has ended on a system where only its user can open the page."""
    return session.status in TERMINAL and shows_users()
