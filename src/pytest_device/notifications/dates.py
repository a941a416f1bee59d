"""Next trigger dates on Android and iOS."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Final

from pytest_device.errors import hides_frames
from pytest_device.notifications.apple_dates import next_match
from pytest_device.notifications.errors import NotSpecified, TriggerError
from pytest_device.notifications.java_calendar import JavaCalendar
from pytest_device.notifications.triggers import (
    CalendarTrigger,
    ChannelTrigger,
    DateTrigger,
    Platform,
    RecurringTrigger,
    TimeIntervalTrigger,
    Trigger,
    YearlyTrigger,
    check_platform,
    milliseconds,
    moment_of,
    parse_trigger,
    zone_of,
)

__tracebackhide__ = hides_frames

MAX_FIRES: Final = 20_000
"""Maximum number of fires per call; a trigger that repeats every second reaches it in under 6 hours."""
_MILLISECOND: Final = timedelta(milliseconds=1)
_IOS_REPEATING_SECONDS: Final = 60
"""Minimum repeating interval, see UNTimeIntervalNotificationTrigger."""


def next_trigger_date(
    trigger: Trigger | Mapping[str, Any] | None,
    now: datetime,
    tz: tzinfo | str,
    *,
    platform: Platform = "android",
) -> datetime | None:
    """Return the next date of a trigger scheduled at ``now``, in the time zone, or None if it never fires.

    On Android, it may be ``now``. Raises TriggerError, or NotSpecified for undocumented behavior on iOS.
    """
    check_platform(platform)
    zone = zone_of(tz)
    milliseconds(now)  # rejects naive datetimes
    known = (
        trigger
        if trigger is None or isinstance(trigger, Trigger)
        else parse_trigger(trigger, platform)
    )
    try:
        found = _next(known, now.astimezone(UTC), zone, platform)
        return found.astimezone(zone) if found else None
    except (OverflowError, ValueError) as error:
        if isinstance(error, TriggerError):
            raise
        raise TriggerError(
            "the next date must be in the years 1 to 9999", name="RangeError"
        ) from None


def fires_between(
    trigger: Trigger | Mapping[str, Any] | None,
    start: datetime,
    end: datetime,
    tz: tzinfo | str,
    *,
    platform: Platform = "android",
) -> list[datetime]:
    """Return the dates before ``end`` of a trigger scheduled at ``start``, in order.

    Raises TriggerError, including for more than 20,000 dates, or NotSpecified.
    """
    milliseconds(end)
    known = (
        trigger
        if trigger is None or isinstance(trigger, Trigger)
        else parse_trigger(trigger, platform)
    )
    fires: list[datetime] = []
    for fire in _fires(known, start, zone_of(tz), platform):
        if fire.astimezone(UTC) >= end.astimezone(UTC):
            break
        if len(fires) == MAX_FIRES:
            raise TriggerError(
                f"the trigger fires more than {MAX_FIRES} times: use a shorter period"
            )
        fires.append(fire)
    return fires


def _fires(
    trigger: Trigger | None, start: datetime, zone: tzinfo, platform: Platform
) -> Iterator[datetime]:
    fire = next_trigger_date(trigger, start, zone, platform=platform)
    while fire is not None:
        yield fire
        fire = after_fire(trigger, fire, zone, platform=platform)


def after_fire(
    trigger: Trigger | None, fire: datetime, zone: tzinfo, *, platform: Platform
) -> datetime | None:
    """Return the next date of a trigger after it fired, or None if it does not repeat."""
    if not repeats(trigger):
        return None
    # Intervals start at the last date; a date search can return its start, so it resumes just after it.
    after = (
        fire
        if isinstance(trigger, TimeIntervalTrigger)
        else fire.astimezone(UTC) + _MILLISECOND
    )
    return next_trigger_date(trigger, after, zone, platform=platform)


def repeats(trigger: Trigger | None) -> bool:
    """Return whether a trigger fires more than once."""
    match trigger:
        case TimeIntervalTrigger() | CalendarTrigger():
            return trigger.repeats
        case _:
            return isinstance(trigger, RecurringTrigger)


def _next(
    trigger: Trigger | None, now: datetime, zone: tzinfo, platform: Platform
) -> datetime | None:
    match trigger:
        case None | ChannelTrigger():
            return now
        case DateTrigger():
            date = moment_of(trigger.timestamp)
            return date if date >= now else None
        case TimeIntervalTrigger():
            return now + timedelta(seconds=_checked_interval(trigger, platform))
        case CalendarTrigger() if platform == "android":
            raise TriggerError(
                "calendar triggers are for iOS: use daily, weekly, monthly or yearly on Android"
            )
        case CalendarTrigger():
            return next_match(trigger.components, now, zone)
        case RecurringTrigger():
            return (
                _recurring(trigger, now, zone)
                if platform == "android"
                else _on_ios(trigger, now, zone)
            )
        case _:
            raise NotSpecified(
                f"triggers of type {trigger.type!r} have no trigger date"
            )


def _checked_interval(trigger: TimeIntervalTrigger, platform: Platform) -> float:
    shortest = _IOS_REPEATING_SECONDS if platform == "ios" and trigger.repeats else 0
    if trigger.seconds <= 0 or trigger.seconds < shortest:
        rule = (
            f"at least {shortest} if it repeats on iOS" if shortest else "more than 0"
        )
        raise TriggerError(
            f"seconds {trigger.seconds} must be {rule}", name="RangeError"
        )
    return trigger.seconds


def _recurring(trigger: RecurringTrigger, now: datetime, zone: tzinfo) -> datetime:
    """Return the next date on Android: set the fields on today's calendar, and advance it if that date has passed."""
    components = trigger.facts()
    found = JavaCalendar(now, zone).set(**components)
    if found.moment >= now:
        return found.moment
    if "day" in components:
        return found.add_months(12 if "month" in components else 1).moment
    return found.add_days(7 if "weekday" in components else 1).moment


def _on_ios(trigger: RecurringTrigger, now: datetime, zone: tzinfo) -> datetime | None:
    components = trigger.facts()
    if isinstance(trigger, YearlyTrigger):
        components["month"] += 1  # months start at 1 in Foundation
    return next_match(components, now, zone)
