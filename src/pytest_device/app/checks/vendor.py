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

Found: TypeAlias = Literal["found", "not found", "unknown"]

MAX_FILES: Final = 2_000
MAX_FILE_BYTES: Final = 1024 * 1024
"""Of a source file of a library; a larger one is generated."""
_SOURCES: Final = frozenset(
    {".js", ".mjs", ".cjs", ".ts", ".kt", ".java", ".swift", ".m"}
)
_SKIPPED: Final = frozenset({"node_modules", "__tests__", "__mocks__"})


@dataclass(frozen=True, slots=True)
class ProfileEntry:
    """One field of the profile; ``unknown`` if nothing installed would show it."""

    field: str
    value: str
    status: Found
    where: str

    def to_dict(self) -> dict[str, str]:
        return asdict(self)


class _Sign(NamedTuple):
    """How a library's source shows a name: with the profile's value, and with any."""

    libraries: tuple[str, ...]
    pattern: str
    """Contains ``NAME`` where the name is."""
    name: str
    """Pattern of any name there."""


_NAME: Final = r"[A-Za-z][\w-]*"
_SIGNS: Final = {
    "header_prefix": _Sign(("updates",), r"\bNAMEprotocol-version\b", rf"{_NAME}-"),
    "client_id_header": _Sign(("updates",), r"\bNAME\b", rf"{_NAME}-client-id"),
    "client_scheme": _Sign(
        ("linking", "router"), r"\bNAMEs?\??:(?://|\\/\\/)[^\s'\"`]*/--", _NAME
    ),
    "push_path": _Sign(("notifications",), r"\bNAME\b", r"push/get\w*PushToken"),
    "push_reply_key": _Sign(("notifications",), r"\.NAME\b", r"\w*PushToken"),
    "token_type": _Sign(("notifications",), r"\btype: *['\"]NAME['\"]", _NAME),
}


def profile_entries(project: Project) -> Iterator[ProfileEntry]:
    """Yield each field of the vendor's profile, and where the project or its libraries have it."""
    yield _key(project)
    yield _project_id(project)
    yield _environment(project)
    for field in _SIGNS:
        yield _in_libraries(project, field)


def check_profile(project: Project) -> Iterator[Finding]:
    """Yield a finding for each name that the project spells otherwise."""
    for field in _SIGNS:
        entry = _in_libraries(project, field)
        other = _other(project, field) if entry.status == "not found" else None
        if other:
            fix = f"set device_vendor_{field} to {other}"
            what = f"{field} {entry.value} is {entry.status} {entry.where}"
            yield failed("vendor-profile", project.root / FILE, what, fix)

    if project.project_id() is None:
        for path in islice(project.other_project_ids(), 1):
            trail = tuple(path.split("."))
            wanted = project.vendor.project_id_path
            what = f"is a project's ID, but the profile looks at {wanted}"
            fix = f"set device_project_id_path to {path}"
            yield in_config(project, "vendor-profile", trail, what, fix)


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
    others = ", ".join(islice(project.other_project_ids(), 3))
    where = f"in the app config{f', which has {others}' if others else ''}"
    return ProfileEntry("project_id_path", path, "not found", where)


def _environment(project: Project) -> ProfileEntry:
    prefix = project.vendor.environment_prefix
    names = [name for name in project.env.loaded if name.startswith(prefix)]
    if names:
        where = f"in the environment files: {', '.join(sorted(names)[:3])}"
        return ProfileEntry("environment_prefix", prefix, "found", where)
    status: Found = "not found" if project.env.loaded else "unknown"
    where = "in the environment files" if project.env.loaded else ": they set nothing"
    return ProfileEntry("environment_prefix", prefix, status, where)


def _in_libraries(project: Project, field: str) -> ProfileEntry:
    value = str(getattr(project.vendor, field))
    names = [project.vendor.package(one) for one in _SIGNS[field].libraries]
    roots = _roots(project, field)
    if not roots:
        where = f": {' or '.join(names)} is not installed"
        return ProfileEntry(field, value, "unknown", where)

    where = f"in {' or '.join(root.name for root in roots)}"
    if _search(roots, _SIGNS[field].pattern.replace("NAME", re.escape(value))):
        return ProfileEntry(field, value, "found", where)
    other = _other(project, field)
    return ProfileEntry(
        field, value, "not found", f"{where}{f', which has {other}' if other else ''}"
    )


def _roots(project: Project, field: str) -> tuple[Path, ...]:
    names = [project.vendor.package(one) for one in _SIGNS[field].libraries]
    found = [project.package.installed(name) for name in names]
    return tuple(one.path.parent for one in found if one)


def _other(project: Project, field: str) -> str | None:
    """Return the name that the libraries have in place of the profile's."""
    sign = _SIGNS[field]
    found = _search(
        _roots(project, field), sign.pattern.replace("NAME", f"({sign.name})")
    )
    if found is None:
        return None
    return found.lower() if "header" in field else found


@cache
def _search(roots: tuple[Path, ...], pattern: str) -> str | None:
    """Return the first match in the source files of libraries: its group, if it has one."""
    compiled = re.compile(pattern, re.IGNORECASE)
    for root in roots:
        for path in islice(_sources(root), MAX_FILES):
            try:
                text = path.read_text("utf-8", errors="replace")
            except OSError:  # no reason to fail: the library is not the project's
                continue
            if found := compiled.search(text):
                return found[found.re.groups]
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
            if path.is_dir() and not path.is_symlink():
                pending += [path] if path.name not in _SKIPPED else []
            elif path.suffix in _SOURCES and path.stat().st_size <= MAX_FILE_BYTES:
                yield path
