"""What one pytest process holds while it runs device tests: their requests, the service, the events."""

import os
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from pytest_device.errors import ConfigError, DeviceError
from pytest_device.local import LocalService, log_tail
from pytest_device.plugin.controller import LOCAL, PROBLEMS
from pytest_device.plugin.markers import request_of
from pytest_device.plugin.options import settings_of
from pytest_device.plugin.secrets import scrub
from pytest_device.plugin.signals import EndInOrder
from pytest_device.plugin.terminal import EVENTS, Terminal, attach
from pytest_device.redact import Redactor
from pytest_device.report.verdict import verdict_of
from pytest_device.sessions.client import DeviceClient
from pytest_device.sessions.events import Event, Kind
from pytest_device.sessions.lease import lease
from pytest_device.sessions.lifecycle import WaitPolicy
from pytest_device.sessions.models import Session
from pytest_device.sessions.request import SessionRequest
from pytest_device.settings import Settings
from pytest_device.spec import SessionType

_LOOKING: Final = ("collectonly", "setupplan", "showfixtures", "show_fixtures_per_test")
"""Options under which pytest collects tests and runs none."""
_REQUEST: Final = pytest.StashKey[SessionRequest]()
_RUN: Final = pytest.StashKey["DeviceRun"]()


def begin(config: pytest.Config, items: list[pytest.Item], wanted: list[pytest.Item]) -> None:
    """Give every test that wants a device its request, and register the run that will provide the devices.

    Raises pytest.UsageError with all mistakes at once, each with file and line; a pytest-xdist worker, where that
    would look like a crash, hands them to the controlling process and runs nothing.
    """
    try:
        run = DeviceRun(config, settings_of(config))
        problems = [*_rivals(config), *_missing(config, run.settings), *_read_markers(wanted, run.settings)]
    except ConfigError as error:
        problems = list(error.problems)
    else:
        if not problems:
            config.stash[_RUN] = run
            config.pluginmanager.register(run, "device-run")
            return
    if not _is_worker(config):
        raise pytest.UsageError("\n".join(problems))
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
    return list(settings.service_problems()) if _will_run(config) else []


def _read_markers(wanted: list[pytest.Item], settings: Settings) -> list[str]:
    problems: list[str] = []
    for item in wanted:
        try:
            request = request_of(item, settings, os.environ)
            _check_fixtures(item, request)
        except ConfigError as error:
            path, line, _ = item.location
            problems += [f"{path}:{(line or 0) + 1}: {item.name}: {problem}" for problem in error.problems]
        else:
            item.stash[_REQUEST] = request
    return problems


def _check_fixtures(item: pytest.Item, request: SessionRequest) -> None:
    """Refuse a fixture of another session type; let a test that has only the marker get its session all the same."""
    names: list[str] | None = getattr(item, "fixturenames", None)
    if names is None:
        raise ConfigError("device() needs a test function: this kind of test has no fixtures")
    if "device_driver" in names and request.type is not SessionType.APPIUM:
        raise ConfigError(f"device_driver needs type='appium', the marker says type={request.type.value!r}")
    if "device_session" not in names:
        names.insert(0, "device_session")


def _will_run(config: pytest.Config) -> bool:
    return not any(config.getoption(option, default=False) for option in _LOOKING)


def _told(error: DeviceError) -> list[str]:
    return [str(error), *getattr(error, "__notes__", [])]


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
        self._redactor = Redactor([settings.token])
        self._events: list[Event] = []
        self._open = ExitStack()
        self._signals = EndInOrder()
        self._client: DeviceClient | None = None
        self._log_path: Path | None = None
        self._terminal: Terminal | None = None
        if not _is_worker(config):
            self._terminal = Terminal(config)
            config.pluginmanager.register(self._terminal, "device-terminal")

    @contextmanager
    def lease(self, item: pytest.Item, request: SessionRequest) -> Generator[Session]:
        """Provide a session for a test, and let its reports tell what happened."""
        if self._client is None:
            raise RuntimeError("a test is set up outside the run's loop")
        policy = WaitPolicy(self.settings.wait_timeout_seconds.value, self.settings.poll_interval_seconds.value)

        def tell(event: Event) -> None:
            event = replace(event, text=self._redactor.text(event.text))
            self._events.append(event)
            if event.kind is Kind.CREATED:
                item.user_properties += [("device_session", event.session_id), ("device_session_url", event.url)]
            if self._terminal:
                self._terminal.show_event(event)

        with lease(self._client, request, policy=policy, emit=tell) as session:
            if session.remote_config is not None:
                self._redactor.add(*session.remote_config.secrets())
            yield session

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self) -> None:
        """Start the local service when it is this process's to start, and open the connection."""
        if not _will_run(self._config):
            return
        try:
            self._open.callback(self._signals.restore)
            self._signals.install()
            url, token = self._service()
            self._redactor.add(token)
            self._client = self._open.enter_context(DeviceClient(url, token, vendor=self.settings.vendor.value))
        except ConfigError as error:
            raise pytest.UsageError("\n".join(error.problems)) from None

    def _service(self) -> tuple[str, str]:
        if not self.settings.local.value:
            return str(self.settings.url.value), self.settings.token
        given: dict[str, str] | None = getattr(self._config, "workerinput", {}).get(LOCAL)
        if given is not None:
            self._log_path = Path(given["log_path"])
            return given["url"], given["token"]
        show = self._terminal.show if self._terminal else print
        service = LocalService.start(app_id=str(self.settings.app_id.value), progress=show)
        self._open.callback(service.close)
        self._log_path = service.log_path
        return service.url, service.token

    @pytest.hookimpl(wrapper=True, tryfirst=True)  # outermost, so that nothing sees a report with secrets in it
    def pytest_runtest_makereport(
        self, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Say plainly what is not the test's fault, add what the local service logged, mask every secret."""
        report = yield
        error = call.excinfo.value if call.excinfo else None
        blame = None
        if call.excinfo and isinstance(error, DeviceError) and call.when != "call":
            verdict, message = verdict_of(error).value, self._redactor.text("\n".join(_told(error)))
            report.longrepr = _plain(call.excinfo, f"{verdict}: {message}")
            blame = (verdict, message)
            if self._log_path:
                report.sections.append(("Captured local device service log", log_tail(self._log_path)))
        attach(report, self._events, blame)
        self._events.clear()
        scrub(report, self._redactor)
        return report

    @pytest.hookimpl(trylast=True)  # after pytest has torn down what an interrupt left
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Tell what happened since the last report: an interrupted test has none."""
        if self._signals.number is not None:
            session.exitstatus = 128 + self._signals.number
        events = [event.to_json() for event in self._events]
        if self._terminal:
            self._terminal.count(events)
        else:
            output: dict[str, Any] = vars(self._config)["workeroutput"]
            output[EVENTS] = events

    def pytest_unconfigure(self) -> None:
        """Close the connection and the local service."""
        self._open.close()
