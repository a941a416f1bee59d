"""Where the artifacts of tests are."""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final
from zlib import crc32

import pytest

from pytest_device.errors import ConfigError
from pytest_device.options import Options
from pytest_device.plugin.options import settings_of
from pytest_device.plugin.state import ATTEMPTS, RETRIES
from pytest_device.settings import Settings

_NAME_BYTES: Final = 100
"""Maximum length of a name in UTF-8: file systems allow 255 bytes, and the parts added to it need some of them."""
_CLOCK_SLACK: Final = 2.0
"""Seconds by which the time of a file may be before that of the clock: some file systems count every other second."""


def attempt_of(item: pytest.Item) -> int:
    """Return the number of the current attempt at a test, from 1, whoever repeats it."""
    # By pytest-rerunfailures, which counts the attempts of workers that crashed, too.
    execution: int = getattr(item, "execution_count", 1)
    return max(execution, item.stash.get(ATTEMPTS, 1))


def directory_of(item: pytest.Item, settings: Settings) -> Path:
    """Return the directory for a test's artifacts, one for each attempt.

    ``pytest_ignore_collect`` recognizes the ends of these names.
    """
    name = file_name(item.nodeid)
    retries = item.stash.get(RETRIES, 0)
    if retries:
        name = f"{name}-retry-{retries}"

    reruns = attempt_of(item) - 1 - retries
    return root_of(settings, item.config) / (
        f"{name}-rerun-{reruns}" if reruns > 0 else name
    )


def root_of(settings: Settings, config: pytest.Config) -> Path:
    """Return the directory for the artifacts of all tests."""
    return config.invocation_params.dir / settings.artifacts_dir


def has_artifacts(directory: Path, config: pytest.Config) -> bool:
    """Return whether a directory is, by its place, for artifacts; False if the settings are invalid."""
    try:
        settings = settings_of(config)
    except ConfigError:
        return False

    root = Path(os.path.abspath(root_of(settings, config)))  # noqa: PTH100  # links stay, as in pytest's paths
    return root in {directory, directory.parent}


def ignore_in_git(settings: Settings, config: pytest.Config) -> None:
    """Keep the default directory, which nobody has chosen, out of the suite's repository."""
    if settings.is_default("artifacts_dir"):
        with suppress(OSError):  # reported by what is written next
            (root_of(settings, config) / ".gitignore").write_text("*\n", "utf-8")


def file_name(name: str) -> str:
    """Return a unique name that is safe as a file name.

    >>> file_name("device-1")
    'device-1'
    >>> file_name("tests/test_app.py::test_signs_in")
    'tests-test_app.py-test_signs_in-c603892b'
    """
    plain = re.sub(r"[^\w.-]+", "-", name).strip("-.")
    encoded = plain.encode()
    if plain == name and len(encoded) <= _NAME_BYTES:
        return name

    # A character that the limit cuts in two is left out.
    start = encoded[:_NAME_BYTES].decode(errors="ignore")
    digest = f"{crc32(name.encode(errors='replace')):08x}"
    return f"{start}-{digest}".lstrip("-")


def files_in(directory: Path, pattern: str = "*") -> list[Path]:
    """Return the files of a directory and those below it, sorted.

    There are none if it can't be read, as when the suite leaves the process no free file descriptor.
    """
    try:
        return sorted(path for path in directory.rglob(pattern) if path.is_file())
    except OSError:
        return []


def written_since(directory: Path, start: float) -> Iterator[Path]:
    """Yield the files of a directory and those below it, without those that an earlier run left there."""
    for path in files_in(directory):
        try:
            written = path.stat().st_mtime
        # Another run with the same directory has removed it since.
        except FileNotFoundError:
            continue

        if written >= start - _CLOCK_SLACK:
            yield path


def not_saved(root: Path, error: OSError) -> str:
    """Return the same text for all tests, so that the run notes it only once."""
    reason = error.strerror or error
    return f"cannot save artifacts in {root} ({reason}): make it writable or change {Options.artifacts_dir.flag}"
