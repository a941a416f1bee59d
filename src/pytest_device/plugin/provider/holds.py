"""The sessions of a test, and those that a wider-scoped driver holds from test to test."""

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
"""Sessions by device name."""


def taken_by(item: pytest.Item) -> Sessions:
    """Return the sessions that a test has now."""
    return item.stash.get(TAKEN, None) or {}


def spend(sessions: Sessions) -> None:
    """Give these sessions to no other test."""
    for one in sessions.values():
        one.unusable = True


@dataclass(slots=True, eq=False)
class _Hold:
    """The resources that a wider-scoped fixture holds; ``needs`` are those of all its tests."""

    fixture: str
    needs: "Mapping[str, DeviceRequirement]"
    sessions: Sessions
    drivers: "Mapping[str, WebDriver]"
    is_broken: bool = False
    """Whether device, controller or app failed in a test: the next test gets a new driver."""
    is_kept: bool = False
    """Whether a test failed whose device is to be left running."""

    def serves(self, needs: "Sequence[DeviceRequirement]") -> bool:
        """Return whether it can serve another test; ``needs`` include the time that the test takes."""
        pairs = zip(self.sessions.values(), needs, strict=True)
        is_over = self.is_broken or self.is_kept
        return not is_over and all(is_good(one, need.minutes) and not one.check_alive() for one, need in pairs)

    def give_to(self, item: pytest.Item) -> None:
        for one in self.sessions.values():
            one.user, one.is_new = item, False
            note_session(item, one.ref())
        item.stash[TAKEN], item.stash[DRIVERS] = self.sessions, dict(self.drivers)


class Holds:
    """All resources that wider-scoped fixtures hold in this process now."""

    def __init__(self, keep: Callable[[Sessions], None]) -> None:
        self.held: list[_Hold] = []
        self._keep = keep

    def of(self, session: DeviceSession) -> _Hold | None:
        return next((hold for hold in self.held if session in hold.sessions.values()), None)

    def released(self, taken: Sessions, *, keep: bool) -> Sessions:
        """Return the sessions that a test gives back; held ones stay, and are left running at the end if ``keep``."""
        holds = {name: self.of(session) for name, session in taken.items()}
        for hold in filter(None, holds.values()):
            hold.is_kept |= keep
        return {name: session for name, session in taken.items() if holds[name] is None}

    @contextmanager
    def holding(self, fixture: str, item: pytest.Item, drivers: "Mapping[str, WebDriver]") -> Generator[None]:
        """Hold the sessions of a test during the block, for all tests with its requirements."""
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
        """Give a test what its fixture holds, or finish the fixture, so that pytest sets it up again.

        pytest finishes it as if a parameter had changed: the fixtures that depend on it go first.
        """
        for fixture in OF_SCOPE.keys() & set(getattr(item, "fixturenames", ())):
            hold = next((one for one in self.held if one.fixture == fixture), None)
            if hold and hold.needs == needs_of(item) and hold.serves(lasting):
                hold.give_to(item)
            else:  # includes a failed setup, whose error pytest would raise again
                test: Any = item
                test._fixtureinfo.name2fixturedefs[fixture][0].finish(test._request)  # noqa: SLF001

    def share(self, item: pytest.Item, lasting: "Sequence[DeviceRequirement]") -> bool:
        """Give a test without a driver the held device that others of its scope share, if any."""
        if not {"device_driver", "device_drivers"}.isdisjoint(getattr(item, "fixturenames", ())):
            return False
        hold = next((one for one in self.held if one.needs == needs_of(item) and one.serves(lasting)), None)
        if hold:
            hold.give_to(item)
        return hold is not None
