"""Checks of the app config against the reference."""

import difflib
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from urllib.parse import quote

from pytest_device.app.checks.finding import (
    Finding,
    config_path,
    failed,
    in_config,
    missing_file,
)
from pytest_device.app.document import Json, Object, at, object_at, text_at
from pytest_device.app.keys import BACKEND, KEYS, setting
from pytest_device.app.project import Project, is_uuid
from pytest_device.app.runtime import POLICIES, is_valid_runtime_version
from pytest_device.app.sections import NEWEST_SDK, OLDEST_SDK, Key

_FIX_DELETE = "delete the key"
_FILES = (
    "icon",
    "ios.icon",
    "ios.icon.light",
    "ios.icon.dark",
    "ios.icon.tinted",
    "ios.servicesFile",
    "updates.codeSigningCertificate",
    "splash.image",
    "notification.icon",
)
"""Keys whose values are paths of files."""
_IN_PATHS = "-._~!$&'()*+,;=:@"
"""Characters, with letters and digits, that need no escape in the path of a URL (RFC 3986 section 3.3)."""


def check_configuration(project: Project, sdk: int | None) -> Iterator[Finding]:
    """Yield findings about the app config, checked against an SDK version's reference."""
    version = sdk or project.sdk_major or NEWEST_SDK
    yield from _keys(project, project.config, (), version)
    yield from _whole(project)
    yield from _identity(project)
    yield from _runtime_versions(project)
    yield from _updates(project, version)
    yield from _files_and_libraries(project)


def _keys(
    project: Project, section: Object, above: tuple[str, ...], sdk: int
) -> Iterator[Finding]:
    for name, value in section.items():
        trail = (*above, name)
        key = _key_at(trail)
        if key is None:
            yield from _unknown(project, trail)
            if trail[:-1] == BACKEND and isinstance(value, dict):
                yield from _keys(project, value, trail, sdk)
            continue

        yield from _known(project, key, value, sdk)
        if isinstance(value, dict):
            yield from _keys(project, value, trail, sdk)


def _key_at(trail: tuple[str, ...]) -> Key | None:
    """Return the key at a trail; the settings of the backend service are in an object of any name."""
    name = ".".join(trail)
    if name in KEYS:
        return KEYS[name]

    depth = len(BACKEND)
    if trail[:depth] != BACKEND or len(trail) <= depth + 1:
        return None

    key = KEYS.get(".".join((*BACKEND, *trail[depth + 1 :])))

    return replace(key, name=name) if key is not None else None


def _unknown(project: Project, trail: tuple[str, ...]) -> Iterator[Finding]:
    """Yield a finding for a likely typo; other unknown keys are allowed, since another version may define them."""
    *section, name = trail
    known_names = _known_below(".".join(section))
    close_names = difflib.get_close_matches(name, known_names, n=1, cutoff=0.8)
    # With both keys in the config, neither is a misspelling of the other.
    if close_names and close_names[0] not in object_at(project.config, *section):
        yield in_config(
            project,
            "config-unknown-key",
            trail,
            "is unknown",
            f"did you mean {close_names[0]}?",
        )


@cache
def _known_below(above: str) -> tuple[str, ...]:
    """Return the names of the known keys in a section, listed once and not for each unknown key."""
    return tuple(
        key.trail[-1] for key in KEYS.values() if ".".join(key.trail[:-1]) == above
    )


def _known(project: Project, key: Key, value: Json, sdk: int) -> Iterator[Finding]:
    problem = key.problem(value)
    if problem:
        rule = "config-type" if "of type" in problem else "config-value"
        yield in_config(
            project, rule, key.trail, problem, f"change the value of {key.name}"
        )

    if key.generated:
        yield in_config(
            project,
            "config-generated-key",
            key.trail,
            "is generated from owner and slug",
            _FIX_DELETE,
        )

    if key.removed and sdk >= key.removed:
        yield in_config(
            project,
            "config-removed-key",
            key.trail,
            f"was removed in SDK {key.removed}",
            _FIX_DELETE,
        )
    # Which keys a version before the oldest reference has is unknown.
    elif sdk < key.first and key.first > OLDEST_SDK:
        problem = f"is new in the reference of SDK {key.first}, the project has {sdk}"
        yield in_config(
            project,
            "config-removed-key",
            key.trail,
            problem,
            "upgrade the SDK, or delete the key",
        )
    elif key.deprecated and sdk >= key.deprecated_in:
        yield in_config(
            project,
            "config-deprecated-key",
            key.trail,
            f"is deprecated, {key.deprecated}",
            _FIX_DELETE,
        )
    elif key.older and not key.in_new_projects:
        yield in_config(
            project,
            "config-older-key",
            key.trail,
            "is only in the older reference",
            "keep it if it works",
        )


def _whole(project: Project) -> Iterator[Finding]:
    for warning in project.warnings:
        yield failed(
            "config-ignored-key",
            config_path(project),
            warning,
            f"move them below {project.vendor.key}",
        )

    if project.static:
        for trail in project.static.duplicates:
            yield failed(
                "config-duplicate-key",
                project.static.path,
                f"{'.'.join(map(str, trail))} is duplicated",
                "delete all but one: the last counts",
                project.static.position(*trail),
            )

    if project.unused_static and project.static_path:
        fix = "spread the config that the exported function receives, or delete the static file"
        yield failed(
            "config-unused-static",
            config_path(project),
            f"{project.static_path.name} is ignored",
            fix,
        )


def _identity(project: Project) -> Iterator[Finding]:
    installed = project.package.installed_version(project.vendor.word)
    if installed:
        major, _, _ = installed.partition(".")
        fitting = (None, "UNVERSIONED", f"{major}.0.0", installed)
        if project.sdk_version not in fitting:
            problem = f"is {project.sdk_version}, but {installed} is installed"
            fix = "delete sdkVersion"
            yield in_config(
                project, "config-sdk-version", ("sdkVersion",), problem, fix
            )

    slug = text_at(project.config, "slug") or ""
    if quote(slug, safe=_IN_PATHS, errors="replace") != slug:
        fix = "use letters, digits and hyphens: it is part of URLs"
        yield in_config(project, "config-value", ("slug",), "must be URL-friendly", fix)

    identifier = project.project_id()
    if identifier is not None and not is_uuid(identifier):
        trail = tuple(project.vendor.project_id_path.split("."))
        yield in_config(
            project,
            "config-project-id",
            trail,
            "is not a UUID",
            "copy it from the project's page",
        )


def _runtime_versions(project: Project) -> Iterator[Finding]:
    for trail in (
        ("runtimeVersion",),
        ("ios", "runtimeVersion"),
        ("android", "runtimeVersion"),
    ):
        value = at(project.config, *trail)
        if isinstance(value, str) and not is_valid_runtime_version(
            value, vendor=project.vendor
        ):
            problem = "must have 1 to 255 letters, digits, '.', '_', '+', '(', ')' and '-', a letter or digit first"
            yield in_config(
                project, "runtime-version", trail, problem, 'for example "1.0.0"'
            )
        elif isinstance(value, dict) and "policy" not in value:
            yield in_config(
                project,
                "runtime-version",
                trail,
                "has no policy",
                f"use {', '.join(POLICIES)}",
            )
        # The reference has no keys of this section, so that nothing else checks its policy.
        elif (
            trail[0] == "android"
            and value is not None
            and at(value, "policy") not in (*POLICIES, None)
        ):
            yield in_config(
                project,
                "runtime-version",
                trail,
                "has an unknown policy",
                f"use {', '.join(POLICIES)}",
            )


def _updates(project: Project, sdk: int) -> Iterator[Finding]:
    updates = object_at(project.config, "updates")
    is_on = updates and setting(project.config, "updates.enabled") is not False
    # Templates leave settings behind for a library that the project doesn't have.
    if not is_on or not project.package.uses("updates"):
        return

    for trail in (("updates", "url"), ("runtimeVersion",)):
        is_missing = at(project.config, *trail) is None
        if is_missing and not _on_both_platforms(project, trail[-1]):
            yield in_config(
                project,
                "updates-required",
                trail,
                "is missing",
                "set it, or updates.enabled to false",
            )

    for name in ("disableAntiBrickingMeasures", "useNativeDebug"):
        if setting(project.config, f"updates.{name}", sdk) is True:
            yield in_config(
                project,
                "updates-not-for-production",
                ("updates", name),
                "is on",
                "turn it off",
            )
    if updates.get("useEmbeddedUpdate") is False:
        yield from _without_embedded(project)

    yield from _code_signing(project)
    yield from _asset_patterns(project)


def _on_both_platforms(project: Project, name: str) -> bool:
    """Return whether both platforms have a runtime version of their own, which makes a common one needless."""
    return name == "runtimeVersion" and all(
        at(project.config, platform, name) for platform in ("ios", "android")
    )


def _without_embedded(project: Project) -> Iterator[Finding]:
    trail = ("updates", "useEmbeddedUpdate")
    yield in_config(
        project,
        "updates-not-for-production",
        trail,
        "is off",
        "turn it on for production",
    )
    late = setting(project.config, "updates.checkAutomatically") != "ON_LOAD"
    # "Configuration properties", useEmbeddedUpdate: nothing else is there to launch.
    if late or not setting(project.config, "updates.fallbackToCacheTimeout"):
        fix = "set checkAutomatically to ON_LOAD, and a fallbackToCacheTimeout"
        yield in_config(
            project, "updates-embedded", trail, "needs an update at launch", fix
        )


def _code_signing(project: Project) -> Iterator[Finding]:
    certificate = text_at(project.config, "updates", "codeSigningCertificate")
    metadata = object_at(project.config, "updates", "codeSigningMetadata")
    has_both_or_none = bool(certificate) == bool(metadata)
    is_complete = not metadata or {"alg", "keyid"} <= metadata.keys()
    if not has_both_or_none or not is_complete:
        fix = "set codeSigningCertificate, and codeSigningMetadata with alg and keyid"
        yield in_config(
            project,
            "updates-code-signing",
            ("updates",),
            "has incomplete code signing settings",
            fix,
        )


def _asset_patterns(project: Project) -> Iterator[Finding]:
    """Yield the patterns that match no file; assets not covered by a pattern are missing from the build.

    Patterns with alternatives in braces are not checked.
    """
    patterns = at(project.config, "updates", "assetPatternsToBeBundled")
    if not isinstance(patterns, list):
        return

    for index, pattern in enumerate(patterns):
        # Python's glob knows no alternatives in braces.
        if not isinstance(pattern, str) or "{" in pattern:
            continue

        if not _matches_a_file(project.root, pattern):
            trail = ("updates", "assetPatternsToBeBundled", index)
            problem = f"is {pattern!r}"
            fix = "give a pattern relative to the root of the project, for example assets/**/*"
            yield in_config(project, "updates-asset-pattern", trail, problem, fix)


def _matches_a_file(root: Path, pattern: str) -> bool:
    # Python's glob matches only directories with it.
    if pattern.endswith("**"):
        pattern = f"{pattern}/*"

    try:
        return any(path.is_file() for path in root.glob(pattern))
    # A pattern that is too long, empty or absolute.
    except (OSError, ValueError, NotImplementedError):
        return False


def _files_and_libraries(project: Project) -> Iterator[Finding]:
    for name in _FILES:
        path = text_at(project.config, *name.split("."))
        is_used = not name.startswith("updates.") or project.package.uses("updates")
        if path and "://" not in path and is_used:
            yield from missing_file(project, tuple(name.split(".")), path)

    yield from _libraries(project)


def _libraries(project: Project) -> Iterator[Finding]:
    """Yield the keys that need a library which the project doesn't list, on one of its platforms."""
    system_ui = project.vendor.package("system-ui")
    platforms = at(project.config, "platforms")
    if not isinstance(platforms, list):
        return

    for trail, platform, library in (
        (("userInterfaceStyle",), "android", system_ui),
        (("backgroundColor",), "ios", system_ui),
        (("ios", "backgroundColor"), "ios", system_ui),
        (("platforms",), "web", "react-dom"),
    ):
        # The default needs no library, nor does a key that is absent.
        default = setting({}, trail[-1]) if trail != ("platforms",) else None
        if platform not in platforms or at(project.config, *trail) in (None, default):
            continue
        if project.package.mentions(library) or project.package.installed(library):
            continue

        problem = f"needs {library} on {platform}"
        fix = f"install {library}"
        yield in_config(project, "config-missing-library", trail, problem, fix)
