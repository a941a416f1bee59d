"""A lenient Java calendar, which resolves nonexistent and ambiguous local times as Android does.

Source: GregorianCalendar and ZoneInfo of OpenJDK 17; `benchmarks/java_calendar.py` compares the results.
"""

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from pytest_device.errors import hides_frames

__tracebackhide__ = hides_frames


@dataclass(frozen=True, slots=True)
class JavaCalendar:
    """UTC date and time with the calendar's time zone."""

    moment: datetime
    zone: tzinfo

    def set(
        self,
        hour: int,
        minute: int,
        *,
        month: int | None = None,
        day: int | None = None,
        weekday: int | None = None,
    ) -> "JavaCalendar":
        """Set fields; days past the end of the month roll over into the next one, and weeks start on Sunday."""
        today = self.local.date()
        if weekday is not None:
            found = today + timedelta(days=weekday - 1 - today.isoweekday() % 7)
        else:
            first = today.replace(
                day=1, month=today.month if month is None else month + 1
            )
            found = first + timedelta(days=(today.day if day is None else day) - 1)
        return self._at(datetime.combine(found, time(hour, minute)))

    def add_days(self, days: int) -> "JavaCalendar":
        """Add days of 24 hours, then restore the time of day unless that changes the date."""
        local = self.local
        expected = local.replace(tzinfo=None) + timedelta(days=days)
        moved = replace(self, moment=self.moment + timedelta(days=days))
        change = _offset(local) - _offset(moved.local)
        adjusted = replace(self, moment=moved.moment + change)
        return adjusted if adjusted.local.date() == expected.date() else moved

    def add_months(self, months: int) -> "JavaCalendar":
        """Add months, limiting the day to the last one of the month."""
        local = self.local
        years, month = divmod(local.month - 1 + months, 12)
        first = date(local.year + years, month + 1, 1)
        last = (first.replace(day=28) + timedelta(days=4)).replace(day=1) - timedelta(
            days=1
        )
        return self._at(
            datetime.combine(first.replace(day=min(local.day, last.day)), local.time())
        )

    @property
    def local(self) -> datetime:
        """Local date and time."""
        return self.moment.astimezone(self.zone)

    def _at(self, wall: datetime) -> "JavaCalendar":
        """Resolve a local time; in a gap or an overlap, use the offset that gives the later time."""
        offset = min(
            _offset(wall.replace(tzinfo=self.zone, fold=fold)) for fold in (0, 1)
        )
        return replace(self, moment=(wall - offset).replace(tzinfo=UTC))


def _offset(local: datetime) -> timedelta:
    return local.utcoffset() or timedelta()
