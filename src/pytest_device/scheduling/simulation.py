"""Simulates a run step by step from the expected durations. Pure."""

from dataclasses import dataclass
from heapq import heappop, heappush

from pytest_device.scheduling.dispatcher import Dispatcher


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
        is_over |= {worker for worker, _, ends_here in dispatcher.assign(now) if ends_here}
        for worker in set(range(width)) - running:
            pending = dispatcher.pending(worker)
            if pending and (len(pending) > 1 or worker in is_over):
                first = pending[0]
                begins = now + dispatcher.wait(first)
                steps.append(Step(worker, first.test, first.group, begins, begins + dispatcher.expected(first)))
                heappush(ends, (steps[-1].ends, worker))
                running.add(worker)
        if not ends:
            return steps
        now, worker = heappop(ends)
        running.remove(worker)
        first = dispatcher.pending(worker)[0]
        dispatcher.estimates.confirm(first.boots)
        dispatcher.done(worker, first.test, None, now)
