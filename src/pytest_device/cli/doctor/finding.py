"""The result of one check."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Status(StrEnum):
    """The outcome of a check; only ``fail`` makes the exit status 1."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of output; one that is not ok has exactly one fix."""

    name: str
    status: Status
    text: str
    fix: str = ""


def ok(name: str, text: str) -> Finding:
    """Return a finding that needs no action."""
    return Finding(name, Status.OK, text)


def warn(name: str, text: str, fix: str) -> Finding:
    """Return a finding that works but can be improved."""
    return Finding(name, Status.WARN, text, fix)


def fail(name: str, text: str, fix: str) -> Finding:
    """Return a finding that would make device tests fail."""
    return Finding(name, Status.FAIL, text, fix)


NAME_WIDTH: Final = 21
"""Length of the longest name, ``appium-python-client``, and a blank."""
