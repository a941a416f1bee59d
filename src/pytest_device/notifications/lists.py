"""Lists of notifications on devices: what a device shows, and how a user responds."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

from pytest_device.errors import hides_frames

__tracebackhide__ = hides_frames

_T = TypeVar("_T")
POLL_SECONDS: Final = 0.05


@dataclass(frozen=True, slots=True)
class Shown:
    """Notification in the notification list of a device.

    ``key`` identifies it in calls of the list. ``data``, ``actions`` and ``tag`` are empty where a device does not
    show them.
    """

    key: str
    title: str
    body: str = ""
    data: Any = None
    actions: tuple[str, ...] = ()
    tag: str = ""


class NotificationList(Protocol):
    """The notification list of a device."""

    def shown(self) -> tuple[Shown, ...]:
        """Return the notifications of the app, oldest first."""
        ...

    def answer(self, key: str, action: str | None, text: str | None) -> None:
        """Tap a notification or an action. Raises ControllerError."""
        ...

    def dismiss(self, key: str) -> None:
        """Dismiss a notification. Raises ControllerError."""
        ...


def waited(
    find: Callable[[], _T | None], timeout_seconds: float, problem: Callable[[], str]
) -> _T:
    """Poll until a function returns a value other than None, and return it. Raises TimeoutError with the problem."""
    deadline = time.monotonic() + timeout_seconds

    while True:
        value = find()
        if value is not None:
            return value
        # After the attempt: a timeout of 0 stands for one attempt.
        if time.monotonic() > deadline:
            raise TimeoutError(f"timed out after {timeout_seconds:g} s: {problem()}")

        time.sleep(POLL_SECONDS)
