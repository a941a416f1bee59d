"""The exit status of a run with failures, by their verdicts."""

from collections.abc import Generator
from typing import Final

import pytest

from pytest_device.errors import ConfigError
from pytest_device.plugin.options import settings_of
from pytest_device.plugin.output.terminal import VERDICT, VERDICT_OF_SUBTESTS
from pytest_device.verdict import Verdict

INFRASTRUCTURE_ONLY: Final = 10
"""Only infrastructure failed: running the job again may help."""
NO_TEST_FAILED: Final = 11
"""Every failure has a verdict, and at least one needs a change: of the app, the configuration or the budget."""


class ExitStatus:
    """Registered as a plugin in the process whose exit status the user sees.

    Only pytest's status 1 is replaced. Those of interrupts, internal errors, usage errors and runs without tests (2 to
    5) and of signals stay.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._verdicts: list[str | None] = []
        """The verdict of each failure, None for a failure without one."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            carried = vars(report)
            # pytest-xdist has the failure of a test that contains failed subtests, other runs have only those.
            verdict = carried.get(VERDICT) or carried.get(VERDICT_OF_SUBTESTS)
            self._verdicts.append(verdict)

    # Around all others, which may set it, too.
    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None]:
        """Replace the exit status if no failure is a test's own."""
        try:
            yield
        finally:
            if session.exitstatus == pytest.ExitCode.TESTS_FAILED:
                session.exitstatus = self._status(session)

    def _status(self, session: pytest.Session) -> int:
        # Files that could not be collected failed before this plugin was registered.
        is_complete = len(self._verdicts) == session.testsfailed
        if not self._verdicts or not is_complete or None in self._verdicts:
            return pytest.ExitCode.TESTS_FAILED
        if not self._is_by_verdict():
            return pytest.ExitCode.TESTS_FAILED
        if set(self._verdicts) == {Verdict.INFRASTRUCTURE}:
            return INFRASTRUCTURE_ONLY

        return NO_TEST_FAILED

    def _is_by_verdict(self) -> bool:
        try:
            return settings_of(self._config).exit_status == "verdict"
        # pytest has shown it already.
        except ConfigError:
            return False
