"""A notification center in memory: what a device shows of an app's notifications, by a clock that the test sets."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias
from zoneinfo import ZoneInfo

from pytest_device.errors import ConfigError
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
from pytest_device.notifications.tokens import DevicePushToken, PushToken, PushTokenRequest
from pytest_device.notifications.triggers import Platform, check_platform, milliseconds, zone_of

if TYPE_CHECKING:
    import httpx

AppState: TypeAlias = Literal["foreground", "background", "closed"]
NEEDS_CHANNEL: Final = "ERR_NOTIFICATIONS_CHANNEL_REQUIRED"


@dataclass(slots=True)
class _Scheduled:
    request: NotificationRequest
    date: datetime


class NotificationCenter:
    """The notifications of one app on one device.

    ``clock`` returns the time with its zone, which is that of the device unless ``tz`` is given. The handler's
    time-out is not in the document, so that it has no default; the clock measures it. A test sets ``app_state``.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], datetime],
        platform: Platform,
        handler_timeout_seconds: float,
        tz: ZoneInfo | str | None = None,
        android_version: int = 13,
        device_token: str = "device-token",  # noqa: S107  # of no device
    ) -> None:
        check_platform(platform)
        if handler_timeout_seconds <= 0:
            raise ConfigError(f"handler_timeout_seconds {handler_timeout_seconds} must be more than 0")
        self.platform: Final = platform
        self.channels: Final = Channels(platform)
        self.permissions: Final = Permissions(platform, android_version)
        self.app_state: AppState = "foreground"
        self.badge = 0
        """The number on the app's icon."""
        self.history: list[Presented | Dropped] = []
        """What has arrived, in order, shown or not."""
        self.last_response: NotificationResponse | None = None
        self._clock, self._tz = clock, tz
        self._timeout = timedelta(seconds=handler_timeout_seconds)
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
        """Set what decides about notifications while the app is in the foreground; without it, none is shown then."""
        self._handler = handler

    def add_received_listener(self, listener: Callable[[Notification], object]) -> Subscription[Notification]:
        """Call a listener for each notification that arrives while the app runs."""
        return Subscription(self._received, listener)

    def add_response_received_listener(
        self, listener: Callable[[NotificationResponse], object]
    ) -> Subscription[NotificationResponse]:
        """Call a listener for each answer of the user while the app runs."""
        return Subscription(self._responded, listener)

    def add_push_token_listener(self, listener: Callable[[DevicePushToken], object]) -> Subscription[DevicePushToken]:
        """Call a listener when the push service rolls the device's token."""
        return Subscription(self._tokens, listener)

    def register_task(self, task: Callable[[Mapping[str, Any]], object]) -> Subscription[Mapping[str, Any]]:
        """Call a task with the data of each message without a title and body while the app is not in the foreground."""
        return Subscription(self._tasks, task)

    def schedule(self, request: NotificationRequestInput | Mapping[str, Any]) -> str:
        """Schedule a notification, replacing one with the same identifier, and return its identifier.

        Without a trigger it arrives at once. Raises TriggerError, and ConfigError for an unregistered category.
        """
        known = NotificationRequest.read(request, self.platform, str(uuid.uuid4()))
        category = known.content.category_identifier
        if category is not None and category not in self._categories:
            raise ConfigError(f"category {category!r} is not registered: call set_category first")
        self._scheduled.pop(known.identifier, None)
        if known.trigger is None or known.trigger.type == "channel":
            self._arrive(known, self._clock())
        elif date := next_trigger_date(known.trigger, self._clock(), self._zone(), platform=self.platform):
            self._scheduled[known.identifier] = _Scheduled(known, date)
        return known.identifier

    def scheduled(self) -> tuple[NotificationRequest, ...]:
        """Return what is scheduled."""
        return tuple(one.request for one in self._scheduled.values())

    def cancel(self, identifier: str) -> None:
        """Cancel a scheduled notification."""
        self._scheduled.pop(identifier, None)

    def cancel_all(self) -> None:
        """Cancel all scheduled notifications."""
        self._scheduled.clear()

    def fire_due(self) -> list[Notification]:
        """Let all that is due by the clock arrive in order, and return it. Raises ConfigError after 20,000."""
        fired: list[Notification] = []
        now = milliseconds(self._clock())
        while due := self._due(now):
            if len(fired) == MAX_FIRES:
                raise ConfigError(f"more than {MAX_FIRES} notifications are due: let less time pass")
            del self._scheduled[due.request.identifier]
            if later := after_fire(due.request.trigger, due.date, self._zone(), platform=self.platform):
                self._scheduled[due.request.identifier] = _Scheduled(due.request, later)
            fired.append(self._arrive(due.request, due.date))
        return fired

    def push(self, message: PushMessage | Mapping[str, Any]) -> Notification:
        """Let a pushed message arrive. Raises ConfigError for one that the platform does not deliver."""
        known = PushMessage.read(message)
        known.check(self.platform)
        remote = RemoteMessage({name: str(value) for name, value in known.data.items()})
        trigger = UnknownTrigger(remote_message=remote, channel_id=known.channel_id)
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
        """What the device has shown so far, also what has been dismissed since."""
        return tuple(one for one in self.history if isinstance(one, Presented))

    @property
    def dropped(self) -> tuple[Dropped, ...]:
        """What has arrived and was not shown, with the reasons."""
        return tuple(one for one in self.history if isinstance(one, Dropped))

    def presented(self) -> tuple[Presented, ...]:
        """Return what is in the device's list of notifications."""
        return tuple(self._in_list.values())

    def dismiss(self, identifier: str) -> None:
        """Remove a notification from the list."""
        self._in_list.pop(identifier, None)

    def dismiss_all(self) -> None:
        """Remove all notifications from the list."""
        self._in_list.clear()

    def tap(self, identifier: str, *, action: str | None = None, text: str | None = None) -> NotificationResponse:
        """Answer a notification in the list as the user does: by a tap, or an action with its text.

        The app comes to the foreground unless the action says otherwise. Raises ConfigError for what is not there.
        """
        found = self._in_list.get(identifier)
        if found is None:
            raise ConfigError(f"no notification {identifier!r} is in the list: there are {list(self._in_list)}")
        chosen = action_of(found.actions, action, text)
        response = NotificationResponse(action or DEFAULT_ACTION_IDENTIFIER, found.notification, text)
        self.dismiss(identifier)
        self.last_response = response
        was_closed = self.app_state == "closed"
        if chosen is None or chosen.options.opens_app_to_foreground:
            self.app_state = "foreground"
        if not was_closed:  # else no listener is there yet: the app asks for the last response
            call_all(self._responded, response)
        return response

    def set_category(
        self, identifier: str, actions: Sequence[NotificationAction], options: Mapping[str, Any] | None = None
    ) -> NotificationCategory:
        """Register a category, or change it."""
        self._categories[identifier] = NotificationCategory(identifier, tuple(actions), options)
        return self._categories[identifier]

    def categories(self) -> tuple[NotificationCategory, ...]:
        """Return the registered categories."""
        return tuple(self._categories.values())

    def delete_category(self, identifier: str) -> bool:
        """Delete a category, and return whether it existed."""
        return self._categories.pop(identifier, None) is not None

    def get_permissions(self) -> NotificationPermissionsStatus:
        """Return what the user allows."""
        return self.permissions.status

    def request_permissions(
        self, request: NotificationPermissionsRequest | None = None
    ) -> NotificationPermissionsStatus:
        """Ask the user, by ``permissions.answer``. On Android 13, nothing is asked before a channel exists."""
        return self.permissions.request(request, has_channel=bool(self.channels.channels()))

    def get_device_push_token(self) -> DevicePushToken:
        """Return the device's token. Raises NotificationError on Android 13 before a channel exists."""
        if self.permissions.needs_channel(has_channel=bool(self.channels.channels())):
            problem = "no notification channel exists: on Android 13 set one before a push token is requested"
            raise NotificationError(problem, code=NEEDS_CHANNEL)
        return self._device_token

    def get_push_token(self, client: "httpx.Client", **options: Any) -> PushToken:
        """Return the push service's token: the options are those of `PushTokenRequest`; raises as its ``send``."""
        token = self.get_device_push_token()
        return PushTokenRequest(platform=self.platform, device_push_token=token, **options).send(client)

    def roll_device_token(self, data: str) -> DevicePushToken:
        """Let the push service replace the device's token, and call the listeners."""
        self._device_token = DevicePushToken(data, self.platform)
        call_all(self._tokens, self._device_token)
        return self._device_token

    def _due(self, now: int) -> _Scheduled | None:
        due = [one for one in self._scheduled.values() if milliseconds(one.date) <= now]
        return min(due, key=lambda one: milliseconds(one.date), default=None)

    def _zone(self) -> ZoneInfo:
        zone = self._clock().tzinfo if self._tz is None else zone_of(self._tz)
        return zone if isinstance(zone, ZoneInfo) else ZoneInfo("UTC")

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
        behavior = self._decided(notification) if self.app_state == "foreground" else IN_BACKGROUND
        if isinstance(behavior, str):
            return Dropped(notification, behavior)
        if not self.permissions.status.allows:
            return Dropped(notification, "the user has not allowed notifications")
        if channel and self.platform == "android" and not self.channels.channel(channel):
            return Dropped(notification, f"the channel {channel!r} does not exist")
        if not behavior.should_show_banner and not behavior.should_show_list:
            return Dropped(notification, "the handler shows neither a banner nor an entry in the list")
        category = self._categories.get(request.content.category_identifier or "")
        return Presented(notification, behavior, category.actions if category else ())

    def _decided(self, notification: Notification) -> NotificationBehavior | str:
        found = self._handler and decided(self._handler, notification, self._clock, self._timeout)
        return found or "the app is in the foreground and has no handler"
