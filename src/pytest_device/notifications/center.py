"""A model of the notifications of one app: which arrive when and which rules drop them. It runs no app."""

import inspect
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

from pytest_device.app.vendor import VendorProfile, profile_of
from pytest_device.errors import ConfigError, hides_frames
from pytest_device.notifications.channels import Channels
from pytest_device.notifications.content import (
    DEFAULT_ACTION_IDENTIFIER,
    Notification,
    NotificationAction,
    NotificationBehavior,
    NotificationCategory,
    NotificationContent,
    NotificationHandler,
    NotificationRequest,
    NotificationRequestInput,
    NotificationResponse,
    PushMessage,
    RemoteMessage,
    UnknownTrigger,
)
from pytest_device.notifications.dates import MAX_FIRES, after_fire, next_trigger_date
from pytest_device.notifications.errors import NotificationError
from pytest_device.notifications.permissions import (
    NotificationPermissionsRequest,
    NotificationPermissionsStatus,
    Permissions,
)
from pytest_device.notifications.presenting import (
    IN_BACKGROUND,
    Dropped,
    Presented,
    Subscription,
    action_of,
    call_all,
    decided,
)
from pytest_device.notifications.tokens import (
    DevicePushToken,
    PushToken,
    PushTokenRequest,
)
from pytest_device.notifications.triggers import (
    Platform,
    check_platform,
    milliseconds,
    zone_of,
)
from pytest_device.spec import VENDOR
from pytest_device.spelling import unknown

if TYPE_CHECKING:
    import httpx

_OF_CENTER: Final[Mapping[str, str]] = {
    "platform": "platform is the center's: pass it to NotificationCenter",
    "vendor": "vendor is the center's: pass it to NotificationCenter",
    "device_push_token": "device_push_token is the center's: change it with roll_device_token",
}
"""Options of a token request that are the center's own, and where to set them."""

__tracebackhide__ = hides_frames

AppState: TypeAlias = Literal["foreground", "background", "closed"]
NEEDS_CHANNEL: Final = "ERR_NOTIFICATIONS_CHANNEL_REQUIRED"


@dataclass(slots=True)
class _Scheduled:
    request: NotificationRequest
    date: datetime


class NotificationCenter:
    """Dates and rules of the notifications of one app on one device, in memory; it runs no app and asks no device.

    It answers when a scheduled notification is due, and whether one is shown or dropped, by the documented rules. To
    see what the app under test does, use `device_push`.

    ``clock`` returns an aware datetime; its time zone is the device's unless ``tz`` is given. ``clock`` also measures
    ``handler_timeout_seconds``, which has no default because it is not documented. Tests set ``app_state``.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], datetime],
        platform: Platform,
        handler_timeout_seconds: float,
        tz: tzinfo | str | None = None,
        android_version: int = 13,
        device_token: str = "device-token",  # noqa: S107  # a placeholder, not a secret
        vendor: VendorProfile | str = VENDOR,
    ) -> None:
        check_platform(platform)
        given = cast("object", handler_timeout_seconds)
        if not (isinstance(given, int | float) and given > 0):  # nor NaN
            raise ConfigError(
                f"handler_timeout_seconds {given!r} must be a number greater than 0"
            )
        self.platform: Final = platform
        self.channels: Final = Channels(platform)
        self.permissions: Final = Permissions(platform, android_version)
        self.app_state: AppState = "foreground"
        self.badge = 0
        """Number on the app icon."""
        self.history: list[Presented | Dropped] = []
        """All notifications that arrived, in order, shown or dropped."""
        self.last_response: NotificationResponse | None = None
        self._clock, self._tz = clock, tz
        self._profile = profile_of(vendor)
        self._timeout_seconds = handler_timeout_seconds
        self._handler: NotificationHandler | None = None
        self._device_token = DevicePushToken(device_token, platform)
        self._scheduled: dict[str, _Scheduled] = {}
        self._in_list: dict[str, Presented] = {}
        self._categories: dict[str, NotificationCategory] = {}
        self._tasks: list[Subscription[Mapping[str, Any]]] = []
        self._received: list[Subscription[Notification]] = []
        self._responded: list[Subscription[NotificationResponse]] = []
        self._tokens: list[Subscription[DevicePushToken]] = []

    def set_handler(self, handler: NotificationHandler | None) -> None:
        """Set the handler for notifications in the foreground; without a handler, they are dropped."""
        self._handler = handler

    def add_received_listener(
        self, listener: Callable[[Notification], object]
    ) -> Subscription[Notification]:
        """Add a listener for notifications that arrive while the app is running."""
        return Subscription(self._received, listener)

    def add_response_received_listener(
        self, listener: Callable[[NotificationResponse], object]
    ) -> Subscription[NotificationResponse]:
        """Add a listener for the user's responses while the app is running."""
        return Subscription(self._responded, listener)

    def add_push_token_listener(
        self, listener: Callable[[DevicePushToken], object]
    ) -> Subscription[DevicePushToken]:
        """Add a listener for new device tokens from the push service."""
        return Subscription(self._tokens, listener)

    def register_task(
        self, task: Callable[[Mapping[str, Any]], object]
    ) -> Subscription[Mapping[str, Any]]:
        """Register a task that receives the data of data-only messages while the app is not in the foreground."""
        return Subscription(self._tasks, task)

    def schedule(self, request: NotificationRequestInput | Mapping[str, Any]) -> str:
        """Schedule a notification and return its identifier, replacing any request with the same identifier.

        Without a trigger, it arrives immediately. Raises TriggerError, or ConfigError for an unregistered category.
        """
        known = NotificationRequest.read(request, self.platform, str(uuid.uuid4()))
        category = known.content.category_identifier
        if category is not None and category not in self._categories:
            raise ConfigError(
                f"category {category!r} is not registered: call set_category first"
            )
        self._scheduled.pop(known.identifier, None)
        if known.trigger is None or known.trigger.type == "channel":
            self._arrive(known, self._clock())
        elif date := next_trigger_date(
            known.trigger, self._clock(), self._zone(), platform=self.platform
        ):
            self._scheduled[known.identifier] = _Scheduled(known, date)
        return known.identifier

    def scheduled(self) -> tuple[NotificationRequest, ...]:
        """Return the scheduled requests."""
        return tuple(one.request for one in self._scheduled.values())

    def cancel(self, identifier: str) -> None:
        """Cancel a scheduled notification."""
        self._scheduled.pop(identifier, None)

    def cancel_all(self) -> None:
        """Cancel all scheduled notifications."""
        self._scheduled.clear()

    def fire_due(self) -> list[Notification]:
        """Deliver all due notifications in order and return them. Raises ConfigError if more than 20,000 are due."""
        fired: list[Notification] = []
        now = milliseconds(self._clock())
        while due := self._due(now):
            if len(fired) == MAX_FIRES:
                raise ConfigError(
                    f"more than {MAX_FIRES} notifications are due: advance the clock in smaller steps"
                )
            self._schedule_next(due)
            fired.append(self._arrive(due.request, due.date))
        return fired

    def bring_forward(self, identifier: str) -> Notification:
        """Deliver a scheduled notification now, in place of its next date; a repeating one goes on from that date.

        Raises ConfigError if none of this identifier is scheduled.
        """
        found = self._scheduled.get(identifier)
        if found is None:
            raise ConfigError(unknown("notification", identifier, self._scheduled))

        self._schedule_next(found)
        return self._arrive(found.request, self._clock())

    def push(self, message: PushMessage | Mapping[str, Any]) -> Notification:
        """Deliver a push message. Raises ConfigError if the platform would not deliver it."""
        known = PushMessage.read(message)
        known.check(self.platform)
        trigger = UnknownTrigger(
            remote_message=RemoteMessage(known.texts()), channel_id=known.channel_id
        )
        content = NotificationContent.read(known.native())
        request = NotificationRequest(str(uuid.uuid4()), content, trigger)
        if not known.is_data_only:
            return self._arrive(request, self._clock())
        notification = Notification(milliseconds(self._clock()), request)
        if self.app_state == "foreground":
            call_all(self._received, notification)
        else:
            call_all(self._tasks, known.data)
        return notification

    @property
    def shown(self) -> tuple[Presented, ...]:
        """All notifications shown so far, including dismissed ones."""
        return tuple(one for one in self.history if isinstance(one, Presented))

    @property
    def dropped(self) -> tuple[Dropped, ...]:
        """Notifications that arrived but were not shown, with the reasons."""
        return tuple(one for one in self.history if isinstance(one, Dropped))

    def presented(self) -> tuple[Presented, ...]:
        """Return the notifications that are currently in the notification list."""
        return tuple(self._in_list.values())

    def dismiss(self, identifier: str) -> None:
        """Remove a notification from the notification list."""
        self._in_list.pop(identifier, None)

    def dismiss_all(self) -> None:
        """Clear the notification list."""
        self._in_list.clear()

    def tap(
        self, identifier: str, *, action: str | None = None, text: str | None = None
    ) -> NotificationResponse:
        """Tap a notification in the list or one of its actions, with the text the action asks for.

        Bring the app to the foreground unless the action opts out. Raises ConfigError for an unknown one.
        """
        found = self._in_list.get(identifier)
        if found is None:
            raise ConfigError(
                f"no notification {identifier!r} in the list, available: {list(self._in_list)}"
            )
        chosen = action_of(found.actions, action, text)
        response = NotificationResponse(
            action or DEFAULT_ACTION_IDENTIFIER, found.notification, text
        )
        self.dismiss(identifier)
        self.last_response = response
        was_closed = self.app_state == "closed"
        if chosen is None or chosen.options.opens_app_to_foreground:
            self.app_state = "foreground"
        if not was_closed:  # a closed app has no listeners yet: it reads last_response
            call_all(self._responded, response)
        return response

    def set_category(
        self,
        identifier: str,
        actions: Sequence[NotificationAction],
        options: Mapping[str, Any] | None = None,
    ) -> NotificationCategory:
        """Register or replace a category."""
        self._categories[identifier] = NotificationCategory(
            identifier, tuple(actions), options
        )
        return self._categories[identifier]

    def categories(self) -> tuple[NotificationCategory, ...]:
        """Return the registered categories."""
        return tuple(self._categories.values())

    def delete_category(self, identifier: str) -> bool:
        """Delete a category and return whether it existed."""
        return self._categories.pop(identifier, None) is not None

    def get_permissions(self) -> NotificationPermissionsStatus:
        """Return the permission status."""
        return self.permissions.status

    def request_permissions(
        self, request: NotificationPermissionsRequest | None = None
    ) -> NotificationPermissionsStatus:
        """Prompt the user via ``permissions.answer``. On Android 13, no prompt appears before a channel exists."""
        return self.permissions.request(
            request, has_channel=bool(self.channels.channels())
        )

    def get_device_push_token(self) -> DevicePushToken:
        """Return the device token. Raises NotificationError on Android 13 if no channel exists."""
        if self.permissions.needs_channel(has_channel=bool(self.channels.channels())):
            problem = "no notification channel exists: on Android 13, set one before requesting a push token"
            raise NotificationError(problem, code=NEEDS_CHANNEL)
        return self._device_token

    def get_push_token(self, client: "httpx.Client", **options: Any) -> PushToken:
        """Request a push token; takes the other options of `PushTokenRequest` and raises the errors of its ``send``.

        The platform, the device token and the vendor's profile are those of the center. Raises ConfigError for these
        and for an unknown or missing option.
        """
        _check_token_options(options)
        return PushTokenRequest(
            **options,
            platform=self.platform,
            device_push_token=self.get_device_push_token(),
            vendor=self._profile,
        ).send(client)

    def roll_device_token(self, data: str) -> DevicePushToken:
        """Replace the device token and notify the listeners."""
        self._device_token = DevicePushToken(data, self.platform)
        call_all(self._tokens, self._device_token)
        return self._device_token

    def _schedule_next(self, one: _Scheduled) -> None:
        """Replace the date of a scheduled notification by the next one, if it has one."""
        del self._scheduled[one.request.identifier]
        if later := after_fire(
            one.request.trigger, one.date, self._zone(), platform=self.platform
        ):
            self._scheduled[one.request.identifier] = _Scheduled(one.request, later)

    def _due(self, now: int) -> _Scheduled | None:
        due = [one for one in self._scheduled.values() if milliseconds(one.date) <= now]
        return min(due, key=lambda one: milliseconds(one.date), default=None)

    def _zone(self) -> tzinfo:
        if self._tz is not None:
            return zone_of(self._tz)
        now = self._clock()
        milliseconds(now)  # rejects naive datetimes
        return zone_of(now.tzinfo)

    def _arrive(self, request: NotificationRequest, date: datetime) -> Notification:
        notification = Notification(milliseconds(date), request)
        if self.app_state != "closed":
            call_all(self._received, notification)
        shown = self._judged(notification)
        self.history.append(shown)
        if isinstance(shown, Presented) and shown.behavior.should_show_list:
            self._in_list[request.identifier] = shown
        return notification

    def _judged(self, notification: Notification) -> Presented | Dropped:
        request = notification.request
        channel = request.trigger.channel_id if request.trigger else None
        behavior: NotificationBehavior | str = IN_BACKGROUND
        if self.app_state == "foreground":
            behavior = decided(
                self._handler, notification, self._clock, self._timeout_seconds
            )
        if isinstance(behavior, str):
            return Dropped(notification, behavior)
        if not self.permissions.status.allows:
            return Dropped(notification, "the user has not allowed notifications")
        if (
            channel
            and self.platform == "android"
            and not self.channels.channel(channel)
        ):
            return Dropped(notification, f"the channel {channel!r} does not exist")
        if not behavior.should_show_banner and not behavior.should_show_list:
            return Dropped(
                notification,
                "the handler shows neither a banner nor an entry in the list",
            )
        category = self._categories.get(request.content.category_identifier or "")
        return Presented(notification, behavior, category.actions if category else ())


def _check_token_options(options: Mapping[str, Any]) -> None:
    """Raise ConfigError for options of a token request that are the center's, unknown or missing."""
    parameters = inspect.signature(PushTokenRequest).parameters
    available = [name for name in parameters if name not in _OF_CENTER]
    required = [
        name
        for name in available
        if parameters[name].default is inspect.Parameter.empty
    ]
    problems = [
        f"get_push_token: {_OF_CENTER.get(name) or unknown('option', name, available)}"
        for name in options
        if name not in available
    ]
    problems += [
        f"get_push_token needs {name}" for name in required if name not in options
    ]
    if problems:
        raise ConfigError(*problems)
