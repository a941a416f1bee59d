"""Checks of ``package.json``: native directories, versions and known libraries."""

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, NamedTuple

from pytest_device.app.checks.finding import (
    Finding,
    config_path,
    failed,
    project_finding,
)
from pytest_device.app.document import text_at
from pytest_device.app.native import native_files
from pytest_device.app.project import Project

_SYNCED = (
    "ios",
    "android",
    "plugins",
    "icon",
    "scheme",
    "userInterfaceStyle",
    "splash",
    "updates",
    "orientation",
    "backgroundColor",
    "primaryColor",
    "notification",
    "androidStatusBar",
    "androidNavigationBar",
    "jsEngine",
    "locales",
)
"""Keys that generated native directories take from the app config."""

_VERSION: Final = re.compile(
    r"(>=|<=|>|<|=|\^|~)?\s*v?(\d{1,16})(?:\.(\d{1,16}|[xX*]))?(?:\.(\d{1,16}|[xX*]))?(?:-([\w.-]{1,256}))?[^\s|,]*",
    re.ASCII,
)
_HYPHEN: Final = re.compile(r"(\S+)\s+-\s+(\S+)")


def app_config_fields_not_synced(project: Project) -> list[Finding]:
    """Report app config keys that have no effect because the project maintains its own native directories."""
    if not project.package.sync_check_enabled:
        return [
            project_finding(
                "native-not-synced",
                project,
                "skipped",
                "enable doctor.appConfigFieldsNotSyncedCheck",
            )
        ]

    keys = [key for key in project.config if key in _SYNCED]
    if not keys or not native_files(project.root, "ios", "android"):
        return [project_finding("native-not-synced", project, "passed")]

    return [
        failed(
            "native-not-synced",
            config_path(project),
            f"builds do not sync {', '.join(keys)}",
            "ignore /ios and /android, or delete the keys",
        )
    ]


def install_check(
    project: Project, versions: Mapping[str, str] | None
) -> list[Finding]:
    """Compare the libraries with a table of expected versions, by default the installed SDK's; skipped without one."""
    package = project.package
    versions = package.expected_versions() if versions is None else versions
    if versions is None:
        return [
            project_finding(
                "install-version",
                project,
                "skipped",
                "install the project's libraries, or pass a table of the expected versions",
            )
        ]

    findings: list[Finding] = []
    for name, expected in versions.items():
        key = package.kind_of(name)
        if key is None or name in package.install_exclude:
            continue

        requested = text_at(package.content, key, name)
        actual = package.installed_version(name) or requested or ""
        if not fits(actual, expected):
            findings.append(
                failed(
                    "install-version",
                    package.document.path,
                    f"{name} is {actual}, expected {expected}",
                    f"install {name}@{expected}, or add it to install.exclude",
                    package.document.position(key, name),
                )
            )

    return findings or [project_finding("install-version", project, "passed")]


def directory_check(
    project: Project, directory: Mapping[str, str] | None
) -> list[Finding]:
    """Look up the libraries in a table of problems (an empty string for none); skipped without a table."""
    check = project.package.directory_check
    if not check.enabled:
        return [
            project_finding(
                "library-directory",
                project,
                "skipped",
                "enable doctor.reactNativeDirectoryCheck",
            )
        ]
    if directory is None:
        return [
            project_finding(
                "library-directory",
                project,
                "skipped",
                "pass a table of the known libraries",
            )
        ]

    names = list(project.package.dependencies)
    excluded = _excluded(check.exclude, names)
    problem_of_unknown = "is unknown" if check.list_unknown_packages else ""
    document = project.package.document
    findings: list[Finding] = []
    for name in names:
        problem = directory.get(name, problem_of_unknown)
        if name not in excluded and problem:
            findings.append(
                failed(
                    "library-directory",
                    document.path,
                    f"{name} {problem}",
                    "replace it, or add it to reactNativeDirectoryCheck.exclude",
                    document.position("dependencies", name),
                )
            )

    return findings or [project_finding("library-directory", project, "passed")]


def _excluded(entries: tuple[str, ...], names: list[str]) -> set[str]:
    """Return the excluded names; entries are names or ``/patterns/``."""
    excluded = set(entries)
    for entry in entries:
        if not (len(entry) > 1 and entry[0] == entry[-1] == "/"):
            continue

        # JavaScript has patterns that Python has not.
        with suppress(re.error, OverflowError):
            pattern = re.compile(entry[1:-1])
            excluded.update(name for name in names if pattern.search(name))

    return excluded


def fits(version: str, expected: str) -> bool:
    """Return whether a version, or the lowest version of a range, satisfies a range.

    As in npm, a prerelease fits only where the range names one of the same version.

    >>> fits("1.4.2", "^1.3"), fits("2.0.0", "^1.3")
    (True, False)
    """
    match = _VERSION.search(version)
    if match is None:
        return False

    actual = _version(match)

    return any(_fits(actual, alternative) for alternative in expected.split("||"))


def _fits(actual: "_Version", expected: str) -> bool:
    """Return whether a version satisfies all comparisons of a range without alternatives."""
    comparisons = list(_VERSION.finditer(_HYPHEN.sub(r">=\1 <=\2", expected)))
    if not actual.is_release:
        bases = [_version(comparison) for comparison in comparisons]
        prereleases = [base.numbers for base in bases if not base.is_release]
        if actual.numbers not in prereleases:
            return False

    return all(_holds(actual, comparison) for comparison in comparisons)


class _Version(NamedTuple):
    """A version that compares by precedence: a prerelease by its identifiers, of which numbers come first."""

    numbers: tuple[int, ...]
    is_release: bool = True
    identifiers: tuple[tuple[bool, int, str], ...] = ()
    is_past: bool = False
    """Whether it stands for whatever follows the version."""


def _version(part: re.Match[str]) -> _Version:
    names = part[5].split(".") if part[5] else []
    identifiers = tuple(_identifier(name) for name in names)
    numbers = (*_numbers(part), 0, 0)[:3]

    return _Version(numbers, not names, identifiers)


def _identifier(name: str) -> tuple[bool, int, str]:
    """Return an identifier of a prerelease so that numbers come before words."""
    if name.isdecimal():
        return False, int(name), name

    return True, 0, name


def _numbers(part: re.Match[str]) -> list[int]:
    """Return the numbers that a version or comparison has: one to three."""
    return [int(text) for text in part.groups()[1:4] if text and text.isdecimal()]


def _holds(actual: _Version, comparison: re.Match[str]) -> bool:
    """Return whether a version satisfies a comparison such as ``^1.2``."""
    base = _version(comparison)
    operator = comparison[1]
    if operator == "<":
        return actual < base
    if operator == ">=":
        return actual >= base

    after = _after(base, _numbers(comparison), operator)
    if operator == "<=":
        return actual < after
    if operator == ">":
        return actual >= after

    return base <= actual < after


def _after(base: _Version, numbers: list[int], operator: str | None) -> _Version:
    """Return the first version above those that a comparison stands for: ``1.2`` for those that begin with ``1.1``."""
    equal_numbers = len(numbers)
    if operator == "^":
        equal_numbers = _caret(numbers)
    elif operator == "~":
        equal_numbers = min(len(numbers), 2)

    # ^0.0.3-rc.1 also takes 0.0.3.
    if equal_numbers == len(base.numbers) and operator != "^":
        return base._replace(is_past=True)

    *leading, last = numbers[:equal_numbers]

    return _Version((*leading, last + 1, 0, 0)[:3])


def _caret(numbers: list[int]) -> int:
    """Return how many leading numbers must match: up to and including the first that is not 0."""
    for count, number in enumerate(numbers, start=1):
        if number != 0:
            return count

    return len(numbers)
