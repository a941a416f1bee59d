"""Notification content, requests, responses, actions, categories and handlers."""

import difflib
import json
import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import (
    Annotated,
    Any,
    ClassVar,
    Final,
    Literal,
    Self,
    TypeAlias,
    TypeVar,
    cast,
)

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from pytest_device.errors import ConfigError, hides_frames
from pytest_device.notifications.triggers import (
    Fields,
    Platform,
    Trigger,
    parse_trigger,
)

__tracebackhide__ = hides_frames

DEFAULT_ACTION_IDENTIFIER: Final = "default"
"""Action identifier of a plain tap; only the constant's name is documented, not its value."""
MAX_PAYLOAD_BYTES: Final = 4096
"""Maximum size of a message as JSON, in bytes: the limit of APNs, FCM and Web Push."""


InterruptionLevel: TypeAlias = Literal["passive", "active", "timeSensitive", "critical"]
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class CircularRegion:
    """Circular region; ``latitude`` and ``longitude`` in degrees, ``radius`` in meters."""

    identifier: str
    latitude: float
    longitude: float
    radius: float
    notify_on_entry: bool = True
    notify_on_exit: bool = True
    type: ClassVar[str] = "circular"


@dataclass(frozen=True, slots=True)
class BeaconRegion:
    """Region around a beacon; the beacon's identifying fields are not documented."""

    identifier: str
    notify_on_entry: bool = True
    notify_on_exit: bool = True
    type: ClassVar[str] = "beacon"


class LocationTrigger(Trigger):
    """Region trigger, iOS only; appears on returned requests and can't be scheduled."""

    type: ClassVar[str] = "location"
    region: CircularRegion | BeaconRegion
    repeats: bool = False


@dataclass(frozen=True, slots=True)
class RemoteMessage:
    """Push message as received by the app; times in milliseconds since the epoch, ``ttl`` in seconds."""

    data: Mapping[str, str] = field(default_factory=dict[str, str])
    message_id: str | None = None
    message_type: str | None = None
    notification: Mapping[str, Any] | None = None
    collapse_key: str | None = None
    sender: str | None = None
    """Documented as ``from``, a reserved word in Python."""
    to: str | None = None
    priority: int | None = None
    original_priority: int | None = None
    sent_time: int | None = None
    ttl: int | None = None


class UnknownTrigger(Trigger):
    """Trigger of another type, for example of a push message."""

    type: ClassVar[str] = "unknown"
    remote_message: RemoteMessage | None = None


class NotificationContent(Fields):
    """Visible content and data of a notification; ``others`` holds undocumented fields."""

    model_config = ConfigDict(extra="allow", strict=True)

    title: str | None = None
    body: str | None = None
    # A null of the document stands for no data.
    data: Annotated[
        dict[str, Any], BeforeValidator(lambda data: {} if data is None else data)
    ] = Field(default_factory=dict[str, Any])
    sound: str | bool | None = None
    category_identifier: str | None = None
    color: str | None = None
    interruption_level: InterruptionLevel | None = None

    @classmethod
    def read(cls, source: "Self | Mapping[str, Any]") -> Self:
        """Return content from a typed value or a mapping with the documented names.

        Other names are kept in ``others``, since the document leaves out some fields of the content.

        >>> NotificationContent.read({"title": "News", "subtitle": "Today"}).others["subtitle"]
        'Today'

        Raises:
            ConfigError: A value is invalid, or a name differs from a documented one by a few characters.
        """
        if isinstance(source, cls):
            return source
        if not isinstance(cast("object", source), Mapping):
            raise ConfigError(f"content must be an object, not {type(source).__name__}")

        content = cast("Mapping[str, Any]", source)
        _check_spelling(
            content,
            [str(field.serialization_alias) for field in cls.model_fields.values()],
        )

        return cls(**content)

    @property
    def others(self) -> Mapping[str, Any]:
        """Fields that the document does not name."""
        return self.model_extra or {}

    def native(self) -> dict[str, Any]:
        """Return the content as a mapping with the documented names."""
        given = self.model_dump(by_alias=True, exclude_defaults=True)

        return {**given, "data": self.data}


class PushMessage(NotificationContent):
    """Push message: visible content, or ``data`` only for a background task.

    iOS requires ``content_available`` for data-only messages. Raises ConfigError for more than 4,096 bytes.
    """

    content_available: bool = Field(
        default=False,
        validation_alias="_contentAvailable",
        serialization_alias="_contentAvailable",
    )
    channel_id: str | None = None

    @model_validator(mode="after")
    def _check_size(self) -> Self:
        # In its shortest form: a message that can fit is not refused.
        try:
            payload = json.dumps(
                self.native(),
                ensure_ascii=False,
                allow_nan=False,
                separators=(",", ":"),
            )
            size = len(payload.encode())
        except (TypeError, ValueError, RecursionError):
            raise ConfigError("the data of a message must be JSON") from None

        if size > MAX_PAYLOAD_BYTES:
            raise ConfigError(
                f"the message is too large: {size} bytes (maximum {MAX_PAYLOAD_BYTES})"
            )

        return self

    @property
    def is_data_only(self) -> bool:
        """Whether the message has neither a title nor a body."""
        return self.title is None and self.body is None

    def texts(self) -> dict[str, str]:
        """Return the data as the document's record of strings: other values as JSON."""
        return {
            name: value if isinstance(value, str) else json.dumps(value)
            for name, value in self.data.items()
        }

    def check(self, platform: Platform) -> None:
        """Raise ConfigError if the platform would not deliver the message."""
        if self.is_data_only and platform == "ios" and not self.content_available:
            raise ConfigError(
                "data-only messages require content_available=True (_contentAvailable) on iOS"
            )
        if platform == "ios" and "aps" in self.data:
            raise ConfigError(
                "data must not have the key 'aps', which holds the notification on iOS: rename it"
            )


@dataclass(frozen=True, slots=True)
class NotificationRequestInput:
    """Request to schedule a notification; without a trigger, it is presented immediately."""

    content: NotificationContent | Mapping[str, Any]
    trigger: Trigger | Mapping[str, Any] | None = None
    identifier: str | None = None


@dataclass(frozen=True, slots=True)
class NotificationRequest:
    """Accepted notification request."""

    identifier: str
    content: NotificationContent
    trigger: Trigger | None

    @classmethod
    def read(
        cls,
        source: NotificationRequestInput | Mapping[str, Any],
        platform: Platform,
        identifier: str,
    ) -> Self:
        """Return a validated request; ``identifier`` is the default. Raises ConfigError, TriggerError."""
        request = source
        if not isinstance(request, NotificationRequestInput):
            try:
                request = NotificationRequestInput(**request)
            except TypeError as error:
                raise ConfigError(
                    f"a request must have content, and may have trigger and identifier: {error}"
                ) from None

        trigger = request.trigger
        if trigger is not None and not isinstance(trigger, Trigger):
            trigger = parse_trigger(trigger, platform)
        identifier = checked_text("identifier", request.identifier) or identifier

        return cls(identifier, NotificationContent.read(request.content), trigger)


@dataclass(frozen=True, slots=True)
class Notification:
    """Delivered notification; ``date`` in milliseconds since the epoch."""

    date: int
    request: NotificationRequest


@dataclass(frozen=True, slots=True)
class NotificationResponse:
    """User response; ``action_identifier`` is DEFAULT_ACTION_IDENTIFIER for a plain tap."""

    action_identifier: str
    notification: Notification
    user_text: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationBehavior:
    """Presentation of a notification while the app is in the foreground; ``should_set_badge`` is iOS only."""

    should_play_sound: bool
    should_set_badge: bool
    should_show_banner: bool
    should_show_list: bool
    should_show_alert: bool | None = None
    priority: str | None = None

    def __post_init__(self) -> None:
        if self.should_show_alert is not None:
            warnings.warn(
                "should_show_alert is deprecated: use should_show_banner and should_show_list",
                DeprecationWarning,
                stacklevel=3,
            )


@dataclass(frozen=True, slots=True)
class NotificationHandler:
    """Callbacks that choose the behavior of a notification and receive the outcome."""

    handle_notification: Callable[[Notification], NotificationBehavior]
    handle_success: Callable[[str], object] | None = None
    handle_error: Callable[[str, Exception], object] | None = None


@dataclass(frozen=True, slots=True)
class TextInput:
    """Text field of an action."""

    placeholder: str = ""
    submit_button_title: str = ""


@dataclass(frozen=True, slots=True)
class ActionOptions:
    """Options of an action."""

    is_authentication_required: bool = False
    is_destructive: bool = False
    opens_app_to_foreground: bool = True


@dataclass(frozen=True, slots=True)
class NotificationAction:
    """Action button of a notification."""

    identifier: str
    button_title: str
    options: ActionOptions = ActionOptions()
    text_input: TextInput | None = None


@dataclass(frozen=True, slots=True)
class NotificationCategory:
    """Set of actions that notifications refer to by identifier; ``options`` are not documented."""

    identifier: str
    actions: tuple[NotificationAction, ...]
    options: Mapping[str, Any] | None = None


def _check_spelling(content: Mapping[str, Any], documented: Collection[str]) -> None:
    """Raise ConfigError for a name that is probably a misspelled one of the document."""
    for name in content:
        if name in documented:
            continue

        # 0.8 finds titel, Title and category_identifier, but not the undocumented subtitle.
        close_names = difflib.get_close_matches(name, documented, n=1, cutoff=0.8)
        if close_names:
            raise ConfigError(
                f"content has an unknown name {name!r}: did you mean {close_names[0]!r}?"
            )


def instance_of(kind: type[_T], name: str, value: object) -> _T:
    """Return the value if it has this class. Raises ConfigError."""
    if not isinstance(value, kind):
        raise ConfigError(
            f"{name} must be a {kind.__name__}, not {type(value).__name__}"
        )

    return value


def checked_text(name: str, value: _T) -> _T:
    """Return the value if it is a string or None. Raises ConfigError."""
    if value is not None and not isinstance(value, str):
        raise ConfigError(f"{name} must be a string, not {type(value).__name__}")

    return value
