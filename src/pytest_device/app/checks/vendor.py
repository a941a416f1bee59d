"""What the names of the vendor's profile are found in: the project's files and the installed libraries."""

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

from pytest_device.app.checks.finding import Finding, failed, in_config
from pytest_device.app.document import at
from pytest_device.app.package import FILE
from pytest_device.app.project import Project

Status: TypeAlias = Literal["found", "not found", "unknown"]
"""Unknown if nothing that is installed or set would show the name."""

MAX_FILES: Final = 2_000
MAX_FILE_BYTES: Final = 1024 * 1024
"""Maximum size of a source file of a library; a larger one is generated."""
_MAX_EXAMPLES: Final = 3
"""Maximum number of names that an entry lists."""
_SOURCES: Final = frozenset(
    {".js", ".mjs", ".cjs", ".ts", ".kt", ".java", ".swift", ".m"}
)
_SKIPPED: Final = frozenset({"node_modules", "__tests__", "__mocks__"})


@dataclass(frozen=True, slots=True)
class ProfileEntry:
    """One field of the profile; ``unknown`` if nothing installed would show it."""

    field: str
    value: str
    status: Status
    where: str

    def to_dict(self) -> dict[str, str]:
        return asdict(self)


class _Evidence(NamedTuple):
    """How a library's source shows a name: with the profile's value, and with any."""

    libraries: tuple[str, ...]
    pattern: str
    """Contains ``NAME`` where the name is."""
    name: str
    """Pattern of any name there."""


_NAME: Final = r"[A-Za-z][\w-]*"
_EVIDENCE: Final = {
    "header_prefix": _Evidence(("updates",), r"\bNAMEprotocol-version\b", rf"{_NAME}-"),
    "client_id_header": _Evidence(("updates",), r"\bNAME\b", rf"{_NAME}-client-id"),
    "client_scheme": _Evidence(
        ("linking", "router"), r"\bNAMEs?\??:(?://|\\/\\/)[^\s'\"`]*/--", _NAME
    ),
    "push_path": _Evidence(("notifications",), r"\bNAME\b", r"push/get\w*PushToken"),
    "push_reply_key": _Evidence(("notifications",), r"\.NAME\b", r"\w*PushToken"),
    "token_type": _Evidence(("notifications",), r"\btype: *['\"]NAME['\"]", _NAME),
}
"""Evidence of each field of the profile that an installed library shows."""


def profile_entries(project: Project) -> Iterator[ProfileEntry]:
    """Yield each field of the vendor's profile, and where the project or its libraries have it."""
    yield _key(project)
    yield _project_id(project)
    yield _environment(project)
    for field in _EVIDENCE:
        yield _in_libraries(project, field)


def check_profile(project: Project) -> Iterator[Finding]:
    """Yield a finding for each name that the project spells otherwise."""
    for field in _EVIDENCE:
        entry = _in_libraries(project, field)
        if entry.status != "not found":
            continue

        other = _other(project, field)
        if other:
            fix = f"set device_vendor_{field} to {other}"
            problem = f"{field} {entry.value} is {entry.status} {entry.where}"
            yield failed("vendor-profile", project.root / FILE, problem, fix)

    if project.project_id() is not None:
        return

    # One is enough: the others may be of other services.
    path = next(project.other_project_ids(), None)
    if path is not None:
        problem = f"is a project's ID, but the profile looks at {project.vendor.project_id_path}"
        fix = f"set device_vendor_names = project_id_path={path}"
        yield in_config(project, "vendor-profile", tuple(path.split(".")), problem, fix)


def _key(project: Project) -> ProfileEntry:
    key = project.vendor.key
    if project.static and at(project.static.value, key) is not None:
        return ProfileEntry("key", key, "found", f"in {project.static.path.name}")
    if at(project.package.content, key) is not None:
        return ProfileEntry("key", key, "found", f"in {FILE}")
    if project.dynamic_path:
        where = f": {project.dynamic_path.name} exports the configuration"
        return ProfileEntry("key", key, "unknown", where)

    return ProfileEntry("key", key, "not found", f"in the app config or {FILE}")


def _project_id(project: Project) -> ProfileEntry:
    path = project.vendor.project_id_path
    if project.project_id() is not None:
        return ProfileEntry("project_id_path", path, "found", "in the app config")

    where = "in the app config"
    others = list(islice(project.other_project_ids(), _MAX_EXAMPLES))
    if others:
        where += f", which has {', '.join(others)}"

    return ProfileEntry("project_id_path", path, "not found", where)


def _environment(project: Project) -> ProfileEntry:
    prefix = project.vendor.environment_prefix
    names = [name for name in project.env.loaded if name.startswith(prefix)]
    where = "in the environment files"
    if names:
        where += f": {', '.join(sorted(names)[:_MAX_EXAMPLES])}"
        return ProfileEntry("environment_prefix", prefix, "found", where)
    if project.env.loaded:
        return ProfileEntry("environment_prefix", prefix, "not found", where)

    return ProfileEntry(
        "environment_prefix", prefix, "unknown", ": no environment file sets a variable"
    )


def _in_libraries(project: Project, field: str) -> ProfileEntry:
    value = str(getattr(project.vendor, field))
    roots = _roots(project, field)
    if not roots:
        where = f": {' or '.join(_package_names(project, field))} is not installed"
        return ProfileEntry(field, value, "unknown", where)

    where = f"in {' or '.join(root.name for root in roots)}"
    if _search(roots, _EVIDENCE[field].pattern.replace("NAME", re.escape(value))):
        return ProfileEntry(field, value, "found", where)

    other = _other(project, field)
    if other:
        where += f", which has {other}"

    return ProfileEntry(field, value, "not found", where)


def _package_names(project: Project, field: str) -> list[str]:
    return [project.vendor.package(name) for name in _EVIDENCE[field].libraries]


def _roots(project: Project, field: str) -> tuple[Path, ...]:
    """Return the directories of the installed libraries that show a field."""
    roots: list[Path] = []
    for name in _package_names(project, field):
        document = project.package.installed(name)
        if document is not None:
            roots.append(document.path.parent)

    return tuple(roots)


def _other(project: Project, field: str) -> str | None:
    """Return the name that the libraries have in place of the profile's."""
    evidence = _EVIDENCE[field]
    pattern = evidence.pattern.replace("NAME", f"({evidence.name})")
    name = _search(_roots(project, field), pattern)
    if name is None:
        return None

    # Profiles have headers in lowercase.
    return name.lower() if "header" in field else name


@cache
def _search(roots: tuple[Path, ...], pattern: str) -> str | None:
    """Return the first match in the source files of libraries: its group, if it has one."""
    compiled = re.compile(pattern, re.IGNORECASE)
    for root in roots:
        for path in islice(_sources(root), MAX_FILES):
            try:
                text = path.read_text("utf-8", errors="replace")
            except OSError:
                # No reason to fail: the library is not the project's.
                continue

            match = compiled.search(text)
            if match:
                return match[compiled.groups]

    return None


def _sources(root: Path) -> Iterator[Path]:
    """Yield the source files of a library in a fixed order."""
    pending = [root]
    while pending:
        try:
            entries = sorted(pending.pop().iterdir(), reverse=True)
        except OSError:
            continue

        for path in entries:
            if path.is_dir():
                if path.name not in _SKIPPED and not path.is_symlink():
                    pending.append(path)
            elif path.suffix in _SOURCES and _is_small_file(path):
                yield path


def _is_small_file(path: Path) -> bool:
    """Return whether a path is a file worth searching; a link to nowhere and a pipe are none."""
    return path.is_file() and path.stat().st_size <= MAX_FILE_BYTES
