"""Checks of the package config: native directories, versions and known libraries."""

import re
from collections.abc import Iterator, Mapping

from pytest_device.app.checks.finding import Finding, config_path, failed, settled
from pytest_device.app.checks.versions import fits
from pytest_device.app.native import native_files
from pytest_device.app.project import Project

_SYNCED = (
    *("ios", "android", "plugins", "icon", "scheme", "userInterfaceStyle", "splash", "updates", "orientation"),
    *("backgroundColor", "primaryColor", "notification", "androidStatusBar", "androidNavigationBar", "jsEngine"),
    "locales",
)


def app_config_fields_not_synced(project: Project) -> list[Finding]:
    """Return whether native directories of the project's own leave keys of the app config without effect."""
    if not project.package.sync_check_enabled:
        return [settled("native-not-synced", project, "skipped", "enable doctor.appConfigFieldsNotSyncedCheck")]
    written = [key for key in project.config if key in _SYNCED]
    if not written or not native_files(project.root, "ios", "android"):
        return [settled("native-not-synced", project, "passed")]
    what = f"builds do not sync {', '.join(written)}"
    return [failed("native-not-synced", config_path(project), what, "ignore /ios and /android, or delete the keys")]


def install_check(project: Project, versions: Mapping[str, str] | None) -> list[Finding]:
    """Compare the libraries with a table of the versions that the SDK expects; skipped without one."""
    package = project.package
    if versions is None:
        return [settled("install-version", project, "skipped", "pass a table of the expected versions")]
    found: list[Finding] = []
    for name, wanted in versions.items():
        requested = package.dependencies.get(name)
        if requested is None or name in package.install_exclude:
            continue
        actual = package.installed_version(name) or requested
        if not fits(actual, wanted):
            what, place = f"{name} is {actual}, expected is {wanted}", package.document.place("dependencies", name)
            fix = f"install {name}@{wanted}, or add it to install.exclude"
            found.append(failed("install-version", package.document.path, what, fix, place))
    return found or [settled("install-version", project, "passed")]


def directory_check(project: Project, directory: Mapping[str, str] | None) -> list[Finding]:
    """Compare the libraries with a table of what speaks against each, empty for none; skipped without one."""
    check = project.package.directory_check
    if not check.enabled:
        return [settled("library-directory", project, "skipped", "enable doctor.reactNativeDirectoryCheck")]
    if directory is None:
        return [settled("library-directory", project, "skipped", "pass a table of the known libraries")]
    names = [name for name in project.package.dependencies if not any(_excludes(one, name) for one in check.exclude)]
    found = list(_judged(project, names, directory, list_unknown=check.list_unknown_packages))
    return found or [settled("library-directory", project, "passed")]


def _judged(
    project: Project, names: list[str], directory: Mapping[str, str], *, list_unknown: bool
) -> Iterator[Finding]:
    document = project.package.document
    for name in names:
        problem = directory.get(name, "is unknown" if list_unknown else "")
        if problem:
            fix = "replace it, or add it to reactNativeDirectoryCheck.exclude"
            place = document.place("dependencies", name)
            yield failed("library-directory", document.path, f"{name} {problem}", fix, place)


def _excludes(entry: str, name: str) -> bool:
    if len(entry) > 1 and entry.startswith("/") and entry.endswith("/"):
        try:
            return bool(re.search(entry[1:-1], name))
        except re.error:
            return False
    return entry == name
