"""The drivers of wider-scoped fixtures, which several tests use in turn."""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from pytest_device.plugin.provider.acquired import ACQUIRED, Sessions, sessions_of
from pytest_device.plugin.selection import SCOPED_DRIVERS
from pytest_device.plugin.state import DRIVERS, note_session, requirements_of
from pytest_device.sessions.device_session import DeviceSession
from pytest_device.sessions.pool import Pool
from pytest_device.sessions.request import DeviceRequirement
from pytest_device.sessions.roster import is_good

if TYPE_CHECKING:
    from appium.webdriver.webdriver import WebDriver


@dataclass(slots=True, eq=False)
class _HeldDriver:
    """The resources that a wider-scoped fixture holds; ``requirements`` are those of all its tests."""

    fixture: str
    requirements: Mapping[str, DeviceRequirement]
    sessions: Sessions
    drivers: "Mapping[str, WebDriver]"
    is_broken: bool = False
    """Whether device, controller or app failed in a test: the next test gets a new driver."""
    is_kept: bool = False
    """Whether a test failed whose device is to be left running."""

    def serves(self, requirements: Sequence[DeviceRequirement]) -> bool:
        """Return whether it can serve another test; ``requirements`` include the time that the test takes."""
        if self.is_broken or self.is_kept:
            return False

        return all(
            is_good(session, requirement.minutes) and not session.check_alive()
            for session, requirement in zip(
                self.sessions.values(), requirements, strict=True
            )
        )


class HeldDrivers:
    """All resources that wider-scoped fixtures hold in this process now."""

    def __init__(self, pool: Pool, keep: Callable[[Sessions], None]) -> None:
        """Create none yet; ``keep`` leaves the sessions of a failed test running."""
        self.held: list[_HeldDriver] = []
        self._pool = pool
        self._keep = keep

    def of(self, session: DeviceSession) -> _HeldDriver | None:
        """Return what holds a session, None if nothing does."""
        for driver in self.held:
            if session in driver.sessions.values():
                return driver

        return None

    def released(self, sessions: Sessions, *, keep: bool) -> Sessions:
        """Return the sessions that a test releases; held ones stay, and are left running at the end if ``keep``."""
        released: dict[str, DeviceSession] = {}
        for name, session in sessions.items():
            driver = self.of(session)
            if driver is None:
                released[name] = session
            else:
                driver.is_kept |= keep

        return released

    @contextmanager
    def holding(
        self, fixture: str, item: pytest.Item, drivers: "Mapping[str, WebDriver]"
    ) -> Generator[None]:
        """Hold the sessions of a test during the block, for all tests with its requirements."""
        driver = _HeldDriver(fixture, requirements_of(item), sessions_of(item), drivers)
        self.held.append(driver)
        try:
            yield
        finally:
            self.held.remove(driver)
            self._pool.give_back(driver.sessions.values())

            if driver.is_kept:
                self._keep(driver.sessions)

    def resume(
        self, item: pytest.Item, timed_requirements: Sequence[DeviceRequirement]
    ) -> None:
        """Give a test what its fixture holds, or finish the fixture, so that pytest sets it up again.

        pytest finishes it as if a parameter had changed: the fixtures that depend on it go first.
        """
        for fixture in SCOPED_DRIVERS.keys() & set(getattr(item, "fixturenames", ())):
            driver = self._held_by(fixture)
            if (
                driver
                and driver.requirements == requirements_of(item)
                and driver.serves(timed_requirements)
            ):
                self._give(driver, item)
            else:  # includes a failed setup, whose error pytest would raise again
                test: Any = item
                test._fixtureinfo.name2fixturedefs[fixture][0].finish(test._request)  # noqa: SLF001

    def _held_by(self, fixture: str) -> _HeldDriver | None:
        for driver in self.held:
            if driver.fixture == fixture:
                return driver

        return None

    def share(
        self, item: pytest.Item, timed_requirements: Sequence[DeviceRequirement]
    ) -> bool:
        """Give a test without a driver the held device that others of its scope share, if any."""
        fixtures = getattr(item, "fixturenames", ())
        if not {"device_driver", "device_drivers"}.isdisjoint(fixtures):
            return False

        for driver in self.held:
            if driver.requirements == requirements_of(item) and driver.serves(
                timed_requirements
            ):
                self._give(driver, item)
                return True

        return False

    def _give(self, driver: _HeldDriver, item: pytest.Item) -> None:
        self._pool.hand_over(driver.sessions.values(), item)
        for session in driver.sessions.values():
            note_session(item, session.ref())

        item.stash[ACQUIRED] = driver.sessions
        item.stash[DRIVERS] = dict(driver.drivers)
