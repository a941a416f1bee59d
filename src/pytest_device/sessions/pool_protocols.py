"""What a pool of sessions works with: who makes its sessions, who is asked when tests are done with them."""

from collections.abc import Callable, Sequence
from typing import Protocol

from pytest_device.sessions.device_session import DeviceSession
from pytest_device.sessions.lifecycle import WaitPolicy
from pytest_device.sessions.requirement import DeviceRequirement


class SessionFactory(Protocol):
    """Makes the sessions of a pool. It may be called in another thread, too."""

    def new_session(
        self, requirement: DeviceRequirement, policy: WaitPolicy, coming: Callable[[], Sequence[DeviceRequirement]]
    ) -> DeviceSession:
        """Return a session that is not created yet; it is to report to the pool's ``relay``.

        Before it is created it may take over one that an earlier run left up, but none that is needed for what is
        ``coming``: the requirements of other sessions that look for one, too.
        """
        ...


class PoolObserver(Protocol):
    """Is asked when tests are done with sessions."""

    def before_stop(self, session: DeviceSession) -> None:
        """Take note of a session that was in progress and is stopped next."""
        ...

    def hand_over(self, session: DeviceSession) -> str | None:
        """Leave up a good session that no test needs any more; return until when, None when it is to be stopped."""
        ...
