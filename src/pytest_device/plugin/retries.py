"""Runs a test again if its device failed, and never because the test failed."""

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import pytest

from pytest_device.errors import NotAttemptedError, StopFailedError
from pytest_device.plugin.output.failure import add_section
from pytest_device.plugin.output.outcomes import NOT_RETRIED, RETRIED, add_property
from pytest_device.plugin.output.terminal import CAUSE, VERDICT, first_line
from pytest_device.plugin.provider.acquired import sessions_of
from pytest_device.plugin.selection import SCOPED_DRIVERS
from pytest_device.plugin.state import RETRIES, definitions_of, requirements_of
from pytest_device.sessions.breaker import RETRY, key_of
from pytest_device.trace.stack import is_installed
from pytest_device.verdict import Verdict

if TYPE_CHECKING:
    from pytest_device.plugin.provider.devices import Devices

_RETRY_NOW: Final = pytest.StashKey[bool]()
"""Whether the current attempt is to be repeated."""
_FAILED_ITSELF: Final = pytest.StashKey[bool]()
"""Whether the test itself failed in the current attempt, perhaps in a subtest."""
_XUNIT: Final = ("_xunit_setup_", "_unittest_setUpClass_")
"""Prefixes of pytest's names for the setup of classes and modules."""


class InfrastructureRetries:
    """Registered as a plugin while a process runs tests with ``devices`` and retries are allowed.

    It runs the whole protocol of the test again, so that other plugins take part in each attempt.
    """

    def __init__(self, devices: "Devices") -> None:
        self._devices = devices
        self._limit = devices.settings.retry_infrastructure

    @pytest.hookimpl(wrapper=True, tryfirst=True)  # around timeouts and warnings
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Generator[None, object, object]:
        """Run the test, and run it again while its device fails and retries are left."""
        properties = list(item.user_properties)
        result = yield

        run_again = item.config.pluginmanager.subset_hook_caller(
            "pytest_runtest_protocol", [self]
        )

        while item.stash.get(_RETRY_NOW, False):
            item.stash[_RETRY_NOW] = False  # also if it is not even set up again
            item.stash[RETRIES] = item.stash.get(RETRIES, 0) + 1
            # Each attempt names its own sessions only.
            item.user_properties[:] = properties
            result = run_again(item=item, nextitem=nextitem)

        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None]:
        """Begin an attempt: the one before was repeated, here or by another plugin."""
        item.stash[_RETRY_NOW] = item.stash[_FAILED_ITSELF] = False
        yield

    # Around the hook that attaches the verdict.
    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Turn the error of an attempt that is repeated into its result ``rerun``."""
        report = yield
        if not report.failed:
            return report

        if vars(report).get(VERDICT) != Verdict.INFRASTRUCTURE:
            item.stash[_FAILED_ITSELF] = True
            item.stash[_RETRY_NOW] = False
        elif report.when == "teardown":
            is_stop_failed = call.excinfo and call.excinfo.errisinstance(
                StopFailedError
            )
            # A session that could not be stopped needs attention, also if the test runs again.
            if item.stash.get(_RETRY_NOW, False) and not is_stop_failed:
                _replace_error(report, "passed", None)
        elif CAUSE not in vars(report):
            self._decide(item, report)

        return report

    def _decide(self, item: pytest.Item, report: pytest.TestReport) -> None:
        used = item.stash.get(RETRIES, 0)
        if used >= self._limit or item.session.shouldstop or item.session.shouldfail:
            return

        if reason := self._refusal(item):
            add_section(report, "not retried", reason)
            add_property(item, report, NOT_RETRIED, reason)
            return

        # Never again the session that failed, nor one whose state is unknown.
        self._devices.mark_unusable(sessions_of(item))
        item.stash[_RETRY_NOW] = True
        error = first_line(report)
        path, line, _ = item.location
        vars(report)[RETRIED] = error
        text = f"{error} (retried on another session, {used + 1}/{self._limit})"
        # The result of pytest that counts neither as a failure nor as a pass, in every report.
        _replace_error(report, "skipped", (path, (line or 0) + 1, text))

    def _refusal(self, item: pytest.Item) -> str:
        """Return why a test is not run again although its device failed, empty if it is."""
        if item.stash.get(_FAILED_ITSELF, False):
            return "the test itself failed as well"

        if shared := sorted(shared_fixtures(item)):
            return (
                f"it uses {', '.join(shared)}, which other tests share: "
                "only tests whose fixtures are all function-scoped are run again"
            )

        requirements = requirements_of(item).values()
        if any(requirement.attach for requirement in requirements):
            return "it runs on an attached session, so there is no other one"

        permits = self._devices.permits
        if any(
            permits.new(key_of(requirement.request)).is_refused
            for requirement in requirements
        ):
            return "identical sessions keep failing, also for other tests"

        # Last, since it uses up the quota.
        try:
            permits.new(RETRY).may_begin()
        except NotAttemptedError as refusal:
            return refusal.cause

        return ""


def _replace_error(
    report: pytest.TestReport,
    outcome: Literal["passed", "skipped"],
    longrepr: tuple[str, int, str] | None,
) -> None:
    """Let a phase of a repeated attempt not fail the run: its error becomes a section."""
    report.sections.append(("error of this attempt", report.longreprtext))
    report.outcome = outcome
    report.longrepr = longrepr


def shared_fixtures(item: pytest.Item) -> Iterator[str]:
    """Yield the driver and the suite's fixtures that a test shares with others.

    Those of installed plugins don't count: they don't depend on a device.
    """
    for name, definitions in definitions_of(item).items():
        if name in SCOPED_DRIVERS:
            yield name
            continue

        for definition in definitions:
            if definition.scope == "function":
                continue

            if name.startswith(_XUNIT):
                yield "the setup of its class or module"
            elif not _is_installed(definition.func):
                yield name


def _is_installed(function: Any) -> bool:
    """Return whether a fixture belongs to an installed package, not to the suite: it holds no state of it."""
    if str(getattr(function, "__module__", "")).partition(".")[0] == "pytest_device":
        return True

    code = getattr(function, "__code__", None)
    if code is None:
        return False

    return is_installed(Path(code.co_filename).resolve())
