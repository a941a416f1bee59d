"""The settings of the app's project, as a pytest run in this directory has them."""

import os
from collections.abc import Generator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from io import StringIO
from typing import Final

import pytest

import pytest_device.plugin
from pytest_device.errors import ConfigError
from pytest_device.plugin.options import app_settings_of
from pytest_device.settings import Settings

_ARGUMENTS: Final = (
    "--assert=plain",  # this package is imported already, of which pytest would warn
    "--noconftest",  # a conftest.py has no say in options, and may need the run
)
_NO_OTHERS: Final = "PYTEST_DISABLE_PLUGIN_AUTOLOAD"


class _Reader:
    """A plugin that replaces the run."""

    settings: Settings | None = None
    error: ConfigError | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_cmdline_main(self, config: pytest.Config) -> pytest.ExitCode:
        try:
            if config.pluginmanager.is_registered(pytest_device.plugin):
                self.settings = app_settings_of(config)
        except ConfigError as error:
            self.error = error

        return pytest.ExitCode.OK


def app_settings() -> Settings | None:
    """Return the settings, or None if pytest does not start here, for example for an option of a conftest.py.

    Raises ConfigError for an invalid value.
    """
    reader = _read(with_others=False)
    if reader.settings is None and reader.error is None:
        reader = _read(with_others=True)

    if reader.error:
        raise ConfigError(*reader.error.problems)

    return reader.settings


def _read(*, with_others: bool) -> _Reader:
    """Let pytest read its configuration, with other plugins only if their options are in the way.

    Importing those takes several times as long as all else that a command does.
    """
    reader = _Reader()
    own = () if with_others else ("-p", "pytest_device.plugin")

    output = StringIO()
    with (
        _environment(with_others),
        redirect_stdout(output),
        redirect_stderr(output),
        suppress(SystemExit, pytest.exit.Exception),  # of a plugin
    ):
        pytest.main([*own, *_ARGUMENTS], plugins=[reader])

    return reader


@contextmanager
def _environment(with_others: bool) -> Generator[None]:  # noqa: FBT001
    """Keep pytest from loading other plugins, unless they are wanted or the user already does."""
    if with_others or _NO_OTHERS in os.environ:
        yield
        return

    os.environ[_NO_OTHERS] = "1"
    try:
        yield
    finally:
        del os.environ[_NO_OTHERS]
