"""A local npm registry with wrong packages."""

import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from tests.fakes.http_server import Answer, says, scripted_server

WRONG = b"this is no package" * 1000


class Registry:
    """Knows the packages of a lock file; each archive differs from the pinned one."""

    def __init__(self, lock_file: Path) -> None:
        packages = json.loads(lock_file.read_text())["packages"]
        self.packages = {
            name.rpartition("node_modules/")[2]: one
            for name, one in packages.items()
            if name
        }

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

    def answer(call: str) -> Answer:
        name = unquote(call.partition(" ")[2].strip("/"))
        if name in registry.packages:
            return says(registry.described(name, server.url))
        return Answer(body=WRONG)

    with scripted_server(answer) as server:
        yield server.url
