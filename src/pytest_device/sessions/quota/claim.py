"""What a place that keeps slots has to offer: claims on them, each served all or none."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


class Slot(Protocol):
    """The right to have one session."""

    @property
    def is_held(self) -> bool:
        """Return whether this process still holds it."""
        ...

    def release(self) -> None:
        """Release it once: later calls do nothing, nor does any in a forked child."""
        ...


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Who has the slots that a claim looks at, and how many claims are to be served before it."""

    held: Sequence[str]
    ahead: int


class Claim(Protocol):
    """What one call wants of the slots. Each of its steps is one for all who look, however many do."""

    @property
    def count(self) -> int:
        """Return how many it wants."""
        ...

    @property
    def slots(self) -> Sequence[Slot]:
        """Return what it has taken."""
        ...

    @property
    def is_behind(self) -> bool:
        """Return whether another claim came first at the last attempt."""
        ...

    def fill(self) -> bool:
        """Take all slots unless claims that come first need them; return whether it succeeded."""
        ...

    def queue(self, *, urgent: bool) -> None:
        """Queue once: at the end, or at the end of the urgent claims."""
        ...

    def obstacle(self) -> Obstacle:
        """Return what it waits for."""
        ...

    def leave(self) -> None:
        """Leave the queue."""
        ...

    def withdraw(self) -> None:
        """Release everything, after an interrupt at any point."""
        ...


class Store(Protocol):
    """Where slots are kept, for all who share them."""

    def claim(self, count: int, most: int, holder: str) -> Claim:
        """Return a claim on ``count`` of the first ``most`` slots that has taken none yet."""
        ...
