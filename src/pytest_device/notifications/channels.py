"""Notification channels and channel groups of Android; no-ops on other platforms."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pytest_device.errors import ConfigError, hides_frames
from pytest_device.notifications.content import instance_of
from pytest_device.notifications.triggers import Platform

__tracebackhide__ = hides_frames


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationChannelInput:
    """Settings of a new channel; the values of ``importance`` and ``lockscreen_visibility`` are not documented."""

    name: str | None
    importance: int | str
    audio_attributes: Mapping[str, Any] | None = None
    bypass_dnd: bool = False
    description: str | None = None
    enable_lights: bool = False
    enable_vibrate: bool = True
    group_id: str | None = None
    light_color: str | None = None
    lockscreen_visibility: int | str | None = None
    show_badge: bool = True
    sound: str | None = "default"
    """Sound file in the app, ``default``, or None for no sound."""
    vibration_pattern: Sequence[int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationChannel(NotificationChannelInput):
    """Notification channel."""

    id: str
    sound: Literal["default", "custom"] | None = "default"


@dataclass(frozen=True, slots=True)
class NotificationChannelGroup:
    """Group of channels in the system settings."""

    id: str
    name: str | None
    description: str | None = None
    is_blocked: bool | None = None
    channels: tuple[NotificationChannel, ...] = field(default=())


class Channels:
    """Channels and channel groups of an app."""

    def __init__(self, platform: Platform) -> None:
        self._has_channels = platform == "android"
        self._channels: dict[str, NotificationChannel] = {}
        self._groups: dict[str, NotificationChannelGroup] = {}

    def set_channel(
        self, channel_id: str, channel: NotificationChannelInput
    ) -> NotificationChannel | None:
        """Create or replace a channel and return it. Raises ConfigError if its group does not exist."""
        instance_of(NotificationChannelInput, "channel", channel)
        if not self._has_channels:
            return None

        if channel.group_id is not None and channel.group_id not in self._groups:
            raise ConfigError(
                f"the channel group {channel.group_id!r} does not exist: set it before its channels"
            )

        # Not with asdict, which would copy the audio attributes of the test.
        values: dict[str, Any] = {
            name: getattr(channel, name) for name in NotificationChannelInput.__slots__
        }
        # A channel does not report which file it plays ("Notifications library types").
        if channel.sound not in (None, "default"):
            values["sound"] = "custom"
        new_channel = NotificationChannel(**values, id=channel_id)
        self._channels[channel_id] = new_channel

        return new_channel

    def channel(self, channel_id: str) -> NotificationChannel | None:
        """Return a channel, or None if it does not exist."""
        return self._channels.get(channel_id)

    def channels(self) -> tuple[NotificationChannel, ...]:
        """Return all channels."""
        return tuple(self._channels.values())

    def delete_channel(self, channel_id: str) -> None:
        """Delete a channel."""
        self._channels.pop(channel_id, None)

    def set_group(
        self, group_id: str, *, name: str | None, description: str | None = None
    ) -> NotificationChannelGroup | None:
        """Create or replace a channel group and return it."""
        if not self._has_channels:
            return None

        self._groups[group_id] = NotificationChannelGroup(group_id, name, description)

        return self.group(group_id)

    def group(self, group_id: str) -> NotificationChannelGroup | None:
        """Return a channel group with its channels, or None if it does not exist."""
        group = self._groups.get(group_id)
        if group is None:
            return None

        # Found when asked for: channels of the group may come and go.
        channels = [
            channel
            for channel in self._channels.values()
            if channel.group_id == group_id
        ]

        return replace(group, channels=tuple(channels))

    def groups(self) -> tuple[NotificationChannelGroup, ...]:
        """Return all channel groups."""
        groups = [self.group(group_id) for group_id in self._groups]

        return tuple(group for group in groups if group is not None)

    def delete_group(self, group_id: str) -> None:
        """Delete a channel group and its channels."""
        self._groups.pop(group_id, None)
        self._channels = {
            channel_id: channel
            for channel_id, channel in self._channels.items()
            if channel.group_id != group_id
        }
