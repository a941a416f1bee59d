"""Checks the versions of Python and of the required packages."""

import platform
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from typing import TYPE_CHECKING, Final, assert_never

from pytest_device.cli.doctor.finding import Finding, fail, ok, warn
from pytest_device.platforms import SYSTEM
from pytest_device.platforms.system import Level, System

if TYPE_CHECKING:
    from packaging.requirements import Requirement

PACKAGE: Final = "pytest-device"


def check_python(python_version: str | None = None) -> Iterator[Finding]:
    """Yield the versions of this package and of Python."""
    from packaging.specifiers import SpecifierSet

    actual = python_version or platform.python_version()
    yield ok(PACKAGE, version(PACKAGE))

    required = metadata(PACKAGE)["Requires-Python"]
    if SpecifierSet(required).contains(actual, prereleases=True):
        yield ok("python", f"{actual} ({required})")
    else:
        text = f"{actual} does not satisfy {required}"
        yield fail("python", text, f"use Python {required}")


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

    for text in requires(PACKAGE) or ():
        requirement = Requirement(text)
        marker = requirement.marker
        is_of_extra = marker is not None and not marker.evaluate({"extra": ""})
        is_required = marker is None or marker.evaluate({"extra": extra})
        if is_of_extra == bool(extra) and is_required:
            yield _check_package(requirement, version_of)


def _check_package(
    requirement: "Requirement", version_of: Callable[[str], str]
) -> Finding:
    name, specifier = requirement.name, requirement.specifier
    fix = f"pip install '{name}{specifier}'"
    try:
        actual = version_of(name)
    except PackageNotFoundError:
        return fail(name, f"not installed (requires {specifier})", fix)

    if specifier.contains(actual, prereleases=True):
        return ok(name, f"{actual} ({specifier})")
    return fail(name, f"{actual} does not satisfy {specifier}", fix)
