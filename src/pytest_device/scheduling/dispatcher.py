"""Assigns the tests of a run to its workers so that it ends early with few devices. Pure.

A worker stays with a device group as long as that has unassigned tests; the longest tests are assigned first.
``decisions`` choose what follows. The device limit cannot cause a deadlock: a group begins only if its devices fit
beside those of the other active workers, and the last active worker has the whole limit to itself.
``simulated`` follows the assignments without workers, from the expected durations.
"""

from collections import deque
from collections.abc import Hashable, Iterable, Iterator, MutableSequence, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import islice
from math import inf
from typing import Final, Generic, TypeVar

from pytest_device.scheduling import decisions
from pytest_device.scheduling.estimates import (
    WEIGHED_UNITS,
    Estimates,
    Families,
    no_families,
)
from pytest_device.scheduling.run_state import RunState
from pytest_device.scheduling.work import (
    Assignment,
    DeviceGroup,
    GroupQueue,
    Limits,
    Unit,
    WorkerState,
)

W = TypeVar("W", bound=Hashable)

_FILLING_UNKNOWN: Final = 2
"""Maximum number of tests of unknown duration that fill a boot: any of them may outlast it."""
_FILLING: Final = 50
"""Maximum number of tests of known duration, however short: other workers have boots to fill, too."""


class Dispatcher(Generic[W]):
    """Assigns the ``units`` of each of the ``groups`` to workers.

    ``seconds`` are the known durations of tests, None for unknown ones; ``boots`` are the boot times of the device
    models in seconds, and may be filled in at any time; ``families`` are for unknown durations. ``now`` is in seconds
    of one monotonic clock.
    """

    def __init__(
        self,
        groups: Sequence[DeviceGroup],
        units: Sequence[Iterable[Unit]],
        seconds: Sequence[float | None],
        boots: MutableSequence[float | None],
        limits: Limits,
        families: Families = no_families,
    ) -> None:
        self.estimates = Estimates(seconds, boots, families)
        self._workers: dict[W, WorkerState] = {}
        self._run = RunState(
            groups, units, self.estimates, self._workers.values(), limits
        )
        self._began = inf
        self._changed: dict[W, None] = {}
        """Workers that may need more work."""
        self.wait, self.expected, self.requeue = (
            self._run.wait,
            self._run.expected,
            self._run.requeue,
        )

    def add_worker(self, worker: W) -> None:
        self._workers[worker] = WorkerState()
        self._changed[worker] = None

    def end_worker(self, worker: W) -> None:
        """Assign no more tests to a worker."""
        state = self._workers[worker]
        if not state.is_over:
            state.is_over = True
            if queue := self._run.group_of(state):
                self._run.requeue_group(queue)

    def remove_worker(self, worker: W) -> list[int]:
        """Remove a worker; take back its unstarted tests, and return all its unfinished ones."""
        pending = self._workers.pop(worker).pending
        self._changed.pop(worker, None)
        for assignment in reversed(list(islice(pending, 1, None))):
            self.requeue(assignment.test)
        for group in {assignment.group for assignment in pending}:
            self._run.requeue_group(self._run.queues[group])
        return [assignment.test for assignment in pending]

    def done(self, worker: W, test: int, seconds: float | None, now: float) -> None:
        """Count a test as done; ``seconds`` is its duration, without the wait for its devices."""
        state = self._workers[worker]
        if state.pending and state.pending[0].test == test:
            state.pending.popleft()
        else:  # another plugin may have changed the order
            state.pending = deque(one for one in state.pending if one.test != test)
        state.since = now
        self._changed[worker] = None
        if seconds is not None:
            self._run.learn(test, seconds)

    def pending(self, worker: W) -> Sequence[Assignment]:
        """Return a worker's unfinished tests."""
        return tuple(self._workers[worker].pending)

    def has_devices(self, test: int) -> bool:
        """Return whether a test, or one that it is kept together with, needs a device."""
        return not self._run.queue_of[test].is_plain

    @property
    def is_over(self) -> bool:
        """Whether all tests are assigned, and every worker may begin its last one."""
        return not self._run.has_work() and all(
            one.is_over or len(one.pending) < 2  # noqa: PLR2004
            for one in self._workers.values()
        )

    def assign(self, now: float) -> Iterator[tuple[W, list[int], bool]]:
        """Yield each worker that needs more work, its new tests, and whether these are its last."""
        self._began = min(self._began, now)
        assigned: dict[W, list[int]] = {}
        idle = (
            name
            for name, worker in self._workers.items()
            if not worker.pending and not worker.is_over
        )
        short, self._changed = list(self._changed | dict.fromkeys(idle)), {}
        while short := [
            name for name in short if self._wants(self._workers[name], now)
        ]:
            # Round robin: the longest tests go to idle workers.
            for name in tuple(short):
                assigned.setdefault(name, []).extend(
                    more := self._more(self._workers[name], now)
                )
                if not more:
                    short.remove(name)
        for name, tests in assigned.items():
            yield name, tests, self._workers[name].is_over

    def _wants(self, worker: WorkerState, now: float) -> bool:
        return decisions.needs_more(self._run, worker) or decisions.should_prefetch(
            self._run, worker, now
        )

    def _more(self, worker: WorkerState, now: float) -> list[int]:
        if not worker.pending:
            worker.since = now
        more = (
            self._of_own_group(worker, now)
            or self._of_another(worker, now)
            or self._plain(worker, now)
        )
        worker.is_over = (
            not more
            and decisions.needs_more(self._run, worker)
            and not decisions.may_wait(self._run, worker)
        )
        worker.pending.extend(more)
        return [one.test for one in more]

    def _of_own_group(self, worker: WorkerState, now: float) -> list[Assignment]:
        queue, place = (
            self._run.group_of(worker),
            decisions.unit_of_own_group(self._run, worker, now),
        )
        return (
            [] if queue is None or place is None else self._taken(worker, queue, place)
        )

    def _of_another(self, worker: WorkerState, now: float) -> list[Assignment]:
        run = self._run
        queue = decisions.group_to_begin(run, worker, now) or decisions.group_to_join(
            run, worker, now, self._began
        )
        if queue is None:
            return []
        self._run.sort_again(queue)  # tests of other groups may be in the same families
        ahead = (
            run.remaining(worker, now) if run.can_boot_beside(worker, queue) else 0.0
        )
        filling = self._filling(run.boot_seconds(worker, queue) - ahead)
        boots = tuple(run.booting(worker, queue))
        first, *others = self._taken(worker, queue, 0)
        first.boots, first.overlapping = boots, ahead + sum(map(run.expected, filling))
        return [*filling, first, *others]

    def _plain(self, worker: WorkerState, now: float) -> list[Assignment]:
        found = decisions.plain_unit(self._run, worker, now)
        return self._taken(worker, *found) if found else []

    def _taken(
        self, worker: WorkerState, queue: GroupQueue, place: int
    ) -> list[Assignment]:
        worker.group = queue.number
        return [Assignment(test, queue.number) for test in self._run.pop(queue, place)]

    def _filling(self, seconds: float) -> list[Assignment]:
        """Take tests without devices that fill a boot: they cost nothing while their worker waits for its device."""
        filling: list[Assignment] = []
        for queue in self._run.plain_queues():
            most = _FILLING_UNKNOWN if queue.unknown else _FILLING
            while seconds > 0 and queue.units and len(filling) < most:
                weighed = enumerate(islice(self._run.lengths(queue), WEIGHED_UNITS))
                fits = (place for place, length in weighed if length <= seconds)
                more = [
                    Assignment(test, queue.number)
                    for test in self._run.pop(queue, next(fits, -1))
                ]
                filling += more
                seconds -= sum(map(self._run.expected, more))
        return filling


@dataclass(frozen=True, slots=True)
class Step:
    """One expected test of a run; times are seconds from the start of the run."""

    worker: int
    test: int
    group: int
    begins: float
    """After the wait for its devices."""
    ends: float


def simulated(dispatcher: Dispatcher[int], width: int) -> list[Step]:
    """Simulate a run with ``width`` workers from the expected durations."""
    for worker in range(width):
        dispatcher.add_worker(worker)
    steps: list[Step] = []
    ends: list[tuple[float, int]] = []
    running: set[int] = set()
    now, is_over = 0.0, set[int]()
    while True:
        is_over |= {
            worker for worker, _, ends_here in dispatcher.assign(now) if ends_here
        }
        for worker in set(range(width)) - running:
            pending = dispatcher.pending(worker)
            if pending and (len(pending) > 1 or worker in is_over):
                first = pending[0]
                begins = now + dispatcher.wait(first)
                steps.append(
                    Step(
                        worker,
                        first.test,
                        first.group,
                        begins,
                        begins + dispatcher.expected(first),
                    )
                )
                heappush(ends, (steps[-1].ends, worker))
                running.add(worker)
        if not ends:
            return steps
        now, worker = heappop(ends)
        running.remove(worker)
        first = dispatcher.pending(worker)[0]
        dispatcher.estimates.confirm(first.boots)
        dispatcher.done(worker, first.test, None, now)
