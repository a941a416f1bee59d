"""A lenient Java calendar, which resolves nonexistent and ambiguous local times as Android does.

Source: GregorianCalendar and ZoneInfo of OpenJDK 17; `benchmarks/java_calendar.py` compares the results.
"""

from calendar import monthrange
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
        """Set fields, with months from 0 and weekdays from 1 (Sunday), as Java counts them.

        Days past the end of the month roll over into the next one, and weeks start on Sunday.
        """
        today = self.local.date()
        time_of_day = time(hour, minute)
        if weekday is not None:
            days_since_sunday = today.isoweekday() % 7
            date_in_week = today + timedelta(days=weekday - 1 - days_since_sunday)
            return self._at(datetime.combine(date_in_week, time_of_day))

        first = today.replace(day=1)
        if month is not None:
            first = first.replace(month=month + 1)
        day_of_month = today.day if day is None else day
        date_in_month = first + timedelta(days=day_of_month - 1)

        return self._at(datetime.combine(date_in_month, time_of_day))

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
        year = local.year + years
        _first_weekday, last_day = monthrange(year, month + 1)
        moved = date(year, month + 1, min(local.day, last_day))

        return self._at(datetime.combine(moved, local.time()))

    @property
    def local(self) -> datetime:
        """Local date and time."""
        return self.moment.astimezone(self.zone)

    def _at(self, wall: datetime) -> "JavaCalendar":
        """Resolve a local time; in a gap or an overlap, use the offset that gives the later time."""
        # Both are the same outside of a gap and an overlap.
        first_offset = _offset(wall.replace(tzinfo=self.zone, fold=0))
        second_offset = _offset(wall.replace(tzinfo=self.zone, fold=1))
        offset = min(first_offset, second_offset)

        return replace(self, moment=(wall - offset).replace(tzinfo=UTC))


def _offset(local: datetime) -> timedelta:
    return local.utcoffset() or timedelta()
