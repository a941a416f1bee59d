"""Checks the versions of Python and of the required packages."""

import platform
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from typing import Final, assert_never

from pytest_device.cli.doctor.finding import Finding, fail, ok, warn
from pytest_device.platforms import SYSTEM
from pytest_device.platforms.system import Level, System

PACKAGE: Final = "pytest-device"


def check_python(found: str | None = None) -> Iterator[Finding]:
    """Yield the versions of this package and of Python."""
    from packaging.specifiers import SpecifierSet

    found = found or platform.python_version()
    yield ok(PACKAGE, version(PACKAGE))

    wanted = metadata(PACKAGE)["Requires-Python"]
    if SpecifierSet(wanted).contains(found, prereleases=True):
        yield ok("python", f"{found} ({wanted})")
    else:
        yield fail(
            "python", f"{found} does not satisfy {wanted}", f"use Python {wanted}"
        )


def check_system(system: System = SYSTEM) -> Finding:
    """Return how far this package works on this system."""
    level, limits = system.support
    text = f"{system.title} ({platform.machine()}): {level}"

    match level:
        case Level.FULL:
            return ok("system", text)
        case Level.PARTIAL:
            return ok("system", f"{text}; {limits}")
        case Level.CLIENT:
            fix = "use a service that runs elsewhere: set DEVICE_URL"
            return warn("system", f"{text}; {limits}", fix)
        case _:
            assert_never(level)


def check_packages(
    extra: str = "", *, version_of: Callable[[str], str] = version
) -> Iterator[Finding]:
    """Yield the version of each required package, or of those that only an extra requires."""
    from packaging.requirements import Requirement

    for requirement in map(Requirement, requires(PACKAGE) or ()):
        is_of_extra = (
            requirement.marker is not None
            and not requirement.marker.evaluate({"extra": ""})
        )
        if is_of_extra != bool(extra) or (
            requirement.marker and not requirement.marker.evaluate({"extra": extra})
        ):
            continue

        wanted = f"{requirement.name}{requirement.specifier}"

        try:
            found = version_of(requirement.name)
        except PackageNotFoundError:
            yield fail(
                requirement.name,
                f"not installed (requires {requirement.specifier})",
                _install(wanted),
            )
            continue

        if requirement.specifier.contains(found, prereleases=True):
            yield ok(requirement.name, f"{found} ({requirement.specifier})")
        else:
            yield fail(
                requirement.name,
                f"{found} does not satisfy {requirement.specifier}",
                _install(wanted),
            )


def _install(wanted: str) -> str:
    return f"pip install '{wanted}'"
