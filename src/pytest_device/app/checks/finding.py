"""What a check of a project finds."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

from pytest_device.app.document import Place
from pytest_device.app.project import Project

Severity: TypeAlias = Literal["error", "warning", "note"]
Status: TypeAlias = Literal["failed", "passed", "skipped"]

RULES: Final[dict[str, tuple[Severity, str]]] = {
    "config-type": ("error", "a key must have a value of its type"),
    "config-value": ("error", "a key must have one of its values, within its limits"),
    "config-unknown-key": ("warning", "a key must be spelled as in the reference"),
    "config-duplicate-key": ("warning", "a key must not stand twice"),
    "config-generated-key": ("error", "a generated key must not be set"),
    "config-deprecated-key": ("warning", "a key should not be deprecated"),
    "config-removed-key": ("error", "a key must be in the reference of the project's SDK version"),
    "config-older-key": ("note", "a key should be in the newest reference"),
    "config-ignored-key": ("warning", "nothing must stand next to the top-level key of the vendor"),
    "config-unused-static": ("warning", "the dynamic configuration must use the static one"),
    "config-sdk-version": ("warning", "sdkVersion must be that of the installed package"),
    "config-project-id": ("error", "the project identifier must be a UUID"),
    "config-missing-file": ("error", "a file that the configuration names must exist"),
    "config-missing-library": ("warning", "a library that a key needs must be installed"),
    "runtime-version": ("error", "the runtime version must be a valid text or a known policy"),
    "updates-required": ("error", "updates must have a URL and a runtime version"),
    "updates-embedded": ("warning", "updates without the embedded one must be fetched at launch"),
    "updates-not-for-production": ("warning", "settings for debugging must be off"),
    "updates-code-signing": ("error", "a certificate must have its metadata"),
    "updates-asset-pattern": ("warning", "a pattern of assets to bundle must match files"),
    "notifications-value": ("error", "an option of notifications must have its type and form"),
    "notifications-icon": ("error", "the icon must be a PNG of 96x96, white on transparent"),
    "notifications-sound": ("warning", "a sound should be a .wav file"),
    "notifications-channel": ("error", "the default channel must exist"),
    "notifications-background": ("warning", "messages with data alone need remote-notification"),
    "native-not-synced": ("warning", "a project with its own native directories must not set these keys"),
    "install-version": ("warning", "a library must have the version that the SDK expects"),
    "library-directory": ("warning", "a library must be known and fit for use"),
    "env-not-inlined": ("error", "a public variable must be read as process.env.NAME"),
    "env-undefined": ("warning", "a public variable that is read must be set"),
    "secret-in-config": ("error", "the app config must not hold secrets"),
    "secret-in-public-variable": ("error", "a public variable must not hold secrets"),
    "secret-in-source": ("error", "a source must not hold secrets"),
    "source-unreadable": ("warning", "a source must be a text in UTF-8 that can be read"),
    "bundler-css-order": ("warning", "the platform of a CSS module must follow .module"),
    "bundler-sass-missing": ("error", "Sass files need the package sass"),
    "bundler-sass-import": ("warning", "Sass files must not import anything"),
    "bundler-postcss-config": ("note", "the PostCSS configuration should be JSON, which is cached better"),
    "routes-file": ("error", "a file in the directory of routes must be a route"),
    "routes-parameter": ("error", "a route must name each parameter once"),
    "typed-routes-ignored": ("warning", "git must ignore the generated declaration"),
    "typed-routes-included": ("error", "the TypeScript configuration must include the generated declaration"),
}
"""Every finding of a project: its ID with its severity and rule."""

BUNDLE_RULES: Final[dict[str, tuple[Severity, str]]] = {
    "bundle-secret": ("error", "a build must not hold secrets of the environment files"),
    "bundle-debug-id": ("error", "a bundle and its map must have one debug ID"),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One result of a check; ``line`` and ``column`` are 0 where there is no place."""

    id: str
    severity: Severity
    status: Status
    path: Path
    line: int
    column: int
    rule: str
    fix: str


def failed(id: str, path: Path, what: str, fix: str, place: Place | None = None) -> Finding:  # noqa: A002  # the field
    severity, rule = (RULES | BUNDLE_RULES)[id]
    line, column = (place.line, place.column) if place else (0, 0)
    return Finding(id, severity, "failed", path, line, column, f"{what}: {rule}", fix)


def settled(id: str, project: Project, status: Status, fix: str = "") -> Finding:  # noqa: A002
    """Return that a check has passed, or was skipped for a reason."""
    severity, rule = RULES[id]
    return Finding(id, severity, status, config_path(project), 0, 0, rule, fix)


def config_path(project: Project) -> Path:
    """Return the file that people edit."""
    return project.dynamic_path or project.static_path or project.root / "app.json"


def in_config(project: Project, id: str, trail: tuple[str | int, ...], what: str, fix: str) -> Finding:  # noqa: A002
    """Return a finding at a key, with its place if the static file has it."""
    static = project.static
    shown = ".".join(map(str, trail))
    if static:
        for full in ((project.vendor.key, *trail), trail):
            if place := static.place(*full):
                return failed(id, static.path, f"{shown} {what}".strip(), fix, place)
    return failed(id, config_path(project), f"{shown} {what}".strip(), fix)
