"""Push delivery to the app under test, via its controller or code of the suite."""

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol, TypeAlias, cast
from urllib.parse import urlsplit

from pytest_device.errors import ConfigError, hides_frames
from pytest_device.notifications.content import PushMessage
from pytest_device.notifications.lists import NotificationList, Shown, waited
from pytest_device.notifications.triggers import Platform

__tracebackhide__ = hides_frames

LOCAL_SCRIPT: Final = "mobile: localNotifications"
"""Appium script that controls the notification center of the local device."""


@dataclass(frozen=True, slots=True)
class PushDevice:
    """Target device; ``application_id`` is the bundle ID or package of the app, empty if unknown."""

    platform: Platform
    name: str
    application_id: str = ""

    def refuse(self, reason: str) -> ConfigError:
        """Return the error for a request that the device does not support."""
        return ConfigError(f"{self.name}: {reason}")


class PushDelivery(Protocol):
    """Transport for push messages."""

    def deliver(self, message: PushMessage, device: PushDevice) -> None:
        """Deliver a message. Raises ConfigError, before sending anything, if the device can't receive it."""
        ...


Deliver: TypeAlias = Callable[[PushMessage, PushDevice], object]
"""Function of the suite that delivers a message, for example with a request to its back end."""


class Script(Protocol):
    """Interface of an Appium driver: script execution."""

    def execute_script(self, script: str, *arguments: Any) -> Any: ...


class Commands(Protocol):
    """Interface of an agent-device client: command execution."""

    def command(self, command: str, *positionals: str) -> Mapping[str, Any]: ...


def apns_payload(message: PushMessage) -> dict[str, Any]:
    """Return the APNs payload of a message; the entries of ``data`` are siblings of ``aps``."""
    alert: dict[str, str] = {}
    if message.title is not None:
        alert["title"] = message.title
    if message.body is not None:
        alert["body"] = message.body

    level = message.interruption_level
    aps = {
        "alert": alert,
        "sound": "default" if message.sound is True else message.sound,
        "category": message.category_identifier,
        # The document's word differs from that of APNs.
        "interruption-level": "time-sensitive" if level == "timeSensitive" else level,
        "content-available": 1 if message.content_available else None,
    }

    # For APNs, a missing key turns a feature off: without alert, a message shows nothing.
    return {
        "aps": {name: value for name, value in aps.items() if value},
        **message.data,
    }


def broadcast_extras(message: PushMessage) -> dict[str, Any]:
    """Return the extras of an Android broadcast: the message's fields, and ``data`` as JSON."""
    return message.native() | {"data": json.dumps(dict(message.data))}


@dataclass(frozen=True, slots=True)
class AgentDevicePush:
    """Delivery via agent-device's ``push`` command, to iOS simulators or a broadcast receiver of an Android app.

    Not tested on physical devices.
    """

    client: Commands
    action: str | None = None
    receiver: str | None = None

    def deliver(self, message: PushMessage, device: PushDevice) -> None:
        """Deliver a message."""
        _check_app(device)
        is_android = device.platform == "android"
        payload = self._broadcast(message) if is_android else apns_payload(message)
        self.client.command("push", device.application_id, json.dumps(payload))

    def _broadcast(self, message: PushMessage) -> dict[str, Any]:
        broadcast: dict[str, Any] = {"extras": broadcast_extras(message)}
        if self.action is not None:
            broadcast["action"] = self.action
        if self.receiver is not None:
            broadcast["receiver"] = self.receiver

        return broadcast


@dataclass(frozen=True, slots=True)
class AppiumPush:
    """Delivery via Appium: a broadcast to a receiver of an Android app, or a simulated push to an iOS simulator.

    ``action`` is that of the receiver, and ``receiver`` its class if it is not exported under the action. Tested with
    recorded replies, not on devices.
    """

    driver: Script
    action: str = ""
    receiver: str = ""

    def deliver(self, message: PushMessage, device: PushDevice) -> None:
        """Deliver a message."""
        if device.platform == "android" and not self.action:
            raise device.refuse(
                "Android apps get broadcasts under an action of their own: return "
                "AppiumPush(device_driver, action=…) from device_push_delivery"
            )
        _check_app(device)
        if device.platform == "android":
            self._broadcast(message, device.application_id)
            return

        arguments = {
            "bundleId": device.application_id,
            "payload": apns_payload(message),
        }
        self.driver.execute_script("mobile: pushNotification", arguments)

    def _broadcast(self, message: PushMessage, package: str) -> None:
        extras = [
            ["s", shlex.quote(name), _quoted(value)]
            for name, value in broadcast_extras(message).items()
        ]
        broadcast: dict[str, Any] = {"action": self.action, "extras": extras}
        if self.receiver:
            broadcast["component"] = f"{package}/{self.receiver}"
        else:
            broadcast["package"] = package
        self.driver.execute_script("mobile: broadcast", broadcast)


def _quoted(value: object) -> str:
    """Quote a value for the device's shell, to which Appium passes the whole command. Raises ConfigError."""
    text = value if isinstance(value, str) else json.dumps(value)
    if "\0" in text:
        raise ConfigError(
            "the message has a zero byte, which no argument of a command can contain: remove it"
        )

    return "'" + text.replace("'", "'\\''") + "'"


@dataclass(frozen=True, slots=True)
class LocalPush:
    """Delivery via Web Push to the service worker of an app on the local device; also controls its notifications.

    The worker receives the message as JSON with the documented names.
    """

    driver: Script

    def deliver(self, message: PushMessage, device: PushDevice) -> None:
        """Deliver a message."""
        arguments = {"data": json.dumps(message.native())}
        if device.application_id:
            arguments["appId"] = device.application_id
        self._do("push", **arguments)

    def shown(self) -> tuple[Shown, ...]:
        """Return the notification list, oldest first."""
        return tuple(_shown(notification) for notification in self._list()["shown"])

    def address(self) -> str:
        """Return the URL of the page in front."""
        return str(self._list()["address"])

    def answer(self, key: str, action: str | None, text: str | None) -> None:
        """Tap a notification or an action. Raises ControllerError."""
        arguments = {"key": key}
        if action is not None:
            arguments["action"] = action
        if text is not None:
            arguments["text"] = text
        self._do("answer", **arguments)

    def dismiss(self, key: str) -> None:
        """Dismiss a notification."""
        self._do("dismiss", key=key)

    def _list(self) -> Mapping[str, Any]:
        return cast("Mapping[str, Any]", self._do("list"))

    def _do(self, operation: str, **arguments: object) -> object:
        return self.driver.execute_script(LOCAL_SCRIPT, {"do": operation, **arguments})


def _shown(notification: Mapping[str, Any]) -> Shown:
    options: Mapping[str, Any] = notification["options"]
    actions = [str(action["action"]) for action in options.get("actions", ())]

    return Shown(
        notification["key"],
        notification["title"],
        options.get("body", ""),
        options.get("data"),
        tuple(actions),
        options.get("tag", ""),
    )


def _check_app(device: PushDevice) -> None:
    if not device.application_id:
        raise device.refuse(
            "the app to receive the message is unknown: pass application_id"
        )


@dataclass(frozen=True, slots=True)
class DevicePush:
    """Push client of one test; also controls the notifications that the device shows."""

    delivery: PushDelivery | Deliver | None
    device: PushDevice
    reason: str = "it cannot receive push messages: use device_push_delivery"
    """Reason reported when ``delivery`` is None."""
    list_of: Callable[[Sequence[PushMessage]], NotificationList] | None = None
    """Returns the device's notification list, for the messages sent so far; None if it can't be read."""
    _sent: list[PushMessage] = field(
        default_factory=list[PushMessage], init=False, repr=False
    )

    def send(
        self,
        message: PushMessage | Mapping[str, Any],
        *,
        application_id: str | None = None,
    ) -> PushMessage:
        """Send a message. Raises ConfigError, before sending anything, if the device can't receive it."""
        push_message = PushMessage.read(message)
        push_message.check(self.device.platform)
        if self.delivery is None:
            raise self.device.refuse(self.reason)

        target = self.device
        if application_id:
            target = replace(target, application_id=application_id)
        deliver = self.delivery if callable(self.delivery) else self.delivery.deliver
        deliver(push_message, target)
        # Only what was delivered: the rows of an iOS device are compared with it.
        self._sent.append(push_message)

        return push_message

    def shown(self) -> tuple[Shown, ...]:
        """Return the notifications that the device shows, oldest first."""
        return self._list().shown()

    def wait_shown(
        self, title: str | None = None, *, timeout_seconds: float = 10.0
    ) -> Shown:
        """Wait for a notification, optionally with a title, and return the newest. Raises TimeoutError."""
        notifications = self._list()

        def newest() -> Shown | None:
            for notification in reversed(notifications.shown()):
                if title in (None, notification.title):
                    return notification

            return None

        def problem() -> str:
            awaited = f"no notification {title!r}" if title else "no notification"
            titles = [notification.title for notification in notifications.shown()]

            return f"{awaited}, shown: {titles}"

        return waited(newest, timeout_seconds, problem)

    def wait_opened(self, path: str, *, timeout_seconds: float = 10.0) -> str:
        """Wait until the page in front is at a path, such as a deep link's, and return its URL. Raises TimeoutError."""
        local = self._local()

        def address_if_opened() -> str | None:
            address = local.address()
            opened = urlsplit(address)._replace(scheme="", netloc="").geturl()

            return address if opened == path else None

        return waited(
            address_if_opened,
            timeout_seconds,
            lambda: f"{path} was not opened, current page: {local.address()[:200]}",
        )

    def tap(
        self,
        notification: Shown | None = None,
        *,
        action: str | None = None,
        text: str | None = None,
    ) -> None:
        """Tap a notification, by default the newest, or one of its actions, entering text if the action takes it.

        ``action`` is an identifier on the local device, and the title of a button on Android and iOS.
        """
        key = (notification or self.wait_shown()).key
        self._list().answer(key, action, text)

    def dismiss(self, notification: Shown | None = None) -> None:
        """Dismiss a notification, by default the newest."""
        key = (notification or self.wait_shown()).key
        self._list().dismiss(key)

    def _list(self) -> NotificationList:
        if isinstance(self.delivery, LocalPush):
            return self.delivery
        if self.list_of is None:
            raise self.device.refuse("reading notifications requires an Appium session")

        return self.list_of(self._sent)

    def _local(self) -> LocalPush:
        if not isinstance(self.delivery, LocalPush):
            raise self.device.refuse(
                "only the local device reports which page is open: check the screen with the driver"
            )

        return self.delivery
