"""Exceptions of the notifications package.

ConfigError
├── TriggerError         invalid trigger; also a ValueError
└── NotSpecified         undocumented platform behavior
DeviceError
└── NotificationError    failed call, with an error code
"""

from typing import Literal

from pytest_device.errors import ConfigError, DeviceError, hides_frames

__tracebackhide__ = hides_frames


class TriggerError(ConfigError, ValueError):
    """Invalid trigger; ``name`` is ``RangeError`` for a number outside its range, otherwise ``TypeError``."""

    def __init__(
        self, problem: str, *, name: Literal["TypeError", "RangeError"] = "TypeError"
    ) -> None:
        super().__init__(problem)
        self.name = name


class NotSpecified(ConfigError):  # noqa: N818  # not a mistake of the caller: the right result is unknown
    """Platform behavior that no reference documents and that is therefore not guessed."""


class NotificationError(DeviceError):
    """Failed call of the notifications library; ``code`` is a stable error code."""

    def __init__(self, message: str, *, code: str) -> None:
        super().__init__(message)
        self.code = code


for _error in (TriggerError, NotSpecified, NotificationError):
    _error.__module__ = (
        "pytest_device.notifications"  # tracebacks show the public import path
    )
