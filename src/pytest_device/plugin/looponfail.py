"""Keeps the files that a run writes out of those that ``--looponfail`` of pytest-xdist watches.

It runs the failed tests again after each change below the current directory. The artifacts of a failed test are such a
change: without this, each run would cause the next, and each pays for devices.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_device.options import Option, Options
from pytest_device.plugin.options import usage_error

if TYPE_CHECKING:
    import pytest


def hide_output(config: "pytest.Config") -> None:
    """Let the runs write to hidden directories, which pytest-xdist does not watch, unless others are set.

    Raises pytest.UsageError if one that is set is watched.
    """
    problems: list[str] = []
    for option in (Options.artifacts_dir, Options.report):
        chosen = next(_chosen(config, option), None)
        if chosen is None:
            setattr(config.option, option.ini, f".{option.default}")
            continue

        source, value = chosen
        writes_nothing = option is Options.report and value == "off"
        if not writes_nothing and _is_watched(
            config, config.invocation_params.dir / value
        ):
            problems.append(
                f"{source}={value!r} must begin with a dot, or be outside of the directories that --looponfail "
                "watches: each run writes to it, and so would cause the next"
            )

    if problems:
        raise usage_error(problems)


def _chosen(config: "pytest.Config", option: Option[Any]) -> Iterator[tuple[str, str]]:
    """Yield where the option is set, and its value there; the strongest source first."""
    if value := config.getoption(option.ini):
        yield option.flag, value
    if value := os.environ.get(option.variable):
        yield option.variable, value
    if value := config.getini(option.ini):
        yield option.ini, str(value)


def _is_watched(config: "pytest.Config", directory: Path) -> bool:
    """Return whether pytest-xdist looks into a directory: it leaves out those whose name begins with a dot."""
    for root in config.getini("looponfailroots") or [Path.cwd()]:
        if directory.is_relative_to(root):
            names = directory.relative_to(root).parts
            return not any(name.startswith(".") for name in names)

    return False
