"""Groups errors that are not the tests' own by cause."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pytest_device.figures import counted
from pytest_device.report.lines import with_pages, without_pages
from pytest_device.sessions.events import StartFailed


@dataclass(frozen=True, slots=True)
class Incident:
    """An error that is not the test's own, and the session pages of the test.

    ``cause`` is the error of an earlier test because of which this test was not attempted.
    """

    verdict: str
    test: str
    error: str
    pages: Sequence[str] = ()
    cause: str = ""

    @property
    def text(self) -> str:
        return self.cause or self.error.removeprefix(f"{self.verdict}: ")

    def line(self, more_pages: Sequence[str] = ()) -> str:
        return with_pages(f"{self.verdict}: {self.test}: {self.text}", [*self.pages, *more_pages])


class IncidentGroup(NamedTuple):
    """All incidents with one cause, and the pages of other sessions that failed alike."""

    incidents: Sequence[Incident]
    pages: Sequence[str]

    def line(self) -> str:
        first, tests = self.incidents[0], {one.test for one in self.incidents}  # a rerun meets the cause again
        pages = [page for one in self.incidents for page in one.pages]
        if len(tests) == 1:
            return first.line([*pages, *self.pages])
        cause = without_pages(first.text).removesuffix(".")
        affected = f"{counted(len(tests), 'test')} affected, first {first.test}"
        return with_pages(f"{first.verdict}: {cause}: {affected}", [*pages, *self.pages])


def group_incidents(incidents: Iterable[Incident], not_started: Sequence[StartFailed]) -> Mapping[str, IncidentGroup]:
    """Group incidents by the common part of their errors, with the sessions that failed alike."""
    by_cause: dict[str, list[Incident]] = {}
    for incident in incidents:
        by_cause.setdefault(normalize(incident.text), []).append(incident)
    pages = {key: [event.session.url for event in not_started if normalize(event.reason) == key] for key in by_cause}
    return {key: IncidentGroup(of_one, pages[key]) for key, of_one in by_cause.items()}


def normalize(text: str) -> str:
    """Return an error without the parts that differ between sessions: URLs, IDs, times."""
    return re.sub(
        r"https?://[^\s)]+|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d+(\.\d+)? s\b", "…", without_pages(text)
    )
