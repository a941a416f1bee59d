"""What the notifications library raises.

ConfigError
├── TriggerError         a trigger that cannot work; a ValueError, too
└── NotSpecified         a rule for which there is no source
DeviceError
└── NotificationError    a call of the library that failed, with its code
"""

from typing import Literal

from pytest_device.errors import ConfigError, DeviceError


class TriggerError(ConfigError, ValueError):
    """A trigger that cannot work; ``name`` is ``RangeError`` for a number out of its range, else ``TypeError``."""

    def __init__(self, problem: str, *, name: Literal["TypeError", "RangeError"] = "TypeError") -> None:
        super().__init__(problem)
        self.name = name


class NotSpecified(ConfigError):  # noqa: N818  # no mistake of anybody: nothing says what is right
    """What a platform does here is in none of its references, so that it is not guessed."""


class NotificationError(DeviceError):
    """A call of the library failed; ``code`` is stable."""

    def __init__(self, message: str, *, code: str) -> None:
        super().__init__(message)
        self.code = code


for _error in (TriggerError, NotSpecified, NotificationError):
    _error.__module__ = "pytest_device.notifications"  # tracebacks name it as suites import it
