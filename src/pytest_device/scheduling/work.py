"""The units of assignment: device groups, units of a group, a worker's assignments; and its limits."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf

Unit = Sequence[int]
"""Tests of a group, by index, that run one after the other because they share fixtures."""


@dataclass(frozen=True, slots=True)
class DeviceGroup:
    """Tests that can run on the same devices, one after the other."""

    requirements: tuple[int, ...] = ()
    """Number of the requirement of each device, in ascending order; empty for tests without devices."""
    models: tuple[int, ...] = ()
    """Number of each device's model, in the same order: devices of a model take about as long to boot."""
    is_shareable: bool = True
    """Whether several workers may run it, each with its own devices."""
    is_unshared: bool = False
    """Whether each test has devices of its own."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What an assignment must observe."""

    width: int
    """Number of workers that the run was planned for."""
    max_devices: float = inf
    """Maximum number of concurrent devices."""
    prefetch: int = 0
    """Number of tests with unshared devices that a worker knows in advance, so that the devices can boot."""
    longest_first: bool = True
    """Whether long tests may come first; otherwise the suite's order is kept."""


@dataclass(slots=True)
class GroupQueue:
    """The unassigned units of a group, in the order of assignment."""

    number: int
    group: DeviceGroup
    units: list[Unit]
    known_seconds: float = 0.0
    unknown: int = 0
    """Number of its tests with unknown duration."""
    sorted_at: int = 0
    """Number of durations that the run had learned when it was sorted."""

    @property
    def is_plain(self) -> bool:
        """Whether its tests need no device."""
        return not self.group.requirements


@dataclass(slots=True)
class Assignment:
    """A test assigned to a worker."""

    test: int
    group: int
    boots: tuple[int, ...] = ()
    """Models of the devices that boot for it."""
    overlapping: float = 0.0
    """Seconds before its turn at which its devices start to boot."""


@dataclass(slots=True, eq=False)
class WorkerState:
    """A worker's assigned work."""

    pending: deque[Assignment] = field(default_factory=deque[Assignment])
    """Assigned, unfinished tests; the worker begins the first once it knows the second, or that there is none."""
    group: int | None = None
    """The group that it was assigned last."""
    since: float = 0.0
    """When it began the first of its pending tests."""
    is_over: bool = False
    """Whether it is assigned no more tests."""
