"""Update settings of a build, from its app config."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from functools import cache
from typing import Self, cast

from pytest_device.app.document import Object, at, text_at
from pytest_device.app.keys import typed_config
from pytest_device.app.project import Project
from pytest_device.app.sections import NEWEST_SDK, Updates
from pytest_device.errors import ConfigError, hides_frames
from pytest_device.redact import is_http_url

__tracebackhide__ = hides_frames


class DisabledReason(StrEnum):
    """Reason why a build only uses its embedded update."""

    CONFIGURATION = "by_configuration"
    URL_MISSING = "url_missing"
    URL_INVALID = "url_invalid"
    NO_RUNTIME_VERSION = "no_runtime_and_sdk_version"
    STORAGE_ERROR = "storage_error"


@dataclass(frozen=True, slots=True, repr=False)
class UpdateSettings(Updates):
    """The properties below ``updates``, with the reference's defaults; updates can be used without ``disabled_reason``.

    ``enabled`` is what the config says, by default whether updates can be used. The values never reach a ``repr``:
    headers may carry credentials.
    """

    disabled_reason: DisabledReason | None = None

    @classmethod
    def from_config(
        cls, config: Mapping[str, object], *, sdk: int | None = None
    ) -> Self:
        """Read the settings from an app config. Raises ProjectError listing every invalid property.

        ``sdk`` selects the reference for the defaults (default: the config's ``sdkVersion``).
        """
        if not isinstance(cast("object", config), Mapping):
            raise ConfigError(f"config must be a mapping, not {type(config).__name__}")
        given = cast("Object", dict(config))
        section = given.get("updates")
        url = text_at(section, "url")
        # An invalid URL only disables updates.
        if isinstance(section, dict) and url is not None:
            section = {name: value for name, value in section.items() if name != "url"}
        found = typed_config(
            {"updates": section}, sdk or _major(given) or NEWEST_SDK
        ).updates
        _check_headers(found.request_headers)
        settings = replace(
            cls(**{one.name: getattr(found, one.name) for one in fields(found)}),
            url=url,
        )
        reason = None if found.enabled else DisabledReason.CONFIGURATION
        reason = reason or problem_of(settings.url)
        return (
            settings.without(reason, enabled=at(section, "enabled") is True)
            if reason
            else settings
        )

    @classmethod
    def from_project(cls, project: Project, platform: str) -> Self:
        """Read the settings of a project's builds for a platform. Raises ProjectError."""
        if platform not in ("ios", "android"):
            raise ConfigError(f"platform {platform!r} must be ios or android")
        config = project.effective(platform)
        settings = cls.from_config(config, sdk=project.sdk_major)
        if (
            settings.disabled_reason
            or config.get("runtimeVersion")
            or project.sdk_version
        ):
            return settings
        return settings.without(
            DisabledReason.NO_RUNTIME_VERSION,
            enabled=at(config, "updates", "enabled") is True,
        )

    def without(self, reason: DisabledReason, *, enabled: bool = False) -> Self:
        """Return the settings with updates disabled for a reason."""
        return replace(self, enabled=enabled, disabled_reason=reason)


@cache
def problem_of(url: str | None) -> DisabledReason | None:
    """Validate the URL of an update service; return the problem, or None."""
    if not url:
        return DisabledReason.URL_MISSING
    return None if is_http_url(url) else DisabledReason.URL_INVALID


def _major(config: Object) -> int | None:
    major = str(at(config, "sdkVersion") or "").partition(".")[0]
    return int(major) if major.isdecimal() else None


def _check_headers(headers: Mapping[str, object] | None) -> None:
    if wrong := [
        name for name, value in (headers or {}).items() if not isinstance(value, str)
    ]:
        raise ConfigError(
            f"updates.requestHeaders must have string values: {', '.join(map(repr, wrong))}"
        )
