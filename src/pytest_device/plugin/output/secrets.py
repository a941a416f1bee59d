"""Masks secrets in everything that pytest reports or logs, before any reporter sees it."""

import logging
import os
import traceback
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any, Final, cast
from urllib.parse import unquote, urlsplit

import pytest

from pytest_device.options import TOKEN_VARIABLE, Options
from pytest_device.plugin.output import allure
from pytest_device.redact import Redactor

_SECRETS: Final = pytest.StashKey["Secrets"]()
_STRUCTURE: Final = ("nodeid", "location", "keywords", "node", "result")
"""Attributes that identify the subject of a report: other code looks up tests by them."""
_CONTEXTS: Final = ("_pytest.subtests", "pytest_subtests")
"""Modules of the descriptions of subtests."""
_RESULTS: Final = "allure_commons.model2"
"""Module of the parts of Allure's results."""
_OF_OSERROR: Final = ("strerror", "filename", "filename2")
"""Displayed attributes of an OSError, which are neither in its arguments nor in its ``__dict__``."""
_TRACEBACKS: Final = logging.Formatter()


def hide_token(config: pytest.Config) -> Redactor:
    """Mask the environment's secrets in everything that this process reports, except test reports."""
    if _SECRETS not in config.stash:
        secrets = config.stash[_SECRETS] = Secrets(config, Redactor(_of_environment()))
        config.pluginmanager.register(secrets, "device-secrets")
    return config.stash[_SECRETS].redactor


def _of_environment() -> list[str]:
    """Return the access token, and the password of the server that counts slots."""
    secrets = [os.environ.get(TOKEN_VARIABLE, "")]
    with suppress(ValueError):  # an invalid URL is reported when it is used
        address = urlsplit(os.environ.get(Options.slots_url.variable, ""))
        secrets.append(unquote(address.password or ""))
    return list(filter(None, secrets))


def redactor_of(config: pytest.Config) -> Redactor:
    """Return the redactor of this process; from the first call on, it masks secrets in test reports, too."""
    redactor = hide_token(config)
    if not config.pluginmanager.has_plugin("device-reports"):
        config.pluginmanager.register(Reports(redactor), "device-reports")
        if config.pluginmanager.has_plugin(allure.LISTENER):
            allure.mask_results(
                config, redactor, lambda value: _masked(value, redactor)
            )
    return redactor


class Secrets:
    """Registered as a plugin if there are secrets to mask."""

    def __init__(self, config: pytest.Config, redactor: Redactor) -> None:
        self.redactor = redactor
        self._config = config
        self._make_record = logging.getLogRecordFactory()
        logging.setLogRecordFactory(self._record)

    def _record(self, *args: Any, **kwargs: Any) -> logging.LogRecord:
        """Create a log record, with masked texts if it contains a secret."""
        record = self._make_record(*args, **kwargs)
        try:
            message = record.getMessage()
        except (
            TypeError,
            ValueError,
            LookupError,
        ):  # invalid arguments, which the handler reports
            return record
        if (masked := self.redactor.text(message)) != message:
            record.msg, record.args = masked, ()
        if record.exc_info and record.exc_info[0]:
            text = _TRACEBACKS.formatException(record.exc_info)
            if (masked := self.redactor.text(text)) != text:
                record.exc_info, record.exc_text = None, masked
        return record

    def pytest_make_parametrize_id(self, val: object) -> str | None:
        """Keep secrets out of test names."""
        masked = self.redactor.text(val) if isinstance(val, str) else val
        return None if masked == val else str(masked)

    @pytest.hookimpl(
        tryfirst=True
    )  # before any reporter, and before pytest-xdist sends it
    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Mask the report of a module that could not be collected."""
        _mask_attributes(report, self.redactor)

    @pytest.hookimpl(tryfirst=True)
    def pytest_warning_recorded(self, warning_message: Any) -> None:
        """Mask a warning; one with a secret keeps only its text and the category's name."""
        shown = str(warning_message.message)
        if (masked := self.redactor.text(shown)) != shown:
            warning_message.message = Warning(masked)

    @pytest.hookimpl(tryfirst=True)
    def pytest_internalerror(self, excrepr: object) -> None:
        """Mask an error of pytest or of a plugin."""
        _masked(excrepr, self.redactor)

    @pytest.hookimpl(wrapper=True)
    def pytest_keyboard_interrupt(
        self, excinfo: pytest.ExceptionInfo[BaseException]
    ) -> Generator[None]:
        """Mask the exception that ends the run, and its traceback, which shows arguments under ``--full-trace``."""
        _mask_error(excinfo.value, self.redactor)
        yield
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        _masked(getattr(reporter, "_keyboardinterrupt_memo", None), self.redactor)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None]:
        """Mask the reason for stopping the run, and errors raised at its end."""
        for name in ("shouldfail", "shouldstop"):
            if isinstance(reason := getattr(session, name), str):
                setattr(session, name, self.redactor.text(reason))
        with self._masking_errors():
            yield

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_unconfigure(self) -> Generator[None]:
        """Stop masking logs, after everything else has ended."""
        with self._masking_errors():
            yield
        if (
            logging.getLogRecordFactory() == self._record
        ):  # otherwise another factory wraps ours and needs it
            logging.setLogRecordFactory(self._make_record)

    @contextmanager
    def _masking_errors(self) -> Generator[None]:
        """Mask an error that nobody reports: the interpreter prints it after pytest."""
        try:
            yield
        except BaseException as error:
            _mask_error(error, self.redactor)
            raise


class Reports:
    """Registered as a plugin if tests need devices; other runs pay nothing for it."""

    def __init__(self, redactor: Redactor) -> None:
        self.redactor = redactor

    @pytest.hookimpl(
        wrapper=True, trylast=True
    )  # so that no other wrapper sees unmasked reports
    def pytest_runtest_makereport(
        self, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Mask the texts of a report: the error with its traceback, the output, the properties.

        Other plugins format the error themselves, so it is masked, too.
        """
        report = yield
        _mask_attributes(report, self.redactor)
        if call.excinfo:
            shown = "".join(traceback.format_exception(call.excinfo.value))
            if self.redactor.text(shown) != shown:
                _mask_error(call.excinfo.value, self.redactor)
        return report

    @pytest.hookimpl(
        tryfirst=True
    )  # before any reporter, and before pytest-xdist sends it
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Mask what other plugins added to the report; reports of subtests only appear here."""
        _mask_attributes(report, self.redactor)


def _mask_error(error: BaseException, redactor: Redactor) -> None:
    """Mask an error in place, with its causes and the errors of a group."""
    pending: list[BaseException | None] = [error]
    chain: list[BaseException] = []
    while pending:
        if (link := pending.pop()) is None or link in chain:
            continue
        chain.append(link)
        link.args = _masked(link.args, redactor)
        _mask_attributes(link, redactor)
        for name in _OF_OSERROR:
            if isinstance(link, OSError) and isinstance(
                text := getattr(link, name), str
            ):
                setattr(link, name, redactor.text(text))
        pending += [link.__cause__, link.__context__]
        if isinstance(link, BaseExceptionGroup):
            pending += cast("BaseExceptionGroup[BaseException]", link).exceptions


def _mask_attributes(holder: object, redactor: Redactor) -> None:
    attributes: dict[str, Any] = vars(holder)
    for name, value in attributes.items():
        if name not in _STRUCTURE:
            attributes[name] = _masked(value, redactor)


def _masked(value: Any, redactor: Redactor) -> Any:
    """Mask texts, return copies of containers with masked values, and mask pytest's own objects in place."""
    match value:
        case str():
            return redactor.text(value)
        case list():
            return [_masked(inner, redactor) for inner in cast("list[object]", value)]
        case tuple():
            return tuple(
                _masked(inner, redactor) for inner in cast("tuple[object, ...]", value)
            )
        case dict():
            return {
                key: _masked(inner, redactor)
                for key, inner in cast("dict[object, object]", value).items()
            }
        case _ if hasattr(value, "toterminal") or type(value).__module__ == _RESULTS:
            _mask_attributes(value, redactor)
        case _ if type(value).__module__.startswith(_CONTEXTS):
            for name in ("msg", "kwargs"):
                object.__setattr__(
                    value, name, _masked(getattr(value, name), redactor)
                )  # the class is frozen
        case _:
            pass
    return cast("object", value)
