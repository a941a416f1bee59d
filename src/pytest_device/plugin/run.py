"""What one pytest process holds while it runs device tests: their requests, the service, the events."""

import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final, cast
from urllib.parse import urlsplit

import pytest

from pytest_device.errors import ConfigError, DeviceError
from pytest_device.local import log_lines
from pytest_device.plugin.access import Access, LocalAccess, RemoteAccess, joined
from pytest_device.plugin.controller import LOCAL, PROBLEMS, RUN
from pytest_device.plugin.household import Household
from pytest_device.plugin.markers import request_of
from pytest_device.plugin.options import settings_of, usage_error, will_run
from pytest_device.plugin.secrets import redactor_of
from pytest_device.plugin.signals import EndInOrder
from pytest_device.plugin.terminal import EVENTS, Terminal, attach
from pytest_device.report.verdict import verdict_of
from pytest_device.sessions.events import Event, Kind
from pytest_device.sessions.lease import lease
from pytest_device.sessions.lifecycle import WaitPolicy
from pytest_device.sessions.models import Session
from pytest_device.sessions.network import service_at
from pytest_device.sessions.request import SessionRequest
from pytest_device.sessions.runs import new_run
from pytest_device.settings import Settings
from pytest_device.spec import SessionType

_REQUEST: Final = pytest.StashKey[SessionRequest]()
_RUN: Final = pytest.StashKey["DeviceRun"]()
_FAILED: Final = pytest.StashKey[bool]()
WORKER_STOP_SECONDS: Final = 5.0
"""How long a pytest-xdist worker waits for its stops at its end: pytest-xdist kills it after ten."""


def begin(config: pytest.Config, items: list[pytest.Item], wanted: list[pytest.Item]) -> None:
    """Give every test that wants a device its request, and register the run that will provide the devices.

    Raises pytest.UsageError with all mistakes at once, each with file and line; a pytest-xdist worker, where that
    would look like a crash, hands them to the controlling process and runs nothing.
    """
    try:
        run = DeviceRun(config, settings_of(config))
        problems = [*_rivals(config), *_missing(config, run.settings), *_read_markers(wanted, run)]
    except ConfigError as error:
        problems = list(error.problems)
    else:
        if not problems:
            config.stash[_RUN] = run
            config.pluginmanager.register(run, "device-run")
            return
    if not _is_worker(config):
        raise usage_error(problems)
    output: dict[str, Any] = vars(config)["workeroutput"]
    output[PROBLEMS] = problems
    items.clear()


@contextmanager
def leased(item: pytest.Item) -> Generator[Session]:
    """Provide the session that the test's marker asks for."""
    run, request = item.config.stash.get(_RUN, None), item.stash.get(_REQUEST, None)
    if run is None or request is None:
        raise ConfigError(f"{item.nodeid} has no @pytest.mark.device(platform=...) to say which device it needs")
    with run.lease(item, request) as session:
        yield session


def _rivals(config: pytest.Config) -> list[str]:
    if not config.pluginmanager.has_plugin("appium_scheduler"):
        return []
    return [
        "pytest-appium-scheduler has a marker 'device' too: switch one off with -p no:appium_scheduler or -p no:device"
    ]


def _missing(config: pytest.Config, settings: Settings) -> list[str]:
    return list(settings.service_problems()) if will_run(config) else []


def _read_markers(wanted: list[pytest.Item], run: "DeviceRun") -> list[str]:
    problems: list[str] = []
    for item in wanted:
        try:
            request = request_of(item, run.settings, os.environ, run.name[:8])
            _check_fixtures(item, request)
            _check_service(request, run.settings)
        except ConfigError as error:
            path, line, _ = item.location
            name = getattr(item, "originalname", item.name)
            problems += [f"{path}:{(line or 0) + 1}: {name}: {problem}" for problem in error.problems]
        else:
            item.stash[_REQUEST] = request
    return list(dict.fromkeys(problems))  # a parametrized test makes each mistake once


def _check_fixtures(item: pytest.Item, request: SessionRequest) -> None:
    """Refuse a fixture of another session type; let a test that has only the marker get its session all the same."""
    if not isinstance(item, pytest.Function):
        raise ConfigError("device() needs a test function: this kind of test has no fixtures")
    if "device_driver" in item.fixturenames and request.type is not SessionType.APPIUM:
        raise ConfigError(f"device_driver needs type='appium', the marker says type={request.type.value!r}")
    if "device_session" not in item.fixturenames:
        # A list of its own, since pytest shares one among the items of a function; and last, after whatever may skip.
        item.fixturenames = [*item.fixturenames, "device_session"]


def _check_service(request: SessionRequest, settings: Settings) -> None:
    if settings.local.value and request.type is not SessionType.APPIUM:
        raise ConfigError(f"the local service drives type='appium' only, the marker says type={request.type.value!r}")


def _device_error(call: pytest.CallInfo[None]) -> DeviceError | None:
    """Return the error of providing a device, also from among several; what the test itself raises is the test's."""
    if call.excinfo is None or call.when == "call":
        return None
    error: object = call.excinfo.value
    errors: list[object] = [error]
    if isinstance(error, BaseExceptionGroup):
        errors += cast("BaseExceptionGroup[BaseException]", error).exceptions
    return next((one for one in errors if isinstance(one, DeviceError)), None)


def _plain(error: pytest.ExceptionInfo[BaseException], message: str) -> Any:
    """Return the error as its message alone: a traceback through the plugin would tell a user nothing."""
    shown = error.getrepr(style="value", chain=False)
    if shown.reprcrash:
        shown.reprcrash.message = message
    shown.reprtraceback.reprentries[0].lines = message.splitlines()
    return shown


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


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
        self._household: Household | None = None
        self._terminal: Terminal | None = None
        if not _is_worker(config):
            self._terminal = Terminal(config)
            config.pluginmanager.register(self._terminal, "device-terminal")

    @contextmanager
    def lease(self, item: pytest.Item, request: SessionRequest) -> Generator[Session]:
        """Provide a session for a test, and let its reports tell what happened."""
        access = self._access
        if access is None:
            raise RuntimeError("a test is set up outside the run's loop")
        policy = WaitPolicy(self.settings.wait_timeout_seconds.value, self.settings.poll_interval_seconds.value)

        def tell(event: Event) -> None:
            self._tell(event)
            if event.kind is Kind.CREATED:
                item.user_properties += [("device_session", event.session_id), ("device_session_url", event.url)]

        def keeps(session: Session) -> bool:
            kept = self.settings.keep_on_failure.value and item.stash.get(_FAILED, False)
            if kept:
                access.keep(str(session.id))
            return kept

        with lease(
            access.sessions(),
            request,
            policy=policy,
            emit=tell,
            leaves_unknown=access.leaves_unknown,
            keeps=keeps,
        ) as session:
            if session.remote_config is not None:
                public = {urlsplit(url).hostname for url in (session.url, access.service.url)}
                self._redactor.add(*(secret for secret in session.remote_config.secrets() if secret not in public))
            yield session

    def _tell(self, event: Event) -> None:
        event = replace(event, text=self._redactor.text(event.text), url=self._redactor.text(event.url))
        self._events.append(event)
        if self._terminal and event.kind is not Kind.NOTE:  # which may come in the middle of anything
            self._terminal.show_event(event)

    def _note(self, text: str) -> None:
        self._tell(Event(Kind.NOTE, text=text))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self) -> None:
        """Open the way to the service: start a local one when it is this process's to start, else a reaper."""
        if not will_run(self._config):
            return
        try:
            self._signals.install()
            self._access = self._opened()
        except ConfigError as error:
            raise usage_error(error.problems) from None
        self._redactor.add(self._access.service.token)

    def _input(self) -> dict[str, Any]:
        """Return what the controlling process of a pytest-xdist run gave this one, nothing when there is none."""
        return getattr(self._config, "workerinput", {})

    def _opened(self) -> Access:
        given, settings = self._input(), self.settings
        worker: str | None = given.get("workerid")
        if settings.local.value:
            show = self._terminal.show if self._terminal else print
            return LocalAccess(settings, given.get(LOCAL), show)
        if self._terminal:
            service = service_at(str(settings.url.value), settings.token)
            self._household = Household(settings, service, self.name, self._terminal)
            run = self._household.run
        else:
            run = joined(settings, self.name, str(worker), self._note)
        return RemoteAccess(settings, run=run, worker=worker, tell=self._note)

    @pytest.hookimpl(wrapper=True, trylast=True)  # within what masks secrets, so that it sees the report as it ends up
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Say plainly what is not the test's fault, and add what the local service logged."""
        report = yield
        item.stash[_FAILED] = report.failed or (report.when != "setup" and item.stash.get(_FAILED, False))
        error = _device_error(call)
        verdict = verdict_of(error) if error else None
        if error and call.excinfo and call.excinfo.value is error:
            report.longrepr = _plain(call.excinfo, "\n".join([f"{verdict}: {error}", *getattr(error, "__notes__", [])]))
            log_path = self._access.log_path if self._access else None
            if log_path and (lines := log_lines(log_path, self._session_ids())):
                report.sections.append(("Captured local device service log", lines))
        attach(report, self._events, verdict)
        self._events.clear()
        if self._signals.exit_status is not None:  # and yet here: the test has caught what should have ended the run
            item.session.shouldstop = "a signal asked the run to end"
        return report

    def _session_ids(self) -> set[str]:
        return {event.session_id for event in self._events if event.session_id}

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
        if self._access:
            for event in self._closed(self._access):
                self._tell(event)
        events = [event.to_json() for event in self._events]
        if self._terminal:
            self._terminal.count(events)
            if self._household:
                self._household.finish(session, until=until, others=False)
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
