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
    MAX_WEIGHED_UNITS,
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
    """Assigns the units of all groups to workers.

    ``now`` is always in seconds of one monotonic clock.

    Arguments:
        groups: the device groups of the run.
        units: the units of each group.
        seconds: the duration of each test, None if unknown.
        boots: the boot time of each device model, None if unknown. Its owner may fill it in at any time.
        limits: what the assignment must observe.
        families: the families from which unknown durations are estimated.
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
        """Workers that may need more work; a dictionary, since it keeps their order."""

    def add_worker(self, worker: W) -> None:
        """Assign tests to one more worker."""
        self._workers[worker] = WorkerState()
        self._changed[worker] = None

    def end_worker(self, worker: W) -> None:
        """Assign no more tests to a worker."""
        state = self._workers[worker]
        if state.is_over:
            return

        state.is_over = True
        queue = self._run.group_of(state)
        if queue:
            self._run.requeue_group(queue)

    def remove_worker(self, worker: W) -> list[int]:
        """Remove a worker; take back its unstarted tests, and return all its unfinished ones."""
        pending = self._workers.pop(worker).pending
        self._changed.pop(worker, None)

        # Each goes to the front of its queue, so that the last must go first.
        for assignment in reversed(list(islice(pending, 1, None))):
            self.requeue(assignment.test)
        for group in {assignment.group for assignment in pending}:
            self._run.requeue_group(self._run.queues[group])

        return [assignment.test for assignment in pending]

    def requeue(self, test: int) -> None:
        """Make a test the next of its group."""
        self._run.requeue(test)

    def done(self, worker: W, test: int, seconds: float | None, now: float) -> None:
        """Count a test as done; ``seconds`` is its duration, without the wait for its devices."""
        state = self._workers[worker]
        if state.pending and state.pending[0].test == test:
            state.pending.popleft()
        else:  # another plugin may have changed the order
            state.pending = deque(
                assignment for assignment in state.pending if assignment.test != test
            )

        state.since = now
        self._changed[worker] = None
        if seconds is not None:
            self._run.learn(test, seconds)

    def pending(self, worker: W) -> Sequence[Assignment]:
        """Return a worker's unfinished tests."""
        return tuple(self._workers[worker].pending)

    def wait(self, assignment: Assignment) -> float:
        """Return how long a worker waits for a test's devices after its previous tests, in seconds."""
        return self._run.wait(assignment)

    def expected(self, assignment: Assignment) -> float:
        """Return a test's known or estimated duration in seconds."""
        return self._run.expected(assignment)

    def has_devices(self, test: int) -> bool:
        """Return whether a test, or one that it is kept together with, needs a device."""
        return not self._run.queue_of[test].is_plain

    @property
    def is_over(self) -> bool:
        """Whether all tests are assigned, and every worker may begin its last one."""
        if self._run.has_work():
            return False

        # A worker begins its last test only when it knows that nothing follows.
        return all(
            worker.is_over or len(worker.pending) <= 1
            for worker in self._workers.values()
        )

    def assign(self, now: float) -> Iterator[tuple[W, list[int], bool]]:
        """Yield each worker that needs more work, its new tests, and whether these are its last."""
        self._began = min(self._began, now)
        candidates = self._changed
        self._changed = {}
        for name, worker in self._workers.items():
            if not worker.pending and not worker.is_over:
                candidates[name] = None

        assigned: dict[W, list[int]] = {}
        asking: list[W] = [name for name in candidates if self._wants_more(name, now)]
        while asking:
            # Each gets one unit in turn, so that the longest tests go to different workers.
            for name in list(asking):
                tests = self._take(self._workers[name], now)
                assigned.setdefault(name, []).extend(tests)
                if not tests:
                    asking.remove(name)
            asking = [name for name in asking if self._wants_more(name, now)]

        for name, tests in assigned.items():
            yield name, tests, self._workers[name].is_over

    def _wants_more(self, name: W, now: float) -> bool:
        worker = self._workers[name]
        return decisions.needs_more(self._run, worker) or decisions.should_prefetch(
            self._run, worker, now
        )

    def _take(self, worker: WorkerState, now: float) -> list[int]:
        """Assign a worker its next tests and return them; without any, decide whether it is over."""
        if not worker.pending:
            worker.since = now

        taken = (
            self._take_from_own_group(worker, now)
            or self._take_from_other_group(worker, now)
            or self._take_plain(worker, now)
        )
        worker.is_over = (
            not taken
            and decisions.needs_more(self._run, worker)
            and not decisions.may_wait(self._run, worker)
        )
        worker.pending.extend(taken)
        return [assignment.test for assignment in taken]

    def _take_from_own_group(self, worker: WorkerState, now: float) -> list[Assignment]:
        queue = self._run.group_of(worker)
        index = decisions.unit_of_own_group(self._run, worker, now)
        if queue is None or index is None:
            return []

        return self._take_unit(worker, queue, index)

    def _take_from_other_group(
        self, worker: WorkerState, now: float
    ) -> list[Assignment]:
        """Take the first unit of another group, after tests that fill the boot of its devices."""
        run = self._run
        queue = decisions.group_to_begin(run, worker, now) or decisions.group_to_join(
            run, worker, now, self._began
        )
        if queue is None:
            return []

        run.sort_again(queue)  # tests of other groups may be in the same families

        # The devices boot during the worker's pending tests if there is room for both.
        overlapping = 0.0
        if run.can_boot_beside(worker, queue):
            overlapping = run.remaining(worker, now)
        filling = self._take_filling(run.boot_seconds(worker, queue) - overlapping)
        overlapping += sum(map(run.expected, filling))

        # Before the unit is taken: from then on, the worker counts as having the devices.
        boots = tuple(run.booting(worker, queue))
        unit = self._take_unit(worker, queue, 0)
        unit[0].boots = boots
        unit[0].overlapping = overlapping
        return filling + unit

    def _take_plain(self, worker: WorkerState, now: float) -> list[Assignment]:
        unit = decisions.plain_unit(self._run, worker, now)
        if unit is None:
            return []

        queue, index = unit
        return self._take_unit(worker, queue, index)

    def _take_unit(
        self, worker: WorkerState, queue: GroupQueue, index: int
    ) -> list[Assignment]:
        worker.group = queue.number
        return self._popped(queue, index)

    def _take_filling(self, seconds: float) -> list[Assignment]:
        """Take tests without devices that fill a boot: they cost nothing while their worker waits for its device."""
        filling: list[Assignment] = []
        for queue in self._run.plain_queues():
            max_tests = _FILLING_UNKNOWN if queue.unknown else _FILLING
            while seconds > 0 and queue.units and len(filling) < max_tests:
                more = self._popped(queue, self._longest_within(queue, seconds))
                filling += more
                seconds -= sum(map(self._run.expected, more))

        return filling

    def _longest_within(self, queue: GroupQueue, seconds: float) -> int:
        """Return the index of the longest unit of at most some seconds.

        If there is none, that of the shortest, which delays the first test with the device least.
        """
        lengths = islice(self._run.lengths(queue), MAX_WEIGHED_UNITS)
        for index, length in enumerate(lengths):
            if length <= seconds:
                return index

        return -1

    def _popped(self, queue: GroupQueue, index: int) -> list[Assignment]:
        return [Assignment(test, queue.number) for test in self._run.pop(queue, index)]


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
    now = 0.0
    finished: set[int] = set()
    running: set[int] = set()
    ends: list[tuple[float, int]] = []
    """A heap of when each running worker ends its test."""
    while True:
        for worker, _, is_last in dispatcher.assign(now):
            if is_last:
                finished.add(worker)

        for worker in set(range(width)) - running:
            pending = dispatcher.pending(worker)
            # As with pytest-xdist, it begins a test only once it knows the next, or that there is none.
            if pending and (len(pending) > 1 or worker in finished):
                step = _step(dispatcher, worker, now)
                steps.append(step)
                heappush(ends, (step.ends, worker))
                running.add(worker)

        if not ends:
            return steps

        now, worker = heappop(ends)
        running.remove(worker)
        current = dispatcher.pending(worker)[0]
        dispatcher.estimates.confirm(current.boots)
        dispatcher.done(worker, current.test, None, now)


def _step(dispatcher: Dispatcher[int], worker: int, now: float) -> Step:
    """Return the first pending test of a worker that begins with it now."""
    assignment = dispatcher.pending(worker)[0]
    begins = now + dispatcher.wait(assignment)
    ends = begins + dispatcher.expected(assignment)
    return Step(worker, assignment.test, assignment.group, begins, ends)
