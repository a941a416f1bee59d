"""Clocks that tests advance."""

import asyncio
from datetime import datetime, timedelta

from pytest_device import testing


class FakeClock(testing.FakeClock):
    """A clock in seconds that only advances by hand, by ``sleep`` or by ``sleep_async``.

    ``slept`` has the durations for which the code under test slept.
    """

    def __init__(self, now: float = 0.0) -> None:
        super().__init__(now)
        self.slept: list[float] = []

    def advance(self, seconds: float) -> None:
        """Advance the clock, as time that passes by itself."""
        self.now += seconds

    def sleep(self, seconds: float) -> None:
        """Advance the clock at once."""
        self.slept.append(seconds)
        super().sleep(seconds)

    async def sleep_async(self, seconds: float) -> None:
        """Advance the clock at once; other tasks run meanwhile."""
        self.sleep(seconds)
        await asyncio.sleep(0)


class FakeCalendar:
    """A clock of dates in one time zone, which only ``advance`` moves."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    def __call__(self) -> datetime:
        """Return the time."""
        return self.now

    def advance(self, **duration: float) -> None:
        """Advance the clock by a duration, in the words of ``timedelta``."""
        self.now += timedelta(**duration)
