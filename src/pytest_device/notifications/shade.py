"""Notification lists of Android and iOS devices, read and used through an Appium driver as a user would.

The commands are those of Appium's drivers for both platforms. They are tested with recorded replies, not on devices.
"""

import json
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Protocol

from pytest_device.errors import ConfigError, ControllerError, hides_frames
from pytest_device.notifications.content import PushMessage
from pytest_device.notifications.lists import Shown, waited

__tracebackhide__ = hides_frames

_ANDROID: Final = "-android uiautomator"
_IOS: Final = "-ios predicate string"
_ANDROID_UI: Final = "com.android.systemui"
_IOS_UI: Final = "com.apple.springboard"
_REPLY: Final = f'resourceId("{_ANDROID_UI}:id/remote_input_text")'
_SEND: Final = f'resourceId("{_ANDROID_UI}:id/remote_input_send")'
_ROW: Final = "name == 'NotificationShortLookView'"
_CLEAR: Final = (
    "type == 'XCUIElementTypeButton' AND "
    "(name == 'swipe-action-button-identifier' OR name == 'Clear') AND label == 'Clear'"
)
TIMEOUT_SECONDS: Final = 5.0
"""Maximum seconds for an element of the list to appear or to disappear, as both systems animate the list."""


class Element(Protocol):
    """Interface of an element of an Appium driver."""

    @property
    def id(self) -> str: ...
    def click(self) -> Any: ...
    def send_keys(self, *value: str) -> Any: ...
    def get_attribute(self, name: str) -> Any: ...


class Screen(Protocol):
    """Interface of an Appium driver: scripts, elements, settings."""

    def execute_script(self, script: str, *arguments: Any) -> Any: ...
    def find_elements(self, by: str, value: str) -> Sequence[Element]: ...
    def update_settings(self, settings: dict[str, Any]) -> Any: ...
    def get_window_size(self) -> Mapping[str, int]: ...


@dataclass(frozen=True, slots=True)
class AndroidShade:
    """Notifications of an Android app: read by Appium's helper app, tapped and dismissed in the shade."""

    driver: Screen
    package: str
    timeout_seconds: float = TIMEOUT_SECONDS

    def shown(self) -> tuple[Shown, ...]:
        """Return the notifications of the app, oldest first."""
        reply = self.driver.execute_script("mobile: getNotifications")
        rows: list[Mapping[str, Any]] = reply["statusBarNotifications"]

        # Appium lists the newest first.
        return tuple(_of_android(row) for row in reversed(rows) if self._is_of_app(row))

    def answer(self, key: str, action: str | None, text: str | None) -> None:
        """Tap a notification, or the action with a title. Raises ControllerError."""
        title = self._with_key(key).title
        with self._open():
            if action is None:
                self._element(f"text({_quoted(title)})", title).click()
                return

            # The system may show the titles of actions in capitals.
            by_title = f"textMatches({_quoted('(?i)' + _escaped(action))})"
            self._element(by_title, f"{action} of {title}").click()
            if text is not None:
                self._element(_REPLY, f"text field of {action}").send_keys(text)
                self._element(_SEND, f"send button of {action}").click()

    def dismiss(self, key: str) -> None:
        """Swipe a notification away, and wait until it is gone. Raises ControllerError."""
        title = self._with_key(key).title
        with self._open():
            row = self._element(f"text({_quoted(title)})", title)
            swipe = {"elementId": row.id, "direction": "right", "percent": 0.9}
            self.driver.execute_script("mobile: swipeGesture", swipe)
            _wait_until(
                lambda: all(shown.key != key for shown in self.shown()),
                self.timeout_seconds,
                f"{title!r} is still shown: it can't be dismissed by a swipe",
            )

    def _is_of_app(self, row: Mapping[str, Any]) -> bool:
        if self.package not in ("", row["packageName"]):
            return False
        if row["isRemoved"]:
            return False

        # The summary of a group has no title of its own.
        return bool(_of_android(row).title)

    def _with_key(self, key: str) -> Shown:
        for shown in self.shown():
            if shown.key == key:
                return shown

        raise ControllerError(f"the notification {key!r} is no longer shown")

    @contextmanager
    def _open(self) -> Generator[None]:
        """Open the shade; close it, also after a failure and a tap that left it open."""
        self.driver.execute_script("mobile: openNotifications")
        try:
            yield
        finally:
            self.driver.execute_script("mobile: statusBar", {"command": "collapse"})

    def _element(self, selector: str, label: str) -> Element:
        of_shade = f'new UiSelector().packageName("{_ANDROID_UI}").{selector}'

        return _first(self.driver, _ANDROID, of_shade, label, self.timeout_seconds)


@dataclass(frozen=True, slots=True)
class IosCenter:
    """Notification center of an iOS device.

    Its rows are texts, in which titles and bodies cannot be told apart, except those of messages that were sent.
    """

    driver: Screen
    sent: Sequence[PushMessage] = ()
    timeout_seconds: float = TIMEOUT_SECONDS

    def shown(self) -> tuple[Shown, ...]:
        """Return the notifications in the center, oldest first."""
        with self._open():
            return tuple(self._read(row) for row in reversed(self._rows()))

    def answer(self, key: str, action: str | None, text: str | None) -> None:
        """Tap a notification, or the action with a title. Raises ControllerError."""
        if text is not None:
            raise ConfigError(
                "a text can't be entered in a notification on iOS: use the driver"
            )

        with self._open(tap_closes=action is None):
            row = self._row(key)
            if action is None:
                row.click()
                return

            # iOS shows the actions of a notification that is held.
            hold = {"elementId": row.id, "duration": 1.0}
            self.driver.execute_script("mobile: touchAndHold", hold)
            by_title = (
                f"type == 'XCUIElementTypeButton' AND label == {_predicate(action)}"
            )
            self._element(by_title, f"{action} of {key}").click()

    def dismiss(self, key: str) -> None:
        """Swipe a notification and clear it, and wait until it is gone. Raises ControllerError."""
        with self._open():
            swipe = {"elementId": self._row(key).id, "direction": "left"}
            self.driver.execute_script("mobile: swipe", swipe)
            self._element(_CLEAR, f"clear button of {key}").click()
            _wait_until(
                lambda: all(_label(other) != key for other in self._rows()),
                self.timeout_seconds,
                f"{key!r} is still shown",
            )

    def _read(self, row: Element) -> Shown:
        label = _label(row)
        # The newest first: of equal messages, its data are those of the row.
        for message in reversed(self.sent):
            title = message.title
            body = message.body or ""
            if title and title in label and body in label:
                return Shown(label, title, body, dict(message.data))

        return Shown(label, label)

    def _rows(self) -> Sequence[Element]:
        return self.driver.find_elements(_IOS, _ROW)

    def _row(self, key: str) -> Element:
        return self._element(f"{_ROW} AND label == {_predicate(key)}", key)

    @contextmanager
    def _open(self, *, tap_closes: bool = False) -> Generator[None]:
        """Open the center over the app; close it, also after a failure, unless a tap has closed it."""
        # The center belongs to the system's own process, whose elements the app's tree does not have.
        self.driver.update_settings({"defaultActiveApplication": _IOS_UI})
        is_open = True
        try:
            self._drag(0.0, 0.9)
            yield
            is_open = not tap_closes
        finally:
            if is_open:
                self._drag(1.0, 0.1)
            self.driver.update_settings({"defaultActiveApplication": "auto"})

    def _drag(self, start: float, end: float) -> None:
        """Drag along the middle of the screen; the heights are from 0 (top) to 1."""
        size = self.driver.get_window_size()
        x = size["width"] / 2
        height = size["height"] - 1
        drag = {"fromX": x, "fromY": start * height, "toX": x, "toY": end * height}
        self.driver.execute_script(
            "mobile: dragFromToForDuration", {"duration": 0.5, **drag}
        )

    def _element(self, predicate: str, label: str) -> Element:
        return _first(self.driver, _IOS, predicate, label, self.timeout_seconds)


def _of_android(row: Mapping[str, Any]) -> Shown:
    texts: Mapping[str, str | None] = row["notification"]

    return Shown(
        row["key"],
        texts.get("title") or texts.get("bigTitle") or "",
        texts.get("text") or texts.get("bigText") or "",
        tag=row.get("tag") or "",
    )


def _first(
    driver: Screen, by: str, value: str, label: str, timeout_seconds: float
) -> Element:
    """Return the first element; the list may still be moving."""
    elements: list[Element] = []

    def is_there() -> bool:
        elements.extend(driver.find_elements(by, value))

        return bool(elements)

    _wait_until(
        is_there,
        timeout_seconds,
        f"{label!r} is not in the notification list of the screen",
    )

    return elements[0]


def _wait_until(
    condition: Callable[[], bool], timeout_seconds: float, problem: str
) -> None:
    try:
        waited(lambda: condition() or None, timeout_seconds, lambda: problem)
    except TimeoutError as error:
        raise ControllerError(str(error)) from None


def _label(row: Element) -> str:
    return str(row.get_attribute("label"))


def _quoted(text: str) -> str:
    """Quote a text for a selector, which is Java source."""
    return json.dumps(text)


def _escaped(text: str) -> str:
    """Escape a text for a regular expression of Java."""
    return re.sub(r"([\\.^$|?*+()\[\]{}])", r"\\\1", text)


def _predicate(text: str) -> str:
    """Quote a text for a predicate of Apple's Foundation."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
