"""Checks of a project before a device is paid for."""

from collections.abc import Mapping, Sequence

from pytest_device.app.checks.configuration import check_configuration
from pytest_device.app.checks.finding import RULES, Finding, settled
from pytest_device.app.checks.notifications import check_notifications
from pytest_device.app.checks.packages import app_config_fields_not_synced, directory_check, install_check
from pytest_device.app.checks.routes import check_routes
from pytest_device.app.checks.sources import check_secrets, check_sources
from pytest_device.app.project import Project


def check(
    project: Project,
    *,
    sdk: int | None = None,
    versions: Mapping[str, str] | None = None,
    directory: Mapping[str, str] | None = None,
    project_id_path: str = "",
    declaration: str | None = None,
    include: Sequence[str] | None = None,
) -> list[Finding]:
    """Return the findings of all checks; each rule that nothing breaks has passed, or was skipped for want of data.

    ``sdk`` selects the reference, by default that of the project. ``versions`` are the expected versions of libraries,
    ``directory`` what speaks against each known library: without them, these checks are skipped. ``declaration`` is the
    name of the generated TypeScript declaration, by default ``vendor-env.d.ts``, ``include`` the entries that
    ``tsconfig.json`` needs for it.
    """
    findings = [
        *check_configuration(project, sdk, project_id_path),
        *check_notifications(project),
        *app_config_fields_not_synced(project),
        *install_check(project, versions),
        *directory_check(project, directory),
        *check_secrets(project),
        *check_sources(project),
        *check_routes(project, declaration, include),
    ]
    known = {finding.id for finding in findings}
    return [*findings, *(settled(rule, project, "passed") for rule in RULES if rule not in known)]
