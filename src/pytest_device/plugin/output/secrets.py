"""Masks secrets in everything that pytest reports or logs, before any reporter sees it."""

import logging
import operator
import os
import traceback
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from threading import RLock
from typing import Any, Final, cast
from urllib.parse import unquote, urlsplit

import pytest

from pytest_device.options import TOKEN_VARIABLE, Options
from pytest_device.plugin.output import allure
from pytest_device.redact import KEY_MARK, Redactor

_SECRETS: Final = pytest.StashKey["Secrets"]()
_STRUCTURE: Final = ("nodeid", "location", "keywords", "node", "result")
"""Attributes that identify the subject of a report: other code looks up tests by them."""
_CONTEXTS: Final = ("_pytest.subtests", "pytest_subtests")
"""Modules of the descriptions of subtests."""
_RESULTS: Final = "allure_commons.model2"
"""Module of the parts of Allure's results."""
_SHOWN: Final[Mapping[type[BaseException], Sequence[str]]] = {
    ImportError: ("msg",),
    OSError: ("strerror", "filename", "filename2"),
    SyntaxError: ("msg", "filename", "text"),
    SystemExit: ("code",),
}
"""What Python shows of an error instead of its arguments, and keeps outside of its ``__dict__``."""
_Container = list[Any] | tuple[Any, ...] | dict[Any, Any]
_TRACEBACKS: Final = logging.Formatter()
_REGISTERING: Final = RLock()
"""Held while plugins are registered: services learn the first secret of a run in threads of their own."""


def hide_token(config: pytest.Config) -> Redactor:
    """Mask the environment's secrets in everything that this process reports, except test reports."""
    with _REGISTERING:
        if _SECRETS not in config.stash:
            secrets = config.stash[_SECRETS] = Secrets(Redactor(_of_environment()))
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
    with _REGISTERING:
        if not config.pluginmanager.has_plugin("device-reports"):
            config.pluginmanager.register(Reports(redactor), "device-reports")

            if config.pluginmanager.has_plugin(allure.LISTENER):
                allure.mask_results(
                    config, redactor, lambda value: _masked(value, redactor)
                )

    return redactor


def mask_error(config: pytest.Config, error: BaseException) -> None:
    """Mask an error that pytest prints after the run, if the run knows secrets."""
    if _SECRETS in config.stash:
        _mask_error(error, config.stash[_SECRETS].redactor)


def mask_early_error(error: BaseException) -> None:
    """Mask the environment's secrets in an error that pytest prints before plugins are configured."""
    _mask_error(error, Redactor(_of_environment()))


class Secrets:
    """Registered as a plugin if there are secrets to mask."""

    def __init__(self, redactor: Redactor) -> None:
        self.redactor = redactor
        self._make_record = logging.getLogRecordFactory()
        logging.setLogRecordFactory(self._record)

    def _record(self, *args: Any, **kwargs: Any) -> logging.LogRecord:
        """Create a log record, with masked texts if it contains a secret."""
        record = self._make_record(*args, **kwargs)
        try:
            message = record.getMessage()
        except (TypeError, ValueError, LookupError):
            return record  # its arguments are invalid, which the handler reports

        if (masked := self.redactor.text(message)) != message:
            record.msg = masked
            record.args = ()

        if record.stack_info:
            record.stack_info = self.redactor.text(record.stack_info)

        if record.exc_info and record.exc_info[0]:
            text = _TRACEBACKS.formatException(record.exc_info)
            if (masked := self.redactor.text(text)) != text:
                record.exc_info = None
                record.exc_text = masked

        return record

    # Before any reporter, and before pytest-xdist sends it.
    @pytest.hookimpl(tryfirst=True)
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

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(
        self, excinfo: pytest.ExceptionInfo[BaseException]
    ) -> None:
        """Mask the exception that ends the run."""
        _mask_error(excinfo.value, self.redactor)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None]:
        """Mask the reason for stopping the run, and errors raised at its end."""
        for name in ("shouldfail", "shouldstop"):
            reason = getattr(session, name)
            if isinstance(reason, str):
                setattr(session, name, self.redactor.text(reason))

        with self._masking_errors():
            yield

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_unconfigure(self) -> Generator[None]:
        """Stop masking logs, after everything else has ended."""
        with self._masking_errors():
            yield

        # Otherwise another factory wraps ours and needs it.
        if logging.getLogRecordFactory() == self._record:
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

    # So that no other wrapper sees unmasked reports.
    @pytest.hookimpl(wrapper=True, trylast=True)
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

    # Before any reporter, and before pytest-xdist sends it.
    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Mask what other plugins added to the report; reports of subtests only appear here."""
        _mask_attributes(report, self.redactor)


def _mask_error(error: BaseException, redactor: Redactor) -> None:
    """Mask an error in place, with its causes and the errors of a group."""
    pending: list[BaseException | None] = [error]
    chain: list[BaseException] = []
    while pending:
        link = pending.pop()
        # By identity: an error of the suite may compare in its own way.
        if link is None or any(link is earlier for earlier in chain):
            continue

        chain.append(link)
        # The class may refuse attributes, as a frozen dataclass does.
        object.__setattr__(link, "args", _masked(link.args, redactor))
        _mask_attributes(link, redactor)

        for kind, names in _SHOWN.items():
            if isinstance(link, kind):
                for name in names:
                    masked = _masked(getattr(link, name), redactor)
                    object.__setattr__(link, name, masked)

        pending += [link.__cause__, link.__context__]

        if isinstance(link, BaseExceptionGroup):
            pending += cast("BaseExceptionGroup[BaseException]", link).exceptions


def _masked_list(values: list[Any], redactor: Redactor) -> list[Any]:
    """Mask values; the texts of a traceback are lines, which only together show that they are a private key."""
    lines = [value for value in values if isinstance(value, str)]
    if lines == values and any(KEY_MARK in line for line in lines):
        return redactor.text("\n".join(lines)).split("\n")

    return [_masked(value, redactor) for value in values]


def _mask_attributes(holder: object, redactor: Redactor) -> None:
    attributes: dict[str, Any] = vars(holder)
    for name, value in attributes.items():
        if name not in _STRUCTURE:
            attributes[name] = _masked(value, redactor)


def _masked(value: Any, redactor: Redactor) -> Any:
    """Mask texts, return copies of containers with a secret, and mask pytest's own objects in place."""
    match value:
        case str():
            text = redactor.text(value)
            # Half a character, as in a text that an app has cut: pytest-xdist cannot send it, and ends the whole run.
            if not text.isascii():
                text = text.encode(errors="backslashreplace").decode()
            return value if text == value else text
        case list() | tuple() | dict():
            return _masked_container(cast("Any", value), redactor)
        case _ if hasattr(value, "toterminal") or type(value).__module__ == _RESULTS:
            _mask_attributes(value, redactor)
        case _ if type(value).__module__.startswith(_CONTEXTS):
            for name in ("msg", "kwargs"):
                # The class is frozen.
                object.__setattr__(value, name, _masked(getattr(value, name), redactor))
        case _:
            pass

    return cast("object", value)


def _masked_container(values: _Container, redactor: Redactor) -> _Container:
    """Return a copy with masked values; without a secret, the container itself, on whose type a plugin may rely."""
    before: Collection[Any] = values
    masked: _Container
    if isinstance(values, dict):
        before = values.values()
        masked = {key: _masked(inner, redactor) for key, inner in values.items()}
        after: Collection[Any] = masked.values()
    elif isinstance(values, list):
        after = masked = _masked_list(values, redactor)
    else:
        parts = [_masked(inner, redactor) for inner in values]
        make = getattr(values, "_make", tuple)  # a named tuple has names for its values
        after = masked = make(parts)

    if len(before) == len(after) and all(map(operator.is_, before, after)):
        return values

    return masked
