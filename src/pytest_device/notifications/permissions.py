"""Notification permissions: requests, prompts and statuses."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, Literal, TypeAlias

from pytest_device.errors import ConfigError, hides_frames
from pytest_device.notifications.triggers import Platform

__tracebackhide__ = hides_frames

Status: TypeAlias = Literal["undetermined", "granted", "denied"]
"""Overall status; on iOS, ``ios.status`` takes precedence."""

PROMPTS_WITH_CHANNEL: Final = 13
"""First Android version with a permission prompt, which appears once a channel exists."""


class IosAuthorizationStatus(StrEnum):
    """Authorization status on iOS."""

    NOT_DETERMINED = "NOT_DETERMINED"
    DENIED = "DENIED"
    AUTHORIZED = "AUTHORIZED"
    PROVISIONAL = "PROVISIONAL"
    EPHEMERAL = "EPHEMERAL"


@dataclass(frozen=True, slots=True, kw_only=True)
class IosPermissionsRequest:
    """Permissions that an app requests on iOS."""

    allow_alert: bool | None = None
    allow_badge: bool | None = None
    allow_critical_alerts: bool | None = None
    allow_display_in_car_play: bool | None = None
    allow_provisional: bool | None = None
    allow_sound: bool | None = None
    provide_app_notification_settings: bool | None = None


@dataclass(frozen=True, slots=True)
class NotificationPermissionsRequest:
    """Permissions that an app requests; no fields are documented for ``android``."""

    ios: IosPermissionsRequest | None = None
    android: None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IosPermissions:
    """Permissions granted on iOS, None if unknown; the values of ``alert_style`` are not documented."""

    status: IosAuthorizationStatus
    alert_style: int | str | None = None
    allows_alert: bool | None = None
    allows_badge: bool | None = None
    allows_sound: bool | None = None
    allows_critical_alerts: bool | None = None
    allows_announcements: bool | None = None
    allows_display_in_car_play: bool | None = None
    allows_display_in_notification_center: bool | None = None
    allows_display_on_lock_screen: bool | None = None
    allows_previews: int | str | None = None
    provides_app_notification_settings: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AndroidPermissions:
    """Permissions granted on Android; the values are not documented."""

    importance: int | str | None = None
    interruption_filter: int | str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationPermissionsStatus:
    """Permission status."""

    status: Status
    ios: IosPermissions | None = None
    android: AndroidPermissions | None = None

    @property
    def allows(self) -> bool:
        """Whether notifications are shown, based on ``ios.status`` on iOS and ``status`` elsewhere."""
        if self.ios is None:
            return self.status == "granted"

        return self.ios.status not in _OVERALL


Answer: TypeAlias = Callable[
    [NotificationPermissionsRequest | None], Status | IosAuthorizationStatus
]
"""Function that responds to the permission prompt."""

_IOS: Final[Mapping[str, IosAuthorizationStatus]] = {
    "undetermined": IosAuthorizationStatus.NOT_DETERMINED,
    "granted": IosAuthorizationStatus.AUTHORIZED,
    "denied": IosAuthorizationStatus.DENIED,
    **IosAuthorizationStatus.__members__,
}
"""Status on iOS of each answer."""
_OVERALL: Final[Mapping[IosAuthorizationStatus, Status]] = {
    IosAuthorizationStatus.NOT_DETERMINED: "undetermined",
    IosAuthorizationStatus.DENIED: "denied",
}
"""Overall status of those on iOS that do not grant notifications."""


class Permissions:
    """Permission state, controlled by the test; the status transitions on iOS are not documented."""

    def __init__(self, platform: Platform, android_version: int) -> None:
        self._is_ios = platform == "ios"
        self._needs_channel = (
            platform == "android" and android_version >= PROMPTS_WITH_CHANNEL
        )
        # Older versions of Android grant the permission when the app is installed.
        has_prompt = self._is_ios or self._needs_channel
        self.answer: Answer = lambda _request: "granted"
        self.status = self._status("undetermined" if has_prompt else "granted")
        self.prompts = 0
        """Number of prompts shown."""

    def request(
        self, request: NotificationPermissionsRequest | None, *, has_channel: bool
    ) -> NotificationPermissionsStatus:
        """Prompt the user unless they already responded or the prompt requires a channel first."""
        # Systems prompt once; after that, only their settings change the answer.
        if self.status.status != "undetermined":
            return self.status
        if self.needs_channel(has_channel=has_channel):
            return self.status

        self.prompts += 1
        answer = self.answer(request)
        self.status = self._status(answer, request.ios if request else None)

        return self.status

    def needs_channel(self, *, has_channel: bool) -> bool:
        """Return whether the prompt requires a channel first."""
        return self._needs_channel and not has_channel

    def change(self, status: Status | IosAuthorizationStatus) -> None:
        """Change the status, as the user can in the system settings."""
        self.status = self._status(status)

    def _status(
        self,
        answer: Status | IosAuthorizationStatus,
        requested: IosPermissionsRequest | None = None,
    ) -> NotificationPermissionsStatus:
        if answer not in _IOS:
            raise ConfigError(f"status {answer!r} must be {', '.join(_IOS)}")

        ios_status = _IOS[answer]
        status = _OVERALL.get(ios_status, "granted")
        # No value is documented for Android.
        if not self._is_ios:
            return NotificationPermissionsStatus(
                status=status, android=AndroidPermissions()
            )

        ios = IosPermissions(status=ios_status)
        if requested is not None:
            ios = replace(
                ios,
                allows_alert=requested.allow_alert,
                allows_badge=requested.allow_badge,
                allows_sound=requested.allow_sound,
            )

        return NotificationPermissionsStatus(status=status, ios=ios)
