"""Checks the configuration of a pytest run in this directory: pytest reads it and runs nothing."""

from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from typing import Final

import pytest

import pytest_device.plugin
from pytest_device.cli.doctor.finding import Finding, fail, ok
from pytest_device.cli.doctor.plugins import check_plugins
from pytest_device.errors import ConfigError
from pytest_device.options import TOKEN_VARIABLE, Options
from pytest_device.plugin.options import settings_of
from pytest_device.plugin.project import additions_of, notes_of
from pytest_device.settings import Settings

_NAME: Final = "configuration"
_ARGUMENTS: Final = ("--assert=plain",)
"""Otherwise pytest warns or fails, because this package is already imported and cannot be rewritten."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """The findings, and the settings if they can be read."""

    findings: tuple[Finding, ...]
    settings: Settings | None = None


def read_configuration() -> Configuration:
    """Return pytest's configuration in this directory: ini file, addopts, environment, conftest files."""
    reader, output = _Reader(), StringIO()
    try:
        with redirect_stdout(output), redirect_stderr(output):
            ending = str(int(pytest.main(list(_ARGUMENTS), plugins=[reader])))
    except (SystemExit, pytest.exit.Exception) as error:  # from a conftest.py
        ending = f"{type(error).__name__} {error}"
    if reader.found is not None:
        return reader.found
    lines = [line.strip() for line in output.getvalue().splitlines() if line.strip()]
    text = f"pytest fails to start here ({ending}): {'; '.join(lines[-3:]) or 'no output'}"
    return Configuration((fail(_NAME, text, "run `pytest --collect-only` here and fix the reported errors"),))


class _Reader:
    """A plugin that replaces the run."""

    def __init__(self) -> None:
        self.found: Configuration | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_cmdline_main(self, config: pytest.Config) -> pytest.ExitCode:
        self.found = _read(config)
        return pytest.ExitCode.OK


def _read(config: pytest.Config) -> Configuration:
    if not config.pluginmanager.is_registered(pytest_device.plugin):
        fix = "remove `-p no:device` and PYTEST_DISABLE_PLUGIN_AUTOLOAD, or add `-p pytest_device.plugin` to addopts"
        return Configuration((fail(_NAME, "pytest does not load the pytest-device plugin here", fix),))
    where = ok(_NAME, str(config.inipath) if config.inipath else f"no ini file, rootdir is {config.rootpath}")
    others = tuple(check_plugins(config))
    try:
        settings = settings_of(config)
    except ConfigError as error:
        problems = [fail(_NAME, problem, "correct or remove this value") for problem in error.problems]
        return Configuration((where, *problems, *others))
    return Configuration((where, *_given(settings), *_from_project(config), *_missing(settings), *others), settings)


def _given(settings: Settings) -> Iterator[Finding]:
    """Yield a finding for each setting that is not a default."""
    for option, value in settings.chosen():
        yield ok("setting", f"{option.ini} = {value}, from {settings.source(option.word)}")


def _from_project(config: pytest.Config) -> Iterator[Finding]:
    for note in notes_of(config):
        yield ok("app", note)
    for name, value, source in additions_of(config):
        yield ok("app", f"{name}: {value}, from {source}")


def _missing(settings: Settings) -> Iterator[Finding]:
    if settings.local:
        for problem in settings.service_problems():
            yield fail(_NAME, problem, "remove one of the two")
    elif settings.url is None:
        needed = f"{Options.url.variable}, {Options.app_id.variable} and {TOKEN_VARIABLE}"
        fix = f"set {needed}, or run on this machine: pytest {Options.local.flag}"
        yield fail(_NAME, "no device service is configured", fix)
    elif settings.app_id is None:
        fix = f"set {Options.app_id.variable} or {Options.app_id.ini} in the ini file"
        yield fail(_NAME, f"no app ID for {settings.url}", fix)
