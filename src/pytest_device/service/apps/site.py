"""Serves a web build to browsers on this machine."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from os import PathLike, stat_result
from pathlib import Path, PurePosixPath
from typing import Final

from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from pytest_device.asgi_server import Server, listening
from pytest_device.service.web import LocalProtocol, LoopbackOnly

INDEX: Final = "index.html"
GRACE_SECONDS: Final = 1
"""Maximum seconds for responses in progress when a site stops."""

_HOST: Final = "127.0.0.1"
_NOT_FOUND: Final = 404
_METHOD_NOT_ALLOWED: Final = 405
_FRESH: Final = {"Cache-Control": "no-store"}
"""Another build may be served on this port later, and a test must never see files of the previous one."""
# Types that are missing or wrong on some machines or in older versions of Python.
_TYPES: Final = {
    ".avif": "image/avif",
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".map": "application/json",
    ".mjs": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".wasm": "application/wasm",
    ".webmanifest": "application/manifest+json",
    ".webp": "image/webp",
    ".woff": "font/woff",
    ".woff2": "font/woff2",
}


@asynccontextmanager
async def serving(directory: Path) -> AsyncGenerator[str]:
    """Serve a directory with an ``index.html`` on a free port of 127.0.0.1; yield its URL, without a trailing slash.

    A path without a file and without an extension is a route of the app, and gets the ``index.html``.
    """
    with listening(_HOST, 0) as listener:
        server = Server(
            LoopbackOnly(_Site(directory=directory, html=True), _foreign),
            protocol=LocalProtocol,
            grace_seconds=GRACE_SECONDS,
        )
        # The socket's backlog holds earlier connections.
        running = asyncio.create_task(server.serve([listener]))
        try:
            yield f"http://{_HOST}:{listener.getsockname()[1]}"
        finally:
            server.stop()
            await running


class _Site(StaticFiles):
    """The files, and the index page for the routes of a single-page app. Directories are not listed."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        for candidate in _candidates(path):
            response = await self._response_for(candidate, scope)
            if response is not None:
                response.headers.update(_FRESH)
                return response

        return PlainTextResponse(
            "no such file in this web build\n", _NOT_FOUND, headers=_FRESH
        )

    async def _response_for(self, path: str, scope: Scope) -> Response | None:
        """Return the response for a path, None if there is no such file."""
        try:
            response = await super().get_response(path, scope)
        except HTTPException as error:
            if error.status_code == _NOT_FOUND:
                return None

            text = f"{error.detail}\n"
            headers: dict[str, str] = {}
            if error.status_code == _METHOD_NOT_ALLOWED:
                headers["Allow"] = "GET, HEAD"
            return PlainTextResponse(text, error.status_code, headers=headers)

        return None if response.status_code == _NOT_FOUND else response

    def file_response(
        self,
        full_path: PathLike[str] | str,
        stat_result: stat_result,
        scope: Scope,
        status_code: int = 200,
    ) -> Response:
        response = super().file_response(full_path, stat_result, scope, status_code)
        media_type = _TYPES.get(PurePosixPath(full_path).suffix.lower())
        if media_type and isinstance(response, FileResponse):
            response.headers["Content-Type"] = media_type

        return response


def _candidates(path: str) -> tuple[str, ...]:
    """Return the paths to try: the file, the route's page in an exported site, the index page."""
    if "\0" in path:
        return ()

    is_file = PurePosixPath(path).suffix != ""
    return (path,) if is_file else (path, f"{path}.html", INDEX)


def _foreign(_host: str) -> Response:
    return PlainTextResponse(
        "the Host header does not name this machine\n", 421, headers=_FRESH
    )
