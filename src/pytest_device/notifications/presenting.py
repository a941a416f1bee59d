"""Presentation of a notification: handler decisions, results and listeners."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Generic, TypeVar

from pytest_device.errors import ConfigError, hides_frames
from pytest_device.notifications.content import (
    Notification,
    NotificationAction,
    NotificationBehavior,
    NotificationHandler,
)
from pytest_device.notifications.errors import NotificationError

__tracebackhide__ = hides_frames

NOT_HANDLED: Final = "ERR_NOTIFICATIONS_NOT_HANDLED"
IN_BACKGROUND: Final = NotificationBehavior(
    should_play_sound=True,
    should_set_badge=True,
    should_show_banner=True,
    should_show_list=True,
)
"""Behavior outside of the foreground, where the system presents the notification and no handler is called."""

_T = TypeVar("_T")


class Subscription(Generic[_T]):
    """Registered listener."""

    def __init__(
        self, listeners: "list[Subscription[_T]]", call: Callable[[_T], object]
    ) -> None:
        self._listeners = listeners
        self.call = call
        listeners.append(self)

    def remove(self) -> None:
        """Remove the listener."""
        if self in self._listeners:
            self._listeners.remove(self)


@dataclass(frozen=True, slots=True)
class Presented:
    """Notification that was shown, with its behavior and the actions of its category."""

    notification: Notification
    behavior: NotificationBehavior
    actions: tuple[NotificationAction, ...] = ()

    @property
    def identifier(self) -> str:
        return self.notification.request.identifier


@dataclass(frozen=True, slots=True)
class Dropped:
    """Notification that was not shown, with the reason."""

    notification: Notification
    reason: str


def decided(
    handler: NotificationHandler | None,
    notification: Notification,
    clock: Callable[[], datetime],
    timeout_seconds: float,
) -> NotificationBehavior | str:
    """Return the handler's decision, or the reason why the notification is not shown in the foreground.

    Raises the handler's error if there is no ``handle_error``.
    """
    if handler is None:
        return "the app is in the foreground and has no handler"

    identifier = notification.request.identifier
    # By the clock of the test, which advances it instead of waiting.
    begin = clock()
    try:
        behavior = handler.handle_notification(notification)
        _check(behavior, (clock() - begin).total_seconds(), timeout_seconds)
    except Exception as error:
        # The handler is the test's own code: an error that it does not handle fails the test.
        if handler.handle_error is None:
            raise
        handler.handle_error(identifier, error)
        return f"the handler failed: {error}"

    if handler.handle_success:
        handler.handle_success(identifier)

    return behavior


def _check(behavior: object, seconds: float, max_seconds: float) -> None:
    if seconds > max_seconds:
        raise NotificationError(
            f"the handler timed out: it took {seconds:g} s (maximum {max_seconds:g} s)",
            code=NOT_HANDLED,
        )
    if not isinstance(behavior, NotificationBehavior):
        raise NotificationError(
            "the handler must return a NotificationBehavior", code=NOT_HANDLED
        )


def call_all(listeners: list[Subscription[_T]], value: _T) -> None:
    """Call each listener, even if a listener removes another one."""
    for listener in list(listeners):
        listener.call(value)


def action_of(
    actions: Sequence[NotificationAction], action: str | None, text: str | None
) -> NotificationAction | None:
    """Return the action, or None for a tap. Raises ConfigError for an unknown action or missing or extra text."""
    if action is None:
        if text is not None:
            raise ConfigError("a tap takes no text")
        return None

    by_identifier = {available.identifier: available for available in actions}
    if action not in by_identifier:
        raise ConfigError(
            f"the notification has no action {action!r}, only {list(by_identifier)}"
        )

    tapped = by_identifier[action]
    if tapped.text_input is not None and text is None:
        raise ConfigError(f"action {action!r} needs text")
    if tapped.text_input is None and text is not None:
        raise ConfigError(f"action {action!r} takes no text")

    return tapped
