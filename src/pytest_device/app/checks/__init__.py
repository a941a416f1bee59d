"""Static checks of a project, before a device is rented."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from pytest_device.app.checks.configuration import check_configuration
from pytest_device.app.checks.finding import (
    RULES,
    Finding,
    config_path,
    failed,
    project_finding,
)
from pytest_device.app.checks.notifications import check_notifications
from pytest_device.app.checks.packages import (
    app_config_fields_not_synced,
    directory_check,
    install_check,
)
from pytest_device.app.checks.sources import check_routes, check_secrets, check_sources
from pytest_device.app.checks.vendor import check_profile
from pytest_device.app.document import Position
from pytest_device.app.project import Project


def check(
    project: Project,
    *,
    sdk: int | None = None,
    versions: Mapping[str, str] | None = None,
    directory: Mapping[str, str] | None = None,
    declaration: str | None = None,
    include: Sequence[str] | None = None,
) -> list[Finding]:
    """Run all checks and return a finding for every rule: failed, passed, or skipped if its data is missing.

    ``sdk`` selects the reference (default: the project's SDK). ``versions`` maps libraries to expected versions,
    ``directory`` maps known libraries to their problem, or an empty string; without these tables, their checks are
    skipped. ``declaration`` is the name of the generated TypeScript declaration (default: ``vendor-env.d.ts``) and
    ``include`` lists the ``tsconfig.json`` entries that it needs.
    """
    findings = [
        *_check_config(project, sdk),
        *install_check(project, versions),
        *directory_check(project, directory),
        *check_secrets(project),
        *check_sources(project),
        *check_routes(project, declaration, include),
    ]

    with_findings = {finding.id for finding in findings}
    passed = [
        project_finding(rule, project, "passed")
        for rule in RULES
        if rule not in with_findings
    ]

    return findings + passed


_OF_CONFIG: Final = (
    "config-", "native-not-synced", "notifications-", "runtime-version", "secret-in-config", "typed-routes-", "updates-",
    "vendor-profile",
)  # fmt: skip
"""What the IDs of rules about values of the app config start with."""


def _check_config(project: Project, sdk: int | None) -> Iterator[Finding]:
    """Yield the findings about the app config, if it could be read."""
    error = project.unread
    if error is None:
        yield from check_configuration(project, sdk)
        yield from check_profile(project)
        yield from check_notifications(project)
        yield from app_config_fields_not_synced(project)
        return

    path = error.path or config_path(project)
    fix = "correct it, or install what it imports"
    position = Position(error.line, error.column)
    yield failed("config-unread", path, error.reason, fix, position)
    for rule in RULES:
        if rule.startswith(_OF_CONFIG) and rule != "config-unread":
            fix = f"{path.name} could not be read"
            yield project_finding(rule, project, "skipped", fix)
