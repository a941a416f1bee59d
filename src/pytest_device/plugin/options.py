"""The options in pytest: reads command line and ini file into Settings."""

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

import pytest

from pytest_device.options import OPTIONS, TOKEN_VARIABLE, Option, Options

_LOOKING: Final = ("collectonly", "setupplan", "showfixtures", "show_fixtures_per_test")

if TYPE_CHECKING:
    from pytest_device.errors import ConfigError
    from pytest_device.settings import Settings

CHOSEN_DIST: Final = pytest.StashKey[str]()
"""The user's ``--dist``, before pytest-xdist completes it; ``no`` if not given."""
WIDTH: Final = pytest.StashKey[int]()
"""Number of pytest-xdist workers, 0 without pytest-xdist."""
_SETTINGS: Final["pytest.StashKey[Settings | ConfigError]"] = pytest.StashKey()


def add(parser: pytest.Parser) -> None:
    """Register each option on the command line and in the ini file."""
    group = parser.getgroup(
        "device", f"remote devices (access token: {TOKEN_VARIABLE} in the environment)"
    )
    for option in OPTIONS:
        default, help_text = option.default, option.help
        takes = {"metavar": option.metavar}
        if isinstance(default, bool):
            takes = {"action": "store_const", "const": str(not default).lower()}
            help_text = f"do not {help_text}" if default else help_text
        elif isinstance(default, tuple):
            takes["action"] = "append"
        elif default is not None:
            help_text += (
                f" (default: {default:g})"
                if isinstance(default, float)
                else f" (default: {default})"
            )
        group.addoption(
            option.flag,
            dest=option.ini,
            help=f"{help_text} [{option.variable}]",
            **takes,
        )
        parser.addini(option.ini, option.help, default=None)


def will_run(config: pytest.Config) -> bool:
    """Return whether the tests will run: some pytest options only list them."""
    return not any(config.getoption(option, default=False) for option in _LOOKING)


def settings_of(config: pytest.Config) -> "Settings":
    """Return the settings of this run; raise ConfigError with all invalid values."""
    __tracebackhide__ = True
    from pytest_device.errors import ConfigError

    if _SETTINGS not in config.stash:
        try:
            config.stash[_SETTINGS] = _resolved(config)
        except ConfigError as error:  # once: a project can take long to fail
            config.stash[_SETTINGS] = error
    found = config.stash[_SETTINGS]
    if isinstance(found, ConfigError):
        raise ConfigError(*found.problems) from None
    return found


def _resolved(config: pytest.Config) -> "Settings":
    from pytest_device.plugin.project import completed
    from pytest_device.settings import resolve

    settings = resolve(
        lambda name: _text(config.getoption(name)),
        os.environ,
        lambda name: _from_ini(config, name),
    )
    return completed(config, settings)


def _from_ini(config: pytest.Config, name: str) -> str | None:
    """Return a value of the ini file; paths are relative to the rootdir, as pytest's own."""
    text = _ini(config, name)
    return (
        str(config.rootpath / text)
        if text and name in (Options.builds_dir.ini, Options.app_root.ini)
        else text
    )


def misspelled(config: pytest.Config) -> Iterator[str]:
    """Yield each undeclared key of the ini file that resembles one of ours."""
    from difflib import get_close_matches

    given: Mapping[str, object] = vars(config).get("_inicfg") or vars(config).get(
        "inicfg", {}
    )  # the old name warns
    for key in given:
        near = get_close_matches(
            key, [option.ini for option in OPTIONS], n=1, cutoff=0.8
        )
        if near and near[0] != key and not _is_declared(config, key):
            yield f"{key} in the ini file is not an option: did you mean {near[0]}?"


def _is_declared(config: pytest.Config, key: str) -> bool:
    try:
        config.getini(key)
    except ValueError:
        return False
    return True


def header(config: pytest.Config) -> list[str]:
    """Return header lines with the service, its limits and the app's project; with ``-v`` all settings."""
    if not _is_set(config, Options.url, Options.local, Options.app_root):
        return []  # the settings need not be loaded, as in most runs
    from pytest_device.errors import ConfigError
    from pytest_device.plugin.project import additions_of, notes_of

    try:
        settings = settings_of(config)
    except ConfigError:
        return []  # reported in full if a test needs a device
    service = (
        [f"device: {', '.join(_facts(settings))}"]
        if settings.url or settings.local
        else []
    )
    from_project = (
        f"device app: {name}: {value} ({source})"
        for name, value, source in additions_of(config)
    )
    sources = [*_sources(settings), *from_project] if config.get_verbosity() > 0 else []
    return [*service, *(f"device app: {note}" for note in notes_of(config)), *sources]


def _facts(settings: "Settings") -> Iterator[str]:
    if settings.local:
        yield f"local service ({settings.source('local')})"
    else:
        yield f"{settings.url} ({settings.source('url')})"
        yield f"app ID {f'{settings.app_id[:8]}…' if settings.app_id else 'not set'}"  # shown in full with -v
    longest = settings.duration_with()
    limit = f"{longest} min" if isinstance(longest, int) else "the account's default"
    yield f"sessions up to {limit} (idle {settings.idle_within(longest) or 'none'})"
    if settings.max_sessions:
        yield f"at most {settings.max_sessions} at once"


def _sources(settings: "Settings") -> Iterator[str]:
    for option, value in settings.chosen():
        if option not in {Options.url, Options.local}:
            yield f"device {option.word.replace('_', ' ')}: {value} ({settings.source(option.word)})"


def is_dry_run(config: pytest.Config) -> bool:
    """Return whether the run only reports what it would do; False if the settings are invalid."""
    if not may_be_dry_run(config):
        return False
    from pytest_device.errors import ConfigError

    try:
        settings = settings_of(config)
    except ConfigError:
        return False
    return settings.dry_run or settings.plan


def may_be_dry_run(config: pytest.Config) -> bool:
    """Return whether a dry run or plan is set at all, on or off, without loading the settings."""
    return _is_set(config, Options.dry_run, Options.plan)


def is_sharded(config: pytest.Config) -> bool:
    """Return whether only one shard of the suite runs."""
    return _is_set(config, Options.shard)


def note_distribution(config: pytest.Config) -> None:
    """Store the user's options for pytest-xdist before it completes them."""
    config.stash[CHOSEN_DIST] = str(config.getoption("dist"))
    if is_dry_run(config):  # needs no workers
        config.stash[WIDTH] = _width(config)
        config.option.numprocesses = 0


def _width(config: pytest.Config) -> int:
    number: int | str | None = config.getoption("numprocesses")
    if number in {"auto", "logical"}:
        number = config.hook.pytest_xdist_auto_num_workers(config=config)
    if number is None:  # --tx, for example 3*popen
        distributes = config.getoption("dist") != "no" or config.getoption("distload")
        specs: list[str] = (config.getoption("tx") or []) if distributes else []
        number = sum(
            int(many) if many.isdigit() else 1
            for many, _, _ in (spec.partition("*") for spec in specs)
        )
    most: int | None = config.getoption("maxprocesses")
    return min(int(number), most or int(number))


def conflicting_distribution_options(
    config: pytest.Config, *, workers: bool = True
) -> list[str]:
    """Return the options that prevent assigning tests to workers by device; some apply only with workers."""
    chosen = config.stash.get(CHOSEN_DIST, "no")
    others = {
        f"--dist {chosen}": workers and chosen != "no",
        "--stepwise": config.getoption("stepwise", default=False),
        "the suite's own scheduler": workers and _has_scheduler(config),
    }
    return [other for other, is_there in others.items() if is_there]


def _has_scheduler(config: pytest.Config) -> bool:
    """Return whether the suite or another plugin has its own scheduler."""
    known = [
        config.pluginmanager.get_plugin(name)
        for name in ("dsession", "device-coordinator")
    ]
    hook = getattr(config.hook, "pytest_xdist_make_scheduler", None)
    return hook is not None and any(
        found.plugin not in known for found in hook.get_hookimpls()
    )


def usage_error(problems: Iterable[str]) -> pytest.UsageError:
    """Return an error with each problem on its own line; pytest prefixes only the first."""
    return pytest.UsageError("\nERROR: ".join(problems))


def _is_set(config: pytest.Config, *options: Option[Any]) -> bool:
    """Return whether any of the options is set, without loading the settings, which most runs never need."""
    return any(
        config.getoption(option.ini)
        or os.environ.get(option.variable)
        or _ini(config, option.ini)
        for option in options
    )


def _ini(config: pytest.Config, name: str) -> str | None:
    """Return a value of the ini file as text, also a number, a switch or a list in TOML: pytest refuses those."""
    value = getattr(vars(config).get("_inicfg", {}).get(name), "value", None)
    return _text(
        config.getini(name) if value is None or isinstance(value, str) else value
    )


def _text(value: object) -> str | None:
    if isinstance(value, list):
        return ",".join(map(str, cast("list[object]", value)))
    return None if value is None else str(value)
