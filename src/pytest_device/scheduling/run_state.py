"""The remaining work and the workers of a run: the figures that decisions use. Pure."""

from bisect import insort
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Final

from pytest_device.scheduling.estimates import (
    MAX_WEIGHED_UNITS,
    Estimates,
    end_of,
    finish_time_divisible,
)
from pytest_device.scheduling.work import (
    Assignment,
    DeviceGroup,
    GroupQueue,
    Limits,
    Unit,
    WorkerState,
)

_LEFT_OF_UNKNOWN: Final = 0.5
"""Minimum share of its estimate that a running test of unknown duration is assumed to still take: it may outlast the
estimate, and a worker that counts as free at once would attract all remaining work."""
_SORTED_SHARE: Final = 0.02
"""Share of a queue's length that becomes known before the queue is sorted again: a long queue seldom, since sorting
takes time and single tests make no difference there."""


class RunState:
    """The queues and workers of a run, and the expected duration of everything.

    ``now`` is always in seconds of one monotonic clock.

    Arguments:
        groups: the device groups; their indices are their numbers.
        units: the units of each group.
        estimates: the durations of tests and boots, some of them estimated.
        workers: a view of the workers, which their owner adds and removes.
        limits: what an assignment must observe.
    """

    def __init__(
        self,
        groups: Sequence[DeviceGroup],
        units: Sequence[Iterable[Unit]],
        estimates: Estimates,
        workers: Collection[WorkerState],
        limits: Limits,
    ) -> None:
        self.estimates = estimates
        self.workers = workers
        self.limits = limits
        self.queues = [
            GroupQueue(number, group, list(of_group))
            for number, (group, of_group) in enumerate(zip(groups, units, strict=True))
        ]
        self.queue_of = {
            test: queue
            for queue in self.queues
            for unit in queue.units
            for test in unit
        }

        for queue in self.queues:
            tests = list(chain.from_iterable(queue.units))
            self._count(queue, tests, 1)
            estimates.add(tests, plain=queue.is_plain)

        # Only now: the known tests of one group change the estimates for those of others.
        for queue in self.queues:
            self.sort(queue)

        self._waiting = sorted(
            (self._rank(queue), queue.number)
            for queue in self.queues
            if not queue.is_plain
        )
        """Groups that no worker runs, and some that a worker has started since."""

    # The queues.

    def group_of(self, worker: WorkerState) -> GroupQueue | None:
        return None if worker.group is None else self.queues[worker.group]

    def sort(self, queue: GroupQueue) -> None:
        """Move the longest units of a queue to its front, unless the suite's order must be kept."""
        queue.sorted_at = self.estimates.learned
        if self.limits.longest_first:
            queue.units.sort(
                key=partial(self.estimates.total, plain=queue.is_plain), reverse=True
            )

    def sort_again(self, queue: GroupQueue, share: float = 0.0) -> None:
        """Sort a queue with unknown tests if more tests than this share of its length became known since."""
        learned = self.estimates.learned - queue.sorted_at
        if queue.unknown and learned > share * len(queue.units):
            self.sort(queue)

    def learn(self, test: int, seconds: float) -> None:
        """Record the duration of a test, and move tests of its families accordingly."""
        queue = self.queue_of[test]
        self.estimates.learn(test, seconds, plain=queue.is_plain)
        self.sort_again(queue, _SORTED_SHARE)

    def pop(self, queue: GroupQueue, index: int) -> Unit:
        """Take a unit from a queue: the first one if the suite's order must be kept."""
        unit = queue.units.pop(index if self.limits.longest_first else 0)
        self._count(queue, unit, -1)
        return unit

    def requeue(self, test: int) -> None:
        """Make a test the next of its group."""
        queue = self.queue_of[test]
        queue.units.insert(0, [test])
        self._count(queue, [test], 1)
        self.requeue_group(queue)

    def _count(self, queue: GroupQueue, tests: Sequence[int], sign: int) -> None:
        known = self.estimates.known(tests)
        queue.known_seconds += sign * sum(known)
        queue.unknown += sign * (len(tests) - len(known))

    def has_work(self) -> bool:
        return any(queue.units for queue in self.queues)

    def plain_queues(self) -> Iterator[GroupQueue]:
        """Yield the remaining queues of tests without devices."""
        return (queue for queue in self.queues if queue.units and queue.is_plain)

    def unstarted_groups(self) -> Iterator[GroupQueue]:
        """Yield the groups that no worker runs, most urgent first."""
        while self._waiting:
            _, number = self._waiting[0]
            if self._is_unstarted(self.queues[number]):
                break
            del self._waiting[0]  # so that no later decision looks at it

        waiting = (self.queues[number] for _, number in self._waiting)
        return filter(self._is_unstarted, waiting)

    def _is_unstarted(self, queue: GroupQueue) -> bool:
        return bool(queue.units) and not self.workers_of(queue)

    def requeue_group(self, queue: GroupQueue) -> None:
        """Let a group wait for a worker if it no longer has one."""
        if queue.is_plain or not self._is_unstarted(queue):
            return

        # Once only, and with its new rank: decisions count the work of each entry.
        self._waiting = [
            (rank, number) for rank, number in self._waiting if number != queue.number
        ]
        insort(self._waiting, (self._rank(queue), queue.number))

    def _rank(self, queue: GroupQueue) -> tuple[float, float]:
        """Order groups: those with most devices first, since these fit least easily; then by the amount of work.

        If the suite's order must be kept, groups of unknown duration keep it among themselves.
        """
        if not self.limits.longest_first:
            return 0, -self.total(queue) if queue.known_seconds else 0

        return -len(queue.group.requirements), -self.total(queue)

    # Workers and their time.

    def other_workers(self, worker: WorkerState) -> Iterator[WorkerState]:
        return (other for other in self.workers if other is not worker)

    def other_active_workers(self, worker: WorkerState) -> Iterator[WorkerState]:
        """Yield the other active workers."""
        return (other for other in self.other_workers(worker) if not other.is_over)

    def workers_of(self, queue: GroupQueue) -> list[WorkerState]:
        return [
            worker
            for worker in self.workers
            if worker.group == queue.number and not worker.is_over
        ]

    def remaining(self, worker: WorkerState, now: float) -> float:
        """Return the seconds for which a worker has work."""
        if not worker.pending:
            return 0.0

        current, *behind = [
            self.wait(assignment) + self.expected(assignment)
            for assignment in worker.pending
        ]
        left = max(current - (now - worker.since), 0.0)
        if not self.estimates.is_known(worker.pending[0].test):
            left = max(left, _LEFT_OF_UNKNOWN * current)

        return left + sum(behind)

    def remaining_in(self, queue: GroupQueue, now: float) -> list[float]:
        """Return the seconds for which each worker of a group has work."""
        return [self.remaining(worker, now) for worker in self.workers_of(queue)]

    def leaves_group_in(self, worker: WorkerState, now: float) -> float:
        """Return after how many seconds a worker may finish its share of its group."""
        remaining = self.remaining(worker, now)
        queue = self.group_of(worker)
        if queue is None:
            return remaining

        number = max(1, len(self.workers_of(queue)))
        return remaining + self.work(queue) / number

    def end(self, queue: GroupQueue, free_in: list[float]) -> float:
        """Return after how many seconds a group is done by workers that are free in ``free_in`` seconds."""
        if len(queue.units) > MAX_WEIGHED_UNITS or queue.unknown:
            return max(finish_time_divisible(free_in, self.work(queue)), *free_in)

        return end_of(free_in, self.lengths(queue))

    # Workers and their devices.

    def requirements_of(self, worker: WorkerState) -> tuple[int, ...]:
        """Return the requirements of the devices that a worker has for its group."""
        queue = self.group_of(worker)
        return () if queue is None else queue.group.requirements

    def held(self, worker: WorkerState) -> int:
        """Return the number of devices that a worker has or will have."""
        groups = [assignment.group for assignment in worker.pending]
        if worker.group is not None and not worker.is_over:
            groups.append(worker.group)

        return max(
            (len(self.queues[group].group.requirements) for group in groups), default=0
        )

    def free_for(self, worker: WorkerState) -> float:
        """Return how many devices fit beside those of other workers; those of finished workers are about to be stopped.

        For an idle worker these count, too: it begins at once, and would have to wait for them to stop.
        """
        others = self.other_workers(worker)
        if worker.pending:
            others = self.other_active_workers(worker)

        return self.limits.max_devices - sum(map(self.held, others))

    def can_boot_beside(self, worker: WorkerState, queue: GroupQueue) -> bool:
        """Return whether a group's devices can boot while the worker still has others."""
        if queue.group.is_unshared and not self.limits.prefetch:
            return False

        missing = self._missing(worker, queue).total()
        return sum(map(self.held, self.workers)) + missing <= self.limits.max_devices

    def boot_seconds(self, worker: WorkerState, queue: GroupQueue) -> float:
        """Return the boot time of the devices that a worker lacks for a group."""
        return self._boot(self.booting(worker, queue))

    def booting(self, worker: WorkerState, queue: GroupQueue) -> Iterator[int]:
        """Yield the models that a worker lacks for a group."""
        group = queue.group
        missing = self._missing(worker, queue)
        for requirement, model in zip(group.requirements, group.models, strict=True):
            if missing[requirement]:
                yield model

    def _missing(self, worker: WorkerState, queue: GroupQueue) -> Counter[int]:
        """Return how many devices of each requirement a worker lacks for a group."""
        # A group may need several devices for equal requirements, so that a set would not do.
        return Counter(queue.group.requirements) - Counter(self.requirements_of(worker))

    # Lengths, in seconds.

    def wait(self, assignment: Assignment) -> float:
        """Return how long a worker waits for a test's devices after its previous tests."""
        if not assignment.boots:
            return 0.0

        return max(0.0, self._boot(assignment.boots) - assignment.overlapping)

    def expected(self, assignment: Assignment) -> float:
        """Return a test's known or estimated duration."""
        return self.estimates.of(
            assignment.test, plain=self.queues[assignment.group].is_plain
        )

    def lengths(self, queue: GroupQueue) -> Iterator[float]:
        """Yield the known or estimated durations of a group's units."""
        return map(partial(self.estimates.total, plain=queue.is_plain), queue.units)

    def work(self, queue: GroupQueue) -> float:
        """Return the duration of a group's remaining tests on one worker, without its boot."""
        # The mean of all known tests: in a sum, the errors of single tests compensate each other.
        return queue.known_seconds + queue.unknown * self.estimates.mean(
            plain=queue.is_plain
        )

    def total(self, queue: GroupQueue) -> float:
        """Return the duration of a group's remaining tests on one worker, plus one boot."""
        return self._boot(queue.group.models) + self.work(queue)

    def _boot(self, models: Iterable[int]) -> float:
        """Return the time until devices of these models are ready: they boot at the same time."""
        return max(map(self.estimates.boot, models), default=0.0)
