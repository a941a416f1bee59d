"""Update settings of a build, from its app config."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from functools import cache
from typing import Any, Self, cast

from pytest_device.app.document import Object, at, text_at
from pytest_device.app.keys import typed_config
from pytest_device.app.project import Project
from pytest_device.app.sections import NEWEST_SDK, Updates, sdk_major
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
        """Read the settings from an app config.

        >>> UpdateSettings.from_config({"updates": {}}).disabled_reason
        <DisabledReason.URL_MISSING: 'url_missing'>

        Args:
            config: The app config, without its top-level key.
            sdk: The major version whose reference has the defaults (default: that of the config's ``sdkVersion``).

        Raises:
            ProjectError: A property is invalid; lists all of them.
            ConfigError: The config is not a mapping, or a request header is not a string.
        """
        if not isinstance(cast("object", config), Mapping):
            raise ConfigError(f"config must be a mapping, not {type(config).__name__}")

        app_config = cast("Object", dict(config))
        section = app_config.get("updates")
        url = text_at(section, "url")
        # Invalid keys are errors, but an invalid URL only disables updates ("Updates library", isEnabled).
        if isinstance(section, dict) and url is not None:
            section = {name: value for name, value in section.items() if name != "url"}

        sdk = sdk or sdk_major(str(at(app_config, "sdkVersion") or "")) or NEWEST_SDK
        updates = typed_config({"updates": section}, sdk).updates
        _check_headers(updates.request_headers)
        values: dict[str, Any] = {
            field.name: getattr(updates, field.name) for field in fields(updates)
        }
        values["url"] = url
        settings = cls(**values)

        if not settings.enabled:
            return settings.without(DisabledReason.CONFIGURATION)

        problem = problem_of(url)
        if problem is None:
            return settings

        return settings.without(problem, enabled=at(section, "enabled") is True)

    @classmethod
    def from_project(cls, project: Project, platform: str) -> Self:
        """Read the settings of a project's builds for a platform. Raises ProjectError."""
        if platform not in ("ios", "android"):
            raise ConfigError(f"platform {platform!r} must be ios or android")

        config = project.effective(platform)
        settings = cls.from_config(config, sdk=project.sdk_major)
        if settings.disabled_reason:
            return settings
        if config.get("runtimeVersion") or project.sdk_version:
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
    """Validate the URL of an update service; return the problem, or None.

    Cached, since the launch model asks in each of its steps.
    """
    if not url:
        return DisabledReason.URL_MISSING
    if not is_http_url(url):
        return DisabledReason.URL_INVALID

    return None


def _check_headers(headers: Mapping[str, object] | None) -> None:
    """Check the values of headers: the reference of the config only says that they are an object.

    The error names the headers and leaves out their values, which may be credentials.
    """
    if headers is None:
        return

    wrong = [
        repr(name) for name, value in headers.items() if not isinstance(value, str)
    ]
    if wrong:
        raise ConfigError(
            f"updates.requestHeaders must have string values: {', '.join(wrong)}"
        )
