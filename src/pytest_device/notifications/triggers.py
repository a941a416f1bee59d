"""Triggers of scheduled notifications: types, validation and parsing."""

import reprlib
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Final,
    Literal,
    Self,
    TypeAlias,
    cast,
)
from zoneinfo import ZoneInfo

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)
from pydantic_core import PydanticCustomError

from pytest_device.errors import ConfigError, hides_frames
from pytest_device.notifications.errors import TriggerError
from pytest_device.spelling import hint, in_camel_case

__tracebackhide__ = hides_frames

Platform: TypeAlias = Literal["android", "ios"]

MAX_TIMESTAMP: Final = 8_640_000_000_000_000
"""Maximum timestamp of a JavaScript ``Date``, in milliseconds since the epoch."""
_DAYS: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
"""Maximum number of days of each month: a yearly trigger on 29 February is valid."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Fields(BaseModel):
    """Value with the names of the document or of Python, which cannot be changed."""

    model_config = ConfigDict(
        frozen=True,
        alias_generator=in_camel_case,
        populate_by_name=True,
        allow_inf_nan=False,
    )

    # Type checkers know the fields; their errors are those of pytest-device.
    if not TYPE_CHECKING:

        def __init__(self, /, **fields: Any) -> None:
            try:
                super().__init__(**fields)
            except ValidationError as error:
                raise self.refused(error) from None

    @classmethod
    def refused(cls, error: ValidationError) -> ConfigError:
        """Return the error for a field that is wrong or missing."""
        return ConfigError(_problem(error))


def _problem(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    name = next(iter(first["loc"]), "")

    return f"{name} {reprlib.repr(first['input'])}: {first['msg']}"


class Trigger(Fields):
    """Base class of triggers; ``channel_id`` is the notification channel on Android."""

    type: ClassVar[str]
    channel_id: Annotated[
        str | None, AfterValidator(lambda channel: channel or None)
    ] = None

    @classmethod
    def refused(cls, error: ValidationError) -> TriggerError:
        """Return the error, whose name tells a number outside its range from any other mistake."""
        first = error.errors()[0]
        cause = first.get("ctx", {}).get("error")
        if isinstance(cause, TriggerError):
            return cause

        is_range = first["type"] in ("greater_than_equal", "less_than_equal")

        return TriggerError(
            _problem(error), name="RangeError" if is_range else "TypeError"
        )

    def native(self) -> dict[str, Any]:
        """Return the trigger as passed to the native module."""
        return {
            "type": self.type,
            **self.model_dump(by_alias=True, exclude_none=True),
        }


def _number(value: object) -> object:
    """Refuse what pydantic would convert: a text, and a bool, which is an int in Python."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise PydanticCustomError("number", "Input should be a number")

    return value


def _milliseconds_of(date: object) -> object:
    return milliseconds(date) if isinstance(date, datetime) else _number(date)


def _existing(name: str) -> str:
    zone_of(name)

    return name


Whole: TypeAlias = Annotated[int, BeforeValidator(_number)]
Repeats: TypeAlias = Annotated[
    bool,
    Field(strict=True),
    BeforeValidator(lambda repeats: False if repeats is None else repeats),
]
Hour: TypeAlias = Annotated[Whole, Field(ge=0, le=23)]
Minute: TypeAlias = Annotated[Whole, Field(ge=0, le=59)]
Weekday: TypeAlias = Annotated[Whole, Field(ge=1, le=7)]
Day: TypeAlias = Annotated[Whole, Field(ge=1, le=31)]
Month: TypeAlias = Annotated[Whole, Field(ge=0, le=11)]


class ChannelTrigger(Trigger):
    """Immediate trigger in a channel, Android only."""

    type: ClassVar[str] = "channel"


class TimeIntervalTrigger(Trigger):
    """Trigger after an interval in seconds, or every interval if ``repeats`` is set."""

    type: ClassVar[str] = "timeInterval"
    seconds: Annotated[int | float, BeforeValidator(_number)]
    repeats: Repeats = False


class DateTrigger(Trigger):
    """One-time trigger at ``timestamp``, in milliseconds since the epoch."""

    type: ClassVar[str] = "date"
    timestamp: Annotated[
        int | float,
        BeforeValidator(_milliseconds_of),
        Field(
            ge=-MAX_TIMESTAMP,
            le=MAX_TIMESTAMP,
            validation_alias=AliasChoices("date", "timestamp"),
        ),
    ]


class RecurringTrigger(Trigger):
    """Trigger that fires whenever the clock has its fields."""

    def facts(self) -> dict[str, int]:
        """Return the fields of the trigger's type."""
        return self.model_dump(exclude={"channel_id"})


class DailyTrigger(RecurringTrigger):
    """Daily trigger."""

    type: ClassVar[str] = "daily"
    hour: Hour
    minute: Minute


class WeeklyTrigger(RecurringTrigger):
    """Weekly trigger; ``weekday`` is 1 (Sunday) to 7 (Saturday)."""

    type: ClassVar[str] = "weekly"
    weekday: Weekday
    hour: Hour
    minute: Minute


class MonthlyTrigger(RecurringTrigger):
    """Monthly trigger."""

    type: ClassVar[str] = "monthly"
    day: Day
    hour: Hour
    minute: Minute


class YearlyTrigger(RecurringTrigger):
    """Yearly trigger; ``month`` is 0 (January) to 11 (December)."""

    type: ClassVar[str] = "yearly"
    month: Month
    day: Day
    hour: Hour
    minute: Minute

    @model_validator(mode="after")
    def _check_day(self) -> Self:
        if self.day > _DAYS[self.month]:
            raise TriggerError(
                f"day of month {self.month} {self.day} must be 1 to {_DAYS[self.month]}",
                name="RangeError",
            )

        return self


class CalendarTrigger(Trigger):
    """Trigger that matches date components, iOS only; unknown components are kept."""

    model_config = ConfigDict(extra="allow")

    type: ClassVar[str] = "calendar"
    repeats: Repeats = False
    year: Whole | None = None
    month: Whole | None = None
    day: Whole | None = None
    hour: Whole | None = None
    minute: Whole | None = None
    second: Whole | None = None
    weekday: Whole | None = None
    weekday_ordinal: Whole | None = None
    week_of_month: Whole | None = None
    week_of_year: Whole | None = None
    timezone: Annotated[str, AfterValidator(_existing)] | None = None

    @property
    def components(self) -> dict[str, Any]:
        """The date components, with their documented names."""
        return self.model_dump(
            by_alias=True, exclude_unset=True, exclude={"channel_id", "repeats"}
        )

    def native(self) -> dict[str, Any]:
        """Return the trigger as passed to the native module."""
        return {**super().native(), **self.components}


_TYPES: Final[Mapping[str, type[Trigger]]] = {
    kind.type: kind
    for kind in (
        TimeIntervalTrigger,
        DateTrigger,
        CalendarTrigger,
        DailyTrigger,
        WeeklyTrigger,
        MonthlyTrigger,
        YearlyTrigger,
    )
}


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

    fields = dict(input) if isinstance(cast("object", input), Mapping) else {}
    if "type" not in fields and "channelId" not in fields:
        raise TriggerError(
            f"the trigger {reprlib.repr(input)} must be an object with 'type' or 'channelId', or None"
        )

    trigger_type = fields.pop("type", None)
    if trigger_type is None:
        trigger = ChannelTrigger(channel_id=fields.get("channelId"))
        return trigger if platform == "android" else None
    if not isinstance(trigger_type, str) or trigger_type not in _TYPES:
        raise TriggerError(
            f"unknown trigger type {reprlib.repr(trigger_type)}{hint(trigger_type, _TYPES)} "
            f"(available: {', '.join(_TYPES)})"
        )

    return _TYPES[trigger_type](**fields)


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
            f"time zone {reprlib.repr(tz)} does not exist: use a name such as 'Europe/Warsaw'"
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
