"""A machine with Python, git and a shell, for a user who has nothing yet."""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

TOOLS: Final = (
    "sh",
    "git",
    "cat",
    "cp",
    "dirname",
    "env",
    "head",
    "ls",
    "mkdir",
    "mktemp",
    "mv",
    "readlink",
    "rm",
    "sort",
    "tail",
    "touch",
    "tr",
    "uname",
    "wc",
)
REGISTRIES: Final = re.compile(
    r"PIP_.+|UV_.+|NPM_CONFIG_.+|(HTTPS?|NO|ALL)_PROXY|SSL_CERT_(FILE|DIR)|REQUESTS_CA_BUNDLE|NODE_EXTRA_CA_CERTS",
    re.IGNORECASE,
)
"""The variables by which this machine reaches the registries of packages."""
CLOSED: Final = "http://127.0.0.1:9"
PROXIES: Final = (
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "http_proxy",
    "https_proxy",
    "NPM_CONFIG_REGISTRY",
)
DIRECT: Final = dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost")
OFFLINE: Final = {**dict.fromkeys(PROXIES, CLOSED), **DIRECT}
"""Everything but this machine is behind a port on which nothing listens."""


class BareMachine:
    """Run commands that find a few tools, an empty home and the registries of packages."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.home, self._bin = (
            directory,
            directory / "home",
            directory / "bin",
        )
        self.home.mkdir()
        self._bin.mkdir()
        for tool in TOOLS:
            found = shutil.which(tool)
            assert found is not None, f"{tool} is not on PATH"
            (self._bin / tool).symlink_to(found)
        python = Path(sys.base_prefix, "bin", f"python3.{sys.version_info.minor}")
        (self._bin / "python3").symlink_to(python)
        inherited = {
            name: value
            for name, value in os.environ.items()
            if REGISTRIES.fullmatch(name)
        }
        own = {"PATH": str(self._bin), "HOME": str(self.home), "LANG": "C.UTF-8"}
        # Else its runs remove what others left: that takes a while.
        own["PYTEST_DEBUG_TEMPROOT"] = str(directory)
        self._environ = {**_registries_of_user(), **inherited, **own}

    def run(self, command: str, where: Path, *, online: bool = True) -> str:
        """Run a command, return what it printed; raises AssertionError for another exit status than 0."""
        start = time.monotonic()
        result = subprocess.run(
            ["sh", "-c", command],
            cwd=where,
            env=self._environ if online else {**self._environ, **OFFLINE},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        sys.stdout.write(
            f"{result.stdout}\n{time.monotonic() - start:.0f} s: {command}\n"
        )
        assert result.returncode == 0, result.stdout[-8000:]
        return result.stdout


def _registries_of_user() -> dict[str, str]:
    """Return the variables that name the user's own configuration of the installers, which the empty home lacks."""
    places = {
        "PIP_CONFIG_FILE": Path.home() / ".config/pip/pip.conf",
        "UV_CONFIG_FILE": Path.home() / ".config/uv/uv.toml",
        "NPM_CONFIG_USERCONFIG": Path.home() / ".npmrc",
    }
    return {name: str(place) for name, place in places.items() if place.is_file()}
