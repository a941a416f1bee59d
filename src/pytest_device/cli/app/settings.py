"""The settings of the app's project, as a pytest run in this directory has them."""

from contextlib import redirect_stderr, redirect_stdout
from io import StringIO

import pytest

import pytest_device.plugin
from pytest_device.errors import ConfigError
from pytest_device.plugin.options import app_settings_of
from pytest_device.settings import Settings

_ARGUMENTS = ("--assert=plain", "--noconftest")
"""Without the first, pytest warns that this package is already imported; a conftest.py has no say in options."""


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
    reader = _Reader()
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        try:
            pytest.main(list(_ARGUMENTS), plugins=[reader])
        except (SystemExit, pytest.exit.Exception):
            return None
    if reader.error:
        raise ConfigError(*reader.error.problems)
    return reader.settings
