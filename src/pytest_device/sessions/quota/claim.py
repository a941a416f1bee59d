"""The interface of a slot store: claims on slots, each served all or none."""

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

URGENT, ORDINARY = 0, 1
NOT_QUEUED: Final = 2


class Slot(Protocol):
    """A slot: allows one session."""

    @property
    def is_held(self) -> bool:
        """Return whether this process still holds it."""
        ...

    def release(self) -> None:
        """Release it; repeated calls, and calls in a forked child, do nothing."""


class Blocker(NamedTuple):
    """The holders of the slots that a claim may use, and the number of claims served before it."""

    held: Sequence[str]
    ahead: int


class Claim(ABC):
    """The slots that one call requests. Each of its steps is atomic across all processes."""

    def __init__(self, count: int, limit: int, holder: str) -> None:
        self.count = count
        self.limit = limit
        self.holder = holder
        self.urgency = NOT_QUEUED
        self.is_behind = False
        """Whether another claim came first at the last attempt."""

    @property
    @abstractmethod
    def slots(self) -> Sequence[Slot]:
        """Return the slots that it took."""

    @abstractmethod
    def try_acquire(self) -> bool:
        """Take all slots and return True, unless earlier claims need them; otherwise keep its place in the queue."""

    def queue(self, *, urgent: bool) -> None:
        """Join the queue once: at the end, or at the end of the urgent claims."""
        urgency = URGENT if urgent else ORDINARY
        if urgency < self.urgency:
            self.urgency = urgency
            self.try_acquire()

    @property
    @abstractmethod
    def pause_seconds(self) -> float:
        """Return for how long to wait before the next attempt."""

    def wait(self, seconds: float) -> None:
        """Wait for so many seconds, or less if the next attempt may succeed."""
        time.sleep(seconds)

    @abstractmethod
    def blocked_by(self) -> Blocker:
        """Return what blocks it."""

    @abstractmethod
    def leave(self) -> None:
        """Leave the queue."""

    @abstractmethod
    def withdraw(self) -> None:
        """Release everything, after an interrupt at any point."""


class Store(Protocol):
    """The place where slots are kept, shared by all processes."""

    def claim(self, count: int, limit: int, holder: str) -> Claim:
        """Return a claim on ``count`` of the first ``limit`` slots, with no slot taken yet."""
        ...
