"""Findings of a project's checks, and the table of rules."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

from pytest_device.app.document import Position
from pytest_device.app.project import Project

Severity: TypeAlias = Literal["error", "warning", "note"]
Status: TypeAlias = Literal["failed", "passed", "skipped"]

RULES: Final[dict[str, tuple[Severity, str]]] = {
    "config-type": ("error", "a key must have a value of the right type"),
    "config-value": ("error", "a key must have one of its values, within its limits"),
    "config-unknown-key": ("warning", "a key must be spelled as in the reference"),
    "config-duplicate-key": ("warning", "keys must be unique"),
    "config-generated-key": ("error", "a generated key must not be set"),
    "config-deprecated-key": ("warning", "a key should not be deprecated"),
    "config-removed-key": (
        "error",
        "a key must be in the reference of the project's SDK version",
    ),
    "config-older-key": ("note", "a key should be in the newest reference"),
    "config-ignored-key": (
        "warning",
        "if the vendor's key is set, all other top-level keys are ignored",
    ),
    "config-unread": ("error", "the dynamic configuration must be readable"),
    "config-unused-static": (
        "warning",
        "the dynamic configuration must use the static one",
    ),
    "config-sdk-version": ("warning", "sdkVersion must match the installed package"),
    "config-project-id": ("error", "the project identifier must be a UUID"),
    "vendor-profile": (
        "warning",
        "the vendor's profile must say where the project has its ID",
    ),
    "config-missing-file": ("error", "a file that the configuration names must exist"),
    "config-missing-library": (
        "warning",
        "a library that a key needs must be installed",
    ),
    "runtime-version": (
        "error",
        "the runtime version must be a valid string or a known policy",
    ),
    "updates-required": ("error", "updates must have a URL and a runtime version"),
    "updates-embedded": (
        "warning",
        "without the embedded update, an update must be fetched at launch",
    ),
    "updates-not-for-production": ("warning", "settings for debugging must be off"),
    "updates-code-signing": (
        "error",
        "a certificate and its metadata must be set together",
    ),
    "updates-asset-pattern": (
        "warning",
        "a pattern of assets to bundle must match files",
    ),
    "notifications-value": (
        "error",
        "a notifications option must have the correct type and format",
    ),
    "notifications-icon": ("error", "the icon must be a PNG, white on transparent"),
    "notifications-icon-size": ("warning", "the icon should have 96x96 pixels"),
    "notifications-sound": ("warning", "a sound should be a .wav file"),
    "notifications-channel": ("error", "the default channel must exist"),
    "notifications-background": (
        "warning",
        "data-only messages require the background mode remote-notification",
    ),
    "native-not-synced": (
        "warning",
        "a project with its own native directories must not set these keys",
    ),
    "install-version": (
        "warning",
        "a library must have the version that the SDK expects",
    ),
    "library-directory": (
        "warning",
        "a library must be known and have no reported problem",
    ),
    "env-not-inlined": ("error", "a public variable must be read as process.env.NAME"),
    "env-undefined": ("warning", "a public variable that is read must be set"),
    "secret-in-config": ("error", "the app config must not contain secrets"),
    "secret-in-public-variable": (
        "error",
        "a public variable must not contain secrets",
    ),
    "secret-in-source": ("error", "a source file must not contain secrets"),
    "source-unreadable": (
        "warning",
        "a source file must be readable and encoded in UTF-8",
    ),
    "bundler-css-order": (
        "warning",
        "the platform of a CSS module must follow .module",
    ),
    "bundler-sass-missing": ("error", "Sass files need the package sass"),
    "bundler-sass-import": ("warning", "Sass files must not import anything"),
    "bundler-postcss-config": (
        "note",
        "the PostCSS configuration should be JSON, which is cached better",
    ),
    "routes-file": ("error", "a file in the directory of routes must be a route"),
    "routes-parameter": ("error", "a route must name each parameter once"),
    "typed-routes-ignored": ("warning", "git must ignore the generated declaration"),
    "typed-routes-included": (
        "error",
        "the TypeScript configuration must include the generated declaration",
    ),
}
"""Severity and rule of each project finding, by ID."""

BUNDLE_RULES: Final[dict[str, tuple[Severity, str]]] = {
    "bundle-secret": (
        "error",
        "a build must not contain secrets from environment files",
    ),
    "bundle-debug-id": ("error", "a bundle and its map must have the same debug ID"),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of a check; ``line`` and ``column`` are 0 if the position is unknown."""

    id: str
    severity: Severity
    status: Status
    path: Path
    line: int
    column: int
    rule: str
    fix: str


def failed(
    id: str,  # noqa: A002  # the field
    path: Path,
    problem: str,
    fix: str,
    position: Position | None = None,
) -> Finding:
    """Return a finding for a check that failed; ``position`` is that of the problem in the file."""
    severity, rule = RULES[id] if id in RULES else BUNDLE_RULES[id]
    line = position.line if position else 0
    column = position.column if position else 0

    return Finding(
        id, severity, "failed", path, line, column, f"{problem}: {rule}", fix
    )


def project_finding(
    id: str,  # noqa: A002
    project: Project,
    status: Status,
    fix: str = "",
) -> Finding:
    """Return a finding for a check that passed or was skipped."""
    severity, rule = RULES[id]

    return Finding(id, severity, status, config_path(project), 0, 0, rule, fix)


def config_path(project: Project) -> Path:
    """Return the app config file that the user edits."""
    return project.dynamic_path or project.static_path or project.root / "app.json"


def in_config(
    project: Project,
    id: str,  # noqa: A002
    trail: tuple[str | int, ...],
    problem: str,
    fix: str,
) -> Finding:
    """Return a finding about a key, with its position if the static file contains it.

    The position is absent if code sets the key: then the finding names the file with that code.
    """
    position = project.position(*trail)
    path = project.static.path if project.static and position else config_path(project)
    key = ".".join(map(str, trail))

    return failed(id, path, f"{key} {problem}".strip(), fix, position)


def missing_file(
    project: Project,
    trail: tuple[str | int, ...],
    path: str,
    exists: Callable[[Path], bool] = os.path.exists,
) -> Iterator[Finding]:
    """Yield a finding unless a file exists.

    Unlike `Path.exists`, which raises for a name that is too long, the default returns False.
    """
    if not exists(project.root / path):
        yield in_config(
            project, "config-missing-file", trail, f"is {path!r}", "add the file"
        )
