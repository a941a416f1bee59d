"""The table of options at pytest's edge: options and ini keys in, Settings out."""

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, cast

import pytest

from pytest_device.option_table import LOCAL, OPTIONS, TOKEN_VARIABLE, URL

_LOOKING: Final = ("collectonly", "setupplan", "showfixtures", "show_fixtures_per_test")

if TYPE_CHECKING:
    from pytest_device.settings import Settings


def add(parser: pytest.Parser) -> None:
    """Add each option of the table to the command line and the ini file."""
    group = parser.getgroup("device", f"remote devices (access token: {TOKEN_VARIABLE} in the environment)")
    for option in OPTIONS:
        told = f"{option.help} [{option.variable}]"
        metavar = option.ini.rpartition("_")[2].upper()
        if isinstance(option.default, bool):
            group.addoption(
                option.option,
                dest=option.ini,
                action="store_const",
                const=str(not option.default).lower(),
                help=f"do not {told}" if option.default else told,
            )
        elif isinstance(option.default, tuple):
            group.addoption(option.option, dest=option.ini, action="append", metavar=metavar, help=told)
        else:
            default = "" if option.default is None else f", default {_shown(option.default)}"
            group.addoption(option.option, dest=option.ini, metavar=metavar, help=f"{told}{default}")
        parser.addini(option.ini, option.help, default=None)


def will_run(config: pytest.Config) -> bool:
    """Tell whether the tests will run: under some options pytest only looks at them."""
    return not any(config.getoption(option, default=False) for option in _LOOKING)


def settings_of(config: pytest.Config) -> "Settings":
    """Return the settings of this run; raises ConfigError telling all values at fault."""
    from pytest_device.settings import resolve

    return resolve(lambda name: _text(config.getoption(name)), os.environ, lambda name: _text(config.getini(name)))


def header(config: pytest.Config) -> str | None:
    """Return one line naming the service and what named it, None when no service is configured."""
    if not any(_is_given(config, option.ini, option.variable) for option in (URL, LOCAL)):
        return None  # as for most runs, which need not load the settings
    from pytest_device.errors import ConfigError

    try:
        settings = settings_of(config)
    except ConfigError:
        return None  # said in full when a test needs a device, and not at all otherwise
    if settings.local.value:
        return f"device: local service ({settings.local.source})"
    if settings.url.value is None:
        return None
    return f"device: {settings.url.value} ({settings.url.source}), app {settings.app_id.value or 'not set'}"


def usage_error(problems: Iterable[str]) -> pytest.UsageError:
    """Return the error that shows each problem on a line of its own; pytest itself marks the first one only."""
    return pytest.UsageError("\nERROR: ".join(problems))


def _is_given(config: pytest.Config, ini: str, variable: str) -> bool:
    return bool(config.getoption(ini) or os.environ.get(variable) or config.getini(ini))


def _text(value: object) -> str | None:
    if isinstance(value, list):
        return ",".join(map(str, cast("list[object]", value)))
    return None if value is None else str(value)


def _shown(default: object) -> str:
    return f"{default:g}" if isinstance(default, float | int) else str(default)
