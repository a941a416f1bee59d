"""A phase of an attempt at a test, as a value, and which phase decides the outcome of its attempt."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

REPEATED: Final = frozenset({"retried", "rerun"})
"""Outcomes of an attempt after which the test runs again."""
FAILED: Final = frozenset({"failed", "error"})
"""Outcomes that fail the run."""
INTERRUPTED: Final = "interrupted"
"""The outcome of an attempt that the run ended before its teardown."""
CRASH: Final = "???"
"""What pytest-xdist calls the phase of a test that crashed its worker: nobody knows which one it was."""


@dataclass(frozen=True, slots=True)
class TestPhase:
    """Setup, call or teardown of one attempt at a test, or the crash of its worker.

    ``seconds`` does not include ``waited_seconds``, the wait for a device. ``outcome`` is ``passed``, ``failed``,
    ``error`` (not the test's own, or outside of its call), ``skipped``, ``xfailed``, ``xpassed``, ``retried``,
    ``rerun`` (by another plugin) or ``quarantined``. ``verdict`` and ``error`` are empty for a phase that did not
    fail. ``sessions`` are the IDs of the sessions that the attempt has had so far, ``owner`` the argument of the test's
    marker ``owner``.
    """

    __test__ = False  # not a test class

    test: str
    when: str
    outcome: str
    attempt: int = 1
    seconds: float = 0.0
    waited_seconds: float = 0.0
    verdict: str = ""
    error: str = ""
    sessions: tuple[str, ...] = ()
    owner: str = ""


def deciding_phase(phases: Sequence[TestPhase]) -> TestPhase:
    """Return the phase whose outcome is that of the attempt: the first that fails the run, else the first that did not pass.

    A test may skip itself or fail as expected, and then fail in its teardown: pytest counts both, and the run fails.
    """
    for phase in phases:
        if phase.outcome in FAILED:
            return phase

    for phase in phases:
        if phase.outcome != "passed":
            return phase

    return phases[-1]


def outcome_of(phases: Sequence[TestPhase]) -> str:
    """Return the outcome of an attempt: that of its deciding phase.

    If the run ended during the test, nothing but the missing teardown shows that it did not pass.

    >>> outcome_of([TestPhase("test_app.py::test_signs_in", "setup", "passed")])
    'interrupted'
    """
    outcome = deciding_phase(phases).outcome
    if outcome == "passed" and phases[-1].when in {"setup", "call"}:
        return INTERRUPTED

    return outcome


def sessions_of(phases: Sequence[TestPhase]) -> list[str]:
    """Return the IDs of the sessions that an attempt had, each once: a phase names those of the phases before, too.

    >>> setup = TestPhase("test_app.py::test_signs_in", "setup", "passed", sessions=("a",))
    >>> call = TestPhase("test_app.py::test_signs_in", "call", "passed", sessions=("a", "b"))
    >>> sessions_of([setup, call])
    ['a', 'b']
    """
    sessions: dict[str, None] = {}
    for phase in phases:
        sessions.update(dict.fromkeys(phase.sessions))

    return list(sessions)
