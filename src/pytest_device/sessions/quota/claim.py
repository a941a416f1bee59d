"""What a place that keeps slots has to offer: claims on them, each served all or none."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


class Slot(Protocol):
    """The right to have one session."""

    @property
    def is_held(self) -> bool:
        """Return whether this process still has it."""
        ...

    def release(self) -> None:
        """Give it back, once: later calls do nothing, nor does any in a forked child."""
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
        """Return whether another claim was to be served first when it looked last."""
        ...

    def fill(self) -> bool:
        """Take all that is wanted, if those who are to be served first leave as much; return whether it did."""
        ...

    def queue(self, *, urgent: bool) -> None:
        """Take a place in the queue, once: the last one, or the last of those who are urgent."""
        ...

    def obstacle(self) -> Obstacle:
        """Return what is in the way."""
        ...

    def leave(self) -> None:
        """Give the place in the queue back."""
        ...

    def withdraw(self) -> None:
        """Give back whatever it has, after an interrupt at any point."""
        ...


class Store(Protocol):
    """Where slots are kept, for all who share them."""

    def claim(self, count: int, most: int, holder: str) -> Claim:
        """Return a claim on ``count`` of the first ``most`` slots that has taken none yet."""
        ...
