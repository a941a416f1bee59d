"""Each decision on a worker's next work, as one function with its reason. Pure: they change nothing.

A worker that runs out of work (``needs_more``, ``should_prefetch``) gets the first of these that exists:

1. a unit of its own group, whose devices it has (``unit_of_own_group``);
2. a group that no worker runs (``group_to_begin``);
3. a part of the group that would end last, if that is worth one more boot (``group_to_join``);
4. a test without a device (``plain_unit``);
5. nothing: it waits for units that other workers release (``may_wait``), or is done.
"""

from itertools import islice
from typing import Final

from pytest_device.scheduling.estimates import MAX_WEIGHED_UNITS, next_piece_for
from pytest_device.scheduling.run_state import RunState
from pytest_device.scheduling.work import GroupQueue, WorkerState

PENDING_SECONDS: Final = 0.25
"""Minimum work in seconds behind a worker's current test: longer than the round trip to the coordinator, also from
another machine, so that workers never idle; not much longer, since assigned tests cannot go to an idle worker."""
_LONG_PLAIN: Final = 0.5
"""A test without a device precedes one more boot if it takes more than this share of the time until the end: if it
began later, it would end last."""


def needs_more(run: RunState, worker: WorkerState) -> bool:
    """Return whether a worker will soon run out of work, or does not know its next tests with unshared devices."""
    if worker.is_over:
        return False

    behind = list(islice(worker.pending, 1, 1 + MAX_WEIGHED_UNITS))
    if not behind:
        return True

    if len(behind) < MAX_WEIGHED_UNITS:
        seconds = sum(map(run.expected, behind))
        if seconds < PENDING_SECONDS:
            return True

    newest = run.queues[worker.pending[-1].group]
    return newest.group.is_unshared and len(behind) <= run.limits.prefetch


def should_prefetch(run: RunState, worker: WorkerState, now: float) -> bool:
    """Return whether the devices that a worker needs next should boot now, alongside those that it has.

    Only if the worker is known to finish its group before they are ready: an idle device is billed, and with unknown
    durations it would idle for an unknown time.
    """
    queue = run.group_of(worker)
    if worker.is_over or queue is None:
        return False

    # The cheap conditions first: this is asked after each test of the run.
    free_in = run.leaves_group_in(worker, now)
    if free_in >= max(run.estimates.boots(), default=0.0):  # too early for any group
        return False

    if queue.unknown or not all(
        run.estimates.is_known(assignment.test) for assignment in worker.pending
    ):
        return False

    following = next(run.unstarted_groups(), None) or _last_to_end(run, now)
    if following is None or following is queue:
        return False

    if not run.can_boot_beside(worker, following):
        return False

    return free_in < run.boot_seconds(worker, following)


def unit_of_own_group(run: RunState, worker: WorkerState, now: float) -> int | None:
    """Return the index of the unit of its group that a worker should take: it has the devices, so nothing must boot.

    None if other workers of the group will be free earlier for all remaining units.
    """
    queue = run.group_of(worker)
    if queue is None or not queue.units or queue.is_plain:
        return None

    others = [
        run.remaining(other, now)
        for other in run.workers_of(queue)
        if other is not worker
    ]
    return _unit_for(run, worker, queue, others, now)


def plain_unit(
    run: RunState, worker: WorkerState, now: float
) -> tuple[GroupQueue, int] | None:
    """Return the unit without devices that a worker should take, None if others will be free earlier for them all."""
    queue = next(run.plain_queues(), None)
    if queue is None:
        return None

    others = [run.remaining(other, now) for other in run.other_active_workers(worker)]
    index = _unit_for(run, worker, queue, others, now)
    return None if index is None else (queue, index)


def _unit_for(
    run: RunState,
    worker: WorkerState,
    queue: GroupQueue,
    others: list[float],
    now: float,
) -> int | None:
    """Return the index of a worker's next unit of a queue, which others share that are free in ``others`` seconds.

    Not always the first: a longest test that another worker, free earlier, takes next stays for that one.
    """
    return next_piece_for(run.remaining(worker, now), others, run.lengths(queue))


def group_to_begin(run: RunState, worker: WorkerState, now: float) -> GroupQueue | None:
    """Return the group that a worker should begin: the most urgent one whose devices fit beside those of others."""
    unstarted = list(islice(run.unstarted_groups(), MAX_WEIGHED_UNITS))
    if not unstarted:
        return None

    held = set(run.requirements_of(worker))
    if held:  # reusing a device saves a boot
        unstarted.sort(key=lambda queue: held.isdisjoint(queue.group.requirements))

    free = run.free_for(worker)
    fitting = [queue for queue in unstarted if len(queue.group.requirements) <= free]
    max_devices = max(len(queue.group.requirements) for queue in unstarted)
    if not fitting or _must_leave_room(run, worker, max_devices, free):
        return None

    # Leave a group to other workers that are free sooner.
    others = [
        run.leaves_group_in(other, now) for other in run.other_active_workers(worker)
    ]
    lengths = map(run.total, unstarted)
    if next_piece_for(run.remaining(worker, now), others, lengths) is None:
        return None

    return fitting[0]


def _must_leave_room(
    run: RunState, worker: WorkerState, devices: int, free: float
) -> bool:
    """Return whether the group with most ``devices`` would starve if a smaller one took the room that it waits for.

    Not if another worker has enough devices: these will be free at once.
    """
    return devices > free and not any(
        run.held(other) >= devices for other in run.other_active_workers(worker)
    )


def group_to_join(
    run: RunState, worker: WorkerState, now: float, began: float
) -> GroupQueue | None:
    """Return the group that would end last, if another worker with its own devices shortens the run by enough.

    The saved time counts for all workers of the run, or for all devices, since all of them stay until the end; it must
    exceed the boot of one more device.
    """
    queue = _last_to_end(run, now)
    if queue is None or queue.number == worker.group:
        return None

    if len(queue.group.requirements) > run.free_for(worker):
        return None

    are_boots_known = all(map(run.estimates.is_boot_known, queue.group.models))
    if not worker.pending and now > began and not are_boots_known:
        return None  # the first of its devices is still booting, for an unknown time: wait for it

    free_in = run.remaining_in(queue, now)
    own = run.remaining(worker, now)
    boot = run.boot_seconds(worker, queue)
    ready = max(own, boot) if run.can_boot_beside(worker, queue) else own + boot
    end = run.end(queue, free_in)

    for plain in run.plain_queues():
        # The first is the longest, unless the suite's order is kept.
        if next(run.lengths(plain)) > _LONG_PLAIN * (end - own):
            return None

    saved = end - run.end(queue, [*free_in, ready])
    staying = min(run.limits.width, run.limits.max_devices)
    return queue if saved * staying > boot else None


def _last_to_end(run: RunState, now: float) -> GroupQueue | None:
    """Return the group that would end last, of those that more workers can join; None if there is none."""
    active = {
        worker.group
        for worker in run.workers
        if worker.group is not None and not worker.is_over
    }
    joinable = [
        queue
        for queue in (run.queues[number] for number in sorted(active))
        if queue.units and not queue.is_plain and queue.group.is_shareable
    ]
    return max(
        joinable,
        key=lambda queue: run.end(queue, run.remaining_in(queue, now)),
        default=None,
    )


def may_wait(run: RunState, worker: WorkerState) -> bool:
    """Return whether a worker without work may wait for units that other workers release.

    A worker with a pending test must know the next one, or that there is none, before it begins.
    """
    if worker.pending or not run.has_work():
        return False

    return any(other.pending for other in run.other_workers(worker))
