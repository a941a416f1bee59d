"""Next date that matches date components on iOS.

Sources: the Apple references of UNCalendarNotificationTrigger (the system finds the next date that matches the
components), DateComponents and Calendar.nextDate(after:matching:): the date is later than the given one, and omitted
smaller units take their lowest value. None of them documents weeks, whose first day is a user setting.
"""

from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Any, Final

from pytest_device.errors import hides_frames
from pytest_device.notifications.errors import NotSpecified
from pytest_device.notifications.triggers import zone_of

__tracebackhide__ = hides_frames

_SIZES: Final = {
    "year": 6,
    "month": 5,
    "day": 4,
    "weekday": 4,
    "weekdayOrdinal": 4,
    "hour": 3,
    "minute": 2,
    "second": 1,
}
_LOWEST: Final = {"month": 1, "day": 1, "hour": 0, "minute": 0, "second": 0}
MAX_DAYS: Final = 41 * 366
"""Search limit in days; every combination of month, day and weekday recurs within 40 years."""


def next_match(
    components: Mapping[str, Any], now: datetime, zone: tzinfo
) -> datetime | None:
    """Return the first matching date after ``now``, or None. Raises NotSpecified, TriggerError."""
    given = {name: value for name, value in components.items() if value is not None}
    zone = zone_of(given.pop("timezone", zone))
    if not given or not given.keys() <= _SIZES.keys():
        raise NotSpecified(
            f"calendar components {', '.join(given) or 'of no date'}: iOS behavior is undocumented"
        )

    smallest = min(_SIZES[name] for name in given)
    omitted = {
        name: value for name, value in _LOWEST.items() if _SIZES[name] < smallest
    }
    wanted = {**omitted, **given}
    times = [
        time(hour, minute, second)
        for hour in _choices(wanted, "hour", 24)
        for minute in _choices(wanted, "minute", 60)
        for second in _choices(wanted, "second", 60)
    ]
    today = now.astimezone(zone).date()
    first = max(today, date(int(wanted.get("year", today.year)), 1, 1))

    for offset in range(MAX_DAYS):
        day = first + timedelta(days=offset)
        values = {
            "year": day.year,
            "month": day.month,
            "day": day.day,
            "weekday": day.isoweekday() % 7 + 1,
            "weekdayOrdinal": (day.day - 1) // 7 + 1,
        }
        if not _match(wanted, values):
            continue

        for time_of_day in times:
            moment = datetime.combine(day, time_of_day, zone).astimezone(UTC)
            if moment > now:
                return moment

    return None


def _match(wanted: Mapping[str, Any], values: Mapping[str, int]) -> bool:
    return all(wanted.get(name, value) == value for name, value in values.items())


def _choices(wanted: Mapping[str, Any], name: str, count: int) -> list[int]:
    return [value for value in range(count) if wanted.get(name, value) == value]
