"""Whether the user allows notifications, and what they are asked."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, Literal, TypeAlias

from pytest_device.notifications.triggers import Platform

Status: TypeAlias = Literal["undetermined", "granted", "denied"]
"""The root status. On iOS, ``ios.status`` decides."""

PROMPTS_WITH_CHANNEL: Final = 13
"""The first Android that asks the user, and only once a channel exists."""


class IosAuthorizationStatus(StrEnum):
    """Whether iOS delivers notifications."""

    NOT_DETERMINED = "NOT_DETERMINED"
    DENIED = "DENIED"
    AUTHORIZED = "AUTHORIZED"
    PROVISIONAL = "PROVISIONAL"
    EPHEMERAL = "EPHEMERAL"


@dataclass(frozen=True, slots=True, kw_only=True)
class IosPermissionsRequest:
    """What an app asks for on iOS."""

    allow_alert: bool | None = None
    allow_badge: bool | None = None
    allow_critical_alerts: bool | None = None
    allow_display_in_car_play: bool | None = None
    allow_provisional: bool | None = None
    allow_sound: bool | None = None
    provide_app_notification_settings: bool | None = None


@dataclass(frozen=True, slots=True)
class NotificationPermissionsRequest:
    """What an app asks for; the ``android`` part has no fields in the document."""

    ios: IosPermissionsRequest | None = None
    android: None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IosPermissions:
    """What the user allows on iOS; None is unknown. The values of ``alert_style`` are not in the document."""

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
    """What the user allows on Android; the values are not in the document."""

    importance: int | str | None = None
    interruption_filter: int | str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationPermissionsStatus:
    """What the user allows."""

    status: Status
    ios: IosPermissions | None = None
    android: AndroidPermissions | None = None

    @property
    def allows(self) -> bool:
        """Whether notifications are shown: on iOS by ``ios.status``, elsewhere by ``status``."""
        if self.ios is None:
            return self.status == "granted"
        return self.ios.status not in (IosAuthorizationStatus.NOT_DETERMINED, IosAuthorizationStatus.DENIED)


Answer: TypeAlias = Callable[[NotificationPermissionsRequest | None], Status | IosAuthorizationStatus]
"""Answers the prompt in the user's place."""

_IOS: Final = {
    "undetermined": IosAuthorizationStatus.NOT_DETERMINED,
    "granted": IosAuthorizationStatus.AUTHORIZED,
    "denied": IosAuthorizationStatus.DENIED,
}


class Permissions:
    """The answers of the user, which the test decides; the transitions of iOS are not in the document."""

    def __init__(self, platform: Platform, android_version: int) -> None:
        self._is_ios = platform == "ios"
        self._needs_channel = platform == "android" and android_version >= PROMPTS_WITH_CHANNEL
        undetermined = self._is_ios or self._needs_channel
        self.answer: Answer = lambda _request: "granted"
        self.status = self._status("undetermined" if undetermined else "granted")
        self.prompts = 0
        """How often the user was asked."""

    def request(
        self, request: NotificationPermissionsRequest | None, *, has_channel: bool
    ) -> NotificationPermissionsStatus:
        """Ask the user, unless they have answered, or the prompt waits for a channel."""
        if self.status.status == "undetermined" and (has_channel or not self._needs_channel):
            self.prompts += 1
            self.status = self._status(self.answer(request), request.ios if request else None)
        return self.status

    def needs_channel(self, *, has_channel: bool) -> bool:
        """Return whether the prompt cannot appear."""
        return self._needs_channel and not has_channel

    def change(self, status: Status | IosAuthorizationStatus) -> None:
        """Let the user change their mind in the settings."""
        self.status = self._status(status)

    def _status(
        self, answer: Status | IosAuthorizationStatus, asked: IosPermissionsRequest | None = None
    ) -> NotificationPermissionsStatus:
        if not self._is_ios:
            return NotificationPermissionsStatus(status=_root(answer), android=AndroidPermissions())
        found = answer if isinstance(answer, IosAuthorizationStatus) else _IOS[answer]
        ios = IosPermissions(status=found)
        if asked:
            alert, badge, sound = asked.allow_alert, asked.allow_badge, asked.allow_sound
            ios = replace(ios, allows_alert=alert, allows_badge=badge, allows_sound=sound)
        return NotificationPermissionsStatus(status=_root(answer), ios=ios)


def _root(answer: Status | IosAuthorizationStatus) -> Status:
    if not isinstance(answer, IosAuthorizationStatus):
        return answer
    named: dict[IosAuthorizationStatus, Status] = {
        IosAuthorizationStatus.NOT_DETERMINED: "undetermined",
        IosAuthorizationStatus.DENIED: "denied",
    }
    return named.get(answer, "granted")
