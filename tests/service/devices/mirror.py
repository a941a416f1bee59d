"""A mirror for Selenium Manager: an HTTP server with an index of releases, and Chrome and chromedriver."""

import json
import zipfile
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@contextmanager
def mirrored(directory: Path, chrome: str, chromedriver: str) -> Generator[str]:
    """Serve release 153.0.1.2 for Linux x86_64, whose programs are these scripts; provide the URL."""
    directory.mkdir()
    handler = partial(_Quiet, directory=str(directory))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    url = f"http://127.0.0.1:{server.server_port}"
    programs = {"chrome": chrome, "chromedriver": chromedriver}
    for name, text in programs.items():
        entry = zipfile.ZipInfo(f"{name}-linux64/{name}")
        entry.external_attr = 0o100755 << 16
        with zipfile.ZipFile(directory / f"{name}.zip", "w") as archive:
            archive.writestr(entry, text)

    downloads = {
        name: [{"platform": "linux64", "url": f"{url}/{name}.zip"}] for name in programs
    }
    release = {"version": "153.0.1.2", "revision": "1", "downloads": downloads}
    channels = {
        name: {"channel": name, **release}
        for name in ("Stable", "Beta", "Dev", "Canary")
    }
    indexes: dict[str, dict[str, object]] = {
        "last-known-good": {"channels": channels},
        "known-good": {"versions": [release]},
    }
    for index, listed in indexes.items():
        path = directory / f"{index}-versions-with-downloads.json"
        path.write_text(json.dumps({"timestamp": "2026-01-01T00:00:00Z", **listed}))

    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield url
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
