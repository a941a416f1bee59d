"""When a trigger fires next, on each platform."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeAlias
from zoneinfo import ZoneInfo

from pytest_device.notifications.apple_dates import next_match
from pytest_device.notifications.errors import NotSpecified, TriggerError
from pytest_device.notifications.java_calendar import JavaCalendar
from pytest_device.notifications.triggers import (
    CalendarTrigger,
    ChannelTrigger,
    DailyTrigger,
    DateTrigger,
    MonthlyTrigger,
    Platform,
    TimeIntervalTrigger,
    Trigger,
    WeeklyTrigger,
    YearlyTrigger,
    check_platform,
    milliseconds,
    moment_of,
    parse_trigger,
    zone_of,
)

MAX_FIRES: Final = 20_000
"""Of one call; a trigger that repeats each second fires as often in 6 hours."""
_MILLISECOND: Final = timedelta(milliseconds=1)
_IOS_REPEATING_SECONDS: Final = 60
"""The shortest repeating interval: reference of UNTimeIntervalNotificationTrigger."""


def next_trigger_date(
    trigger: Trigger | Mapping[str, Any] | None,
    now: datetime,
    tz: ZoneInfo | str,
    *,
    platform: Platform = "android",
) -> datetime | None:
    """Return when a trigger that is scheduled now fires next, in the time zone; None if it never does.

    On Android it may fire now. Raises TriggerError, NotSpecified where no reference says what iOS does.
    """
    check_platform(platform)
    zone = zone_of(tz)
    milliseconds(now)  # it needs a time zone
    known = trigger if trigger is None or isinstance(trigger, Trigger) else parse_trigger(trigger, platform)
    try:
        found = _next(known, now.astimezone(UTC), zone, platform)
        return found.astimezone(zone) if found else None
    except (OverflowError, ValueError) as error:
        if isinstance(error, TriggerError):
            raise
        raise TriggerError("the next date must be in the years 1 to 9999", name="RangeError") from None


def fires_between(
    trigger: Trigger | Mapping[str, Any] | None,
    start: datetime,
    end: datetime,
    tz: ZoneInfo | str,
    *,
    platform: Platform = "android",
) -> list[datetime]:
    """Return when a trigger that is scheduled at ``start`` fires before ``end``, in order.

    Raises TriggerError, also for more than 20,000 times; NotSpecified.
    """
    milliseconds(end)
    known = trigger if trigger is None or isinstance(trigger, Trigger) else parse_trigger(trigger, platform)
    fires: list[datetime] = []
    for fire in _fires(known, start, zone_of(tz), platform):
        if fire.astimezone(UTC) >= end.astimezone(UTC):
            break
        if len(fires) == MAX_FIRES:
            raise TriggerError(f"the trigger fires more than {MAX_FIRES} times: ask for a shorter time")
        fires.append(fire)
    return fires


def _fires(trigger: Trigger | None, start: datetime, zone: ZoneInfo, platform: Platform) -> Iterator[datetime]:
    fire = next_trigger_date(trigger, start, zone, platform=platform)
    while fire is not None:
        yield fire
        fire = after_fire(trigger, fire, zone, platform=platform)


def after_fire(trigger: Trigger | None, fire: datetime, zone: ZoneInfo, *, platform: Platform) -> datetime | None:
    """Return when a trigger that has fired fires again, None if it does not."""
    if not repeats(trigger):
        return None
    # An interval counts from the last time. A date is looked for again once it has passed.
    after = fire if isinstance(trigger, TimeIntervalTrigger) else fire.astimezone(UTC) + _MILLISECOND
    return next_trigger_date(trigger, after, zone, platform=platform)


def repeats(trigger: Trigger | None) -> bool:
    """Return whether a trigger fires more than once."""
    match trigger:
        case TimeIntervalTrigger() | CalendarTrigger():
            return trigger.repeats
        case DailyTrigger() | WeeklyTrigger() | MonthlyTrigger() | YearlyTrigger():
            return True
        case _:
            return False


def _next(trigger: Trigger | None, now: datetime, zone: ZoneInfo, platform: Platform) -> datetime | None:
    match trigger:
        case None | ChannelTrigger():
            return now
        case DateTrigger():
            date = moment_of(trigger.timestamp)
            return date if date >= now else None
        case TimeIntervalTrigger():
            return now + timedelta(seconds=_checked_interval(trigger, platform))
        case CalendarTrigger() if platform == "android":
            raise TriggerError("calendar triggers are for iOS: use daily, weekly, monthly or yearly on Android")
        case CalendarTrigger():
            return next_match(trigger.components, now, zone)
        case DailyTrigger() | WeeklyTrigger() | MonthlyTrigger() | YearlyTrigger():
            return _recurring(trigger, now, zone) if platform == "android" else _on_ios(trigger, now, zone)
        case _:
            raise NotSpecified(f"a trigger of type {trigger.type!r} fires at no date")


def _checked_interval(trigger: TimeIntervalTrigger, platform: Platform) -> float:
    shortest = _IOS_REPEATING_SECONDS if platform == "ios" and trigger.repeats else 0
    if trigger.seconds <= 0 or trigger.seconds < shortest:
        rule = f"at least {shortest} if it repeats on iOS" if shortest else "more than 0"
        raise TriggerError(f"seconds {trigger.seconds} must be {rule}", name="RangeError")
    return trigger.seconds


Recurring: TypeAlias = DailyTrigger | WeeklyTrigger | MonthlyTrigger | YearlyTrigger


def _recurring(trigger: Recurring, now: datetime, zone: ZoneInfo) -> datetime:
    """Return the date as on Android: the fields are set in a calendar of today, which is moved on if it has passed."""
    components = _components(trigger)
    found = JavaCalendar(now, zone).set(**components)
    if found.moment >= now:
        return found.moment
    match trigger:
        case DailyTrigger() | WeeklyTrigger():
            return found.add_days(7 if "weekday" in components else 1).moment
        case MonthlyTrigger() | YearlyTrigger():
            return found.add_months(12 if "month" in components else 1).moment


def _on_ios(trigger: Recurring, now: datetime, zone: ZoneInfo) -> datetime | None:
    components = _components(trigger)
    if isinstance(trigger, YearlyTrigger):
        components["month"] += 1  # Foundation counts months from 1
    return next_match(components, now, zone)


def _components(trigger: Recurring) -> dict[str, int]:
    names = ("month", "day", "weekday", "hour", "minute")
    return {name: getattr(trigger, name) for name in names if hasattr(trigger, name)}
