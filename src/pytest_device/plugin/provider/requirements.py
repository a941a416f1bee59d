"""What a test needs at run time, and what later tests need: which of their devices should boot now."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple, Protocol, cast

import pytest

from pytest_device.errors import ConfigError, DeviceError, InvalidRequestError
from pytest_device.options import Options
from pytest_device.plugin.markers import (
    SessionNaming,
    devices_of,
    platforms_of,
    requirement_of,
)
from pytest_device.plugin.provider.reach import waits_for_tunnel
from pytest_device.plugin.state import (
    ARGUMENTS,
    FAILED,
    NOT_REMAINING,
    REQUIREMENTS,
    is_unshared,
    may_be_skipped,
    requirements_of,
)
from pytest_device.scheduling.estimates import BOOT_SECONDS, PLAIN_SECONDS, TEST_SECONDS
from pytest_device.scheduling.history import History
from pytest_device.scheduling.sizing import needed_minutes
from pytest_device.sessions.request import SHARING, DeviceRequirement
from pytest_device.settings import Settings
from pytest_device.spec import DURATION_MAX_MINUTES, Share

_DECIDED: Final = frozenset({"platform", "type", *SHARING})
"""Arguments that must be known before the first test runs."""
_WORDS: Final = {"max_duration_minutes": "duration", "max_idle_time_minutes": "idle"}
"""Words in a refusal that identify a limit, in any spelling ("Errors": the message identifies the option)."""


_COMPLETING_FIXTURES: Final = ("device_request_defaults", "device_wait_policy")
"""Fixtures that a suite may override."""


class Plan(NamedTuple):
    """A test's requirements by device name, and what should boot during it."""

    item: pytest.Item
    requirements: Mapping[str, DeviceRequirement]
    timed_requirements: Sequence[DeviceRequirement]
    """The same requirements, for sessions that last as long as the test is known to take."""
    prefetch: Sequence[DeviceRequirement]
    """Those whose devices should boot now: the test's own, and those of later tests. Empty if only its own should."""


class Requirements:
    """The requirements of a process's tests, of which ``lookahead`` knows the later ones."""

    def __init__(
        self, settings: Settings, names: SessionNaming, lookahead: "Lookahead"
    ) -> None:
        self._settings = settings
        self._names = names
        self._lookahead = lookahead
        self._planned: dict[DeviceRequirement, DeviceRequirement] = {}
        """The requirement at collection of each that a fixture completed."""

    def for_item(
        self, item: pytest.Item, defaults: Mapping[str, Any]
    ) -> dict[str, DeviceRequirement]:
        """Return a test's requirements at run time, with the additions of the suite's fixtures; raises ConfigError."""
        planned = item.stash.get(REQUIREMENTS, None)
        if planned is None:  # requested at run time, with getfixturevalue
            item.stash[ARGUMENTS] = devices_of(item, self._settings)
            planned = {
                name: requirement_of(item, arguments, self._settings, self._names)
                for name, arguments in item.stash[ARGUMENTS].items()
            }
            item.stash[REQUIREMENTS] = planned
            item.stash[NOT_REMAINING] = True

        # A suite's fixture may return anything.
        if not isinstance(cast("object", defaults), Mapping):
            raise ConfigError(
                f"device_request_defaults returned {defaults!r}; it must return a mapping of marker arguments"
            )

        if not defaults:
            return planned

        if wrong := sorted(_DECIDED.intersection(defaults)):
            raise ConfigError(
                f"device_request_defaults can't set {', '.join(wrong)}, which must be known at collection: use the "
                "marker, an option or the hook pytest_device_request"
            )

        arguments = item.stash[ARGUMENTS]
        requirements = {
            name: requirement_of(
                item, arguments[name], self._settings, self._names, defaults
            )
            for name in planned
        }
        for name, requirement in requirements.items():
            self._complete(planned[name], requirement, defaults)

        return requirements

    def _complete(
        self,
        planned: DeviceRequirement,
        completed: DeviceRequirement,
        defaults: Mapping[str, Any],
    ) -> None:
        """Record what a fixture added to a requirement; raises ConfigError if it changes that of a shared device."""
        is_new = planned.share != Share.TEST and completed not in self._planned
        if is_new and planned in self._planned.values():
            raise ConfigError(
                f"device_request_defaults returned {dict(defaults)!r}, but something else for an earlier test of the same "
                "shared device: return the same for all of them, or use the marker, its share or the hook "
                "pytest_device_request"
            )

        self._planned[completed] = planned

    def unshared(
        self, item: pytest.Item, arguments: Mapping[str, Any]
    ) -> DeviceRequirement:
        """Return the requirement for an unshared session; raises ConfigError."""
        if wrong := sorted(set(SHARING).intersection(arguments)):
            raise ConfigError(
                f"device_lease() sessions are never shared: remove {' and '.join(wrong)}"
            )

        platforms = platforms_of(arguments, self._settings)
        if len(platforms) > 1:
            raise ConfigError(
                f"device_lease() creates one session: pass one platform, not {' and '.join(platforms)}"
            )

        complete = {"share": Share.TEST, "attach": "", **arguments}
        if platforms:
            complete["platform"] = platforms[0]

        return requirement_of(item, complete, self._settings, self._names)

    def needed_at_once(
        self, requirement: DeviceRequirement, nextitem: pytest.Item | None
    ) -> float:
        """Return the maximum number of sessions for a requirement that one of the later tests uses at once."""
        # No fixture has changed the requirements of later tests yet. Most runs have no such fixtures.
        if self._planned:
            requirement = self._planned.get(requirement, requirement)

        return self._lookahead.needed_at_once(requirement, nextitem)

    def plan(
        self, item: pytest.Item, requirements: Mapping[str, DeviceRequirement]
    ) -> Plan:
        """Return the requirements to boot devices for: those of a test, and during it for later ones."""
        timed_requirements = self.with_test_minutes(item, requirements.values())
        at_once = Counter(timed_requirements)
        for following in self._lookahead.upcoming(item):
            # Each of these may mean that the device is not used, or is another one: it would be billed for nothing.
            if (
                may_be_skipped(following)
                or is_completed_by_fixtures(following)
                or waits_for_tunnel(following, self._settings)
            ):
                continue

            of_following = requirements_of(following).values()
            at_once |= Counter(self.with_test_minutes(following, of_following))

        prefetch: Sequence[DeviceRequirement] = ()
        if len(at_once) > len(set(timed_requirements)):
            prefetch = list(at_once.elements())

        return Plan(item, requirements, timed_requirements, prefetch)

    def with_test_minutes(
        self, item: pytest.Item, requirements: Iterable[DeviceRequirement]
    ) -> list[DeviceRequirement]:
        """Return requirements whose sessions last at least as long as the test is known to take."""
        seconds = self._lookahead.history.test_seconds(item.nodeid)
        if seconds is None:
            return list(requirements)

        limits = (
            (
                requirement,
                requirement.request.max_duration_minutes or DURATION_MAX_MINUTES,
            )
            for requirement in requirements
        )

        return [
            replace(
                requirement, minutes=needed_minutes(seconds, requirement.minutes, limit)
            )
            for requirement, limit in limits
        ]


def note_defaults(
    error: DeviceError, requirements: Iterable[DeviceRequirement]
) -> None:
    """Add a note to a refusal that names a default limit, which says how to set the limit."""
    if not isinstance(error, InvalidRequestError):
        return

    refusal = error.detail.lower()
    defaults = {
        name: requirement.request
        for requirement in requirements
        for name in requirement.defaults
    }
    for name, request in defaults.items():
        value = getattr(request, name)
        if value is not None and _WORDS[name] in refusal:
            error.add_note(
                f"{name}={value} is pytest-device's default: to change it, set {getattr(Options, name).spellings}, or "
                f"the marker's {name}; 'account' uses the account's default"
            )


class Lookahead(Protocol):
    """The later tests as far as a process knows them."""

    history: History
    """Durations of tests and boots in earlier runs."""

    def done(self, item: pytest.Item) -> None:
        """Count a test as done; a plugin may run it again."""
        ...

    def needed_at_once(
        self, requirement: DeviceRequirement, nextitem: pytest.Item | None
    ) -> float:
        """Return the maximum number of sessions for a requirement that one of the later tests uses at once."""
        ...

    def upcoming(self, item: pytest.Item) -> Iterator[pytest.Item]:
        """Yield later tests whose devices should boot now, in their order.

        Shared devices are prefetched for one test, unshared devices for up to ``prefetch`` tests.
        """
        ...


class WholeRun:
    """All tests in their order, for a process that runs them all."""

    def __init__(
        self, items: Sequence[pytest.Item], history: History, prefetch: int
    ) -> None:
        self._items = items
        self.history = history
        self._prefetch = prefetch
        requirements = [requirements_of(item) for item in items]
        self._index_of = {item: index for index, item in enumerate(items)}
        self._left: dict[DeviceRequirement, Counter[int]] = defaultdict(Counter)
        """Number of remaining tests, by requirement and by how often a test has it."""
        self._begins = [0.0]
        """When each test begins, not counting boots."""
        self._unknown = [0]
        """Number of tests with unknown durations before each test."""
        for item, of_test in zip(items, requirements, strict=True):
            self._count(of_test, 1)
            seconds = history.test_seconds(item.nodeid)
            self._begins.append(self._begins[-1] + _length(of_test, seconds))
            self._unknown.append(self._unknown[-1] + (seconds is None))

        self._next_new = [len(items)] * len(items)
        """For each test, the next one whose devices differ from its predecessor's."""
        for index in range(len(items) - 2, -1, -1):
            of_next = requirements[index + 1]
            is_new = of_next and of_next != requirements[index]
            self._next_new[index] = index + 1 if is_new else self._next_new[index + 1]

    def _count(self, requirements: Mapping[str, DeviceRequirement], sign: int) -> None:
        for requirement, count in Counter(requirements.values()).items():
            self._left[requirement][count] += sign

    def done(self, item: pytest.Item) -> None:
        if not item.stash.get(NOT_REMAINING, False):
            item.stash[NOT_REMAINING] = True
            self._count(requirements_of(item), -1)

    def needed_at_once(
        self, requirement: DeviceRequirement, nextitem: pytest.Item | None
    ) -> float:
        del nextitem
        return max(
            (count for count, tests in self._left[requirement].items() if tests > 0),
            default=0,
        )

    def upcoming(self, item: pytest.Item) -> Iterator[pytest.Item]:
        """Yield the next test with other devices if it begins before they can be ready."""
        index = self._index_of.get(item, len(self._items) - 1)
        following = self._next_new[index]
        if (
            following < len(self._items)
            and not is_unshared(self._items[following])
            and self._is_near(index, following)
        ):
            yield self._items[following]

        for _ in range(self._prefetch):
            if following == len(self._items) or not is_unshared(self._items[following]):
                return

            yield self._items[following]
            following = self._next_new[following]

    def _is_near(self, index: int, following: int) -> bool:
        """Return whether a test begins before its devices can boot; devices must not idle for an unknown time."""
        if self._unknown[following] > self._unknown[index + 1]:
            return False

        begins_in = self._begins[following] - self._begins[index]
        return begins_in <= self._boot(self._items[following])

    def _boot(self, item: pytest.Item) -> float:
        boots = (
            self.history.usual_boot(requirement.request.boot_key)
            for requirement in requirements_of(item).values()
        )
        return max(BOOT_SECONDS if seconds is None else seconds for seconds in boots)


def _length(
    requirements: Mapping[str, DeviceRequirement], known_seconds: float | None
) -> float:
    """Return the seconds that a test probably takes, not counting boots."""
    if known_seconds is not None:
        return known_seconds

    return TEST_SECONDS if requirements else PLAIN_SECONDS


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
