"""Decides which devices later tests need, and which of them should boot now."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Final, Protocol

import pytest

from pytest_device.plugin.state import (
    FAILED,
    NOT_REMAINING,
    is_unshared,
    need_counts,
    needs_of,
)
from pytest_device.scheduling.estimates import BOOT_SECONDS, PLAIN_SECONDS, TEST_SECONDS

if TYPE_CHECKING:
    from pytest_device.scheduling.history import History
    from pytest_device.sessions.requirement import DeviceRequirement


_COMPLETING_FIXTURES: Final = ("device_request_defaults", "device_wait_policy")
"""Fixtures that a suite may override."""


class Lookahead(Protocol):
    """The later tests as far as a process knows them."""

    history: "History"
    """Durations of tests and boots in earlier runs."""

    def done(self, item: pytest.Item) -> None:
        """Count a test as done; a plugin may run it again."""
        ...

    def needed_at_once(
        self, need: "DeviceRequirement", nextitem: pytest.Item | None
    ) -> float:
        """Return the maximum number of sessions for a need that one of the later tests uses at once."""
        ...

    def upcoming(self, item: pytest.Item) -> Iterator[pytest.Item]:
        """Yield later tests whose devices should boot now, in their order.

        Shared devices are prefetched for one test, unshared devices for up to ``prefetch`` tests.
        """
        ...


class WholeRun:
    """All tests in their order, for a process that runs them all."""

    def __init__(
        self, items: Sequence[pytest.Item], history: "History", prefetch: int
    ) -> None:
        self._items, self.history, self._prefetch = items, history, prefetch
        self._left: dict[DeviceRequirement, Counter[int]] = defaultdict(Counter)
        """Number of remaining tests, by need and by how often a test has it."""
        for item in items:
            self._count(item, 1)
        self._places = {item: place for place, item in enumerate(items)}
        self._begins = list(accumulate(map(self._seconds, items), initial=0.0))
        """When each test begins, not counting boots."""
        self._unknown = list(
            accumulate(
                (history.test_seconds(item.nodeid) is None for item in items), initial=0
            )
        )
        """Number of tests with unknown durations before each test."""
        self._next_new = [len(items)] * len(items)
        """For each test, the next one whose devices differ from its predecessor's."""
        for place in range(len(items) - 2, -1, -1):
            of_next = needs_of(items[place + 1])
            is_new = of_next and of_next != needs_of(items[place])
            self._next_new[place] = place + 1 if is_new else self._next_new[place + 1]

    def _count(self, item: pytest.Item, sign: int) -> None:
        for need, count in need_counts(item).items():
            self._left[need][count] += sign

    def _seconds(self, item: pytest.Item) -> float:
        known = self.history.test_seconds(item.nodeid)
        guess = TEST_SECONDS if needs_of(item) else PLAIN_SECONDS
        return guess if known is None else known

    def done(self, item: pytest.Item) -> None:
        if not item.stash.get(NOT_REMAINING, False):
            item.stash[NOT_REMAINING] = True
            self._count(item, -1)

    def needed_at_once(
        self, need: "DeviceRequirement", nextitem: pytest.Item | None
    ) -> float:
        del nextitem
        return max(
            (count for count, tests in self._left[need].items() if tests > 0), default=0
        )

    def upcoming(self, item: pytest.Item) -> Iterator[pytest.Item]:
        """Yield the next test with other devices if it begins before they can be ready."""
        place = self._places.get(item, len(self._items) - 1)
        following = self._next_new[place]
        if (
            following < len(self._items)
            and not is_unshared(self._items[following])
            and self._is_near(place, following)
        ):
            yield self._items[following]
        for _ in range(self._prefetch):
            if following == len(self._items) or not is_unshared(self._items[following]):
                return
            yield self._items[following]
            following = self._next_new[following]

    def _is_near(self, place: int, following: int) -> bool:
        """Return whether a test begins before its devices can boot; devices must not idle for an unknown time."""
        if self._unknown[following] > self._unknown[place + 1]:
            return False
        return self._begins[following] - self._begins[place] <= self._boot(
            self._items[following]
        )

    def _boot(self, item: pytest.Item) -> float:
        boots = (
            self.history.usual_boot(need.request.boot_key)
            for need in needs_of(item).values()
        )
        return max(BOOT_SECONDS if seconds is None else seconds for seconds in boots)


def is_forked(item: pytest.Item) -> bool:
    """Return whether a test runs in its own process (pytest-forked), which cannot use devices booted here."""
    return (
        bool(item.config.getoption("forked", default=False))
        or item.get_closest_marker("forked") is not None
    )


def may_be_skipped(item: pytest.Item) -> bool:
    """Return whether a test may be skipped before it uses its devices."""
    return any(item.iter_markers("skip")) or any(item.iter_markers("skipif"))


def is_completed_by_fixtures(item: pytest.Item) -> bool:
    """Return whether the suite's fixtures change the test's request, or the wait for it, at run time."""
    info = getattr(item, "_fixtureinfo", None)
    definitions: Mapping[str, Sequence[object]] = info.name2fixturedefs if info else {}
    return any(len(definitions.get(name, ())) > 1 for name in _COMPLETING_FIXTURES)


def runs_again(item: pytest.Item) -> bool:
    """Return whether pytest-rerunfailures may run a test again, on the devices that it shares."""
    plugin = item.config.pluginmanager.get_plugin("rerunfailures")
    attempt: int = getattr(item, "execution_count", 0)
    if not (plugin and attempt and item.stash.get(FAILED, False)) or is_unshared(item):
        return False
    return bool(attempt <= (plugin.get_reruns_count(item) or 0))
