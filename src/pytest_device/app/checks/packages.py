"""Checks of ``package.json``: native directories, versions and known libraries."""

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from typing import Final, NamedTuple

from pytest_device.app.checks.finding import (
    Finding,
    config_path,
    failed,
    project_finding,
)
from pytest_device.app.document import Place, text_at
from pytest_device.app.native import native_files
from pytest_device.app.project import Project
from pytest_device.errors import ProjectError

PATTERN_SECONDS: Final = 3.0

_SYNCED = (
    *(
        "ios",
        "android",
        "plugins",
        "icon",
        "scheme",
        "userInterfaceStyle",
        "splash",
        "updates",
        "orientation",
    ),
    *(
        "backgroundColor",
        "primaryColor",
        "notification",
        "androidStatusBar",
        "androidNavigationBar",
        "jsEngine",
    ),
    "locales",
)

_VERSION: Final = re.compile(
    r"(>=|<=|>|<|=|\^|~)?\s*v?(\d{1,16})(?:\.(\d{1,16}|[xX*]))?(?:\.(\d{1,16}|[xX*]))?(?:-([\w.-]{1,256}))?[^\s|,]*",
    re.ASCII,
)
MAX_VERSION: Final = 1_000
"""Maximum length of a version or range, in characters; npm's limit for a version is 256."""
_HYPHEN: Final = re.compile(r"(\S+)\s+-\s+(\S+)")
_SEARCH: Final = """\
import json, re, sys
patterns, names = json.load(sys.stdin)
found = set()
for pattern in patterns:
    try:
        found.update(name for name in names if re.search(pattern, name))
    except re.error:
        pass
print(json.dumps(list(found)))
"""


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
    written = [key for key in project.config if key in _SYNCED]
    if not written or not native_files(project.root, "ios", "android"):
        return [project_finding("native-not-synced", project, "passed")]
    what = f"builds do not sync {', '.join(written)}"
    return [
        failed(
            "native-not-synced",
            config_path(project),
            what,
            "ignore /ios and /android, or delete the keys",
        )
    ]


def install_check(
    project: Project, versions: Mapping[str, str] | None
) -> list[Finding]:
    """Compare the libraries with a table of the versions that the SDK expects; skipped without a table."""
    package = project.package
    if versions is None:
        return [
            project_finding(
                "install-version",
                project,
                "skipped",
                "pass a table of the expected versions",
            )
        ]
    found: list[Finding] = []
    for name, wanted in versions.items():
        kind = package.kind_of(name)
        if kind is None or name in package.install_exclude:
            continue
        actual = (
            package.installed_version(name)
            or text_at(package.content, kind, name)
            or ""
        )
        if not fits(actual, wanted):
            what, place = (
                f"{name} is {actual}, expected {wanted}",
                package.document.place(kind, name),
            )
            fix = f"install {name}@{wanted}, or add it to install.exclude"
            found.append(
                failed("install-version", package.document.path, what, fix, place)
            )
    return found or [project_finding("install-version", project, "passed")]


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
    excluded = _excluded(project, check.exclude, list(project.package.dependencies))
    names = [name for name in project.package.dependencies if name not in excluded]
    unknown = "is unknown" if check.list_unknown_packages else ""
    problems = {
        name: problem for name in names if (problem := directory.get(name, unknown))
    }
    document, fix = (
        project.package.document,
        "replace it, or add it to reactNativeDirectoryCheck.exclude",
    )
    return [
        failed(
            "library-directory",
            document.path,
            f"{name} {problem}",
            fix,
            document.place("dependencies", name),
        )
        for name, problem in problems.items()
    ] or [project_finding("library-directory", project, "passed")]


def _excluded(project: Project, entries: tuple[str, ...], names: list[str]) -> set[str]:
    """Return the excluded names; entries are names or ``/patterns/``. Raises ProjectError for slow patterns."""
    patterns = [
        entry[1:-1]
        for entry in entries
        if len(entry) > 1 and entry[0] == entry[-1] == "/"
    ]
    if not patterns:
        return set(entries)
    task = json.dumps([patterns, names])
    try:  # in its own process: a runaway search can't be stopped otherwise
        done = subprocess.run(  # noqa: S603  # this Python
            [sys.executable, "-I", "-S", "-c", _SEARCH], input=task, capture_output=True, text=True, check=True,
            timeout=PATTERN_SECONDS,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        trail = (project.vendor.key, "doctor", "reactNativeDirectoryCheck", "exclude")
        place = project.package.document.place(*trail) or Place(0, 0)
        problem = f"{'.'.join(trail[1:])} has a pattern that takes more than {PATTERN_SECONDS:g} s: simplify it"
        path = project.package.document.path
        raise ProjectError(
            problem, path=path, line=place.line, column=place.column
        ) from None
    return {*entries, *json.loads(done.stdout)}


def fits(version: str, wanted: str) -> bool:
    """Return whether a version, or the lowest version of a range, satisfies a range.

    As in npm, a prerelease fits only where the range names one of the same version. Nothing longer than 1,000
    characters fits: the time to search it grows with the square of its length.
    """
    if max(len(version), len(wanted)) > MAX_VERSION:
        return False
    found = _VERSION.search(version)
    return found is not None and any(
        _fits(_version(found), one) for one in wanted.split("||")
    )


def _fits(actual: "_Version", wanted: str) -> bool:
    parts = list(_VERSION.finditer(_HYPHEN.sub(r">=\1 <=\2", wanted)))
    named = [base.numbers for part in parts if not (base := _version(part)).is_release]
    return (actual.is_release or actual.numbers in named) and all(
        _holds(actual, part) for part in parts
    )


class _Version(NamedTuple):
    """A version that compares by precedence: a prerelease by its identifiers, of which numbers come first."""

    numbers: tuple[int, ...]
    is_release: bool = True
    identifiers: tuple[tuple[bool, int, str], ...] = ()
    is_past: bool = False
    """Whether it stands for whatever follows the version."""


def _version(part: re.Match[str]) -> _Version:
    names = part[5].split(".") if part[5] else []
    identifiers = tuple(
        (not one.isdecimal(), int(one) if one.isdecimal() else 0, one) for one in names
    )
    return _Version(tuple([*_given(part), 0, 0][:3]), not names, identifiers)


def _given(part: re.Match[str]) -> list[int]:
    """Return the numbers of a version that are given: one to three."""
    return [int(one) for one in part.groups()[1:4] if one and one.isdecimal()]


def _holds(actual: _Version, part: re.Match[str]) -> bool:
    base, given, operator = _version(part), _given(part), part[1]
    same = {"^": _caret(given), "~": min(len(given), 2)}.get(operator, len(given))
    numbers = (*given[: same - 1], given[same - 1] + 1, 0, 0)[:3]
    # ^0.0.3-rc.1 also takes 0.0.3.
    is_whole = same == len(base.numbers) and operator != "^"
    after = base._replace(is_past=True) if is_whole else _Version(numbers)
    is_above = operator in ("<", "<=") or actual >= (after if operator == ">" else base)
    return is_above and (
        operator in (">", ">=") or actual < (base if operator == "<" else after)
    )


def _caret(given: list[int]) -> int:
    """Return how many leading numbers must match: up to and including the first that is not 0."""
    return next((index + 1 for index, number in enumerate(given) if number), len(given))
