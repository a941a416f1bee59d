"""Computes how long sessions must still last from the durations of tests in earlier runs. Pure."""

from math import ceil
from typing import Final

MARGIN: Final = 1.25
"""Factor by which tests may take longer than before for harmless reasons: a loaded machine, a slower device."""


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
