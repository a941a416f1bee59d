"""Notification lists of Android and iOS devices, read and used through an Appium driver as a user would.

The commands are those of Appium's drivers for both platforms. They are tested with recorded replies, not on devices.
"""

import json
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

from pytest_device.errors import ConfigError, ControllerError, hides_frames
from pytest_device.notifications.content import PushMessage
from pytest_device.notifications.lists import Shown, waited

__tracebackhide__ = hides_frames

_T = TypeVar("_T")
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
"""How long an element of the list may take to appear or to go."""


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
        found = self.driver.execute_script("mobile: getNotifications")
        rows: list[Mapping[str, Any]] = found["statusBarNotifications"]
        return tuple(_of_android(one) for one in reversed(rows) if self._is_of_app(one))

    def answer(self, key: str, action: str | None, text: str | None) -> None:
        """Tap a notification, or the action with a title. Raises ControllerError."""
        one = self._with_key(key)
        with self._open():
            if action is None:
                self._found(f"text({_quoted(one.title)})", one.title).click()
                return
            by_title = f"textMatches({_quoted('(?i)' + _escaped(action))})"
            self._found(by_title, f"{action} of {one.title}").click()
            if text is not None:
                self._found(_REPLY, f"text field of {action}").send_keys(text)
                self._found(_SEND, f"send button of {action}").click()

    def dismiss(self, key: str) -> None:
        """Swipe a notification away, and wait until it is gone. Raises ControllerError."""
        one = self._with_key(key)
        with self._open():
            row = self._found(f"text({_quoted(one.title)})", one.title)
            swipe = {"elementId": row.id, "direction": "right", "percent": 0.9}
            self.driver.execute_script("mobile: swipeGesture", swipe)
            _until(
                lambda: all(one.key != key for one in self.shown()) or None,
                self.timeout_seconds,
                f"{one.title!r} is still shown: it can't be dismissed by a swipe",
            )

    def _is_of_app(self, one: Mapping[str, Any]) -> bool:
        is_of_app = self.package in ("", one["packageName"])
        # The summary of a group has no title of its own.
        return is_of_app and not one["isRemoved"] and bool(_of_android(one).title)

    def _with_key(self, key: str) -> Shown:
        for one in self.shown():
            if one.key == key:
                return one
        raise ControllerError(f"the notification {key!r} is no longer shown")

    @contextmanager
    def _open(self) -> Generator[None]:
        """Open the shade; close it, also after a failure and a tap that left it open."""
        self.driver.execute_script("mobile: openNotifications")
        try:
            yield
        finally:
            self.driver.execute_script("mobile: statusBar", {"command": "collapse"})

    def _found(self, selector: str, what: str) -> Element:
        of_shade = f'new UiSelector().packageName("{_ANDROID_UI}").{selector}'
        return _first(self.driver, _ANDROID, of_shade, what, self.timeout_seconds)


@dataclass(frozen=True, slots=True)
class IosCenter:
    """Notification center of an iOS device; its rows are texts, from which only the sent messages are told apart."""

    driver: Screen
    sent: Sequence[PushMessage] = ()
    timeout_seconds: float = TIMEOUT_SECONDS

    def shown(self) -> tuple[Shown, ...]:
        """Return the notifications in the center, oldest first."""
        with self._open():
            return tuple(self._read(one) for one in reversed(self._rows()))

    def answer(self, key: str, action: str | None, text: str | None) -> None:
        """Tap a notification, or the action with a title. Raises ControllerError."""
        if text is not None:
            raise ConfigError(
                "a text can't be entered in a notification on iOS: use the driver"
            )
        with self._open(stays=action is None):
            row = self._row(key)
            if action is None:
                row.click()
                return
            held = {"elementId": row.id, "duration": 1.0}
            self.driver.execute_script("mobile: touchAndHold", held)
            by_title = (
                f"type == 'XCUIElementTypeButton' AND label == {_predicate(action)}"
            )
            self._found(by_title, f"{action} of {key}").click()

    def dismiss(self, key: str) -> None:
        """Swipe a notification and clear it, and wait until it is gone. Raises ControllerError."""
        with self._open():
            swipe = {"elementId": self._row(key).id, "direction": "left"}
            self.driver.execute_script("mobile: swipe", swipe)
            self._found(_CLEAR, f"clear button of {key}").click()
            _until(
                lambda: all(_label(one) != key for one in self._rows()) or None,
                self.timeout_seconds,
                f"{key!r} is still shown",
            )

    def _read(self, row: Element) -> Shown:
        label = _label(row)
        for one in reversed(self.sent):
            if one.title and one.title in label and (one.body or "") in label:
                return Shown(label, one.title, one.body or "", dict(one.data))
        return Shown(label, label)

    def _rows(self) -> Sequence[Element]:
        return self.driver.find_elements(_IOS, _ROW)

    def _row(self, key: str) -> Element:
        label = f"{_ROW} AND label == {_predicate(key)}"
        return self._found(label, key)

    @contextmanager
    def _open(self, *, stays: bool = False) -> Generator[None]:
        """Open the center over the app; close it, also after a failure, unless a tap has closed it."""
        self.driver.update_settings({"defaultActiveApplication": _IOS_UI})
        closes = True
        try:
            self._drag(0.0, 0.9)
            yield
            closes = not stays
        finally:
            if closes:
                self._drag(1.0, 0.1)
            self.driver.update_settings({"defaultActiveApplication": "auto"})

    def _drag(self, start: float, end: float) -> None:
        size = self.driver.get_window_size()
        x, height = size["width"] / 2, size["height"] - 1
        drag = {"fromX": x, "fromY": start * height, "toX": x, "toY": end * height}
        self.driver.execute_script(
            "mobile: dragFromToForDuration", {"duration": 0.5, **drag}
        )

    def _found(self, predicate: str, what: str) -> Element:
        return _first(self.driver, _IOS, predicate, what, self.timeout_seconds)


def _of_android(one: Mapping[str, Any]) -> Shown:
    texts: Mapping[str, str | None] = one["notification"]
    return Shown(
        one["key"],
        texts.get("title") or texts.get("bigTitle") or "",
        texts.get("text") or texts.get("bigText") or "",
        tag=one.get("tag") or "",
    )


def _first(
    driver: Screen, by: str, value: str, what: str, timeout_seconds: float
) -> Element:
    """Return the first element; the list may still be moving."""
    return _until(
        lambda: next(iter(driver.find_elements(by, value)), None),
        timeout_seconds,
        f"{what!r} is not in the notification list of the screen",
    )


def _until(find: Callable[[], _T | None], seconds: float, problem: str) -> _T:
    try:
        return waited(find, seconds, lambda: problem)
    except TimeoutError as error:
        raise ControllerError(str(error)) from None


def _label(row: Element) -> str:
    return str(row.get_attribute("label"))


def _quoted(text: str) -> str:
    """Quote a text for a selector, which is Java source."""
    return json.dumps(text)


def _escaped(text: str) -> str:
    return re.sub(r"([\\.^$|?*+()\[\]{}])", r"\\\1", text)


def _predicate(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
