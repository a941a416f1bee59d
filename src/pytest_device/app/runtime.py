"""Runtime version of a build, which updates must match."""

import json
import re
import subprocess
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias, get_args

from pytest_device.app.document import Json, Object, at, text_at
from pytest_device.app.native import native_files
from pytest_device.app.project import Project
from pytest_device.app.sections import SCHEME, SDK, Policy
from pytest_device.app.vendor import VendorProfile, profile_of
from pytest_device.errors import ConfigError, ProjectError
from pytest_device.spec import VENDOR

Workflow: TypeAlias = Literal["managed", "generic"]

POLICIES: Final[tuple[Policy, ...]] = get_args(Policy)
FINGERPRINT_SECONDS: Final = 120.0
"""Time limit of the fingerprint command, which hashes all files of the project's native inputs."""

_VERSION: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+()-]{0,254}")
_DEFAULTS: Final[Mapping[str, tuple[str, Json]]] = {
    "ios": ("buildNumber", "1"),
    "android": ("versionCode", 1),
}
"""Key of the number of a build, and its default, by platform."""


def is_valid_runtime_version(
    text: str, *, vendor: VendorProfile | str = VENDOR
) -> bool:
    """Return whether a string is a valid runtime version: up to 255 characters, or ``vendorsdk:`` and a version.

    >>> is_valid_runtime_version("1.0.0"), is_valid_runtime_version("vendorsdk:58.0.0"), is_valid_runtime_version(".1")
    (True, True, False)
    """
    prefix = profile_of(vendor).sdk_runtime_prefix
    if text.startswith(prefix):
        return SDK.fits(text.removeprefix(prefix))

    return bool(_VERSION.fullmatch(text))


def is_valid_scheme(text: str) -> bool:
    """Return whether a string is a valid scheme: a lowercase letter, then lowercase letters, digits, ``+.-``."""
    return SCHEME.fits(text)


def resolve_runtime_version(
    project: Project, platform: str, *, workflow: Workflow | None = None
) -> str | None:
    """Return the runtime version of a build for a platform, or None if the project sets none.

    Policies other than ``fingerprint`` require the ``managed`` workflow (generated native directories); by default, the
    workflow is detected from the project's files.

    Raises:
        ProjectError: The policy is unknown, its value is missing, or its command fails.
        ConfigError: The workflow is unknown.
    """
    if platform not in _DEFAULTS:
        raise ProjectError(
            f"platform {platform!r} must be ios or android", path=project.root
        )

    version = at(project.config, platform, "runtimeVersion")
    if version is None:
        version = at(project.config, "runtimeVersion")
    if version in (None, ""):
        return None
    if isinstance(version, str):
        return version

    return _by_policy(project, platform, text_at(version, "policy"), workflow)


def _by_policy(
    project: Project, platform: str, policy: str | None, workflow: Workflow | None
) -> str:
    """Return the runtime version by a policy of the config. Raises ProjectError."""
    if policy not in POLICIES:
        shown_policy = repr(policy) if policy else "runtimeVersion without a policy"
        raise ProjectError(
            f"{shown_policy} is not a runtime version policy: use one of {', '.join(POLICIES)}",
            path=project.root,
        )
    if policy == "fingerprint":
        return _fingerprint(project, platform)

    # A project's own native directories have versions of their own, which the config does not reach.
    if _workflow(project, platform, workflow) != "managed":
        raise ProjectError(
            f"the policy {policy!r} needs generated native directories, and this project has its own for {platform}: "
            'set runtimeVersion to a string, for example "1.0.0"',
            path=project.root,
        )

    version = version_by_policy(project.config, platform, policy, project.vendor)
    if version is None:
        raise ProjectError(
            "the policy 'sdkVersion' needs sdkVersion, or the installed package",
            path=project.root,
        )

    return version


def version_by_policy(
    config: Object, platform: str, policy: str, vendor: VendorProfile
) -> str | None:
    """Apply a policy other than ``fingerprint`` to an app config; return None if the value is missing."""
    if policy == "sdkVersion":
        sdk = text_at(config, "sdkVersion")
        return f"{vendor.sdk_runtime_prefix}{sdk}" if sdk else None

    version = (
        text_at(config, platform, "version") or text_at(config, "version") or "1.0.0"
    )
    if policy == "appVersion":
        return version

    key, default_number = _DEFAULTS[platform]
    number = at(config, platform, key)
    if number in (None, ""):
        number = default_number

    return f"{version}({number})"


def _workflow(project: Project, platform: str, workflow: Workflow | None) -> Workflow:
    if workflow not in (None, *get_args(Workflow)):
        raise ConfigError(f"workflow {workflow!r} must be managed or generic")
    if workflow is not None:
        return workflow

    return "generic" if native_files(project.root, platform) else "managed"


def _fingerprint(project: Project, platform: str) -> str:
    """Run the project's fingerprint command and return the hash; only the command knows a build's inputs."""
    name = project.vendor.package("updates")
    command = project.package.executable(name)
    if command is None:
        raise ProjectError(
            f"the policy 'fingerprint' needs the package {name}: install it",
            path=project.root,
        )

    try:
        completed = subprocess.run(  # noqa: S603  # the project's own command, on the user's request
            [command, "fingerprint:generate", "--platform", platform],
            cwd=project.root,
            env=project.env.for_programs(),
            capture_output=True,
            timeout=FINGERPRINT_SECONDS,
            check=True,
            stdin=subprocess.DEVNULL,
        )
        fingerprint = text_at(json.loads(completed.stdout), "hash")
    except subprocess.TimeoutExpired:
        raise ProjectError(
            f"did not finish within {FINGERPRINT_SECONDS:g} s", path=command
        ) from None
    except subprocess.CalledProcessError as error:
        raise ProjectError(
            f"exited with status {error.returncode}", path=command
        ) from None
    except (OSError, ValueError) as error:
        raise ProjectError(
            f"did not print JSON: {type(error).__name__}", path=command
        ) from None

    if not fingerprint:
        raise ProjectError("printed no hash", path=command)

    return fingerprint
