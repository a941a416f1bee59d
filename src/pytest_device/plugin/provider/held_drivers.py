"""The sessions of a test, and those that a wider-scoped driver holds from test to test."""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pytest

from pytest_device.plugin.selection import SCOPED_DRIVERS
from pytest_device.plugin.state import DRIVERS, needs_of, note_session
from pytest_device.sessions.device_session import DeviceSession
from pytest_device.sessions.roster import is_good

if TYPE_CHECKING:
    from appium.webdriver.webdriver import WebDriver

    from pytest_device.sessions.requirement import DeviceRequirement

ACQUIRED: Final = pytest.StashKey[Mapping[str, DeviceSession]]()

Sessions = Mapping[str, DeviceSession]
"""Sessions by device name."""


def sessions_of(item: pytest.Item) -> Sessions:
    """Return the sessions that a test has now."""
    return item.stash.get(ACQUIRED, None) or {}


def mark_unusable(sessions: Sessions) -> None:
    """Give these sessions to no other test."""
    for one in sessions.values():
        one.unusable = True


@dataclass(slots=True, eq=False)
class _HeldDriver:
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
        return not is_over and all(
            is_good(one, need.minutes) and not one.check_alive() for one, need in pairs
        )

    def give_to(self, item: pytest.Item) -> None:
        for one in self.sessions.values():
            one.user, one.is_new = item, False
            note_session(item, one.ref())
        item.stash[ACQUIRED], item.stash[DRIVERS] = self.sessions, dict(self.drivers)


class HeldDrivers:
    """All resources that wider-scoped fixtures hold in this process now."""

    def __init__(self, keep: Callable[[Sessions], None]) -> None:
        self.held: list[_HeldDriver] = []
        self._keep = keep

    def of(self, session: DeviceSession) -> _HeldDriver | None:
        return next(
            (driver for driver in self.held if session in driver.sessions.values()),
            None,
        )

    def released(self, sessions: Sessions, *, keep: bool) -> Sessions:
        """Return the sessions that a test releases; held ones stay, and are left running at the end if ``keep``."""
        drivers = {name: self.of(session) for name, session in sessions.items()}
        for driver in filter(None, drivers.values()):
            driver.is_kept |= keep
        return {
            name: session for name, session in sessions.items() if drivers[name] is None
        }

    @contextmanager
    def holding(
        self, fixture: str, item: pytest.Item, drivers: "Mapping[str, WebDriver]"
    ) -> Generator[None]:
        """Hold the sessions of a test during the block, for all tests with its requirements."""
        driver = _HeldDriver(fixture, needs_of(item), sessions_of(item), drivers)
        self.held.append(driver)
        try:
            yield
        finally:
            self.held.remove(driver)
            for one in driver.sessions.values():
                one.in_use = False
            if driver.is_kept:
                self._keep(driver.sessions)

    def resume(
        self, item: pytest.Item, timed_needs: "Sequence[DeviceRequirement]"
    ) -> None:
        """Give a test what its fixture holds, or finish the fixture, so that pytest sets it up again.

        pytest finishes it as if a parameter had changed: the fixtures that depend on it go first.
        """
        for fixture in SCOPED_DRIVERS.keys() & set(getattr(item, "fixturenames", ())):
            driver = next((one for one in self.held if one.fixture == fixture), None)
            if driver and driver.needs == needs_of(item) and driver.serves(timed_needs):
                driver.give_to(item)
            else:  # includes a failed setup, whose error pytest would raise again
                test: Any = item
                test._fixtureinfo.name2fixturedefs[fixture][0].finish(test._request)  # noqa: SLF001

    def share(
        self, item: pytest.Item, timed_needs: "Sequence[DeviceRequirement]"
    ) -> bool:
        """Give a test without a driver the held device that others of its scope share, if any."""
        if not {"device_driver", "device_drivers"}.isdisjoint(
            getattr(item, "fixturenames", ())
        ):
            return False
        driver = next(
            (
                one
                for one in self.held
                if one.needs == needs_of(item) and one.serves(timed_needs)
            ),
            None,
        )
        if driver:
            driver.give_to(item)
        return driver is not None
