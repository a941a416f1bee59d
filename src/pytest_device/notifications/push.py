"""Delivers push messages to the app under test, by what reaches its device."""

import json
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar, cast
from urllib.parse import urlsplit

from pytest_device.errors import ConfigError
from pytest_device.notifications.content import PushMessage
from pytest_device.notifications.triggers import Platform

_T = TypeVar("_T")
POLL_SECONDS: Final = 0.05
LOCAL_SCRIPT: Final = "mobile: localNotifications"
"""The door of the local device's own notification center."""


@dataclass(frozen=True, slots=True)
class PushDevice:
    """A device to deliver to: ``application_id`` is the bundle identifier or package of the app, empty if unknown."""

    platform: Platform
    name: str
    application_id: str = ""

    def refuse(self, reason: str) -> ConfigError:
        """Return the error for what the device cannot do. Nothing was sent."""
        return ConfigError(f"{self.name}: {reason}")


class PushDelivery(Protocol):
    """A way to deliver messages."""

    def deliver(self, message: PushMessage, device: PushDevice) -> None:
        """Deliver a message. Raises ConfigError before anything is sent if the device cannot receive it."""
        ...


class Script(Protocol):
    """An Appium driver: it executes scripts."""

    def execute_script(self, script: str, *arguments: Any) -> Any: ...


class Commands(Protocol):
    """A client of agent-device: it executes commands."""

    def command(self, command: str, *positionals: str) -> Mapping[str, Any]: ...


@dataclass(frozen=True, slots=True)
class Shown:
    """A notification in the list of a device."""

    key: str
    title: str
    body: str = ""
    data: Any = None
    actions: tuple[str, ...] = ()
    tag: str = ""


def apns_payload(message: PushMessage) -> dict[str, Any]:
    """Return a message as Apple's push service takes it; ``data`` stands beside ``aps``."""
    alert = {"title": message.title, "body": message.body}
    aps = {
        "alert": {name: text for name, text in alert.items() if text is not None},
        "sound": "default" if message.sound is True else message.sound,
        "category": message.category_identifier,
        "interruption-level": message.interruption_level and _INTERRUPTIONS[message.interruption_level],
        "content-available": 1 if message.content_available else None,
    }
    return {"aps": {name: value for name, value in aps.items() if value}, **message.data}


_INTERRUPTIONS: Final = {
    "passive": "passive", "active": "active", "timeSensitive": "time-sensitive", "critical": "critical",
}  # fmt: skip


def broadcast_extras(message: PushMessage) -> dict[str, Any]:
    """Return a message as the extras of a broadcast on Android: texts, and ``data`` as JSON."""
    return message.native() | {"data": json.dumps(dict(message.data))}


@dataclass(frozen=True, slots=True)
class AgentDevicePush:
    """Delivers by agent-device's command ``push``: to iOS simulators, and to a receiver of the app on Android.

    Not tried on phones.
    """

    client: Commands
    action: str | None = None
    receiver: str | None = None

    def deliver(self, message: PushMessage, device: PushDevice) -> None:
        """Deliver a message."""
        _check_app(device)
        payload = apns_payload(message)
        if device.platform == "android":
            given = {"action": self.action, "receiver": self.receiver, "extras": broadcast_extras(message)}
            payload = {name: value for name, value in given.items() if value is not None}
        self.client.command("push", device.application_id, json.dumps(payload))


@dataclass(frozen=True, slots=True)
class AppiumPush:
    """Delivers by Appium's ``mobile: pushNotification``, which iOS simulators alone have. Not tried on phones."""

    driver: Script

    def deliver(self, message: PushMessage, device: PushDevice) -> None:
        """Deliver a message."""
        if device.platform != "ios":
            raise device.refuse("Appium delivers push messages to iOS simulators only: use device_push_delivery")
        _check_app(device)
        arguments = {"bundleId": device.application_id, "payload": apns_payload(message)}
        self.driver.execute_script("mobile: pushNotification", arguments)


def _run(command: Sequence[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)  # noqa: S603  # adb
    except (OSError, subprocess.SubprocessError) as error:
        raise ConfigError(f"{' '.join(command[:4])} failed: {error}") from None
    return done.stdout


@dataclass(frozen=True, slots=True)
class AdbPush:
    """Delivers by a broadcast of ``adb`` to a receiver of the app on an emulator. Not tried on phones.

    ``run`` executes a command and returns its output.
    """

    serial: str
    action: str
    receiver: str | None = None
    run: Callable[[Sequence[str]], str] = _run

    def deliver(self, message: PushMessage, device: PushDevice) -> None:
        """Deliver a message, once a probe has found the emulator."""
        if device.platform != "android":
            raise device.refuse("adb reaches Android only")
        _check_app(device)
        if self._adb("get-state").strip() != "device" or self._adb("shell", "getprop", "ro.kernel.qemu").strip() != "1":
            raise device.refuse(f"no emulator {self.serial} answers adb")
        target = ["-n", f"{device.application_id}/{self.receiver}"] if self.receiver else ["-p", device.application_id]
        extras = [word for name, value in broadcast_extras(message).items() for word in ("--es", name, _quoted(value))]
        self._adb("shell", "am", "broadcast", "-a", self.action, *target, *extras)

    def _adb(self, *words: str) -> str:
        return self.run(["adb", "-s", self.serial, *words])


def _quoted(value: object) -> str:
    """Return a value quoted for the shell of the device, through which adb passes all words."""
    text = value if isinstance(value, str) else json.dumps(value)
    return "'" + text.replace("'", "'\\''") + "'"


@dataclass(frozen=True, slots=True)
class CallablePush:
    """Delivers by a function of the suite, such as a request to its own back end."""

    function: Callable[[PushMessage, PushDevice], object]

    def deliver(self, message: PushMessage, device: PushDevice) -> None:
        """Call the function."""
        self.function(message, device)


@dataclass(frozen=True, slots=True)
class LocalPush:
    """Delivers a web push to the service worker of an app on the local device, and answers what it shows.

    The worker gets the message as JSON in the document's spelling.
    """

    driver: Script

    def deliver(self, message: PushMessage, device: PushDevice) -> None:
        """Deliver a message."""
        app = {"appId": device.application_id} if device.application_id else {}
        self._do("push", data=json.dumps(message.native()), **app)

    def shown(self) -> tuple[Shown, ...]:
        """Return the list of notifications, the oldest first."""
        return tuple(_shown(one) for one in self._list()["shown"])

    def address(self) -> str:
        """Return the address of the page in front."""
        return str(self._list()["address"])

    def answer(self, key: str, action: str | None, text: str | None) -> None:
        """Tap a notification or an action. Raises ControllerError."""
        given = {"action": action, "text": text}
        self._do("answer", key=key, **{name: value for name, value in given.items() if value is not None})

    def dismiss(self, key: str) -> None:
        """Remove a notification from the list."""
        self._do("dismiss", key=key)

    def _list(self) -> Mapping[str, Any]:
        return cast("Mapping[str, Any]", self._do("list"))

    def _do(self, what: str, **arguments: object) -> object:
        return self.driver.execute_script(LOCAL_SCRIPT, {"do": what, **arguments})


def _shown(one: Mapping[str, Any]) -> Shown:
    options: Mapping[str, Any] = one["options"]
    actions = tuple(str(action["action"]) for action in options.get("actions", ()))
    return Shown(
        one["key"], one["title"], options.get("body", ""), options.get("data"), actions, options.get("tag", "")
    )


def _check_app(device: PushDevice) -> None:
    if not device.application_id:
        raise device.refuse("which app receives the message is unknown: pass application_id")


@dataclass(frozen=True, slots=True)
class DevicePush:
    """The push messages of one test: sends them, and answers what the device shows."""

    delivery: PushDelivery | None
    device: PushDevice
    reason: str = "it cannot receive push messages: use device_push_delivery"
    """Why nothing is delivered without a delivery."""

    def send(self, message: PushMessage | Mapping[str, Any], *, application_id: str | None = None) -> PushMessage:
        """Deliver a message. Raises ConfigError before anything is sent for one that the device does not receive."""
        known = PushMessage.read(message)
        known.check(self.device.platform)
        if self.delivery is None:
            raise self.device.refuse(self.reason)
        to = PushDevice(self.device.platform, self.device.name, application_id or self.device.application_id)
        self.delivery.deliver(known, to)
        return known

    def wait_shown(self, title: str | None = None, *, timeout_seconds: float = 10.0) -> Shown:
        """Return the newest notification, with a title if given, once it is shown. Raises TimeoutError."""
        local = self._local()

        def find() -> Shown | None:
            return next((one for one in reversed(local.shown()) if title in (None, one.title)), None)

        what = f"no notification {title!r}" if title else "no notification"
        return _waited(find, timeout_seconds, lambda: f"{what}, but {[one.title for one in local.shown()]} was shown")

    def wait_opened(self, path: str, *, timeout_seconds: float = 10.0) -> str:
        """Return the address in front once it is at a path, such as that of a deep link. Raises TimeoutError."""
        local = self._local()

        def find() -> str | None:
            address = local.address()
            return address if urlsplit(address)._replace(scheme="", netloc="").geturl() == path else None

        return _waited(find, timeout_seconds, lambda: f"{path} was not opened; in front is {local.address()[:200]}")

    def tap(self, notification: Shown | None = None, *, action: str | None = None, text: str | None = None) -> None:
        """Tap a notification, the newest by default, or one of its actions with its text."""
        local = self._local()
        local.answer((notification or self.wait_shown()).key, action, text)

    def dismiss(self, notification: Shown | None = None) -> None:
        """Remove a notification, the newest by default, from the list."""
        local = self._local()
        local.dismiss((notification or self.wait_shown()).key)

    def _local(self) -> LocalPush:
        if not isinstance(self.delivery, LocalPush):
            reason = "its list of notifications cannot be read: only that of the local device over Appium can"
            raise self.device.refuse(reason)
        return self.delivery


def _waited(find: Callable[[], _T | None], timeout_seconds: float, problem: Callable[[], str]) -> _T:
    deadline = time.monotonic() + timeout_seconds
    while (found := find()) is None:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{problem()} within {timeout_seconds:g} s")
        time.sleep(POLL_SECONDS)
    return found
