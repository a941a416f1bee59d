"""Next date that matches date components on iOS.

Sources: the Apple references of UNCalendarNotificationTrigger (the system finds the next date that matches the
components), DateComponents and Calendar.nextDate(after:matching:): the date is later than the given one, and omitted
smaller units take their lowest value. None of them documents nonexistent or ambiguous local times, nonexistent days, or
weeks, whose first day is a user setting.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Any, Final

from pytest_device.errors import hides_frames
from pytest_device.notifications.errors import NotSpecified
from pytest_device.notifications.triggers import zone_of

__tracebackhide__ = hides_frames

_RANGES: Final = {
    "year": (1, 9999),
    "month": (1, 12),
    "day": (1, 31),
    "weekday": (1, 7),
    "weekdayOrdinal": (1, 5),
    "hour": (0, 23),
    "minute": (0, 59),
    "second": (0, 59),
}
_MAX_CLOCK_CHANGE: Final = timedelta(hours=3)
"""Upper bound for setting clocks back; local times earlier than this have passed."""
MAX_DAYS: Final = 41 * 366
"""Search limit in days; every combination of month, day and weekday recurs within 40 years."""


def next_match(
    components: Mapping[str, Any], now: datetime, zone: tzinfo
) -> datetime | None:
    """Return the first matching date after ``now``, or None. Raises NotSpecified, TriggerError."""
    components = {
        name: value for name, value in components.items() if value is not None
    }
    _check(components)
    zone = zone_of(components.get("timezone", zone))
    times = _times(components)
    local_now = now.astimezone(zone).replace(tzinfo=None)

    # By day, then by time of day: both in order, so that the first match is the next one.
    for day in _dates(components, local_now.date()):
        for time_of_day in times:
            local = datetime.combine(day, time_of_day)
            # Before the search for its offset, which fails for a time that an undocumented rule applies to.
            if local_now - local >= _MAX_CLOCK_CHANGE:
                continue

            moment = _moment(local, zone)
            if moment > now:
                return moment

    return None


def _check(components: Mapping[str, Any]) -> None:
    for name, value in components.items():
        if name == "timezone":
            continue
        if name not in _RANGES:
            raise NotSpecified(
                f"calendar component {name!r}: iOS behavior is undocumented"
            )

        low, high = _RANGES[name]
        if not low <= value <= high:
            raise NotSpecified(
                f"{name} {value}: iOS behavior outside {low} to {high} is undocumented"
            )

    # It names no date: Apple documents no match of everything.
    names = components.keys() - {"timezone"}
    if not names:
        raise NotSpecified(
            "calendar trigger without components: iOS behavior is undocumented"
        )

    needs_day = names & {"year", "month", "weekdayOrdinal"}
    has_day = names & {"day", "weekday"}
    lacks_month = "year" in names and "month" not in names
    if (needs_day and not has_day) or lacks_month:
        raise NotSpecified(
            "year without month, or month without day or weekday: iOS behavior is undocumented"
        )


def _times(components: Mapping[str, Any]) -> list[time]:
    """Return the matching times of day: an omitted unit is a wildcard if a smaller one is given, otherwise 0."""
    has_second = "second" in components
    has_minute_or_second = "minute" in components or has_second
    hours = _choices(components, "hour", 24, is_wildcard=has_minute_or_second)
    minutes = _choices(components, "minute", 60, is_wildcard=has_second)
    seconds = _choices(components, "second", 60, is_wildcard=False)

    return [
        time(hour, minute, second)
        for hour in hours
        for minute in minutes
        for second in seconds
    ]


def _choices(
    components: Mapping[str, Any], name: str, count: int, *, is_wildcard: bool
) -> Sequence[int]:
    if name in components:
        return [int(components[name])]

    return range(count) if is_wildcard else [0]


def _dates(components: Mapping[str, Any], first: date) -> Iterator[date]:
    """Yield the matching dates from the first one on."""
    year = components.get("year")
    if year is not None and year > first.year:
        first = date(int(year), 1, 1)

    for offset in range(MAX_DAYS):
        day = first + timedelta(days=offset)
        if year is not None and day.year > year:
            return

        _check_day(components, day)
        if _matches(components, day):
            yield day


def _matches(components: Mapping[str, Any], day: date) -> bool:
    values = {
        "year": day.year,
        "month": day.month,
        "day": day.day,
        "weekday": day.isoweekday() % 7 + 1,
        "weekdayOrdinal": (day.day - 1) // 7 + 1,
    }

    return all(components.get(name, value) == value for name, value in values.items())


def _check_day(components: Mapping[str, Any], day: date) -> None:
    """Raise NotSpecified at the end of a month that lacks the requested day."""
    is_last_of_month = (day + timedelta(days=1)).day == 1
    is_in_month = components.get("month", day.month) == day.month
    if is_last_of_month and is_in_month and components.get("day", 1) > day.day:
        raise NotSpecified(
            f"day {components['day']} in a month of {day.day} days: iOS behavior is undocumented"
        )


def _moment(local: datetime, zone: tzinfo) -> datetime:
    """Return the moment of a local time. Raises NotSpecified for one that occurs twice or never."""
    first = local.replace(tzinfo=zone, fold=0)
    second = local.replace(tzinfo=zone, fold=1)
    if first.utcoffset() != second.utcoffset():
        raise NotSpecified(
            f"{local} is ambiguous or nonexistent in {zone}: iOS behavior is undocumented"
        )

    return first.astimezone(UTC)
