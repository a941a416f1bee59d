"""What GitHub reads in the log of a job: annotations."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pytest_device.escape import escaped
from pytest_device.figures import counted, shortened
from pytest_device.report.attempts import Location
from pytest_device.report.lines import Incident, group_incidents
from pytest_device.report.phase import FAILED
from pytest_device.report.test_result import TestResult
from pytest_device.verdict import Verdict

MAX_ANNOTATIONS: Final = 10
"""Maximum annotations of a level: GitHub shows as many of a step, and drops the others without a word."""
_MAX_TITLE: Final = 200
_MAX_MESSAGE: Final = 4000
_MAX_MESSAGE_LINES: Final = 10
_DATA: Final = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
"""How the runner of GitHub decodes the text of a command; the values of properties have two signs more."""
_PROPERTY: Final = _DATA | str.maketrans({":": "%3A", ",": "%2C"})


@dataclass(frozen=True, slots=True)
class Annotation:
    """A message at a line of the repository; ``level`` is ``error`` or ``warning``."""

    level: str
    title: str
    message: str
    location: Location | None = None

    def command(self, mask: Callable[[str], str]) -> str:
        """Return the command for GitHub: one line, in which no text can end a value or begin another command."""
        values: dict[str, str] = {}
        if self.location:
            values["file"] = self.location.file
            values["line"] = str(self.location.line)

        values["title"] = shortened(mask(self.title), _MAX_TITLE)
        properties = ",".join(
            f"{name}={_encoded(value, _PROPERTY)}" for name, value in values.items()
        )
        message = _encoded(shortened(mask(self.message), _MAX_MESSAGE), _DATA)
        return f"::{self.level} {properties}::{message}"


def annotations(
    results: Sequence[TestResult], incidents: Iterable[Incident]
) -> Iterator[Annotation]:
    """Yield an annotation for each test that failed itself, and for each cause of the other errors, at most ten of a level.

    A failure of the infrastructure is a warning: an error in the diff would ask for a change of that line.
    """
    errors = [
        Annotation("error", result.test, _described(result), result.location)
        for result in results
        if result.outcome in FAILED and not result.verdict
    ]

    locations = {result.test: result.location for result in results}
    warnings: list[Annotation] = []

    for group in group_incidents(incidents, []).values():
        first = group.incidents[0]
        is_warning = first.verdict is Verdict.INFRASTRUCTURE
        level = "warning" if is_warning else "error"
        title = f"{first.verdict}: {first.test}"
        annotation = Annotation(level, title, group.line(), locations.get(first.test))

        if is_warning:
            warnings.append(annotation)
        else:
            errors.append(annotation)

    yield from _limited(errors)
    yield from _limited(warnings)


def _limited(all_annotations: Sequence[Annotation]) -> Iterator[Annotation]:
    if len(all_annotations) <= MAX_ANNOTATIONS:
        yield from all_annotations
        return

    # The last one says how many are missing.
    shown = MAX_ANNOTATIONS - 1
    yield from all_annotations[:shown]

    level = all_annotations[0].level
    more = counted(len(all_annotations) - shown, f"more {level}")
    yield Annotation(level, more, f"{more}: see the summary of the job, or its log")


def _described(result: TestResult) -> str:
    # The log has the whole error.
    lines = result.message.strip().splitlines()[:_MAX_MESSAGE_LINES]
    if not lines:
        lines = [result.reason]

    lines += result.explanation

    facts = {
        "device": result.device,
        "session page": result.page,
        "files": result.files,
    }
    lines += [f"{name}: {value}" for name, value in facts.items() if value]
    return "\n".join(lines)


def _encoded(text: str, codes: Mapping[int, str]) -> str:
    return escaped(text).translate(codes)
