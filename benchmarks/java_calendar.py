"""Compare the next dates of triggers on Android with Java's: ``python benchmarks/java_calendar.py [COUNT]``.

Needs ``java`` 17 or newer. Half of the moments are around a change of a zone's offset. Dates at which the two
sets of rules have other offsets are left out, and counted.
"""

import random
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple
from zoneinfo import ZoneInfo, available_timezones

from pytest_device.notifications import next_trigger_date

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST, LAST = datetime(2020, 1, 1, tzinfo=UTC), datetime(2036, 12, 1, tzinfo=UTC)
PROGRAM = Path(__file__).with_name("NextDate.java")
DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class Question(NamedTuple):
    """A trigger that is scheduled at a moment in a zone."""

    kind: str
    zone: str
    now: datetime
    month: int
    day: int
    weekday: int
    hour: int
    minute: int

    @property
    def line(self) -> str:
        return " ".join(map(str, (*self[:2], milliseconds(self.now), *self[3:])))

    @property
    def answer(self) -> int:
        names = {
            "daily": (),
            "weekly": ("weekday",),
            "monthly": ("day",),
            "yearly": ("month", "day"),
        }[self.kind]
        trigger = {
            "type": self.kind,
            **{name: getattr(self, name) for name in (*names, "hour", "minute")},
        }
        found = next_trigger_date(trigger, self.now, self.zone)
        assert found
        return milliseconds(found)

    def offset_at(self, timestamp: int) -> int:
        moment = EPOCH + timedelta(milliseconds=timestamp)
        return (
            moment.astimezone(ZoneInfo(self.zone)).utcoffset() or timedelta()
        ) // timedelta(milliseconds=1)


def questions(count: int, chance: random.Random) -> Iterator[Question]:
    zones = {
        zone: list(changes(ZoneInfo(zone)))
        for zone in sorted(available_timezones())
        if "/" in zone
    }
    for _ in range(count):
        zone = chance.choice(list(zones))
        now = FIRST + timedelta(
            minutes=chance.randrange((LAST - FIRST) // timedelta(minutes=1))
        )
        if zones[zone] and chance.random() < 0.5:
            now = chance.choice(zones[zone]) + timedelta(
                minutes=chance.randrange(-3 * 1440, 1440)
            )
        month = chance.randrange(12)
        day = chance.choice((chance.randint(1, DAYS[month]), DAYS[month]))
        local = now.astimezone(ZoneInfo(zone))
        hour = chance.choice((chance.randrange(24), chance.randrange(4), local.hour))
        kind = chance.choice(("daily", "weekly", "monthly", "yearly"))
        yield Question(
            kind,
            zone,
            now,
            month,
            day,
            chance.randint(1, 7),
            hour,
            chance.choice((0, 30, local.minute)),
        )


def changes(zone: ZoneInfo) -> Iterator[datetime]:
    day = FIRST
    while day < LAST:
        after = day + timedelta(days=1)
        if day.astimezone(zone).utcoffset() != after.astimezone(zone).utcoffset():
            yield day
        day = after


def milliseconds(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(milliseconds=1)


def main() -> int:
    asked = list(
        questions(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000, random.Random(22))
    )
    lines = "\n".join(question.line for question in asked)
    done = subprocess.run(
        ["java", str(PROGRAM)], input=lines, capture_output=True, text=True, check=True
    )
    shared = differing = 0
    for question, line in zip(asked, done.stdout.splitlines(), strict=True):
        answer, *offsets = map(int, line.split())
        if offsets != [
            question.offset_at(moment)
            for moment in (milliseconds(question.now), answer)
        ]:
            continue
        shared += 1
        if question.answer != answer:
            differing += 1
            print(f"{question}: {question.answer}, Java {answer}")
    print(
        f"{differing} of {shared} dates differ; {len(asked) - shared} have other offsets in the rules of this Java"
    )
    return bool(differing)


if __name__ == "__main__":
    sys.exit(main())
