"""A local npm registry with wrong packages."""

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

from pytest_device.service.programs.toolchain import Project

WRONG = b"this is no package" * 1000


class Registry:
    """Knows the packages of a project; each archive differs from the pinned one, or is truncated."""

    def __init__(self, project: Project, *, half: bool = False) -> None:
        packages = json.loads(project.files[1].read_text())["packages"]
        self.packages = {
            name.rpartition("node_modules/")[2]: one
            for name, one in packages.items()
            if name
        }
        self.half = half

    def described(self, name: str, url: str) -> dict[str, Any]:
        """Return what npm asks first."""
        one = self.packages[name]
        dist = {"tarball": f"{url}/{name}/-/archive.tgz", "integrity": one["integrity"]}
        version = {**one, "name": name, "dist": dist}
        return {
            "name": name,
            "versions": {one["version"]: version},
            "dist-tags": {"latest": one["version"]},
        }


@contextmanager
def serving(registry: Registry) -> Generator[str]:
    """Start it; return its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = unquote(self.path.strip("/"))
            if name in registry.packages:
                self._answer(json.dumps(registry.described(name, url)).encode())
            else:
                self._answer(WRONG, half=registry.half)

        def _answer(self, body: bytes, *, half: bool = False) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: len(body) // 2] if half else body)

        def log_message(self, *_args: object) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield url
        server.shutdown()
