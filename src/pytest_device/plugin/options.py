"""The table of settings at pytest's edge: options and ini keys in, Settings out."""

import os

import pytest

from pytest_device.errors import ConfigError
from pytest_device.settings import OPTIONS, TOKEN_VARIABLE, Settings, resolve


def add(parser: pytest.Parser) -> None:
    """Add each option of the table to the command line and the ini file."""
    group = parser.getgroup("device", f"remote devices (access token: {TOKEN_VARIABLE} in the environment)")
    for option in OPTIONS:
        told = f"{option.help} [{option.variable}]"
        if isinstance(option.default, bool):
            group.addoption(option.option, dest=option.ini, action="store_const", const="true", help=told)
        else:
            default = f", default {option.default}" if option.default is not None else ""
            metavar = option.word.rpartition("_")[2].upper()
            group.addoption(option.option, dest=option.ini, metavar=metavar, help=f"{told}{default}")
        parser.addini(option.ini, option.help, default=None)


def settings_of(config: pytest.Config) -> Settings:
    """Return the settings of this run; raises ConfigError telling all values at fault."""

    def option(name: str) -> str | None:
        text = config.getoption(name)
        return None if text is None else str(text)

    def ini(name: str) -> str | None:
        text = config.getini(name)
        return None if text is None else str(text)

    return resolve(option, os.environ, ini)


def header(config: pytest.Config) -> str | None:
    """Return one line naming the service and what named it, None when no service is configured."""
    try:
        settings = settings_of(config)
    except ConfigError:
        return None  # said in full when a test needs a device, and not at all otherwise
    if settings.local.value:
        return f"device: local service ({settings.local.source}), app {settings.app_id.value}"
    if settings.url.value is None:
        return None
    return f"device: {settings.url.value} ({settings.url.source}), app {settings.app_id.value or 'not set'}"
