"""``--device-keep-warm``: what a run has from the one before it, and leaves to the next."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import pytest

from pytest_device.plugin.provider.backend import Backend
from pytest_device.sessions.device_session import DeviceSession
from pytest_device.sessions.events import Note
from pytest_device.sessions.quota import Slots
from pytest_device.sessions.reaper_client import ReaperClient
from pytest_device.sessions.relay import Relay
from pytest_device.sessions.requirement import DeviceRequirement
from pytest_device.sessions.session_config import WarmSession
from pytest_device.sessions.warm import WarmConfig, WarmStore
from pytest_device.settings import Settings

_IN_ORDER: Final = frozenset(
    {
        pytest.ExitCode.OK,
        pytest.ExitCode.TESTS_FAILED,
        pytest.ExitCode.INTERRUPTED,
        pytest.ExitCode.NO_TESTS_COLLECTED,
    }
)


class WarmDevices:
    """The questions of a pool, answered with no where nothing is kept warm."""

    def __init__(self, warm: WarmStore | None = None) -> None:
        self._warm = warm
        self.is_kept = warm is not None
        """Whether sessions are left up, and had from earlier runs."""

    @classmethod
    def of(cls, settings: Settings, backend: Backend, *, relay: Relay) -> "WarmDevices":
        """Return what the settings make of it; report once why nothing is kept though that was requested."""
        from pytest_device.controllers.health import problem_of

        if settings.not_warm:
            relay.event(Note(settings.not_warm))
        if not settings.keep_warm or settings.state_dir is None or not _owner(backend):
            return cls()
        slots = backend.slots("a check for warm devices")
        config = WarmConfig(
            settings.keep_warm,
            Path(settings.state_dir),
            owner=lambda: _owner_of(backend),
            problem_of=problem_of,
            relay=relay,
            has_room=lambda sessions: _has_room(slots, sessions),
        )
        return cls(WarmStore(config))

    def claim(
        self, requirement: DeviceRequirement, coming: Callable[[], Sequence[DeviceRequirement]]
    ) -> WarmSession | None:
        """Return a session that an earlier run left up for such a requirement, this process's from now on.

        Where there is none, room is made for one that is to be created, beside what is left for what is ``coming``.
        """
        return self._warm.claim(requirement, coming) if self._warm else None

    def hand_over(self, session: DeviceSession) -> str | None:
        """Leave a session up for the next run if it can be of use to it; return until when, None when it cannot."""
        return self._warm.hand_over(session) if self._warm else None

    def may_stay(self, need: DeviceRequirement) -> bool:
        """Tell whether sessions for a need are left up, so that what tests leave on them is to be cleaned up."""
        return self._warm is not None and self._warm.may_stay(need)

    def end(self) -> None:
        """Leave nothing up, also not what has been left up by now: the run was broken off."""
        if self._warm:
            self._warm.end()


def _has_room(slots: Slots | None, sessions: int) -> bool:
    """Return whether there may be so many sessions besides those in use."""
    if slots is None:
        return True
    free = slots.try_take(sessions) if sessions <= slots.most else None
    for slot in free or ():
        slot.release()
    return free is not None


def is_broken_off(session: pytest.Session, *, by_signal: bool) -> bool:
    """Return whether a run did not come to an end of its own: then it leaves nothing up.

    It does with ``-x`` and ``--stepwise``, after which the next run follows soon.
    """
    if by_signal or (session.exitstatus == pytest.ExitCode.INTERRUPTED and not session.shouldstop):
        return True
    return session.exitstatus not in _IN_ORDER


def _owner(backend: Backend) -> ReaperClient | None:
    """Return what can leave sessions up: not what speaks to a service that ends with the run, nor without a ledger."""
    owner = backend.sessions()
    return owner if isinstance(owner, ReaperClient) and owner.can_keep_warm else None


def _owner_of(backend: Backend) -> ReaperClient:
    """Return the owner of this process: a forked child has its own."""
    owner = backend.sessions()
    if not isinstance(owner, ReaperClient):
        raise TypeError("only an owner leaves sessions up")
    return owner
