"""The marker ``device_quarantine``: a test that runs and is reported, but does not fail the run until a date."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Final

import pytest

from pytest_device.errors import ConfigError

MARKER: Final = "device_quarantine"
_EXAMPLE: Final = f'@pytest.mark.{MARKER}(until="2027-01-31", reason="...")'
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True, slots=True)
class Quarantine:
    """Until which day, in UTC, the failures of a test don't fail the run, and why."""

    until: date
    reason: str

    def __str__(self) -> str:
        return f"until {self.until}: {self.reason}"

    @property
    def is_active(self) -> bool:
        return datetime.now(UTC).date() <= self.until


QUARANTINE: Final = pytest.StashKey[Quarantine]()
"""The quarantine of a test that has not expired."""


def read_quarantine(item: pytest.Item, *, has_device: bool) -> Quarantine | None:
    """Return the quarantine of a test, that of its closest marker, None without one; raises ConfigError.

    The marker is ``@pytest.mark.device_quarantine(until="YYYY-MM-DD", reason="...")``.
    """
    mark = item.get_closest_marker(MARKER)
    if mark is None:
        return None

    problems = list(_problems(mark))
    if not has_device:
        problems.append(f"{MARKER} is for tests with a device: this one has none")
    if problems:
        raise ConfigError(*problems)

    return Quarantine(date.fromisoformat(mark.kwargs["until"]), mark.kwargs["reason"])


def _problems(mark: pytest.Mark) -> Iterator[str]:
    unknown = sorted(mark.kwargs.keys() - {"until", "reason"})
    if mark.args or unknown:
        wrong = ", ".join([*map(repr, mark.args), *unknown])
        yield f"{MARKER} takes until and reason only, not {wrong}: write {_EXAMPLE}"

    until = mark.kwargs.get("until")
    if until is None:
        yield f"{MARKER} needs the last day of the quarantine: write {_EXAMPLE}"
    elif not _is_date(until):
        yield f'{MARKER}: until={until!r} must be a date as text, such as "2027-01-31"'

    reason = mark.kwargs.get("reason")
    if reason is None:
        yield f"{MARKER} needs a reason: write {_EXAMPLE}"
    elif not isinstance(reason, str) or not reason.strip():
        yield f"{MARKER}: reason={reason!r} must be a text that says why"


def _is_date(until: object) -> bool:
    if not isinstance(until, str) or not _DATE.fullmatch(until):
        return False

    try:
        date.fromisoformat(until)
    except ValueError:  # such as February 30
        return False

    return True


def begin_quarantines(
    quarantines: Iterable[tuple[pytest.Item, Quarantine]],
) -> list[str]:
    """Let active quarantines begin, and warn once of each expired marker.

    Returns the warnings that the run turns into errors (``-W error``).
    """
    warned: set[tuple[str, Quarantine]] = set()
    problems: list[str] = []
    for item, quarantine in quarantines:
        if quarantine.is_active:
            item.stash[QUARANTINE] = quarantine
            continue

        test = item.nodeid.partition("[")[0]
        if (test, quarantine) in warned or not _is_first_worker(item.config):
            continue

        warned.add((test, quarantine))

        text = f"{test}: the quarantine has expired on {quarantine.until} ({quarantine.reason}): the test fails the run again"
        try:
            item.warn(pytest.PytestWarning(text))
        except pytest.PytestWarning:
            problems.append(text)

    return problems


def _is_first_worker(config: pytest.Config) -> bool:
    """Return whether this process reports what each worker collects."""
    worker: str = getattr(config, "workerinput", {}).get("workerid", "gw0")
    return worker == "gw0"
