"""A process on some machine that shares slots on a Redis server, for tests."""

import threading
from collections.abc import Iterable
from typing import Any

from pytest_device.sessions.quota import Slot, Slots
from pytest_device.sessions.quota.redis_store import RedisConfig, RedisStore
from pytest_device.sessions.reporter import ProgressReporter
from pytest_device.testing import FakeClock
from tests.fakes.clock import ShiftedClock
from tests.fakes.reporter import SILENT, RecordingReporter


class Machine:
    """A process on some machine that renews its slots on request."""

    def __init__(
        self,
        url: str,
        key: str,
        *,
        slot_seconds: float = 30,
        settle_seconds: float = 0,
        source: str = "DEVICE_SLOTS_URL",
        **more: Any,
    ) -> None:
        self.recorder = RecordingReporter()
        self.warnings = self.recorder.notes
        self.clock = ShiftedClock()
        self._renewals = threading.Semaphore(0)
        terms = RedisConfig(
            url,
            source,
            key,
            self.recorder,
            slot_seconds=slot_seconds,
            settle_seconds=settle_seconds,
            reply_seconds=2,
            clock=self.clock,
            sleep=self._pause,
            **more,
        )
        self.store = RedisStore(terms)

    def slots(
        self,
        most: int = 1,
        holder: str = "run a",
        *,
        timeout_seconds: float = 1,
        reporter: ProgressReporter = SILENT,
    ) -> Slots:
        clock = FakeClock()
        return Slots(
            self.store,
            most,
            holder=holder,
            timeout_seconds=timeout_seconds,
            clock=clock,
            sleep=clock.sleep,
            reporter=reporter,
        )

    def renew(self) -> None:
        """Make it renew once."""
        self._renewals.release()

    def _pause(self, _seconds: float) -> None:
        self._renewals.acquire(timeout=60)


def slots_on(client: Any, key: str) -> dict[str, float]:
    """Return when each slot expires, in milliseconds of the server's clock."""
    return dict[str, float](
        client.zrange(f"{{pytest-device:{key}}}:2:ends", 0, -1, withscores=True)
    )


def release(slots: Iterable[Slot]) -> None:
    for slot in slots:
        slot.release()
