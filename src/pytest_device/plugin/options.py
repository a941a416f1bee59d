"""The table of options at pytest's edge: options and ini keys in, Settings out."""

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, cast

import pytest

from pytest_device.option_table import BUILDS_DIR, DRY_RUN, LOCAL, OPTIONS, PLAN, SHARD, TOKEN_VARIABLE, URL

_LOOKING: Final = ("collectonly", "setupplan", "showfixtures", "show_fixtures_per_test")

if TYPE_CHECKING:
    from pytest_device.settings import Settings

CHOSEN_DIST: Final = pytest.StashKey[str]()
"""How the user wants pytest-xdist to distribute tests, ``no`` where they do not say."""
WIDTH: Final = pytest.StashKey[int]()
"""How many workers of pytest-xdist run tests, 0 where this process does."""
_SETTINGS: Final = pytest.StashKey["Settings"]()


def add(parser: pytest.Parser) -> None:
    """Add each option of the table to the command line and the ini file."""
    group = parser.getgroup("device", f"remote devices (access token: {TOKEN_VARIABLE} in the environment)")
    for option in OPTIONS:
        text = f"{option.help} [{option.variable}]"
        metavar = option.metavar
        if isinstance(option.default, bool):
            group.addoption(
                option.option,
                dest=option.ini,
                action="store_const",
                const=str(not option.default).lower(),
                help=f"do not {text}" if option.default else text,
            )
        elif isinstance(option.default, tuple):
            group.addoption(option.option, dest=option.ini, action="append", metavar=metavar, help=text)
        else:
            default = "" if option.default is None else f", default {_shown(option.default)}"
            group.addoption(option.option, dest=option.ini, metavar=metavar, help=f"{text}{default}")
        parser.addini(option.ini, option.help, default=None)


def will_run(config: pytest.Config) -> bool:
    """Return whether the tests will run: under some options pytest only looks at them."""
    return not any(config.getoption(option, default=False) for option in _LOOKING)


def settings_of(config: pytest.Config) -> "Settings":
    """Return the settings of this run; raises ConfigError telling all values at fault."""
    from pytest_device.settings import resolve

    if _SETTINGS not in config.stash:
        config.stash[_SETTINGS] = resolve(
            lambda name: _text(config.getoption(name)), os.environ, lambda name: _from_ini(config, name)
        )
    return config.stash[_SETTINGS]


def _from_ini(config: pytest.Config, name: str) -> str | None:
    """Return a value of the ini file; a path there begins at the file's own directory, as pytest's paths do."""
    text = _text(config.getini(name))
    return str(config.rootpath / text) if text and name == BUILDS_DIR.ini else text


def header(config: pytest.Config) -> list[str]:
    """Return lines that name service, app and limits, none when no service is configured; with ``-v`` all sources."""
    if not any(_is_given(config, option.ini, option.variable) for option in (URL, LOCAL)):
        return []  # as for most runs, which need not load the settings
    from pytest_device.errors import ConfigError

    try:
        settings = settings_of(config)
    except ConfigError:
        return []  # said in full when a test needs a device, and not at all otherwise
    if settings.url.value is None and not settings.local.value:
        return []
    return [f"device: {', '.join(_facts(settings))}", *(_sources(settings) if config.get_verbosity() > 0 else ())]


def _facts(settings: "Settings") -> Iterator[str]:
    if settings.local.value:
        yield f"local service ({settings.local.source})"
    else:
        yield f"{settings.url.value} ({settings.url.source})"
        yield f"app {settings.app_id.value or 'not set'}"
    yield f"sessions up to {settings.max_duration_minutes.value} min (idle {settings.max_idle_time_minutes.value})"
    if settings.max_sessions.value:
        yield f"at most {settings.max_sessions.value} at once"


def _sources(settings: "Settings") -> Iterator[str]:
    for option in OPTIONS:
        name = option.ini.removeprefix("device_")
        setting = getattr(settings, name)
        if not setting.is_default and setting.value is not None and option not in {URL, LOCAL}:
            yield f"device {name.replace('_', ' ')}: {_value(setting.value)} ({setting.source})"


def _value(value: object) -> str:
    """Return a setting's value without what it may hide: addresses of archives are often signed in their query."""
    match value:
        case bool():
            return str(value).lower()
        case tuple():
            return ", ".join(map(str, cast("tuple[object, ...]", value)))
        case str():
            from pytest_device.redact import Redactor

            shown, query, _ = Redactor().text(value).partition("?")
            return (shown if shown.isprintable() else repr(shown)) + ("?…" if query else "")
        case _:
            return _shown(value)


def is_dry_run(config: pytest.Config) -> bool:
    """Return whether the run only says what it would do; not when the settings are wrong, which is reported later."""
    if not may_be_dry_run(config):
        return False
    from pytest_device.errors import ConfigError

    try:
        settings = settings_of(config)
    except ConfigError:
        return False
    return settings.dry_run.value or settings.plan.value


def may_be_dry_run(config: pytest.Config) -> bool:
    """Return whether any option of a dry run is given; the settings, if they are right, say what it means."""
    return any(_is_given(config, option.ini, option.variable) for option in (DRY_RUN, PLAN))


def is_sharded(config: pytest.Config) -> bool:
    """Return whether only one part of the suite is to run."""
    return _is_given(config, SHARD.ini, SHARD.variable)


def note_distribution(config: pytest.Config) -> None:
    """Remember what the user wants of pytest-xdist, before it completes that itself."""
    config.stash[CHOSEN_DIST] = str(config.getoption("dist"))
    if is_dry_run(config):  # in this process alone
        config.stash[WIDTH] = _width(config)
        config.option.numprocesses = 0


def _width(config: pytest.Config) -> int:
    number: int | str | None = config.getoption("numprocesses")
    if number in {"auto", "logical"}:
        number = config.hook.pytest_xdist_auto_num_workers(config=config)
    if number is None:  # --tx, as in 3*popen
        distributes = config.getoption("dist") != "no" or config.getoption("distload")
        specs: list[str] = (config.getoption("tx") or []) if distributes else []
        number = sum(int(many) if many.isdigit() else 1 for many, _, _ in (spec.partition("*") for spec in specs))
    most: int | None = config.getoption("maxprocesses")
    return min(int(number), most or int(number))


def others_that_assign(config: pytest.Config, *, workers: bool = True) -> list[str]:
    """Return what keeps tests from being assigned by their devices, in words; some only where there are workers."""
    chosen = config.stash.get(CHOSEN_DIST, "no")
    others = {
        f"--dist {chosen}": workers and chosen != "no",
        "--stepwise": config.getoption("stepwise", default=False),
        "the suite's own scheduler": workers and _has_scheduler(config),
    }
    return [other for other, is_there in others.items() if is_there]


def _has_scheduler(config: pytest.Config) -> bool:
    """Return whether the suite, or another plugin, has a scheduler of its own."""
    known = [config.pluginmanager.get_plugin(name) for name in ("dsession", "device-coordinator")]
    hook = getattr(config.hook, "pytest_xdist_make_scheduler", None)
    return hook is not None and any(found.plugin not in known for found in hook.get_hookimpls())


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
