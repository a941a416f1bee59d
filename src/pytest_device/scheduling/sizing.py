"""Computes how long sessions must last from the durations of tests in earlier runs. Pure."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Final

from pytest_device.spec import DURATION_MAX_MINUTES

if TYPE_CHECKING:
    from pytest_device.sessions.request import DeviceRequirement, SessionRequest

MARGIN: Final = 1.25
"""Factor by which tests may take longer than before for harmless reasons: a loaded machine, a slower device."""
STEP_MINUTES: Final = 5
"""Requested durations are multiples of this, so that requests stay equal from run to run while durations vary."""

Seconds = Callable[[str], float | None]
"""Returns a test's duration in seconds by its node ID, None if unknown."""


@dataclass(frozen=True, slots=True)
class Use:
    """One test's need of one device; ``is_fixed`` if the test itself sets its session's maximum duration."""

    nodeid: str
    need: "DeviceRequirement"
    is_fixed: bool


def needed_minutes(seconds: float | None, minutes: int, limit: int) -> int:
    """Return how many minutes must be left of a session for a test that took ``seconds``.

    At least ``minutes``, which the test requests; otherwise less than ``limit``, the duration of a new session.
    """
    known = 0 if seconds is None else ceil(seconds * MARGIN / 60)
    return max(minutes, min(known, limit - 1))


def sized(
    uses: Iterable[Use], seconds_of: Seconds, unknown_minutes: int
) -> Mapping["DeviceRequirement", "SessionRequest"]:
    """Return requests to replace those of the needs, with a duration based on their tests.

    A test without a known duration takes ``unknown_minutes``; if none is known, or a test fixes the duration, nothing
    changes. The new duration leaves time for the last test and never exceeds the old one.
    """
    tests: dict[DeviceRequirement, list[Use]] = {}
    for use in uses:
        tests.setdefault(use.need, []).append(use)
    sizes = {
        need: _minutes(of_need, seconds_of, unknown_minutes)
        for need, of_need in tests.items()
    }
    return {
        need: _lasting(need.request, minutes)
        for need, minutes in sizes.items()
        if minutes is not None
    }


def _minutes(
    uses: Iterable[Use], seconds_of: Seconds, unknown_minutes: int
) -> int | None:
    uses = tuple(uses)
    known = [seconds_of(use.nodeid) for use in uses]
    if any(use.is_fixed for use in uses) or all(seconds is None for seconds in known):
        return None
    minutes = sum(
        unknown_minutes if seconds is None else seconds / 60 for seconds in known
    )
    kept = max(use.need.minutes for use in uses)
    return STEP_MINUTES * ceil((minutes * MARGIN + kept) / STEP_MINUTES)


def _lasting(request: "SessionRequest", minutes: int) -> "SessionRequest":
    longest, idle = (
        request.max_duration_minutes or DURATION_MAX_MINUTES,
        request.max_idle_time_minutes,
    )
    if minutes >= longest:
        return request
    shorter = None if idle is None else min(idle, minutes - 1)
    return request.model_copy(
        update={"max_duration_minutes": minutes, "max_idle_time_minutes": shorter}
    )
