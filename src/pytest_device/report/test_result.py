"""What the reports for a CI service say of one test, as a value."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from pytest_device.report.attempts import Location

REPEATED: frozenset[str] = frozenset({"retried", "rerun"})
"""Outcomes of an attempt after which the test runs again."""
FAILED: frozenset[str] = frozenset({"failed", "error"})
"""Outcomes that fail the run."""


@dataclass(slots=True)
class TestResult:
    """A test and its last attempt.

    ``outcome`` is that of the first phase that did not pass, in the words of `TestPhase`; ``message`` is the error of
    that phase, and ``explanation`` are lines that it does not have. ``place`` is the failing line, relative to the
    root of the repository. ``files`` is the trace of the test's devices, or the directory of its artifacts.
    ``repeated`` has the error of each earlier attempt.
    """

    __test__ = False  # not a test class

    test: str
    outcome: str = "passed"
    verdict: str = ""
    message: str = ""
    explanation: Sequence[str] = ()
    place: Location | None = None
    device: str = ""
    page: str = ""
    minutes: str = ""
    files: str = ""
    repeated: list[str] = field(default_factory=list[str])

    @property
    def reason(self) -> str:
        """The first line of the message."""
        return next(iter(self.message.strip().splitlines()), "no error text")
