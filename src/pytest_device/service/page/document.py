"""The common parts of all pages: headers, files, pictures and error pages."""

import functools
from collections.abc import Mapping
from hashlib import sha256
from html import escape
from http import HTTPStatus
from pathlib import Path
from string import Template
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.routing import Route

from pytest_device import page_style
from pytest_device.service.devices.base import Screenshot
from pytest_device.service.page.paths import without_directories
from pytest_device.service.replies import (
    FORBIDDEN,
    NOT_FOUND,
    NOT_STORED,
    RefusalError,
    as_object,
    json_of,
)

_POLICY: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": _POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    **NOT_STORED,
}
"""Nothing is loaded from or sent to other hosts: a URL may contain a key."""
# Operating systems differ.
_TYPES: Final = {
    ".css": "text/css",
    ".js": "text/javascript",
}
_WORDS: Final = Path(__file__).parent / "words.html"


def page(request: Request, template: Path, values: Mapping[str, str]) -> Response:
    """Return a page that clients poll: 304 without a body while it is unchanged."""
    body = _template(template).substitute(values)
    return unless_known(request, HTMLResponse(body, headers=HEADERS))


def unless_known(request: Request, response: Response) -> Response:
    """Return a response with its ETag, or 304 if the client has it already."""
    etag = f'"{sha256(bytes(response.body)).hexdigest()[:32]}"'
    if request.headers.get("if-none-match") == etag:
        return Response(status_code=304, headers={**HEADERS, "ETag": etag})
    response.headers["ETag"] = etag
    return response


def image(request: Request, screenshot: Screenshot) -> Response:
    """Return a screenshot, or 304 if the client has it already."""
    response = Response(
        screenshot.data, media_type=screenshot.media_type, headers=HEADERS
    )
    return unless_known(request, response)


def error_page(refused: RefusalError, *, root: str) -> Response:
    """Return a refusal as a page with a link to the list; ``root`` is the path to the service."""
    is_missing = refused.status == HTTPStatus.NOT_FOUND
    values = {
        "root": root,
        "title": "Not found" if is_missing else "Not available",
        "words": escape(without_directories(str(refused))),
    }
    return HTMLResponse(
        _template(_WORDS).substitute(values), refused.status, headers=HEADERS
    )


def wants_page(request: Request) -> bool:
    """Return whether a request comes from a browser's address bar or a link, and not from a program."""
    return request.method == "GET" and "text/html" in request.headers.get("accept", "")


def common_files() -> Route:
    """Return the route of the stylesheet that pages elsewhere use, too."""
    return files("style", page_style.DIRECTORY, page_style.STYLESHEET)


def files(folder: str, directory: Path, *names: str) -> Route:
    """Return the route ``/assets/{folder}/{name}`` for some files of a directory."""

    async def file(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in names:
            raise RefusalError(404, NOT_FOUND, "no such path")
        path, headers = directory / name, {**HEADERS, "Cache-Control": "no-cache"}
        return FileResponse(path, headers=headers, media_type=_TYPES[path.suffix])

    return Route(f"/assets/{folder}/{{name}}", file, methods=["GET"])


async def posted(request: Request) -> Mapping[str, object]:
    """Return the JSON object that one of our pages sent.

    Raises RefusalError: 403 for requests from other pages, 400 unless it is a JSON object declared as JSON.
    """
    if not _is_ours(request.headers):
        raise RefusalError(
            403, FORBIDDEN, "only the service's own pages may send this request"
        )
    return as_object(await json_of(request))


def _is_ours(headers: Headers) -> bool:
    """Return whether the request comes from a page of this host: browsers send an Origin header with every POST."""
    try:
        origin = urlsplit(headers.get("origin", "")).netloc
    except ValueError:
        return False
    return (
        origin != ""
        and origin == headers.get("host")
        and headers.get("sec-fetch-site") in {None, "same-origin"}
    )


@functools.cache
def _template(path: Path) -> Template:
    return Template(path.read_text("utf-8"))
