"""Advances sessions that are waited for, side by side in one thread."""

from collections.abc import Callable, Sequence

from pytest_device.sessions.device_session import DeviceSession


def wait_until_ready(
    sessions: Sequence[DeviceSession], clock: Callable[[], float], sleep: Callable[[float], None]
) -> None:
    """Advance sessions until all of them are ready; raises what makes one of them give up."""
    while waiting := [session for session in sessions if not session.is_ready]:
        advance_due(waiting, clock, sleep)


def advance_due(
    sessions: Sequence[DeviceSession], clock: Callable[[], float], sleep: Callable[[float], None]
) -> list[DeviceSession]:
    """Wait until one of these sessions is due, advance those that are, and return them.

    Raises what makes one give up.
    """
    first = min(session.due for session in sessions)
    if (delay := first - clock()) > 0:
        sleep(delay)
    now = max(clock(), first)  # a suite may have stopped the clock
    due = [session for session in sessions if session.due <= now]
    for session in due:
        session.advance()
    return due
