"""What a check of a project finds."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

from pytest_device.app.document import Place
from pytest_device.app.project import Project

Severity: TypeAlias = Literal["error", "warning", "note"]
Status: TypeAlias = Literal["failed", "passed", "skipped"]

RULES: Final[dict[str, tuple[Severity, str]]] = {
    "config-type": ("error", "a key has a value of its type"),
    "config-value": ("error", "a key has one of its values, within its limits"),
    "config-unknown-key": ("warning", "a key is spelt as in the reference"),
    "config-duplicate-key": ("warning", "a key stands once"),
    "config-generated-key": ("error", "a generated key is not set"),
    "config-deprecated-key": ("warning", "a key is not deprecated"),
    "config-removed-key": ("error", "a key is in the reference of the project's SDK version"),
    "config-older-key": ("note", "a key is in the newest reference"),
    "config-ignored-key": ("warning", "nothing stands next to the top-level key of the vendor"),
    "config-unused-static": ("warning", "the dynamic configuration uses the static one"),
    "config-sdk-version": ("warning", "sdkVersion is that of the installed package"),
    "config-project-id": ("error", "the project identifier is a UUID"),
    "config-missing-file": ("error", "a file that the configuration names exists"),
    "config-missing-library": ("warning", "a key that needs a library has it"),
    "runtime-version": ("error", "the runtime version is a valid text or a known policy"),
    "updates-required": ("error", "updates have a URL and a runtime version"),
    "updates-embedded": ("warning", "updates without the embedded one are fetched at launch"),
    "updates-not-for-production": ("warning", "settings for debugging are off"),
    "updates-code-signing": ("error", "a certificate has its metadata"),
    "native-not-synced": ("warning", "native directories of the project's own need no keys of the app config"),
    "install-version": ("warning", "a library has the version that the SDK expects"),
    "library-directory": ("warning", "a library is known and fit for use"),
    "env-not-inlined": ("error", "a public variable is read as process.env.NAME"),
    "env-undefined": ("warning", "a public variable that is read is set"),
    "secret-in-config": ("error", "the app config holds no secret"),
    "secret-in-public-variable": ("error", "a public variable holds no secret"),
    "secret-in-source": ("error", "a source holds no secret"),
    "bundler-css-order": ("warning", "the platform of a CSS module stands behind .module"),
    "bundler-sass-missing": ("error", "Sass files have the package sass"),
    "bundler-sass-import": ("warning", "Sass files import nothing"),
    "bundler-postcss-config": ("note", "the PostCSS configuration is JSON, which is cached better"),
    "routes-file": ("error", "a file in the directory of routes is a route"),
    "routes-parameter": ("error", "a route names each parameter once"),
    "typed-routes-ignored": ("warning", "the generated declaration is ignored by git"),
    "typed-routes-included": ("error", "the TypeScript configuration includes the generated declaration"),
}
"""Every finding of a project: its ID with its severity and rule."""

BUNDLE_RULES: Final[dict[str, tuple[Severity, str]]] = {
    "bundle-secret": ("error", "a build holds no secret of the environment files"),
    "bundle-debug-id": ("error", "a bundle and its map have one debug ID"),
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
