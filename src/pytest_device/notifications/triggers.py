"""Triggers of scheduled notifications: types, validation and parsing."""

import dataclasses
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from types import MappingProxyType
from typing import Any, ClassVar, Final, Literal, TypeAlias, cast
from zoneinfo import ZoneInfo

from pytest_device.errors import ConfigError, hides_frames
from pytest_device.notifications.errors import TriggerError
from pytest_device.spelling import hint

__tracebackhide__ = hides_frames

Platform: TypeAlias = Literal["android", "ios"]

MAX_TIMESTAMP: Final = 8_640_000_000_000_000
"""Maximum timestamp of a JavaScript ``Date``, in milliseconds since the epoch."""
_DAYS: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
"""Maximum number of days of each month: a yearly trigger on 29 February is valid."""
_RANGES: Final[Mapping[str, tuple[int, int]]] = {
    "hour": (0, 23),
    "minute": (0, 59),
    "weekday": (1, 7),
    "day": (1, 31),
    "month": (0, 11),
}
_COMPONENTS: Final = (
    "year",
    "month",
    "day",
    "hour",
    "minute",
    "second",
    "weekday",
    "weekdayOrdinal",
    "weekOfMonth",
    "weekOfYear",
)
"""Date components with a whole number ("Notifications library types", trigger inputs)."""
_Parse: TypeAlias = Callable[[Mapping[str, Any], str | None], "Trigger"]
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """Base class of triggers; ``channel_id`` is the notification channel on Android."""

    type: ClassVar[str]
    channel_id: str | None = None

    def native(self) -> dict[str, Any]:
        """Return the trigger as passed to the native module."""
        values: dict[str, Any] = {"type": self.type, **self.facts()}
        if self.channel_id:
            values["channelId"] = self.channel_id

        return values

    def facts(self) -> dict[str, Any]:
        """Return the fields of the trigger's type."""
        names = [
            field.name
            for field in dataclasses.fields(self)
            if field.name != "channel_id"
        ]

        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, slots=True)
class ChannelTrigger(Trigger):
    """Immediate trigger in a channel, Android only."""

    type: ClassVar[str] = "channel"


@dataclass(frozen=True, slots=True)
class TimeIntervalTrigger(Trigger):
    """Trigger after an interval in seconds, or every interval if ``repeats`` is set."""

    type: ClassVar[str] = "timeInterval"
    seconds: float
    repeats: bool = False

    def __post_init__(self) -> None:
        _number("seconds", self.seconds)
        _flag("repeats", self.repeats)


@dataclass(frozen=True, slots=True)
class DateTrigger(Trigger):
    """One-time trigger at ``timestamp``, in milliseconds since the epoch."""

    type: ClassVar[str] = "date"
    timestamp: float

    def __post_init__(self) -> None:
        if abs(_number("date", self.timestamp)) > MAX_TIMESTAMP:
            raise _out_of_range("date", -MAX_TIMESTAMP, MAX_TIMESTAMP, self.timestamp)


@dataclass(frozen=True, slots=True)
class RecurringTrigger(Trigger):
    """Trigger that fires whenever the clock has its fields."""

    def __post_init__(self) -> None:
        for name, value in self.facts().items():
            low, high = _RANGES[name]
            number = _whole(name, value)
            if not low <= number <= high:
                raise _out_of_range(name, low, high, value)

            # 8.0, as JSON may have it, becomes 8.
            object.__setattr__(self, name, number)


@dataclass(frozen=True, slots=True)
class DailyTrigger(RecurringTrigger):
    """Daily trigger."""

    type: ClassVar[str] = "daily"
    hour: int
    minute: int


@dataclass(frozen=True, slots=True)
class WeeklyTrigger(RecurringTrigger):
    """Weekly trigger; ``weekday`` is 1 (Sunday) to 7 (Saturday)."""

    type: ClassVar[str] = "weekly"
    weekday: int
    hour: int
    minute: int


@dataclass(frozen=True, slots=True)
class MonthlyTrigger(RecurringTrigger):
    """Monthly trigger."""

    type: ClassVar[str] = "monthly"
    day: int
    hour: int
    minute: int


@dataclass(frozen=True, slots=True)
class YearlyTrigger(RecurringTrigger):
    """Yearly trigger; ``month`` is 0 (January) to 11 (December)."""

    type: ClassVar[str] = "yearly"
    month: int
    day: int
    hour: int
    minute: int

    def __post_init__(self) -> None:
        RecurringTrigger.__post_init__(self)
        if self.day > _DAYS[self.month]:
            raise _out_of_range(
                f"day of month {self.month}", 1, _DAYS[self.month], self.day
            )


@dataclass(frozen=True, slots=True)
class CalendarTrigger(Trigger):
    """Trigger that matches date components, iOS only; components use the documented names, unknown ones are kept."""

    type: ClassVar[str] = "calendar"
    components: Mapping[str, Any]
    repeats: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "components", MappingProxyType(dict(self.components)))
        _flag("repeats", self.repeats)

        for name in _COMPONENTS:
            value = self.components.get(name)
            if value is not None:
                _whole(name, value)

        zone = self.components.get("timezone")
        if zone is not None:
            zone_of(zone)

    def facts(self) -> dict[str, Any]:
        """Return the components with ``repeats``."""
        return {**self.components, "repeats": self.repeats}


def parse_trigger(
    input: Mapping[str, Any] | None,  # noqa: A002  # documented
    platform: Platform,
) -> Trigger | None:
    """Parse a trigger; return None to present immediately.

    >>> parse_trigger({"type": "daily", "hour": 8, "minute": 30}, "android")
    DailyTrigger(channel_id=None, hour=8, minute=30)

    Args:
        input: The trigger with its documented names, or None.
        platform: The platform: without a type, a trigger selects a channel, which exists on Android only.

    Raises:
        TriggerError: The trigger is invalid.
        ConfigError: The platform is unknown.
    """
    check_platform(platform)
    if input is None:
        return None

    fields = _fields(input)
    channel = fields.get("channelId")
    if channel is not None and not isinstance(channel, str):
        raise TriggerError(f"channelId {_brief(channel)} must be a string")

    trigger_type: object = fields.get("type")
    if trigger_type is None:
        return ChannelTrigger(channel_id=channel) if platform == "android" else None
    if not isinstance(trigger_type, str) or trigger_type not in _PARSERS:
        raise TriggerError(
            f"unknown trigger type {_brief(trigger_type)}{hint(trigger_type, _PARSERS)} "
            f"(available: {', '.join(_PARSERS)})"
        )

    return _PARSERS[trigger_type](fields, channel)


def check_platform(platform: str) -> None:
    """Raise ConfigError for an unknown platform."""
    if platform not in ("android", "ios"):
        raise ConfigError(f"platform {platform!r} must be 'android' or 'ios'")


def zone_of(tz: object) -> tzinfo:
    """Return a time zone by name. Raises TriggerError for an unknown name."""
    if isinstance(tz, tzinfo):
        return tz

    zone = _zone_named(tz) if isinstance(tz, str) else None
    if zone is None:
        raise TriggerError(
            f"time zone {_brief(tz)} does not exist: use a name such as 'Europe/Warsaw'"
            " (if all names fail: pip install tzdata)",
            name="RangeError",
        )

    return zone


def _zone_named(name: str) -> tzinfo | None:
    try:
        return ZoneInfo(name)
    # Null bytes and '..', directories, unknown names.
    except (ValueError, OSError, KeyError):
        return None


def milliseconds(moment: datetime) -> int:
    """Return the milliseconds since the epoch. Raises TriggerError for a naive datetime."""
    if moment.utcoffset() is None:
        raise TriggerError(
            f"{moment.isoformat()} needs a time zone: use datetime(…, tzinfo=…)"
        )

    return (moment - _EPOCH) // timedelta(milliseconds=1)


def moment_of(timestamp: float) -> datetime:
    """Convert milliseconds since the epoch to a datetime. Raises TriggerError outside the years 1 to 9999."""
    try:
        return _EPOCH + timedelta(milliseconds=timestamp)
    except OverflowError:
        raise TriggerError(
            f"date {timestamp!r} must be in the years 1 to 9999", name="RangeError"
        ) from None


def _fields(trigger: object) -> Mapping[str, Any]:
    """Return the fields of a trigger. Raises TriggerError for anything else."""
    fields: Mapping[str, Any] = (
        cast("Mapping[str, Any]", trigger) if isinstance(trigger, Mapping) else {}
    )
    if "type" not in fields and "channelId" not in fields:
        raise TriggerError(
            f"the trigger {_brief(cast('Any', trigger))} must be an object with 'type' or 'channelId', or None"
        )

    return fields


def _brief(value: object) -> str:
    try:
        return reprlib.repr(value)
    except ValueError:
        # An integer above Python's digit limit.
        return f"of type {type(value).__name__}"


def _interval(fields: Mapping[str, Any], channel: str | None) -> Trigger:
    seconds = _required(fields, "seconds")

    return TimeIntervalTrigger(seconds, _repeats(fields), channel_id=channel)


def _date(fields: Mapping[str, Any], channel: str | None) -> Trigger:
    date = _required(fields, "date")
    timestamp = milliseconds(date) if isinstance(date, datetime) else date

    return DateTrigger(timestamp, channel_id=channel)


def _calendar(fields: Mapping[str, Any], channel: str | None) -> Trigger:
    components = {
        name: value
        for name, value in fields.items()
        if name not in ("type", "repeats", "channelId")
    }

    return CalendarTrigger(components, _repeats(fields), channel_id=channel)


def _repeats(fields: Mapping[str, Any]) -> bool:
    repeats = fields.get("repeats")

    return False if repeats is None else repeats


def _recurring(trigger_class: type[RecurringTrigger]) -> _Parse:
    names = [
        field.name
        for field in dataclasses.fields(trigger_class)
        if field.name != "channel_id"
    ]

    def parse(fields: Mapping[str, Any], channel: str | None) -> Trigger:
        values = {name: _required(fields, name) for name in names}

        return trigger_class(**values, channel_id=channel)

    return parse


_PARSERS: Final[Mapping[str, _Parse]] = {
    "timeInterval": _interval,
    "date": _date,
    "calendar": _calendar,
    "daily": _recurring(DailyTrigger),
    "weekly": _recurring(WeeklyTrigger),
    "monthly": _recurring(MonthlyTrigger),
    "yearly": _recurring(YearlyTrigger),
}


def _required(fields: Mapping[str, Any], name: str) -> Any:
    if fields.get(name) is None:
        raise TriggerError(f"the trigger has no {name}")

    return fields[name]


def _number(name: str, value: object) -> float:
    """Return a finite number. Raises TriggerError."""
    # A bool is an int in Python. The product is NaN for NaN and infinity; math.isfinite fails for large integers.
    if isinstance(value, bool) or not isinstance(value, int | float) or value * 0 != 0:
        raise TriggerError(f"{name} {_brief(value)} must be a number")

    return value


def _whole(name: str, value: object) -> int:
    number = _number(name, value)
    if number != int(number):
        raise TriggerError(f"{name} {value!r} must be a whole number")

    return int(number)


def _flag(name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise TriggerError(f"{name} {_brief(value)} must be true or false")


def _out_of_range(name: str, low: float, high: float, value: object) -> TriggerError:
    return TriggerError(
        f"{name} {_brief(value)} must be {low} to {high}", name="RangeError"
    )
