"""Checks the requirements of the local service: packages, Node.js, controllers, devices."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pytest_device import nodejs, same_user
from pytest_device.cli.doctor.finding import Finding, Status, fail, ok, warn
from pytest_device.cli.doctor.packages import check_packages
from pytest_device.errors import ConfigError
from pytest_device.platforms import SYSTEM
from pytest_device.programs import cache_directory, for_installers
from pytest_device.settings import Settings

if TYPE_CHECKING:
    from pytest_device.service.programs.toolchain import Project, Toolchain

_NAME: Final = "local service"
_INSTALL_FIX: Final = (
    "run `pytest-device serve` once with network access: it installs what is missing"
)


def check_local(
    environ: Mapping[str, str],
    home: Path,
    settings: Settings,
    *,
    version_of: Callable[[str], str] = version,
) -> Iterator[Finding]:
    """Yield findings on installed and missing programs; none is a failure if another service is configured."""
    for finding in _findings(environ, home, settings, version_of):
        if settings.local or finding.status is Status.OK:
            yield finding
        else:
            yield ok(finding.name, f"{finding.text} (only needed by --device-local)")


def _findings(
    environ: Mapping[str, str],
    home: Path,
    settings: Settings,
    version_of: Callable[[str], str],
) -> Iterator[Finding]:
    if not SYSTEM.has_local_service:
        yield fail(_NAME, SYSTEM.support.limits, "set DEVICE_URL")
        return

    packages = list(check_packages("local", version_of=version_of))
    missing = [finding for finding in packages if finding.status is not Status.OK]
    if missing:
        text = "; ".join(f"{finding.name} {finding.text}" for finding in missing)
        yield fail(_NAME, text, "pip install 'pytest-device[local]'")
        return

    yield from packages
    yield from _programs(environ, home, settings)


def _programs(
    environ: Mapping[str, str], home: Path, settings: Settings
) -> Iterator[Finding]:
    from pytest_device.cli.doctor.devices import check_devices
    from pytest_device.service.programs.toolchain import AGENT_DEVICE, APPIUM, ARGENT

    cache_dir = cache_directory(environ, home)
    yield from check_programs(cache_dir)
    yield from _appium(environ, cache_dir, APPIUM)
    for project in (AGENT_DEVICE, ARGENT):
        yield _installed_later(environ, cache_dir, project)

    yield from check_devices(environ, home, settings)
    yield check_users(
        is_shown=same_user.shows_users(), unknown=same_user.unknown_ways()
    )
    yield from check_exposure(
        SYSTEM.namespace_refusal(),
        is_root=SYSTEM.is_root(),
        is_required=settings.local_require_isolation,
    )


def check_programs(cache_dir: Path) -> Iterator[Finding]:
    """Yield a finding if another user can put programs in the cache."""
    from pytest_device.service.programs.cache import check_cache

    try:
        check_cache(cache_dir)
    except ConfigError as error:
        problem, _, fix = str(error).rpartition(": ")
        yield fail("cache", problem, fix)


def check_users(*, is_shown: bool, unknown: Sequence[str]) -> Finding:
    """Return whether servers can tell this user's connections from others'; ``unknown`` are addresses that fail."""
    if not is_shown:
        text = "this system does not show who opened a connection: other users of the machine can open session pages"
        return warn("users", text, "use a machine that has no other users")
    if unknown:
        text = f"this system does not show who connects over {', '.join(unknown)}: such connections are refused"
        return warn("users", text, "connect to 127.0.0.1")

    return ok("users", "connections of other users of this machine are refused")


def check_exposure(
    refused: str, *, is_root: bool = False, is_required: bool = False
) -> Iterator[Finding]:
    """Yield findings on what a web page or another user could reach.

    Arguments:
        refused: Why this system refuses network namespaces, empty if it does not.
        is_root: Whether the user is root, as whom the browser has no sandbox.
        is_required: Whether sessions without a namespace are refused.
    """
    from pytest_device.service.programs.isolation import OPEN

    if is_root:
        text = "Chromium runs with --no-sandbox as root: a page that takes over the browser takes over the machine"
        yield warn(
            "sandbox",
            text,
            "run pytest as another user, for example: runuser -u tester -- pytest",
        )

    if refused:
        fix = "allow user namespaces for this user, or use a machine that has no other users"
        report = fail if is_required else warn
        yield report("ports", f"{OPEN}: no network namespace ({refused})", fix)
    else:
        yield ok(
            "ports",
            "the ports of a session's programs are in a network namespace of their own",
        )


def _appium(
    environ: Mapping[str, str], cache_dir: Path, project: "Project"
) -> Iterator[Finding]:
    tools, missing = _find(environ, cache_dir, project)
    if isinstance(tools, ConfigError):
        # Between the heading and the fixes are the reasons.
        reasons = "; ".join(tools.problems[1:-2])
        yield warn("node", f"{reasons}: the first start installs it", _INSTALL_FIX)
        return

    yield ok("node", str(tools.node))
    if missing:
        text = f"{project.title} is not installed in {cache_dir} yet: the first start installs it"
        yield warn("appium", text, _INSTALL_FIX)
    else:
        yield ok("appium", f"{project.title} in {tools.project}")


def _installed_later(
    environ: Mapping[str, str], cache_dir: Path, project: "Project"
) -> Finding:
    """Return the finding for a program that not every run needs."""
    tools, missing = _find(environ, cache_dir, project)
    if isinstance(tools, ConfigError):
        missing.append(f"Node.js {project.node.text}")
    elif not missing:
        return ok(
            project.name, f"{project.title} in {tools.project}, run by {tools.node}"
        )

    text = f"{' and '.join(missing)} not installed in {cache_dir} yet: the first session of the type installs it"
    return ok(project.name, f"{text}, which needs network access")


def _find(
    environ: Mapping[str, str], cache_dir: Path, project: "Project"
) -> "tuple[Toolchain | ConfigError, list[str]]":
    """Return the programs that sessions would use, without installing, or the error; and those not installed."""
    from pytest_device.service.programs import toolchain
    from pytest_device.service.programs.cache import Installer, Package
    from pytest_device.service.programs.guard import Guard

    missing: list[str] = []

    class Finder(Installer):
        """Notes what is missing instead of installing it."""

        async def ensure(self, package: Package) -> None:
            if not package.installed:
                missing.append(package.title)

    finder = Finder(
        Guard(environ=environ, log=missing.append),
        for_installers(environ),
        missing.append,
    )
    try:
        preparation = toolchain.prepare(
            finder, cache_dir, project, nodes=nodejs.candidates(environ)
        )
        return asyncio.run(preparation), missing
    except ConfigError as error:
        return error, missing
