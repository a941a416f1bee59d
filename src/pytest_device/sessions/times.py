"""Times as the ledger holds them and as people read them."""

from contextlib import suppress
from datetime import UTC, datetime


def time_of(text: str) -> datetime:
    """Return a time of an entry, one long ago for what is none."""
    with suppress(ValueError):
        time = datetime.fromisoformat(text)
        return time if time.tzinfo else time.replace(tzinfo=UTC)
    return datetime.fromtimestamp(0, UTC)


def date_and_time(text: str) -> str:
    """Return a time of an entry as people here have it on their calendars and clocks."""
    return f"{time_of(text).astimezone():%Y-%m-%d %H:%M}"


def time_of_day(time: datetime) -> str:
    """Return hours and minutes as people here have them on their clocks."""
    return f"{time.astimezone():%H:%M}"
