"""The device requirements of a test at run time: its markers, completed by fixtures."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple, cast

import pytest

from pytest_device.errors import ConfigError, DeviceError, InvalidRequestError
from pytest_device.options import Options
from pytest_device.plugin.markers import Names, devices_of, need_of, platforms_of
from pytest_device.plugin.provider.lookahead import (
    Lookahead,
    is_completed_by_fixtures,
    may_be_skipped,
)
from pytest_device.plugin.state import ARGUMENTS, NEEDS, NOT_REMAINING, needs_of
from pytest_device.scheduling.history import History
from pytest_device.scheduling.sizing import needed_minutes
from pytest_device.sessions.request import SHARING
from pytest_device.sessions.requirement import DeviceRequirement
from pytest_device.settings import Settings
from pytest_device.spec import DURATION_MAX_MINUTES, Share

_DECIDED: Final = frozenset({"platform", "type", *SHARING})
"""Arguments that must be known before the first test runs."""
_WORDS: Final = {"max_duration_minutes": "duration", "max_idle_time_minutes": "idle"}
"""Words in a refusal that identify a limit, in any spelling ("Errors": the message identifies the option)."""


class Plan(NamedTuple):
    """A test's needs by device name, and those of later tests that should boot now."""

    item: pytest.Item
    needs: Mapping[str, DeviceRequirement]
    timed_needs: Sequence[DeviceRequirement]
    """The same needs, for sessions that last as long as the test is known to take."""
    ahead: Sequence[DeviceRequirement]


class Requirements:
    """The needs of a process's tests."""

    def __init__(self, settings: Settings, names: Names, history: History) -> None:
        self._settings, self._names, self._history = settings, names, history
        self._planned: dict[DeviceRequirement, DeviceRequirement] = {}
        """The original of each need that fixtures changed."""

    def of(
        self, item: pytest.Item, defaults: Mapping[str, Any]
    ) -> dict[str, DeviceRequirement]:
        """Return a test's needs at run time, with the additions of the suite's fixtures; raises ConfigError."""
        planned = item.stash.get(NEEDS, None)
        if planned is None:  # requested at run time, with getfixturevalue
            item.stash[ARGUMENTS] = devices_of(item, self._settings)
            one = item.stash[ARGUMENTS].items()
            planned = {
                name: need_of(item, arguments, self._settings, self._names)
                for name, arguments in one
            }
            item.stash[NEEDS] = planned
            item.stash[NOT_REMAINING] = True
        if not isinstance(
            cast("object", defaults), Mapping
        ):  # a suite's fixture may return anything
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
        needs = {
            name: need_of(
                item,
                arguments[name],
                self._settings,
                self._names,
                _sized(need, defaults),
            )
            for name, need in planned.items()
        }
        self._planned |= {needs[name]: planned[name] for name in needs}
        return needs

    def unshared(
        self, item: pytest.Item, arguments: Mapping[str, Any]
    ) -> DeviceRequirement:
        """Return the need for an unshared session; raises ConfigError."""
        if wrong := sorted(set(SHARING).intersection(arguments)):
            raise ConfigError(
                f"device_lease() sessions are never shared: remove {' and '.join(wrong)}"
            )
        platforms = platforms_of(arguments, self._settings)
        if len(platforms) > 1:
            raise ConfigError(
                f"device_lease() creates one session: pass one platform, not {' and '.join(platforms)}"
            )
        chosen = dict(zip(["platform"], platforms, strict=False))
        return need_of(
            item,
            {"share": Share.TEST, "attach": "", **arguments, **chosen},
            self._settings,
            self._names,
        )

    def planned(self, need: DeviceRequirement) -> DeviceRequirement:
        """Return a need as it was before fixtures changed it."""
        return self._planned.get(need, need)

    def is_outdated(
        self, need: DeviceRequirement, wanted: Collection[DeviceRequirement]
    ) -> bool:
        """Return whether an earlier test changed the same planned need differently, so that it will not occur again."""
        plans = {self._planned[one] for one in wanted}
        return need not in wanted and self._planned.get(need) in plans

    def plan(
        self,
        item: pytest.Item,
        needs: Mapping[str, DeviceRequirement],
        lookahead: Lookahead,
    ) -> Plan:
        """Return the needs to boot for a test, and during it for later ones."""
        timed_needs = self.with_test_minutes(item, needs.values())
        wanted = Counter(timed_needs)
        known = len(wanted)
        for following in lookahead.upcoming(item):
            if not may_be_skipped(following) and not is_completed_by_fixtures(
                following
            ):
                wanted |= Counter(
                    self.with_test_minutes(following, needs_of(following).values())
                )
        return Plan(
            item,
            needs,
            timed_needs,
            list(wanted.elements()) if len(wanted) > known else (),
        )

    def with_test_minutes(
        self, item: pytest.Item, needs: Iterable[DeviceRequirement]
    ) -> list[DeviceRequirement]:
        """Return needs whose sessions last at least as long as the test is known to take."""
        seconds = self._history.test_seconds(item.nodeid)
        limits = (
            (need, need.request.max_duration_minutes or DURATION_MAX_MINUTES)
            for need in needs
        )
        return [
            replace(need, minutes=needed_minutes(seconds, need.minutes, limit))
            for need, limit in limits
        ]


def _sized(need: DeviceRequirement, defaults: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a suite's defaults, preceded by the duration that was planned for a need."""
    name = "max_duration_minutes"
    return (
        defaults
        if name in need.defaults
        else {name: need.request.max_duration_minutes, **defaults}
    )


def note_defaults(error: DeviceError, needs: Iterable[DeviceRequirement]) -> None:
    """Add a note to a refusal that names a default limit, which says how to set the limit."""
    if not isinstance(error, InvalidRequestError):
        return
    defaults = {name: need.request for need in needs for name in need.defaults}
    for name, request in defaults.items():
        if (
            _WORDS[name] in error.detail.lower()
            and (value := getattr(request, name)) is not None
        ):
            error.add_note(
                f"{name}={value} is pytest-device's default: to change it, set {getattr(Options, name).spellings}, or "
                f"the marker's {name}; 'account' uses the account's default"
            )
