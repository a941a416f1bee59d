"""What a place that keeps slots has to offer: claims on them, each served all or none."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

URGENT, ORDINARY = 0, 1
NOT_QUEUED: Final = 2


class Slot(Protocol):
    """The right to have one session."""

    @property
    def is_held(self) -> bool:
        """Return whether this process still holds it."""
        ...

    def release(self) -> None:
        """Release it once: later calls do nothing, nor does any in a forked child."""


class Obstacle(NamedTuple):
    """Who has the slots that a claim looks at, and how many claims are to be served before it."""

    held: Sequence[str]
    ahead: int


class Claim(ABC):
    """What one call wants of the slots. Each of its steps is one for all who look, however many do."""

    def __init__(self, count: int, most: int, holder: str) -> None:
        self.count, self.most, self.holder = count, most, holder
        self.urgency = NOT_QUEUED
        self.is_behind = False
        """Whether another claim came first at the last attempt."""

    @property
    @abstractmethod
    def slots(self) -> Sequence[Slot]:
        """Return what it has taken."""

    @abstractmethod
    def fill(self) -> bool:
        """Take all slots unless claims that come first need them, else keep its place in the queue; return which."""

    def queue(self, *, urgent: bool) -> None:
        """Queue once: at the end, or at the end of the urgent claims."""
        urgency = URGENT if urgent else ORDINARY
        if urgency < self.urgency:
            self.urgency = urgency
            self.fill()

    @abstractmethod
    def obstacle(self) -> Obstacle:
        """Return what it waits for."""

    @abstractmethod
    def leave(self) -> None:
        """Leave the queue."""

    @abstractmethod
    def withdraw(self) -> None:
        """Release everything, after an interrupt at any point."""


class Store(Protocol):
    """Where slots are kept, for all who share them."""

    def claim(self, count: int, most: int, holder: str) -> Claim:
        """Return a claim on ``count`` of the first ``most`` slots that has taken none yet."""
        ...
