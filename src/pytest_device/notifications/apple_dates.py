"""Next date that matches date components on iOS.

Sources: the Apple references of UNCalendarNotificationTrigger (the system finds the next date that matches the
components), DateComponents and Calendar.nextDate(after:matching:): the date is later than the given one, and omitted
smaller units take their lowest value. None of them documents nonexistent or ambiguous local times, nonexistent days, or
weeks, whose first day is a user setting.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Any, Final

from pytest_device.errors import hides_frames
from pytest_device.notifications.errors import NotSpecified
from pytest_device.notifications.triggers import zone_of

__tracebackhide__ = hides_frames

_RANGES: Final = {
    "year": (1, 9999), "month": (1, 12), "day": (1, 31), "weekday": (1, 7), "weekdayOrdinal": (1, 5),
    "hour": (0, 23), "minute": (0, 59), "second": (0, 59),
}  # fmt: skip
_KNOWN: Final = {*_RANGES, "timezone"}
_TIMES: Final = (("hour", 24), ("minute", 60), ("second", 60))
_CHANGE: Final = timedelta(hours=3)
"""Upper bound for setting clocks back; local times earlier than this have passed."""
MAX_DAYS: Final = 41 * 366
"""Search limit in days; every combination of month, day and weekday recurs within 40 years."""


def next_match(
    components: Mapping[str, Any], now: datetime, zone: tzinfo
) -> datetime | None:
    """Return the first matching date after ``now``, or None. Raises NotSpecified, TriggerError."""
    given = {name: value for name, value in components.items() if value is not None}
    _check(given)
    zone = zone_of(given.get("timezone", zone))
    times = list(_times(given))
    local = now.astimezone(zone).replace(tzinfo=None)
    for day in _dates(given, local.date()):
        for wall in (datetime.combine(day, one) for one in times):
            if local - wall < _CHANGE and (found := _moment(wall, zone)) > now:
                return found
    return None


def _check(given: Mapping[str, Any]) -> None:
    for name, value in given.items():
        if name not in _KNOWN:
            raise NotSpecified(
                f"calendar component {name!r}: iOS behavior is undocumented"
            )
        low, high = _RANGES.get(name, (None, None))
        if low is not None and not low <= value <= high:
            raise NotSpecified(
                f"{name} {value}: iOS behavior outside {low} to {high} is undocumented"
            )
    if not given.keys() & _RANGES.keys():
        raise NotSpecified(
            "calendar trigger without components: iOS behavior is undocumented"
        )
    has_day = "day" in given or "weekday" in given
    if (given.keys() & {"year", "month", "weekdayOrdinal"} and not has_day) or (
        "year" in given and "month" not in given
    ):
        raise NotSpecified(
            "year without month, or month without day or weekday: iOS behavior is undocumented"
        )


def _times(given: Mapping[str, Any]) -> Iterator[time]:
    """Yield the matching times of day: an omitted unit is a wildcard if a smaller one is given, otherwise 0."""
    choices: list[range | list[int]] = []
    for index, (name, count) in enumerate(_TIMES):
        smaller = any(other in given for other, _ in _TIMES[index + 1 :])
        choices.append(
            [int(given[name])] if name in given else range(count if smaller else 1)
        )
    hours, minutes, seconds = choices
    return (
        time(hour, minute, second)
        for hour in hours
        for minute in minutes
        for second in seconds
    )


def _dates(given: Mapping[str, Any], first: date) -> Iterator[date]:
    year = given.get("year")
    if year is not None and year > first.year:
        first = date(int(year), 1, 1)
    for offset in range(MAX_DAYS):
        day = first + timedelta(days=offset)
        if year is not None and day.year > year:
            return
        _check_day(given, day)
        if _matches(given, day):
            yield day


def _matches(given: Mapping[str, Any], day: date) -> bool:
    facts = {"year": day.year, "month": day.month, "day": day.day, "weekday": day.isoweekday() % 7 + 1,
             "weekdayOrdinal": (day.day - 1) // 7 + 1}  # fmt: skip
    return all(given.get(name, value) == value for name, value in facts.items())


def _check_day(given: Mapping[str, Any], day: date) -> None:
    """Raise NotSpecified at the end of a month that lacks the requested day."""
    is_last = (day + timedelta(days=1)).day == 1
    if (
        is_last
        and given.get("day", 1) > day.day
        and given.get("month", day.month) == day.month
    ):
        raise NotSpecified(
            f"day {given['day']} in a month of {day.day} days: iOS behavior is undocumented"
        )


def _moment(wall: datetime, zone: tzinfo) -> datetime:
    first, second = (wall.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
    if first.utcoffset() != second.utcoffset():
        raise NotSpecified(
            f"{wall} is ambiguous or nonexistent in {zone}: iOS behavior is undocumented"
        )
    return first.astimezone(UTC)
