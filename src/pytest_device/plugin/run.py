"""What one pytest process holds while it runs device tests: the way to the service, the events, the reports."""

import os
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any, Final, cast

import pytest

from pytest_device.errors import AgentDeviceError, ArgentError, ConfigError, ControllerLostError, DeviceError
from pytest_device.local import log_lines
from pytest_device.plugin import artifacts
from pytest_device.plugin.access import MAIN, Access, LocalAccess, RemoteAccess, joined
from pytest_device.plugin.attendance import Attendance
from pytest_device.plugin.collection import needs_of
from pytest_device.plugin.controller import LOCAL, RUN
from pytest_device.plugin.devices import FAILED, PROVIDING, WAITED, Devices
from pytest_device.plugin.history import history_of
from pytest_device.plugin.household import Household, Sweeping
from pytest_device.plugin.line import LINE, Channel
from pytest_device.plugin.markers import Names
from pytest_device.plugin.options import only_tells, usage_error, will_run
from pytest_device.plugin.outlook import Dealt, WholeRun
from pytest_device.plugin.progress import Progress
from pytest_device.plugin.schedule import Lineup, Numbers
from pytest_device.plugin.secrets import redactor_of
from pytest_device.plugin.shard import SHARD_LINE
from pytest_device.plugin.signals import EndInOrder
from pytest_device.plugin.terminal import EVENTS, Terminal, attach
from pytest_device.plugin.warm import is_broken_off
from pytest_device.report.verdict import Verdict, verdict_of
from pytest_device.sessions.events import Event, Kind
from pytest_device.sessions.models import Session
from pytest_device.sessions.network import service_at
from pytest_device.sessions.runs import new_run
from pytest_device.settings import Settings

_RUN: Final = pytest.StashKey["DeviceRun"]()
_BLAMED: Final = pytest.StashKey[DeviceError]()
"""An error of the infrastructure that a test has met and that no hook was told of yet."""
_REFUSALS: Final = (AgentDeviceError, ArgentError)
"""What a controller says of what a suite asked of it, in a fixture as in a test: its own affair."""
WORKER_STOP_SECONDS: Final = 5.0
"""How long a pytest-xdist worker waits for its stops at its end: pytest-xdist kills it after ten."""


def devices_of(request: pytest.FixtureRequest) -> Devices:
    """Return what provides devices to the tests of this run; raises ConfigError where none does."""
    run = request.config.stash.get(_RUN, None)
    if run is None:
        raise ConfigError(
            f"{request.node.nodeid} asks for a device while it runs, and no test did before: mark it with "
            "@pytest.mark.device(platform=...)"
        )
    return run.devices


def keeps(item: pytest.Item) -> bool:
    """Tell whether the sessions of a test are to be left running because it failed."""
    run = item.config.stash.get(_RUN, None)
    return run is not None and run.keeps(item)


class DeviceRun:
    """Registered as a plugin only in a process that has device tests to run."""

    def __init__(self, config: pytest.Config, settings: Settings) -> None:
        self.settings = settings
        self._config = config
        self._pid = os.getpid()
        self.name: str = self._input().get(RUN) or new_run()
        self._redactor = redactor_of(config)
        self._events: list[Event] = []
        self._signals = EndInOrder()
        self._access: Access | None = None
        self._devices: Devices | None = None
        self._outlook: Dealt | None = None
        self._places: dict[pytest.Item, int] = {}
        """Of the tests as they were ordered here."""
        self._household: Household | None = None
        self._sweeping: Sweeping | None = None
        self._terminal = None if hasattr(config, "workerinput") else Terminal(config)
        self._attendance = Attendance(config, self._terminal)
        self._progress = Progress(config, self._terminal) if self._terminal else None

    def missing(self) -> list[str]:
        """Tell what is missing to run the tests."""
        if not will_run(self._config) or only_tells(self._config):
            return []
        attended = self.settings.keep_on_failure.value and self._attendance.is_given()
        return list(self.settings.service_problems(attended=attended))

    def register(self, ordered: Sequence[pytest.Item]) -> None:
        """Take part in the run from here on; ``ordered`` are the tests, none where somebody else has ordered them.

        An earlier run in this process ends (``--looponfail``).
        """
        self._places = {item: place for place, item in enumerate(ordered)}
        for name in ("device-run", "device-terminal"):
            if self._config.pluginmanager.has_plugin(name):
                self._config.pluginmanager.unregister(name=name)
        self._config.stash[_RUN] = self
        self._config.pluginmanager.register(self, "device-run")
        if self._terminal:
            self._config.pluginmanager.register(self._terminal, "device-terminal")

    @property
    def devices(self) -> Devices:
        """Return what provides devices to tests."""
        if self._devices is None:
            raise RuntimeError("a test is set up outside the run's loop")
        return self._devices

    def keeps(self, item: pytest.Item) -> bool:
        """Tell whether the sessions of a test are to be left running because it failed."""
        return self.settings.keep_on_failure.value and item.stash.get(FAILED, False) and not self._attendance.is_given()

    def _tell(self, event: Event) -> None:
        event = replace(event, text=self._redactor.text(event.text), url=self._redactor.text(event.url))
        self._events.append(event)
        item = self._devices.item if self._devices else None
        if event.kind in {Kind.CREATED, Kind.TAKEN_OVER} and item is not None:
            item.user_properties += [("device_session", event.session_id), ("device_session_url", event.url)]
        if self._progress:
            self._progress.note(event)
        if self._terminal and event.kind is not Kind.NOTE:  # which may come in the middle of anything
            self._terminal.show_event(event)

    def _note(self, text: str) -> None:
        self._tell(Event(Kind.NOTE, text=text))

    @pytest.hookimpl(tryfirst=True)  # before pytest-xdist tells that all is collected
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Let a worker tell what its tests need, and hear which of them it will get."""
        line: Channel | None = self._input().get(LINE)
        if line is None:
            return
        needs = Numbers()
        places = [self._places.get(item, -1) for item in session.items]
        may_order = bool(self._places) and places == sorted(places)  # others may order after us, as --ff does
        lineup = Lineup.of(session.items, needs, needs_of, may_order=may_order)
        is_limited = self.settings.max_sessions.value is not None
        prefetch = self.settings.prefetch.value
        history = history_of(self._config)
        self._outlook = Dealt(session.items, line, needs, history, prefetch=prefetch, is_limited=is_limited)
        line.send((os.getpid(), lineup.plain(), self._config.stash.get(SHARD_LINE, "")))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Open the way to the service: start a local one when it is this process's to start, else a reaper."""
        if not will_run(self._config):
            return
        try:
            self._signals.install()
            self._access = self._opened(session.items)
        except ConfigError as error:
            raise usage_error(error.problems) from None
        self._redactor.add(self._access.service.token)
        history = history_of(self._config)
        self._devices = Devices(
            self.settings,
            self._access,
            Names(os.environ, self.name[:8]),
            redactor=self._redactor,
            emit=self._tell,
            sleep=self._progress.sleep if self._progress else time.sleep,
            tell=self._terminal.show if self._terminal else self._say,
            outlook=self._outlook or WholeRun(session.items, history, self.settings.prefetch.value),
        )

    def _say(self, text: str) -> None:
        """Let a person read at once what this worker waits for; a controlling process that is gone needs not know."""
        line: Channel | None = self._input().get(LINE)
        if line is not None:
            with suppress(OSError):
                line.send(f"{self._input()['workerid']} {text}")

    def _input(self) -> dict[str, Any]:
        """Return what the controlling process of a pytest-xdist run gave this one, nothing when there is none."""
        return getattr(self._config, "workerinput", {})

    def _opened(self, items: Sequence[pytest.Item]) -> Access:
        given, settings = self._input(), self.settings
        worker: str | None = given.get("workerid")
        if settings.local.value:
            show = self._terminal.show if self._terminal else print
            requests = [need.request for item in items for need in needs_of(item).values()]
            return LocalAccess(settings, given.get(LOCAL), show, requests)
        if self._terminal:
            service = service_at(str(settings.url.value), settings.token)
            self._household = Household(settings, service, self.name, self._terminal)
            run = self._household.run
        else:
            run = joined(settings, self.name, str(worker), self._note)
            if run and not run.is_joined_by(MAIN):  # on a machine of its own
                self._sweeping = Sweeping(settings, service_at(str(settings.url.value), settings.token), run.name)
        return RemoteAccess(settings, run=run, worker=worker, tell=self._note)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        """Remember which test is at hand, and let the devices of others boot beside it."""
        if self._devices:
            self._devices.item = item
            self._devices.look_ahead(item)

    @pytest.hookimpl(wrapper=True, trylast=True)  # around what tears down, within what captures and logs
    def pytest_runtest_teardown(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Generator[None, object, object]:
        """Give the test's sessions back when all that used them has been torn down."""
        with self._given_back(item, nextitem):
            return (yield)

    @contextmanager
    def _given_back(self, item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None]:
        try:
            yield
        except (KeyboardInterrupt, pytest.exit.Exception):
            raise  # the end of the run stops what is left
        except BaseException as error:  # also what pytest.fail() raises
            item.stash[FAILED] = True
            try:
                self._give_back(item, nextitem)
            except DeviceError as failure:
                error.add_note(str(failure))
            raise
        self._give_back(item, nextitem)

    def _give_back(self, item: pytest.Item, nextitem: pytest.Item | None) -> None:
        if self._devices is None:  # pytest only plans
            return
        sessions = self._devices.taken(item)
        try:
            self._devices.release(item, nextitem, keep=self.keeps(item))
        except DeviceError as error:
            item.stash[_BLAMED] = error
            raise
        finally:
            self._tell_hooks(item, sessions)

    def _tell_hooks(self, item: pytest.Item, sessions: Mapping[str, Session]) -> None:
        """Let hooks know of an error of the infrastructure, once."""
        error = item.stash.get(_BLAMED, None)
        if error is None:
            return
        del item.stash[_BLAMED]
        if verdict_of(error) is Verdict.INFRASTRUCTURE:
            at_fault = [one for one in sessions.values() if str(one.id) == getattr(error, "session_id", None)]
            session = next(iter([*at_fault, *sessions.values()]), None)
            item.ihook.pytest_device_infrastructure_error(item=item, error=error, device_session=session)

    @pytest.hookimpl(wrapper=True)  # around what makes expected failures of some
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Say plainly what is not the test's fault, and add what the local service logged."""
        report = yield
        item.stash[FAILED] = report.failed or (report.when != "setup" and item.stash.get(FAILED, False))
        error, verdict = _device_error(item, call), None
        if self._devices and report.failed and call.excinfo and call.when != "teardown":
            artifacts.save(item, self._devices, self._redactor, self._note)
            error = self._look_up(item, report, call.excinfo, error)
        if error and call.excinfo:
            verdict = verdict_of(error)
            if call.when != "teardown":
                item.stash[_BLAMED] = error
            if call.excinfo.value is error:
                notes = getattr(error, "__notes__", [])
                report.longrepr = self._plain(call.excinfo, "\n".join([f"{verdict}: {error}", *notes]))
            self._add_log(item, report)
        attach(report, self._events, verdict, waited=item.stash.get(WAITED, 0.0))
        item.stash[WAITED] = 0.0
        self._events.clear()
        if self._signals.exit_status is not None:  # and yet here: the test has caught what should have ended the run
            item.session.shouldstop = "a signal asked the run to end"
        return report

    def _look_up(
        self,
        item: pytest.Item,
        report: pytest.TestReport,
        excinfo: pytest.ExceptionInfo[BaseException],
        error: DeviceError | None,
    ) -> DeviceError | None:
        """Look at the sessions of a test that failed; return what is to blame if it is not the test."""
        problem = self.devices.loss(item, excinfo.value)
        if problem is None or (error and not isinstance(error, ControllerLostError)):
            return error
        report.sections.append(("What the test saw", str(report.longrepr)))
        report.longrepr = self._plain(excinfo, f"{Verdict.INFRASTRUCTURE}: {problem}")
        return problem

    def _plain(self, error: pytest.ExceptionInfo[BaseException], message: str) -> Any:
        """Return the error as its message alone: a traceback through the plugin would tell a user nothing."""
        message = self._redactor.text(message)
        shown = error.getrepr(style="value", chain=False)
        if shown.reprcrash:
            shown.reprcrash.message = message
        shown.reprtraceback.reprentries[0].lines = message.splitlines()
        return shown

    def _add_log(self, item: pytest.Item, report: pytest.TestReport) -> None:
        log_path = self._access.log_path if self._access else None
        taken = self._devices.taken(item).values() if self._devices else ()
        if log_path and (lines := log_lines(log_path, self._session_ids() | {str(one.id) for one in taken})):
            report.sections.append(("Captured local device service log", lines))

    def _session_ids(self) -> set[str]:
        return {event.session_id for event in self._events if event.session_id}

    @pytest.hookimpl(tryfirst=True)  # before pytest's debugger takes over
    def pytest_exception_interact(self, node: pytest.Item | pytest.Collector) -> None:
        """Show a person where the device of a failed test is, and wait for them when asked to."""
        if self._devices is None or not isinstance(node, pytest.Item) or not (taken := self._devices.taken(node)):
            return
        if self._attendance.attend(taken, keep=self.settings.keep_on_failure.value):
            self._devices.spend(node)  # whoever looked at it may have left anything behind

    def pytest_keyboard_interrupt(self) -> None:
        """Let the end take its time."""
        self._signals.close()

    @pytest.hookimpl(trylast=True)  # after pytest has torn down what an interrupt left
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Stop what is left, and tell what happened since the last report: an interrupted test has none."""
        if os.getpid() != self._pid:  # a forked child that runs on to the end: the end is its parent's to settle
            return
        if self._signals.exit_status is not None:
            session.exitstatus = self._signals.exit_status
        until = time.monotonic() + self.settings.stop_timeout_seconds.value
        try:
            if self._devices:
                broken_off = is_broken_off(session, by_signal=self._signals.exit_status is not None)
                self._devices.close(broken_off=broken_off)
        except Exception as error:  # noqa: BLE001  # a hook of the suite: it must not hide what the run has to tell
            self._note(f"pytest_device_stopping at the end of the run: {type(error).__name__}: {error}")
            session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED
        self._finish(session, until)

    def _finish(self, session: pytest.Session, until: float) -> None:
        if self._access:
            for event in self._closed(self._access):
                self._tell(event)
        for text in self._sweeping.notes(min(until, time.monotonic() + WORKER_STOP_SECONDS)) if self._sweeping else ():
            self._note(text)
        events = [event.to_json() for event in self._events]
        if self._terminal:
            self._terminal.count(events)
            if self._household:
                by_signal = self._signals.exit_status is not None
                self._household.finish(session, until=until, others=False, by_signal=by_signal)
            if note := artifacts.save_receipt(self.settings, self._terminal.receipt, self._config):
                self._terminal.count([Event(Kind.NOTE, text=note).to_json()])
        else:
            output: dict[str, Any] = vars(self._config)["workeroutput"]
            output[EVENTS] = events

    def _closed(self, access: Access) -> list[Event]:
        seconds = self.settings.stop_timeout_seconds.value
        if not self._terminal:
            return access.close(min(seconds, WORKER_STOP_SECONDS))
        if pending := access.pending():
            stops = "1 stop" if pending == 1 else f"{pending} stops"
            self._terminal.show(f"waiting for {stops}, up to {seconds:.0f} s: Ctrl-C cuts it short")
        return access.close(seconds)

    def pytest_unconfigure(self) -> None:
        """Give the signals back."""
        self._signals.restore()


def _device_error(item: pytest.Item, call: pytest.CallInfo[None]) -> DeviceError | None:
    """Return the error of providing a device, also from among several; what the test itself raises is the test's."""
    if call.excinfo is None:
        return None
    error: object = call.excinfo.value
    provided = item.stash.get(PROVIDING, None)
    if call.when == "call":
        return error if isinstance(error, ControllerLostError) else provided if error is provided else None
    errors: list[object] = [error]
    if isinstance(error, BaseExceptionGroup):
        errors += cast("BaseExceptionGroup[BaseException]", error).exceptions
    met = (one for one in errors if isinstance(one, DeviceError))
    return next((one for one in met if one is provided or not isinstance(one, _REFUSALS)), None)
