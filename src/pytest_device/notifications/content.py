"""Notifications: what they show, the request and response around it, and how they are answered."""

import json
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any, ClassVar, Final, Literal, Self, TypeAlias, TypeVar, cast

from pytest_device.errors import ConfigError
from pytest_device.notifications.triggers import Platform, Trigger, parse_trigger

DEFAULT_ACTION_IDENTIFIER: Final = "default"
"""The action of a plain tap. The value is ours: the document names the constant only."""
MAX_PAYLOAD_BYTES: Final = 4096
"""Of a message as JSON: the limit of Apple's, Google's and the web's push services alike."""

_SPELLINGS: Final = {"content_available": "_contentAvailable"}

InterruptionLevel: TypeAlias = Literal["passive", "active", "timeSensitive", "critical"]
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class CircularRegion:
    """A circle; ``latitude`` and ``longitude`` in degrees, ``radius`` in meters."""

    identifier: str
    latitude: float
    longitude: float
    radius: float
    notify_on_entry: bool = True
    notify_on_exit: bool = True
    type: ClassVar[str] = "circular"


@dataclass(frozen=True, slots=True)
class BeaconRegion:
    """The surroundings of a beacon; what identifies it is not in the document."""

    identifier: str
    notify_on_entry: bool = True
    notify_on_exit: bool = True
    type: ClassVar[str] = "beacon"


@dataclass(frozen=True, slots=True)
class LocationTrigger(Trigger):
    """Fires in a region; iOS. It is returned on requests, and cannot be passed."""

    type: ClassVar[str] = "location"
    region: CircularRegion | BeaconRegion
    repeats: bool = False


@dataclass(frozen=True, slots=True)
class RemoteMessage:
    """A message of the push service as the app sees it; times in milliseconds since 1970, ``ttl`` in seconds."""

    data: Mapping[str, str] = field(default_factory=dict[str, str])
    message_id: str | None = None
    message_type: str | None = None
    notification: Mapping[str, Any] | None = None
    collapse_key: str | None = None
    sender: str | None = None
    """The document's ``from``."""
    to: str | None = None
    priority: int | None = None
    original_priority: int | None = None
    sent_time: int | None = None
    ttl: int | None = None


@dataclass(frozen=True, slots=True)
class UnknownTrigger(Trigger):
    """A trigger of another kind, such as that of a pushed message."""

    type: ClassVar[str] = "unknown"
    remote_message: RemoteMessage | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationContent:
    """What a notification shows and carries; ``others`` are fields that the document does not show."""

    title: str | None = None
    body: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict[str, Any])
    sound: str | bool | None = None
    category_identifier: str | None = None
    color: str | None = None
    interruption_level: InterruptionLevel | None = None
    others: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        for name in ("title", "body", "category_identifier", "color"):
            checked_text(name, getattr(self, name))
        levels = ("passive", "active", "timeSensitive", "critical")
        if self.interruption_level not in (None, *levels):
            raise ConfigError(f"interruption_level {self.interruption_level!r} must be {', '.join(levels)}")
        for name in ("data", "others"):
            object.__setattr__(self, name, MappingProxyType(dict(mapping(name, getattr(self, name)))))

    @classmethod
    def read(cls, given: "Self | Mapping[str, Any]") -> Self:
        """Return content that is given as typed values, or in the document's spelling. Raises ConfigError."""
        if isinstance(given, cls):
            return given
        known = cls.spellings()
        given = mapping("content", given)
        values = {known[name]: value for name, value in given.items() if name in known}
        if values.get("data") is None:
            values.pop("data", None)
        return cls(**values, others={name: value for name, value in given.items() if name not in known})

    def native(self) -> dict[str, Any]:
        """Return the content in the document's spelling."""
        given = {name: getattr(self, attribute) for name, attribute in self.spellings().items()}
        set_values = {name: value for name, value in given.items() if value is not None and value is not False}
        return {**set_values, "data": dict(self.data), **self.others}

    @classmethod
    def spellings(cls) -> dict[str, str]:
        """Return the fields by the document's spelling."""
        return {_SPELLINGS.get(one.name, camel(one.name)): one.name for one in fields(cls) if one.name != "others"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PushMessage(NotificationContent):
    """A message to push: content, or ``data`` alone for an app without a screen.

    ``content_available`` is what iOS needs of the latter. Raises ConfigError for more than 4,096 bytes.
    """

    content_available: bool = False
    channel_id: str | None = None

    def __post_init__(self) -> None:
        NotificationContent.__post_init__(self)
        try:
            size = len(json.dumps(self.native()).encode())
        except (TypeError, ValueError, RecursionError):
            raise ConfigError("the data of a message must be JSON") from None
        if size > MAX_PAYLOAD_BYTES:
            raise ConfigError(f"a message of {size} bytes is too large: push services carry {MAX_PAYLOAD_BYTES}")

    @property
    def is_data_only(self) -> bool:
        """Whether nothing is shown of it."""
        return self.title is None and self.body is None

    def check(self, platform: Platform) -> None:
        """Raise ConfigError for a message that a platform does not deliver to the app."""
        if self.is_data_only and platform == "ios" and not self.content_available:
            raise ConfigError("a message with data alone needs content_available=True (_contentAvailable) on iOS")


@dataclass(frozen=True, slots=True)
class NotificationRequestInput:
    """What an app schedules; without a trigger it is presented at once."""

    content: NotificationContent | Mapping[str, Any]
    trigger: Trigger | Mapping[str, Any] | None = None
    identifier: str | None = None


@dataclass(frozen=True, slots=True)
class NotificationRequest:
    """A request that was accepted."""

    identifier: str
    content: NotificationContent
    trigger: Trigger | None

    @classmethod
    def read(cls, given: NotificationRequestInput | Mapping[str, Any], platform: Platform, identifier: str) -> Self:
        """Return what an app has passed, with an identifier if it has none. Raises ConfigError, TriggerError."""
        if isinstance(given, Mapping):
            unknown = given.keys() - {"content", "trigger", "identifier"}
            if unknown or "content" not in given:
                raise ConfigError("a request has content, trigger and identifier, the first is required")
            given = NotificationRequestInput(**given)
        trigger = given.trigger
        if trigger is not None and not isinstance(trigger, Trigger):
            trigger = parse_trigger(trigger, platform)
        named = checked_text("identifier", given.identifier) or identifier
        return cls(named, NotificationContent.read(given.content), trigger)


@dataclass(frozen=True, slots=True)
class Notification:
    """A notification that has arrived; ``date`` in milliseconds since 1970."""

    date: int
    request: NotificationRequest


@dataclass(frozen=True, slots=True)
class NotificationResponse:
    """How the user answered: ``action_identifier`` is DEFAULT_ACTION_IDENTIFIER for a plain tap."""

    action_identifier: str
    notification: Notification
    user_text: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationBehavior:
    """What happens to a notification while the app is in the foreground; ``should_set_badge`` is for iOS."""

    should_play_sound: bool
    should_set_badge: bool
    should_show_banner: bool
    should_show_list: bool
    should_show_alert: bool | None = None
    priority: str | None = None

    def __post_init__(self) -> None:
        if self.should_show_alert is not None:
            warning = "should_show_alert is deprecated: use should_show_banner and should_show_list"
            warnings.warn(warning, DeprecationWarning, stacklevel=3)


@dataclass(frozen=True, slots=True)
class NotificationHandler:
    """Decides what happens to a notification, and is informed how that went."""

    handle_notification: Callable[[Notification], NotificationBehavior]
    handle_success: Callable[[str], object] | None = None
    handle_error: Callable[[str, Exception], object] | None = None


@dataclass(frozen=True, slots=True)
class TextInput:
    """The field of an action that asks for a text."""

    placeholder: str = ""
    submit_button_title: str = ""


@dataclass(frozen=True, slots=True)
class ActionOptions:
    """How an action behaves."""

    is_authentication_required: bool = False
    is_destructive: bool = False
    opens_app_to_foreground: bool = True


@dataclass(frozen=True, slots=True)
class NotificationAction:
    """A button of a notification."""

    identifier: str
    button_title: str
    options: ActionOptions = ActionOptions()
    text_input: TextInput | None = None


@dataclass(frozen=True, slots=True)
class NotificationCategory:
    """The actions of the notifications that name it; its ``options`` are not in the document."""

    identifier: str
    actions: tuple[NotificationAction, ...]
    options: Mapping[str, Any] | None = None


def camel(name: str) -> str:
    """Return a name as the document spells it."""
    head, *tail = name.split("_")
    return head + "".join(map(str.title, tail))


def mapping(name: str, value: object) -> Mapping[str, Any]:
    """Return an object. Raises ConfigError."""
    if not isinstance(value, Mapping) or not all(
        isinstance(key, str) for key in cast("Mapping[object, object]", value)
    ):
        raise ConfigError(f"{name} must be an object")
    return cast("Mapping[str, Any]", value)


def checked_text(name: str, value: _T) -> _T:
    """Return a text or nothing. Raises ConfigError."""
    if value is not None and not isinstance(value, str):
        raise ConfigError(f"{name} must be a text, not of type {type(value).__name__}")
    return value
