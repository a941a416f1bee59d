"""A phase of an attempt at a test, as a value."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TestPhase:
    """Setup, call or teardown of one attempt at a test.

    ``seconds`` does not include ``waited_seconds``, the wait for a device. ``outcome`` is ``passed``, ``failed``,
    ``error`` (not the test's own, or outside of its call), ``skipped``, ``xfailed``, ``xpassed``, ``retried``,
    ``rerun`` (by pytest-rerunfailures) or ``quarantined``. ``verdict`` and ``error`` are empty for a phase that did not
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
