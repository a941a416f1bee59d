"""The pieces that work is assigned in: groups of tests by their devices, units of a group, a worker's assignments."""

from collections import deque
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class DeviceGroup:
    """Tests that can run on the same devices one after the other; the devices by number, none for tests without."""

    needs: tuple[int, ...] = ()
    models: tuple[int, ...] = ()
    """For each device the number of its model, by which boots are estimated."""
    is_spread: bool = True
    """Whether several workers may run it, each with devices of its own."""
    is_fresh: bool = False
    """Whether each test has devices of its own."""


@dataclass(frozen=True, slots=True)
class WorkUnit:
    """Tests of a group, by index, that run one after the other for the sake of fixtures that they share."""

    group: int
    tests: tuple[int, ...]


@dataclass(slots=True)
class GroupQueue:
    """The units of a group that are not assigned yet, in the order in which they will be."""

    number: int
    group: DeviceGroup
    units: list[WorkUnit] = field(default_factory=list[WorkUnit])
    known_seconds: float = 0.0
    unknown: int = 0
    """The number of its tests of unknown length."""

    @property
    def is_plain(self) -> bool:
        """Whether its tests need no device."""
        return not self.group.needs


@dataclass(slots=True)
class Assignment:
    """A test that a worker was assigned."""

    test: int
    group: int
    boots: tuple[int, ...] = ()
    """The models that boot for it."""
    overlapping: float = 0.0
    """The seconds before its turn at which they begin to boot."""


@dataclass(slots=True, eq=False)
class WorkerState:
    """What a worker has to do."""

    pending: deque[Assignment] = field(default_factory=deque[Assignment])
    """Assigned and not done; it begins with the first when it knows the second, or that there is none."""
    group: int | None = None
    """The group that it was assigned last."""
    since: float = 0.0
    """When it began with the first of its pending tests."""
    is_over: bool = False
    """Whether it is assigned nothing more."""
