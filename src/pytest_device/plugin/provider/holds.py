"""The sessions that a test has, and those that a driver of a wider scope holds from test to test."""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pytest

from pytest_device.plugin.names import OF_SCOPE
from pytest_device.plugin.state import DRIVERS, needs_of, note_session
from pytest_device.sessions.device_session import DeviceSession
from pytest_device.sessions.roster import is_good

if TYPE_CHECKING:
    from appium.webdriver.webdriver import WebDriver

    from pytest_device.sessions.requirement import DeviceRequirement

TAKEN: Final = pytest.StashKey[Mapping[str, DeviceSession]]()

Sessions = Mapping[str, DeviceSession]
"""Sessions by the names of a test's devices."""


def taken_by(item: pytest.Item) -> Sessions:
    """Return the sessions that a test has now."""
    return item.stash.get(TAKEN, None) or {}


def spend(sessions: Sessions) -> None:
    """Give sessions to no other test."""
    for one in sessions.values():
        one.unusable = True


@dataclass(slots=True, eq=False)
class _Hold:
    """What a fixture of a wider scope holds; ``needs`` are those of all its tests."""

    fixture: str
    needs: "Mapping[str, DeviceRequirement]"
    sessions: Sessions
    drivers: "Mapping[str, WebDriver]"
    is_broken: bool = False
    """Whether the device, its controller or the app has failed in a test: the next one gets a new driver."""
    is_kept: bool = False
    """Whether a test has failed whose device is to be left as it is."""

    def serves(self, needs: "Sequence[DeviceRequirement]") -> bool:
        """Return whether it can serve one more test; ``needs`` are to last as long as that test takes."""
        pairs = zip(self.sessions.values(), needs, strict=True)
        is_over = self.is_broken or self.is_kept
        return not is_over and all(is_good(one, need.minutes) and not one.check_alive() for one, need in pairs)

    def give_to(self, item: pytest.Item) -> None:
        for one in self.sessions.values():
            one.user, one.is_new = item, False
            note_session(item, one.ref())
        item.stash[TAKEN], item.stash[DRIVERS] = self.sessions, dict(self.drivers)


class Holds:
    """All that fixtures of wider scopes hold in this process now."""

    def __init__(self, keep: Callable[[Sessions], None]) -> None:
        self.held: list[_Hold] = []
        self._keep = keep

    def of(self, session: DeviceSession) -> _Hold | None:
        return next((hold for hold in self.held if session in hold.sessions.values()), None)

    def released(self, taken: Sessions, *, keep: bool) -> Sessions:
        """Return what a test gives back; what is held stays, to be left as it is at the end if it is to be kept."""
        holds = {name: self.of(session) for name, session in taken.items()}
        for hold in filter(None, holds.values()):
            hold.is_kept |= keep
        return {name: session for name, session in taken.items() if holds[name] is None}

    @contextmanager
    def holding(self, fixture: str, item: pytest.Item, drivers: "Mapping[str, WebDriver]") -> Generator[None]:
        """Hold the sessions of a test for a block, for all tests with its needs."""
        hold = _Hold(fixture, needs_of(item), taken_by(item), drivers)
        self.held.append(hold)
        try:
            yield
        finally:
            self.held.remove(hold)
            for one in hold.sessions.values():
                one.in_use = False
            if hold.is_kept:
                self._keep(hold.sessions)

    def resume(self, item: pytest.Item, lasting: "Sequence[DeviceRequirement]") -> None:
        """Give a test what its fixture holds; end the fixture if that is of no use to it, so that it is set up anew.

        pytest ends it as it does for another parameter: first all fixtures that are built on it.
        """
        for fixture in OF_SCOPE.keys() & set(getattr(item, "fixturenames", ())):
            hold = next((one for one in self.held if one.fixture == fixture), None)
            if hold and hold.needs == needs_of(item) and hold.serves(lasting):
                hold.give_to(item)
            else:  # also one whose set-up has failed: pytest would raise that error again
                test: Any = item
                test._fixtureinfo.name2fixturedefs[fixture][0].finish(test._request)  # noqa: SLF001

    def share(self, item: pytest.Item, lasting: "Sequence[DeviceRequirement]") -> bool:
        """Give a test without a driver the device that others of its scope share, if one is held."""
        if not {"device_driver", "device_drivers"}.isdisjoint(getattr(item, "fixturenames", ())):
            return False
        hold = next((one for one in self.held if one.needs == needs_of(item) and one.serves(lasting)), None)
        if hold:
            hold.give_to(item)
        return hold is not None
