"""What the names of the vendor's profile are found in: the project's own files."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Final, Literal, TypeAlias

from pytest_device.app.checks.finding import Finding, in_config
from pytest_device.app.document import at
from pytest_device.app.package import FILE
from pytest_device.app.project import Project

Status: TypeAlias = Literal["found", "not found", "unknown"]
"""Unknown if nothing that is set would show the name."""

_MAX_EXAMPLES: Final = 3
"""Maximum number of names that an entry lists."""


@dataclass(frozen=True, slots=True)
class ProfileEntry:
    """One field of the profile; ``unknown`` if the project has nothing that would show it."""

    field: str
    value: str
    status: Status
    where: str

    def to_dict(self) -> dict[str, str]:
        return asdict(self)


def profile_entries(project: Project) -> Iterator[ProfileEntry]:
    """Yield the fields of the vendor's profile that a project shows, and where it has them."""
    yield _key(project)
    yield _project_id(project)
    yield _environment(project)


def check_profile(project: Project) -> Iterator[Finding]:
    """Yield a finding if the project's ID is elsewhere than the profile says."""
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
