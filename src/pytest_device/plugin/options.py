"""The options in pytest: reads command line and ini file into Settings."""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, cast

import pytest

from pytest_device.options import (
    OPTIONS,
    TOKEN_VARIABLE,
    Group,
    Option,
    Options,
)

_LIST_ONLY: Final = (
    "collectonly",
    "setupplan",
    "showfixtures",
    "show_fixtures_per_test",
)

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
    for option in OPTIONS:
        default = option.default
        help_text = option.help
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

        _help_group(parser, option.group).addoption(
            option.flag,
            dest=option.ini,
            help=f"{help_text} [{option.variable}]",
            **takes,
        )

        parser.addini(option.ini, option.help, default=None)


def _help_group(parser: pytest.Parser, group: Group) -> pytest.OptionGroup:
    title = f"devices: {group.lower()}"
    if group is Group.COMMON:
        title += f" (access token: {TOKEN_VARIABLE} in the environment)"

    return parser.getgroup(f"device-{group.name.lower()}", title)


def will_run(config: pytest.Config) -> bool:
    """Return whether the tests will run: some pytest options only list them."""
    return not any(config.getoption(option, default=False) for option in _LIST_ONLY)


def settings_of(config: pytest.Config) -> "Settings":
    """Return the settings of this run; raise ConfigError with all invalid values."""
    __tracebackhide__ = True
    from pytest_device.errors import ConfigError

    if _SETTINGS not in config.stash:
        try:
            config.stash[_SETTINGS] = _completed(config)
        except ConfigError as error:  # once: a project can take long to fail
            config.stash[_SETTINGS] = error

    resolved = config.stash[_SETTINGS]
    if isinstance(resolved, ConfigError):
        raise ConfigError(*resolved.problems) from None

    return resolved


def app_settings_of(config: pytest.Config) -> "Settings":
    """Return the settings of the app's project, without loading it. Raises ConfigError.

    The commands on a project use them, and must not fail for a mistake in another setting.
    """
    words = ("app_root", "app_dynamic", "vendor")
    return settings_for(
        config, [option for option in OPTIONS if option.word.startswith(words)]
    )


def settings_for(config: pytest.Config, options: Collection[Option[Any]]) -> "Settings":
    """Return the settings of these options alone, which later changes of them don't affect. Raises ConfigError."""
    names = {option.variable for option in options} & os.environ.keys()
    return _resolved(config, options, {name: os.environ[name] for name in names})


def _resolved(
    config: pytest.Config,
    options: Iterable[Option[Any]],
    environ: Mapping[str, str],
) -> "Settings":
    from pytest_device.settings import resolve

    command_line = {option.ini: config.getoption(option.ini) for option in options}
    ini = dict(_in_ini_file(config, options))

    for option in (Options.builds_dir, Options.app_root, Options.durations):
        if text := ini.get(option.ini):
            ini[option.ini] = str(config.rootpath / text)  # as pytest's own paths

    return resolve(_as_texts(command_line), environ, ini)


def _completed(config: pytest.Config) -> "Settings":
    settings = _resolved(config, OPTIONS, os.environ)
    if settings.app_root is None:
        return settings

    from pytest_device.plugin.project import with_project

    return with_project(config, settings, settings.app_root)


def _in_ini_file(
    config: pytest.Config, options: Iterable[Option[Any]] = OPTIONS
) -> Mapping[str, str]:
    """Return the texts of the options that the ini file sets, by key."""
    written: Mapping[str, object] = vars(config).get("_inicfg", {})
    values: dict[str, object] = {}

    for option in options:
        value: object = getattr(written.get(option.ini), "value", None)
        # A number, a switch or a list in TOML is used as it is, since pytest refuses it.
        if value is None or isinstance(value, str):
            value = config.getini(option.ini)

        values[option.ini] = value

    return _as_texts(values)


def _as_texts(values: Mapping[str, object]) -> Mapping[str, str]:
    """Return those of the values that are set, as text."""
    return {name: _text(value) for name, value in values.items() if value is not None}


def misspelled(config: pytest.Config) -> Iterator[str]:
    """Yield each undeclared key of the ini file that resembles one of ours, or is a secret."""
    from difflib import get_close_matches

    # pytest renamed the attribute, and warns of the old name.
    keys: Mapping[str, object] = vars(config).get("_inicfg") or vars(config).get(
        "inicfg", {}
    )

    names = [option.ini for option in OPTIONS]
    for key in keys:
        # pytest refuses to read a list from TOML as a text.
        if key in names or _is_declared(config, key):
            continue

        near = get_close_matches(key, names, n=1, cutoff=0.8)
        if key == TOKEN_VARIABLE.lower():
            yield (
                f"{key} in the ini file is not an option: set {TOKEN_VARIABLE} in the environment instead, and remove the "
                "secret from the file"
            )
        elif near:
            yield f"{key} in the ini file is not an option: did you mean {near[0]}?"


def _is_declared(config: pytest.Config, key: str) -> bool:
    try:
        config.getini(key)
    except ValueError:
        return False

    return True


def load_project(config: pytest.Config) -> None:
    """Load the app's project, if one is set, before the collection: its secrets may be in names of tests."""
    if _is_set(config, Options.app_root):
        from pytest_device.errors import ConfigError

        with suppress(ConfigError):  # reported in full if a test needs a device
            settings_of(config)


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

    lines: list[str] = []
    if settings.url or settings.local:
        lines.append(f"device: {', '.join(_facts(settings))}")

    lines += [f"device app: {note}" for note in notes_of(config)]
    if config.get_verbosity() > 0:
        lines += _sources(settings)
        lines += [
            f"device app: {name}: {value} ({source})"
            for name, value, source in additions_of(config)
        ]

    return lines


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

    if settings.local:
        from pytest_device.local import why_not_isolated

        reason = why_not_isolated()
        yield (
            f"browser not isolated from other users ({reason})"
            if reason
            else "browser isolated from other users"
        )


def _sources(settings: "Settings") -> Iterator[str]:
    for option, value in settings.chosen():
        if option not in {Options.url, Options.local}:
            yield f"device {option.word.replace('_', ' ')}: {value} ({settings.source(option.word)})"


def is_plan(config: pytest.Config) -> bool:
    """Return whether the run only reports what it would do; False if the settings are invalid."""
    if _SETTINGS not in config.stash and not may_be_plan(config):
        return False  # without loading the settings, which most runs never need

    from pytest_device.errors import ConfigError

    try:
        settings = settings_of(config)
    except ConfigError:
        return False

    return settings.plan


def may_be_plan(config: pytest.Config) -> bool:
    """Return whether a plan is set at all, on or off, without loading the settings."""
    return _is_set(config, Options.plan)


def is_sharded(config: pytest.Config) -> bool:
    """Return whether only one shard of the suite runs."""
    return _is_set(config, Options.shard)


def note_distribution(config: pytest.Config) -> None:
    """Store the user's options for pytest-xdist before it completes them."""
    config.stash[CHOSEN_DIST] = str(config.getoption("dist"))
    if is_plan(config):  # needs no workers
        config.stash[WIDTH] = _width(config)
        config.option.numprocesses = 0


def _width(config: pytest.Config) -> int:
    number: int | str | None = config.getoption("numprocesses")
    if number in {"auto", "logical"}:
        number = config.hook.pytest_xdist_auto_num_workers(config=config)

    if number is None:
        number = 0
        distributes = config.getoption("dist") != "no" or config.getoption("distload")
        specs: list[str] = config.getoption("tx") or []
        for spec in specs if distributes else ():
            count, _, _ = spec.partition("*")  # of 3*popen, for example
            number += int(count) if count.isdigit() else 1

    maximum: int | None = config.getoption("maxprocesses")
    return min(int(number), maximum or int(number))


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
    own_plugins = [
        config.pluginmanager.get_plugin(name)
        for name in ("dsession", "device-coordinator")
    ]
    hook = getattr(config.hook, "pytest_xdist_make_scheduler", None)

    return hook is not None and any(
        implementation.plugin not in own_plugins
        for implementation in hook.get_hookimpls()
    )


def usage_error(problems: Iterable[str]) -> pytest.UsageError:
    """Return an error with each problem on its own line; pytest prefixes only the first."""
    return pytest.UsageError("\nERROR: ".join(problems))


def _is_set(config: pytest.Config, *options: Option[Any]) -> bool:
    """Return whether any of the options is set, without loading the settings, which most runs never need."""
    is_given = any(
        config.getoption(option.ini) or os.environ.get(option.variable)
        for option in options
    )
    return is_given or any(_in_ini_file(config, options).values())


def _text(value: object) -> str:
    return (
        ",".join(map(str, cast("list[object]", value)))
        if isinstance(value, list)
        else str(value)
    )
