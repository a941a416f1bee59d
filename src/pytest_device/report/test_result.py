"""What the reports for a CI service say of one test, as a value."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from pytest_device.report.attempts import Location
from pytest_device.report.phase import TestPhase


@dataclass(slots=True)
class TestResult:
    """A test and its last attempt.

    ``outcome`` is that of the deciding phase, in the words of `TestPhase`; ``message`` is the error of that phase, and
    ``explanation`` are lines that the message does not have. ``location`` is the failing line, relative to the root of
    the repository. ``files`` is the trace of the test's devices, or the directory of its artifacts. ``repeated`` has
    the error of each earlier attempt, ``phases`` are those of the last one.
    """

    __test__ = False  # not a test class

    test: str
    outcome: str = "passed"
    verdict: str = ""
    message: str = ""
    explanation: Sequence[str] = ()
    location: Location | None = None
    device: str = ""
    page: str = ""
    minutes: str = ""
    files: str = ""
    repeated: list[str] = field(default_factory=list[str])
    phases: list[TestPhase] = field(default_factory=list[TestPhase])

    @property
    def reason(self) -> str:
        """The first line of the message."""
        lines = self.message.strip().splitlines()
        return lines[0] if lines else "no error text"
