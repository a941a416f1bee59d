"""Serves Playwright's pages, its trace viewer or a report, on this machine and to this user only."""

import json
import mimetypes
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit

from pytest_device.redact import is_loopback_authority
from pytest_device.same_user import is_permitted

VIEWER: Final = Path("lib/vite/traceViewer")
"""The viewer in the directory of `playwright-core`."""
OLDEST: Final = (1, 53)
"""The first release of Playwright whose viewer reads version 8 of the format."""
_TRACE: Final = "/trace.zip"
_TYPES: Final = {".js": "text/javascript", ".webmanifest": "application/manifest+json"}
"""Types that a machine may have changed: a browser runs no script of another type."""


def installed_viewers(directory: Path) -> list[Path]:
    """Return the installed viewers that read traces: those of Python's Playwright, and of the npm project of a directory."""
    packages: list[Path] = []

    spec = find_spec("playwright")
    if spec and spec.submodule_search_locations:
        packages += [
            Path(location, "driver/package")
            for location in spec.submodule_search_locations
        ]

    # As Node.js looks for a package.
    for above in (directory, *directory.parents):
        packages.append(above / "node_modules/playwright-core")

    return [package / VIEWER for package in packages if _reads_traces(package)]


def _reads_traces(package: Path) -> bool:
    """Return whether a package has a viewer that reads our traces: an older one shows an error instead."""
    try:
        version = json.loads((package / "package.json").read_text("utf-8"))["version"]
        numbers = tuple(int(number) for number in version.split(".")[:2])
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return False

    return numbers >= OLDEST and (package / VIEWER / "index.html").is_file()


@contextmanager
def served(
    page: Path, trace: Path | None = None, port: int = 0
) -> Generator[tuple[str, Any]]:
    """Serve a directory during the block; yield the URL of its page and the server, whose loop the caller runs.

    Arguments:
        page: The directory of the page.
        trace: A trace that the page opens, if it is the viewer.
        port: The port; 0 for a free one.

    Raises:
        OSError: The port is in use.
    """
    root = page.resolve()

    class Handler(_Handler):
        files = root
        archive = trace

    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        base = f"http://127.0.0.1:{server.server_port}"
        # The viewer's worker fetches the trace: only an absolute URL means the same there.
        query = f"?trace={quote(base + _TRACE, safe='')}" if trace else ""
        yield f"{base}/index.html{query}", server


class _Handler(BaseHTTPRequestHandler):
    files: Path
    archive: Path | None
    protocol_version = "HTTP/1.1"
    timeout = 60
    """Seconds after which an idle connection of a browser ends."""

    def do_GET(self) -> None:  # the name that the base class calls
        """Answer with a file of the viewer, or the trace."""
        is_own = is_permitted(self.client_address, self.connection.getsockname())
        # A page of another site may have a name that leads to this machine.
        is_local = is_loopback_authority(self.headers.get("Host", ""))
        if not (is_own and is_local):
            self.send_error(403)
            return

        try:
            path = self._file()
            content = path.read_bytes()
        # No such file, or a name that no file can have.
        except (OSError, ValueError):
            self.send_error(404)
            return

        guessed = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
        self.send_response(200)
        self.send_header("Content-Type", _TYPES.get(path.suffix, guessed))
        self.send_header("Content-Length", str(len(content)))
        # On the same port, the next trace has the same URL.
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(content)

    def _file(self) -> Path:
        """Return the requested file; raise OSError if it is not in the directory, ValueError for what is no name."""
        name = unquote(urlsplit(self.path).path)
        if name == _TRACE and self.archive:
            return self.archive

        path = (self.files / name.lstrip("/")).resolve()
        if not path.is_relative_to(self.files):
            raise FileNotFoundError(name)

        return path

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # of the base class
        """Log nothing: the command prints the URL."""
