"""Selects the tests of one shard; all machines split the suite identically."""

from collections.abc import Hashable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final

import pytest

from pytest_device.errors import ConfigError
from pytest_device.plugin.durations import Durations, InvalidFileError, read_file
from pytest_device.plugin.state import requirements_of
from pytest_device.scheduling.sharding import ItemCost, split

DURATIONS_FILE: Final = ".test_durations"
"""pytest-split's file of test durations in seconds by node ID: part of the repository, so the same everywhere."""
SHARD_LINE: Final = pytest.StashKey[str]()
UNKNOWN_WITH_DEVICE: Final = 10_000
"""Milliseconds if no duration is known at all: only the ratio to UNKNOWN_WITHOUT and to a boot matters then."""
UNKNOWN_WITHOUT: Final = 1_000
_INCOMPATIBLE_OPTIONS: Final = {
    "lf": "--lf, which selects different tests on each machine",
    "stepwise": "--stepwise, which selects different tests on each machine",
    "splits": "--splits, which also splits the suite",
}
"""Options that can't be used with shards, with the reason."""


def select(
    config: pytest.Config, items: list[pytest.Item], shard: str, source: str
) -> None:
    """Deselect the tests of other shards; raises ConfigError if shards would lose or repeat tests.

    ``shard`` is written as ``1/4``; ``source`` is where it was set.
    """
    number, count = map(int, shard.split("/"))

    if problems := [
        why
        for option, why in _INCOMPATIBLE_OPTIONS.items()
        if config.getoption(option, default=None)
    ]:
        raise ConfigError(
            *(f"{source}={shard} can't be used with {problem}" for problem in problems)
        )

    durations = read_durations(config.rootpath / DURATIONS_FILE)
    tests = [
        (item.nodeid, tuple(requirements_of(item).values()) or None) for item in items
    ]
    known = {
        nodeid: round(seconds * 1000)
        for nodeid, _ in tests
        if (seconds := durations.seconds(nodeid)) is not None
    }
    parts = split(weighed(tests, known), count)
    text = f"device shard {shard}: {parts.count(number - 1)} of {len(tests)} tests, {_fingerprint(tests, parts)}"
    config.stash[SHARD_LINE] = text
    if not config.pluginmanager.has_plugin("device-shard"):
        config.pluginmanager.register(_ShardReporter(), "device-shard")

    selected: list[pytest.Item] = []
    others: list[pytest.Item] = []
    for item, part in zip(items, parts, strict=True):
        if part == number - 1:
            selected.append(item)
        else:
            others.append(item)

    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = selected


class _ShardReporter:
    """Reports which shard runs here."""

    def pytest_report_collectionfinish(self, config: pytest.Config) -> str:
        return config.stash[SHARD_LINE]


def _fingerprint(tests: Sequence[tuple[str, object]], parts: Sequence[int]) -> str:
    """Return a text that differs if another machine splits differently."""
    lines = sorted(
        f"{part} {nodeid}" for (nodeid, _), part in zip(tests, parts, strict=True)
    )
    digest = sha256("\n".join(lines).encode(errors="surrogatepass")).hexdigest()
    return f"split {digest[:8]}"


def read_durations(path: Path) -> Durations:
    """Read a file of durations, empty if it is missing; raises ConfigError if it is invalid."""
    durations = Durations()
    try:
        read_file(path, durations)
    except FileNotFoundError:
        pass
    except (OSError, InvalidFileError) as error:
        raise ConfigError(
            f"cannot read the durations for balancing shards in {path.name}: {error}"
        ) from None

    return durations


def weighed(
    tests: Sequence[tuple[str, Hashable | None]], known: Mapping[str, int]
) -> list[ItemCost]:
    """Return tests, given as node ID and group, with their durations; unknown ones get the average.

    >>> [test.milliseconds for test in weighed([("test_a", None), ("test_b", "ios")], {"test_a": 500})]
    [500, 500]
    """
    durations = [known[nodeid] for nodeid, _ in tests if nodeid in known]
    # In whole numbers: their sum does not depend on the order of the tests.
    average = sum(durations) // len(durations) if durations else None

    def milliseconds(nodeid: str, group: Hashable | None) -> int:
        unknown = UNKNOWN_WITHOUT if group is None else UNKNOWN_WITH_DEVICE
        return known.get(nodeid, unknown if average is None else average)

    return [
        ItemCost(nodeid, group, milliseconds(nodeid, group)) for nodeid, group in tests
    ]
