"""``--device-keep-warm``: the sessions that a run takes over from earlier runs and leaves to later ones."""

from pathlib import Path
from typing import Final, cast

import pytest

from pytest_device.plugin.provider.backend import Backend
from pytest_device.sessions.events import Note
from pytest_device.sessions.quota import Slots
from pytest_device.sessions.reaper_client import ReaperClient
from pytest_device.sessions.reporter import Relay
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


def warm_store(settings: Settings, backend: Backend, *, relay: Relay) -> WarmStore | None:
    """Return the store of warm sessions, None if none are kept; report why not if they were requested."""
    from pytest_device.controllers.health import problem_of

    if settings.not_warm:
        relay.event(Note(settings.not_warm))
    owner = backend.sessions()
    if not (settings.keep_warm and settings.state_dir and isinstance(owner, ReaperClient) and owner.can_keep_warm):
        return None
    slots = backend.slots("a check for warm devices")
    config = WarmConfig(
        settings.keep_warm,
        Path(settings.state_dir),
        owner=lambda: cast("ReaperClient", backend.sessions()),  # a forked child has its own
        problem_of=problem_of,
        relay=relay,
        has_room=lambda sessions: _has_room(slots, sessions),
    )
    return WarmStore(config)


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
