"""The programs behind the controllers: Node.js and an npm project for each, found or installed once per user."""

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_device import nodejs
from pytest_device.errors import ConfigError
from pytest_device.platforms import SYSTEM
from pytest_device.programs import for_installers, passed_on
from pytest_device.service.logs import Log
from pytest_device.service.programs.cache import Installer, Package
from pytest_device.service.programs.guard import Guard
from pytest_device.service.programs.program import ask

_PROJECTS: Final = Path(__file__).parent / "npm"
_NPM_CI: Final = _PROJECTS / "ci.mjs"
_WHEEL: Final = Path(__file__).parent / "pip/node/requirements.txt"
"""Pins a Python package with Node.js and its npm: one hash for each system and architecture."""

_QUIET: Final = ("--no-audit", "--no-fund", "--no-update-notifier")
"""Options of npm: it requests nothing but packages."""
_CI: Final = (
    "ci",
    "--ignore-scripts",  # scripts search for drivers and download browsers, which are pinned here
    "--omit=optional",  # binaries for images, terminals and windows, which are not needed
    "--no-progress",
    "--no-engine-strict",  # this package checks the version of Node.js
)

PIP: Final = (
    "-m",
    "pip",
    "install",
    # Not in the user's environment, whose packages are nobody else's business.
    "--target",
    ".",
    "--no-deps",
    # Building a source distribution would run its code.
    "--only-binary",
    ":all:",
    "--quiet",
    "--no-input",
    "--disable-pip-version-check",
    "--require-hashes",
    "--requirement",
    "requirements.txt",
)
"""Arguments of Python that install the package that ``requirements.txt`` in the current directory pins by hash."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """Supported versions of Node.js.

    Attributes:
        program: The program that needs them.
        text: The versions as its manifest says them.
        minors: The minimum minor versions of some major ones.
        all_from: The major version from which all are supported.
    """

    program: str
    text: str
    minors: Mapping[int, int]
    all_from: int

    def fits(self, version: str) -> bool:
        """Return whether the program supports a version of Node.js."""
        major, minor = nodejs.major_and_minor(version)
        if major >= self.all_from:
            return True
        return major in self.minors and minor >= self.minors[major]


@dataclass(frozen=True, slots=True)
class Node:
    """A suitable Node.js: the real executable, and the command that runs its npm, which requests nothing but packages."""

    executable: Path
    npm: tuple[str | Path, ...]


@dataclass(frozen=True, slots=True)
class Project:
    """An npm project of this package.

    Attributes:
        name: The name of its directory.
        package: The main dependency.
        script: Starts the main dependency.
        node: The supported versions of Node.js.
        installer: A script of the project that installs it: Node.js runs it with the npm command as its arguments.
    """

    name: str
    package: str
    script: Path
    node: Requirement
    installer: str | None = None

    @property
    def files(self) -> tuple[Path, ...]:
        """The manifest, the lock file and the installer."""
        names = ["package.json", "package-lock.json"]
        if self.installer:
            names.append(self.installer)
        return tuple(_PROJECTS / self.name / name for name in names)

    def directory(self, cache_dir: Path) -> Path:
        """Return the directory it is installed in; the name depends on the pinned versions."""
        return cache_dir / f"{self.name}-{self.version}-{digest(self.files)}"

    @property
    def version(self) -> str:
        """The pinned version of the program."""
        manifest = json.loads(self.files[0].read_text())
        version: str = manifest["dependencies"][self.package]
        return version

    @property
    def title(self) -> str:
        return f"{self.node.program} {self.version}"


APPIUM: Final = Project(
    "appium",
    "appium",
    Path("node_modules/appium/index.js"),
    Requirement("Appium", "^20.19 || ^22.12 || >=24", {20: 19, 22: 12}, 24),
)
AGENT_DEVICE: Final = Project(
    "agent-device",
    "agent-device",
    Path("node_modules/agent-device/dist/src/internal/daemon.js"),
    # Its manifest requires >=22.12, and >=24 for its platform `web`
    Requirement("agent-device", ">=24", {}, 24),
)
ARGENT: Final = Project(
    "argent",
    "@swmansion/argent",
    Path("node_modules/@swmansion/argent/dist/cli.js"),
    Requirement("argent", ">=20.12", {20: 12}, 21),
)
PLAYWRIGHT: Final = Project(
    "playwright",
    "playwright",
    Path("node_modules/playwright/cli.js"),
    # It merges reports; its trace viewer runs in a browser.
    Requirement("Playwright", ">=20", {}, 20),
)
CHROMIUM: Final = Project(
    "chromium",
    "@sparticuz/chromium",
    Path("chromium"),
    # Only to unpack it; its manifest requires more, for other uses.
    Requirement("Chromium", ">=18", {}, 18),
    installer="install.mjs",
)


@dataclass(frozen=True, slots=True)
class Toolchain:
    """A Node.js, and the directory of the npm project that runs on it."""

    node: Path
    project: Path
    script: Path

    def package(self, name: str) -> Path:
        """Return the directory of one of the project's packages."""
        return self.project / "node_modules" / name


class Toolbox:
    """The toolchains of one service: each is found, or installed if missing, on first use."""

    def __init__(
        self, guard: Guard, environ: Mapping[str, str], cache_dir: Path
    ) -> None:
        self._guard = guard
        self._environ = environ
        self.cache_dir = cache_dir
        self._found: dict[str, Toolchain] = {}

    @property
    def environ(self) -> Mapping[str, str]:
        """The environment of installers, with the settings of the registries and mirrors in use."""
        return for_installers(self._environ)

    async def get(self, project: Project, progress: Log) -> Toolchain:
        """Return the toolchain; ``progress`` reports slow steps. Raises ConfigError with the cause and the fix.

        A second caller waits for the first, and installs the toolchain itself if the first was cancelled.
        """
        if project.name not in self._found:
            nodes = nodejs.candidates(self._environ)
            self._found[project.name] = await prepare(
                self._installer(progress), self.cache_dir, project, nodes=nodes
            )
        return self._found[project.name]

    async def node(self, required: Requirement, progress: Log) -> Node:
        """Return the pinned Node.js, installed if missing. Raises ConfigError with the cause and the fix.

        Its caller has found none that fits on this machine.
        """
        installer = self._installer(progress)
        return await choose_node(installer, self.cache_dir, required, nodes=())

    async def ensure(self, package: Package, progress: Log) -> None:
        """Install a package without dependencies; ``progress`` and errors as for ``get``."""
        await self._installer(progress).ensure(package)

    def _installer(self, progress: Log) -> Installer:
        return Installer(self._guard, self.environ, progress)


def digest(files: Iterable[Path]) -> str:
    """Return eight characters that change with the content of any of the files."""
    content = b"".join(file.read_bytes() for file in files)
    return hashlib.sha256(content).hexdigest()[:8]


async def prepare(
    installer: Installer,
    cache_dir: Path,
    project: Project,
    *,
    nodes: Iterable[Path],
    python: str = sys.executable,
) -> Toolchain:
    """Use the first suitable Node.js, or install one, then install the project if it is missing.

    Raises ConfigError with the cause and the fix.
    """
    chosen = await choose_node(
        installer, cache_dir, project.node, nodes=nodes, python=python
    )
    package = _npm_package(project, chosen, cache_dir)
    await installer.ensure(package)
    return Toolchain(
        chosen.executable, package.directory, package.directory / project.script
    )


async def choose_node(
    installer: Installer,
    cache_dir: Path,
    required: Requirement,
    *,
    nodes: Iterable[Path],
    python: str = sys.executable,
) -> Node:
    """Return the first suitable Node.js, else the pinned one of this cache, installed if missing.

    Raises ConfigError with the cause and the fix.
    """
    problems: list[str] = []
    for executable in nodes:
        try:
            return await inspect(executable, passed_on(installer.environ), required)
        except ConfigError as error:
            problems.append(str(error))

    wheel = _node_package(cache_dir, python)
    try:
        await installer.ensure(wheel)
        return await inspect(
            wheel.directory / wheel.proof, passed_on(installer.environ), required
        )
    except ConfigError as error:
        raise ConfigError(
            f"{required.program} needs Node.js {required.text}, which was not found:",
            *(problems or ["no node on PATH"]),
            str(error),
            f"Or install Node.js 24 with its npm, or {pinned_in(_WHEEL)} next to pytest-device.",
        ) from error


def _npm_package(project: Project, chosen: Node, cache_dir: Path) -> Package:
    script: list[str | Path] = (
        [chosen.executable, project.installer] if project.installer else []
    )
    install: list[str | Path] = [*chosen.npm, *_CI]
    # An npm of another place may be a batch file, which Node.js does not start.
    if chosen.npm[0] == chosen.executable:
        install = [chosen.executable, _NPM_CI, *install]

    return Package(
        title=project.title,
        directory=project.directory(cache_dir),
        proof=project.script,
        command=[*script, *install],
        files=project.files,
    )


def _node_package(cache_dir: Path, python: str) -> Package:
    name, _, version = pinned_in(_WHEEL).partition("==")
    return Package(
        title=f"Node.js {version}",
        directory=cache_dir / f"{name}-{version}-{digest([_WHEEL])}",
        proof=nodejs.PROGRAM,
        command=[python, *PIP],
        files=[_WHEEL],
        by_hand="install Node.js 24",
    )


def pinned_in(requirements: Path) -> str:
    """Return the package that a file pins, as ``NAME==VERSION``."""
    return requirements.read_text().split()[0]


async def inspect(
    executable: Path, environ: Mapping[str, str], required: Requirement
) -> Node:
    """Return the Node.js at a path. Raises ConfigError if it does not run, is unsupported or has no npm."""
    printed = await ask([executable, *nodejs.QUERY], environ=environ)
    version, path = nodejs.parsed(executable, printed)

    if not required.fits(version):
        raise ConfigError(
            f"{executable} is Node.js {version}, {required.program} needs {required.text}"
        )

    return Node(path, _npm(path, environ))


def _npm(executable: Path, environ: Mapping[str, str]) -> tuple[str | Path, ...]:
    for location in SYSTEM.places.npm:
        script = Path(os.path.normpath(executable.parent / location))
        if script.is_file():
            return (executable, script, *_QUIET)

    npm = shutil.which("npm", path=environ.get("PATH", ""))
    if npm is None:
        raise ConfigError(f"{executable} has no npm next to it, and none is on PATH")
    return (npm, *_QUIET)
