"""A model of the notifications of one app: which arrive when and which rules drop them. It runs no app."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

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
    instance_of,
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
    ChannelTrigger,
    Platform,
    check_platform,
    milliseconds,
    zone_of,
)
from pytest_device.spec import VENDOR
from pytest_device.spelling import unknown

if TYPE_CHECKING:
    import httpx

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
    see what the app under test does, use `device_push`. Tests set ``app_state``.

    >>> from datetime import datetime, UTC
    >>> center = NotificationCenter(
    ...     clock=lambda: datetime(2026, 3, 1, tzinfo=UTC), platform="ios", handler_timeout_seconds=3
    ... )
    >>> identifier = center.schedule({"content": {"title": "News"}})
    >>> center.dropped[0].reason
    'the app is in the foreground and has no handler'

    Args:
        clock: Returns an aware datetime; its time zone is the device's unless ``tz`` is given. It also measures the
            time that a handler takes.
        platform: The platform of the device.
        handler_timeout_seconds: How long a handler may take; it has no default, because it is not documented.
        tz: The time zone of the device, or its name.
        android_version: The version of Android, which decides whether there is a prompt for the permission.
        device_token: The native push token of the device.
        vendor: The vendor's profile, or only its word.

    Raises:
        ConfigError: The platform is invalid.
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

        self.platform: Final = platform
        self.channels: Final = Channels(platform)
        self.permissions: Final = Permissions(platform, android_version)
        self._app_state: AppState = "foreground"
        self.badge = 0
        """Number on the app icon."""
        self.history: list[Presented | Dropped] = []
        """All notifications that arrived, in order, shown or dropped."""
        self.last_response: NotificationResponse | None = None
        self._clock = clock
        self._tz = tz
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

    @property
    def app_state(self) -> AppState:
        """Where the app is: in the foreground, in the background or closed; tests set it."""
        return self._app_state

    @app_state.setter
    def app_state(self, state: AppState) -> None:
        states = get_args(AppState)
        if state not in states:
            raise ConfigError(unknown("app_state", state, states))

        self._app_state = state

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
        accepted = NotificationRequest.read(request, self.platform, str(uuid.uuid4()))
        category = accepted.content.category_identifier
        if category is not None and category not in self._categories:
            raise ConfigError(
                f"category {category!r} is not registered: call set_category first"
            )

        identifier = accepted.identifier
        # Also if the new one never fires, or arrives now.
        self._scheduled.pop(identifier, None)
        trigger = accepted.trigger
        if trigger is None or isinstance(trigger, ChannelTrigger):
            self._arrive(accepted, self._clock())
            return identifier

        date = next_trigger_date(
            trigger, self._clock(), self._zone(), platform=self.platform
        )
        if date is not None:
            self._scheduled[identifier] = _Scheduled(accepted, date)

        return identifier

    def scheduled(self) -> tuple[NotificationRequest, ...]:
        """Return the scheduled requests."""
        return tuple(scheduled.request for scheduled in self._scheduled.values())

    def cancel(self, identifier: str) -> None:
        """Cancel a scheduled notification."""
        self._scheduled.pop(identifier, None)

    def fire_due(self) -> list[Notification]:
        """Deliver all due notifications in order and return them. Raises ConfigError if more than 20,000 are due."""
        fired: list[Notification] = []
        now = milliseconds(self._clock())

        due = self._next_due(now)
        while due is not None:
            if len(fired) == MAX_FIRES:
                raise ConfigError(
                    f"more than {MAX_FIRES} notifications are due: advance the clock in smaller steps"
                )
            # Before it arrives: a listener may cancel it.
            self._schedule_next(due)
            fired.append(self._arrive(due.request, due.date))
            due = self._next_due(now)

        return fired

    def push(self, message: PushMessage | Mapping[str, Any]) -> Notification:
        """Deliver a push message. Raises ConfigError if the platform would not deliver it."""
        push_message = PushMessage.read(message)
        push_message.check(self.platform)

        remote_message = RemoteMessage(push_message.texts())
        request = NotificationRequest(
            str(uuid.uuid4()),
            NotificationContent.read(push_message.native()),
            UnknownTrigger(
                remote_message=remote_message, channel_id=push_message.channel_id
            ),
        )
        if not push_message.is_data_only:
            return self._arrive(request, self._clock())

        # Nothing is shown for a headless notification ("Notifications library", operations).
        notification = Notification(milliseconds(self._clock()), request)
        if self.app_state == "foreground":
            call_all(self._received, notification)
        else:
            call_all(self._tasks, push_message.data)

        return notification

    @property
    def shown(self) -> tuple[Presented, ...]:
        """All notifications shown so far, including dismissed ones."""
        return tuple(entry for entry in self.history if isinstance(entry, Presented))

    @property
    def dropped(self) -> tuple[Dropped, ...]:
        """Notifications that arrived but were not shown, with the reasons."""
        return tuple(entry for entry in self.history if isinstance(entry, Dropped))

    def presented(self) -> tuple[Presented, ...]:
        """Return the notifications that are currently in the notification list."""
        return tuple(self._in_list.values())

    def dismiss(self, identifier: str) -> None:
        """Remove a notification from the notification list."""
        self._in_list.pop(identifier, None)

    def tap(
        self, identifier: str, *, action: str | None = None, text: str | None = None
    ) -> NotificationResponse:
        """Tap a notification in the list or one of its actions, with the text the action asks for.

        Bring the app to the foreground unless the action opts out. Raises ConfigError for an unknown one.
        """
        presented = self._in_list.get(identifier)
        if presented is None:
            raise ConfigError(
                f"no notification {identifier!r} in the list, available: {list(self._in_list)}"
            )

        tapped = action_of(presented.actions, action, text)
        response = NotificationResponse(
            action or DEFAULT_ACTION_IDENTIFIER, presented.notification, text
        )
        self.dismiss(identifier)
        self.last_response = response

        was_closed = self.app_state == "closed"
        if tapped is None or tapped.options.opens_app_to_foreground:
            self.app_state = "foreground"
        # A closed app has no listeners yet: it reads last_response.
        if not was_closed:
            call_all(self._responded, response)

        return response

    def set_category(
        self,
        identifier: str,
        actions: Sequence[NotificationAction],
        options: Mapping[str, Any] | None = None,
    ) -> NotificationCategory:
        """Register or replace a category. Raises ConfigError for an action of another type."""
        checked = [
            instance_of(NotificationAction, "an action", action) for action in actions
        ]
        category = NotificationCategory(identifier, tuple(checked), options)
        self._categories[identifier] = category

        return category

    def get_permissions(self) -> NotificationPermissionsStatus:
        """Return the permission status."""
        return self.permissions.status

    def request_permissions(
        self, request: NotificationPermissionsRequest | None = None
    ) -> NotificationPermissionsStatus:
        """Prompt the user via ``permissions.answer``. On Android 13, no prompt appears before a channel exists."""
        has_channel = bool(self.channels.channels())

        return self.permissions.request(request, has_channel=has_channel)

    def get_device_push_token(self) -> DevicePushToken:
        """Return the device token. Raises NotificationError on Android 13 if no channel exists."""
        if self.permissions.needs_channel(has_channel=bool(self.channels.channels())):
            raise NotificationError(
                "no notification channel exists: on Android 13, set one before requesting a push token",
                code=NEEDS_CHANNEL,
            )

        return self._device_token

    def get_push_token(self, client: "httpx.Client", **options: Any) -> PushToken:
        """Request a push token; takes the other options of `PushTokenRequest` and raises the errors of its ``send``.

        The platform, the device token and the vendor's profile are those of the center.
        """
        request = PushTokenRequest(
            **options,
            platform=self.platform,
            device_push_token=self.get_device_push_token(),
            vendor=self._profile,
        )

        return request.send(client)

    def roll_device_token(self, data: str) -> DevicePushToken:
        """Replace the device token and notify the listeners."""
        self._device_token = DevicePushToken(data, self.platform)
        call_all(self._tokens, self._device_token)

        return self._device_token

    def _schedule_next(self, scheduled: _Scheduled) -> None:
        """Replace the date of a scheduled notification by the next one, if it has one."""
        request = scheduled.request
        del self._scheduled[request.identifier]
        next_date = after_fire(
            request.trigger, scheduled.date, self._zone(), platform=self.platform
        )
        if next_date is not None:
            self._scheduled[request.identifier] = _Scheduled(request, next_date)

    def _next_due(self, now: int) -> _Scheduled | None:
        """Return the earliest notification that is due; dates are compared in milliseconds, as apps see them."""
        due = [
            scheduled
            for scheduled in self._scheduled.values()
            if milliseconds(scheduled.date) <= now
        ]

        return min(due, key=_milliseconds_of, default=None)

    def _zone(self) -> tzinfo:
        if self._tz is not None:
            return zone_of(self._tz)

        now = self._clock()
        # Rejects a naive datetime.
        milliseconds(now)

        return zone_of(now.tzinfo)

    def _arrive(self, request: NotificationRequest, date: datetime) -> Notification:
        notification = Notification(milliseconds(date), request)
        # In the foreground and in the background ("Events"); a closed app has no listeners.
        if self.app_state != "closed":
            call_all(self._received, notification)

        outcome = self._presented_or_dropped(notification)
        self.history.append(outcome)
        if isinstance(outcome, Presented) and outcome.behavior.should_show_list:
            self._in_list[request.identifier] = outcome

        return notification

    def _presented_or_dropped(self, notification: Notification) -> Presented | Dropped:
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
        # Other platforms have no channels and ignore the ID of one.
        is_android = self.platform == "android"
        if channel and is_android and self.channels.channel(channel) is None:
            return Dropped(notification, f"the channel {channel!r} does not exist")
        if not behavior.should_show_banner and not behavior.should_show_list:
            return Dropped(
                notification,
                "the handler shows neither a banner nor an entry in the list",
            )

        # Of a pushed message, it need not be registered.
        category = self._categories.get(request.content.category_identifier or "")
        actions = category.actions if category else ()

        return Presented(notification, behavior, actions)


def _milliseconds_of(scheduled: _Scheduled) -> int:
    return milliseconds(scheduled.date)
