"""For how long sessions are asked for and must last, from what tests took in earlier runs. Pure."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Final

from pytest_device.spec import DURATION_MAX_MINUTES

if TYPE_CHECKING:
    from pytest_device.sessions.request import SessionRequest
    from pytest_device.sessions.requirement import DeviceRequirement

MARGIN: Final = 1.25
"""Tests take this much longer than before without anything being wrong: a machine under load, a slower device."""
STEP_MINUTES: Final = 5
"""Durations asked for are multiples of this, so that requests stay equal from run to run while tests take longer."""

Seconds = Callable[[str], float | None]
"""How long a test takes by its node id, None when it is not known."""


@dataclass(frozen=True, slots=True)
class Use:
    """One test's need of one device; ``is_fixed`` when the test itself says how long its session may last."""

    nodeid: str
    need: "DeviceRequirement"
    is_fixed: bool


def needed_minutes(seconds: float | None, minutes: int, limit: int) -> int:
    """Return how many minutes of a session must be left for a test that took so many seconds.

    At least ``minutes``, which it asks for; else less than ``limit``, which a session has when it is new.
    """
    known = 0 if seconds is None else ceil(seconds * MARGIN / 60)
    return max(minutes, min(known, limit - 1))


def sized(
    uses: Iterable[Use], seconds_of: Seconds, unknown_minutes: int
) -> Mapping["DeviceRequirement", "SessionRequest"]:
    """Return the requests that are to take the place of needs' own: with a duration that their tests are known to need.

    A test that is not known takes ``unknown_minutes``; where none is known, or a test fixes the duration, nothing is
    changed. The new duration leaves time for the last test and is never above the old one.
    """
    tests: dict[DeviceRequirement, list[Use]] = {}
    for use in uses:
        tests.setdefault(use.need, []).append(use)
    sizes = {need: _minutes(of_need, seconds_of, unknown_minutes) for need, of_need in tests.items()}
    return {need: _lasting(need.request, minutes) for need, minutes in sizes.items() if minutes is not None}


def _minutes(uses: Iterable[Use], seconds_of: Seconds, unknown_minutes: int) -> int | None:
    uses = tuple(uses)
    known = [seconds_of(use.nodeid) for use in uses]
    if any(use.is_fixed for use in uses) or all(seconds is None for seconds in known):
        return None
    minutes = sum(unknown_minutes if seconds is None else seconds / 60 for seconds in known)
    kept = max(use.need.minutes for use in uses)
    return STEP_MINUTES * ceil((minutes * MARGIN + kept) / STEP_MINUTES)


def _lasting(request: "SessionRequest", minutes: int) -> "SessionRequest":
    longest, idle = request.max_duration_minutes or DURATION_MAX_MINUTES, request.max_idle_time_minutes
    if minutes >= longest:
        return request
    shorter = None if idle is None else min(idle, minutes - 1)
    return request.model_copy(update={"max_duration_minutes": minutes, "max_idle_time_minutes": shorter})
