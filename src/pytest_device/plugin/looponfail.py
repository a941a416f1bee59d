"""Keeps the files that a run writes out of those that ``--looponfail`` of pytest-xdist watches.

It runs the failed tests again after each change below the current directory. The artifacts of a failed test are such a
change: without this, each run would cause the next, and each pays for devices.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from pytest_device.errors import ConfigError
from pytest_device.options import Option, Options
from pytest_device.plugin.options import settings_for, usage_error
from pytest_device.settings import as_given

if TYPE_CHECKING:
    import pytest


def hide_output(config: "pytest.Config") -> None:
    """Let the runs write to hidden directories, which pytest-xdist does not watch, unless others are set.

    Raises pytest.UsageError if one that is set is watched.
    """
    options = (Options.artifacts_dir, Options.report)
    try:
        settings = settings_for(config, options)
    except ConfigError:  # reported with the other settings
        return

    problems: list[str] = []
    for option in options:
        if settings.is_default(option.word):
            setattr(config.option, option.ini, hidden_default(option))
            continue

        value: str = settings.values[option.word]
        writes_nothing = option is Options.report and value == "off"
        if not writes_nothing and _is_watched(
            config, config.invocation_params.dir / value
        ):
            problems.append(
                f"{as_given(settings.source(option.word), value)} must begin with a dot, or be outside of the "
                "directories that --looponfail watches: each run writes to it, and so would cause the next"
            )

    if problems:
        raise usage_error(problems)


def hidden_default(option: Option[str]) -> str:
    """Return the directory that takes the place of an option's default."""
    return f".{option.default}"


def _is_watched(config: "pytest.Config", directory: Path) -> bool:
    """Return whether pytest-xdist looks into a directory: it leaves out those whose name begins with a dot."""
    for root in config.getini("looponfailroots") or [Path.cwd()]:
        if directory.is_relative_to(root):
            names = directory.relative_to(root).parts
            return not any(name.startswith(".") for name in names)

    return False
