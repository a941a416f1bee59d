"""What one check has found."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Status(StrEnum):
    """How a check has ended; only ``fail`` makes the exit status 1."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line for people; what is not ok has exactly one fix."""

    name: str
    status: Status
    text: str
    fix: str = ""


def ok(name: str, text: str) -> Finding:
    """Return what needs nothing."""
    return Finding(name, Status.OK, text)


def warn(name: str, text: str, fix: str) -> Finding:
    """Return what works, and could be better."""
    return Finding(name, Status.WARN, text, fix)


def fail(name: str, text: str, fix: str) -> Finding:
    """Return what a run with device tests would fail for."""
    return Finding(name, Status.FAIL, text, fix)


NAME_WIDTH: Final = 21
"""Of the longest name, ``appium-python-client``, and a blank."""
