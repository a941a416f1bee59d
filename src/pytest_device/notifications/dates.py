"""Next trigger dates on Android and iOS."""

from collections.abc import Mapping
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

    On Android, it may be ``now``.

    >>> from datetime import datetime, UTC
    >>> next_trigger_date(DailyTrigger(hour=8, minute=0), datetime(2026, 3, 1, 9, tzinfo=UTC), "UTC").isoformat()
    '2026-03-02T08:00:00+00:00'

    Raises:
        TriggerError: The trigger, the time zone or ``now`` is invalid, or the date is outside of the years 1 to 9999.
        NotSpecified: The behavior on iOS is undocumented.
    """
    check_platform(platform)
    zone = zone_of(tz)
    _reject_naive(now)
    parsed = _parsed(trigger, platform)

    try:
        date = _next(parsed, now.astimezone(UTC), zone, platform)
        return date.astimezone(zone) if date else None
    except TriggerError:
        raise
    except (OverflowError, ValueError):
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

    Raises:
        TriggerError: As `next_trigger_date`, and for more than 20,000 dates.
        NotSpecified: The behavior on iOS is undocumented.
    """
    _reject_naive(end)
    zone = zone_of(tz)
    parsed = _parsed(trigger, platform)
    fires: list[datetime] = []

    fire = next_trigger_date(parsed, start, zone, platform=platform)
    while fire is not None and fire.astimezone(UTC) < end.astimezone(UTC):
        if len(fires) == MAX_FIRES:
            raise TriggerError(
                f"the trigger fires more than {MAX_FIRES} times: use a shorter period"
            )
        fires.append(fire)
        fire = after_fire(parsed, fire, zone, platform=platform)

    return fires


def _parsed(
    trigger: Trigger | Mapping[str, Any] | None, platform: Platform
) -> Trigger | None:
    if trigger is None or isinstance(trigger, Trigger):
        return trigger

    return parse_trigger(trigger, platform)


def _reject_naive(moment: datetime) -> None:
    """Raise TriggerError for a time without a time zone."""
    milliseconds(moment)


def after_fire(
    trigger: Trigger | None, fire: datetime, zone: tzinfo, *, platform: Platform
) -> datetime | None:
    """Return the next date of a trigger after it fired, or None if it does not repeat."""
    if not repeats(trigger):
        return None

    # An interval starts at the last date; a date search can return its start, so it resumes just after it.
    after = fire
    if not isinstance(trigger, TimeIntervalTrigger):
        after = fire.astimezone(UTC) + _MILLISECOND

    return next_trigger_date(trigger, after, zone, platform=platform)


def repeats(trigger: Trigger | None) -> bool:
    """Return whether a trigger fires more than once."""
    if isinstance(trigger, TimeIntervalTrigger | CalendarTrigger):
        return trigger.repeats

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
        case RecurringTrigger() if platform == "android":
            return _on_android(trigger, now, zone)
        case RecurringTrigger():
            return _on_ios(trigger, now, zone)
        case _:
            raise NotSpecified(
                f"triggers of type {trigger.type!r} have no trigger date"
            )


def _checked_interval(trigger: TimeIntervalTrigger, platform: Platform) -> float:
    rule = ""
    if platform == "ios" and trigger.repeats:
        if trigger.seconds < _IOS_REPEATING_SECONDS:
            rule = f"at least {_IOS_REPEATING_SECONDS} if it repeats on iOS"
    elif trigger.seconds <= 0:
        rule = "more than 0"
    if rule:
        raise TriggerError(
            f"seconds {trigger.seconds} must be {rule}", name="RangeError"
        )

    return trigger.seconds


def _on_android(trigger: RecurringTrigger, now: datetime, zone: tzinfo) -> datetime:
    """Return the next date on Android: set the fields on today's calendar, and advance it if that date has passed."""
    components = trigger.facts()
    calendar = JavaCalendar(now, zone).set(**components)
    if calendar.moment >= now:
        return calendar.moment

    if "month" in components:
        return calendar.add_months(12).moment
    if "day" in components:
        return calendar.add_months(1).moment
    if "weekday" in components:
        return calendar.add_days(7).moment

    return calendar.add_days(1).moment


def _on_ios(trigger: RecurringTrigger, now: datetime, zone: tzinfo) -> datetime | None:
    components = trigger.facts()
    if isinstance(trigger, YearlyTrigger):
        # Months start at 0 in JavaScript and at 1 in Foundation.
        components["month"] += 1

    return next_match(components, now, zone)
