"""Computes how long sessions must last from the durations of tests in earlier runs. Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
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
class DeviceUsage:
    """A test's use of one device."""

    nodeid: str
    requirement: "DeviceRequirement"
    is_fixed: bool
    """Whether the test's marker sets the maximum duration of the session."""


def needed_minutes(seconds: float | None, minutes: int, limit: int) -> int:
    """Return how many minutes must be left of a session for a test that took ``seconds``.

    >>> needed_minutes(480, 2, 30)
    10

    Arguments:
        seconds: the test's duration in earlier runs; None if unknown.
        minutes: the minimum, which the test requests.
        limit: the duration of a new session. Less than this is required, since no session has so much left once its
            device is ready: a test that is longer would replace session after session.
    """
    if seconds is None:
        return minutes

    known = ceil(seconds * MARGIN / 60)
    return max(minutes, min(known, limit - 1))


def sized(
    usages: Iterable[DeviceUsage], seconds_of: Seconds, unknown_minutes: int
) -> Mapping["DeviceRequirement", "SessionRequest"]:
    """Return the requests that replace those of some requirements, with a duration based on their tests.

    A requirement keeps its request if the duration of no test is known, or if a test sets it. A new duration never
    exceeds the old one.

    Arguments:
        usages: all uses of devices in this run.
        seconds_of: returns the known durations.
        unknown_minutes: the duration of a test without a known one.
    """
    usages_of: dict[DeviceRequirement, list[DeviceUsage]] = {}
    for usage in usages:
        usages_of.setdefault(usage.requirement, []).append(usage)

    requests: dict[DeviceRequirement, SessionRequest] = {}
    for requirement, of_requirement in usages_of.items():
        minutes = _minutes(of_requirement, seconds_of, unknown_minutes)
        if minutes is not None:
            requests[requirement] = _with_duration(requirement.request, minutes)

    return requests


def _minutes(
    usages: Sequence[DeviceUsage], seconds_of: Seconds, unknown_minutes: int
) -> int | None:
    """Return the duration of a session for all tests of a requirement, None to keep that of its request."""
    known = [seconds_of(usage.nodeid) for usage in usages]
    if any(usage.is_fixed for usage in usages) or all(
        seconds is None for seconds in known
    ):
        return None

    minutes = sum(
        unknown_minutes if seconds is None else seconds / 60 for seconds in known
    )
    # A session with less time left is replaced: without this, the last test would boot another device.
    left_for_last_test = max(usage.requirement.minutes for usage in usages)
    return STEP_MINUTES * ceil((minutes * MARGIN + left_for_last_test) / STEP_MINUTES)


def _with_duration(request: "SessionRequest", minutes: int) -> "SessionRequest":
    """Return a request with this duration if it is shorter than the request's own."""
    if minutes >= (request.max_duration_minutes or DURATION_MAX_MINUTES):
        return request

    idle = request.max_idle_time_minutes
    if idle is not None:
        idle = min(idle, minutes - 1)  # it must be smaller than the duration
    return request.model_copy(
        update={"max_duration_minutes": minutes, "max_idle_time_minutes": idle}
    )
