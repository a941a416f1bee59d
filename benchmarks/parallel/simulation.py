"""Whole runs in virtual time: no processes, no waiting, always the same result.

The plugin's dispatcher and pytest-xdist's own schedulers get their events as from a real run, from workers that take
no time but for tests and boots. The time from a test's end to the next test's start is zero.

A worker behaves as in a real run: it begins a test once it knows the following one or that there is none. At the start
of a test it boots the devices of its next tests with others, if the session limit leaves room. It stops a device when
none of its assigned tests needs it.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from math import inf
from types import SimpleNamespace
from typing import Any, Final, Protocol

from benchmarks.parallel.bounds import Work
from xdist.remote import Producer
from xdist.scheduler import (
    LoadFileScheduling,
    LoadGroupScheduling,
    LoadScheduling,
    WorkStealingScheduling,
)

from pytest_device.scheduling.history import History
from pytest_device.scheduling.test_plan import NO_BOND, TestPlan
from pytest_device.scheduling.work import DeviceGroup, Limits


@dataclass(frozen=True, slots=True)
class Case:
    """One test; ``kind`` is None without a device."""

    nodeid: str
    kind: str | None
    seconds: float
    size: int = 0
    """Of its source."""


@dataclass(frozen=True, slots=True)
class Workload:
    """The tests of a run in the suite's order, boot times by kind, workers, and the limit of sessions."""

    name: str
    cases: Sequence[Case]
    boots: Mapping[str, float]
    """By kind: ``platform type device``."""
    workers: int
    sessions: int | None = None

    def work(self) -> Work:
        """Return the work for the bounds."""
        by_kind = {
            kind: [case.seconds for case in self.cases if case.kind == kind]
            for kind in self.boots
        }
        free = [case.seconds for case in self.cases if case.kind is None]
        return Work(by_kind, self.boots, free)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The duration of a run, its boots, and the seconds from create to stop of all sessions."""

    seconds: float
    boots: int
    billed: float


@dataclass(slots=True)
class _Worker:
    """A worker and its sessions."""

    name: int
    pending: deque[int] = field(default_factory=deque[int])
    """Assigned tests that are not done."""
    devices: dict[str, float] = field(default_factory=dict[str, float])
    """When each is ready, by kind."""
    created: dict[str, float] = field(default_factory=dict[str, float])
    """When each was created."""
    is_last_known: bool = False
    """Whether no more tests follow the pending ones."""
    is_busy: bool = False


class _Devices:
    """The sessions of all workers, with a limit."""

    def __init__(self, boots: Mapping[str, float], most: float) -> None:
        self._boots = boots
        self._most = most
        self.live = 0
        self.most = 0
        self.count = 0
        self.billed = 0.0

    def has_room(self) -> bool:
        return self.live < self._most

    def boot(self, worker: _Worker, kind: str, now: float) -> None:
        self.live += 1
        self.most = max(self.most, self.live)
        self.count += 1
        worker.created[kind] = now
        worker.devices[kind] = now + self._boots[kind]

    def stop(self, worker: _Worker, kind: str, now: float) -> None:
        self.live -= 1
        self.billed += now - worker.created.pop(kind)
        del worker.devices[kind]


class Scheduler(Protocol):
    """Assigns the tests of a run by its ``assign`` and ``end``."""

    keeps_devices: bool
    """Whether each worker keeps its devices until its last test has ended."""

    def start(self, run: "VirtualRun") -> None: ...
    def on_end(self, worker: int, test: int) -> None: ...
    def on_boot(self, kind: str, seconds: float) -> None: ...


class VirtualRun:
    """Runs a workload; ``now`` is in seconds from the start."""

    def __init__(self, workload: Workload, width: int | None = None) -> None:
        self.workload = workload
        self.now = 0.0
        self.log: list[tuple[int, int, float, float]] = []
        """Worker, test, begin after the wait for devices, end."""
        self.workers = [_Worker(name) for name in range(width or workload.workers)]
        self._devices = _Devices(workload.boots, workload.sessions or inf)
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()

    @property
    def most_sessions(self) -> int:
        """Return the maximum number of concurrent sessions."""
        return self._devices.most

    def assign(self, worker: int, tests: Iterable[int]) -> None:
        """Append tests to those that a worker will run."""
        self.workers[worker].pending.extend(tests)

    def end(self, worker: int) -> None:
        """Let a worker end after its assigned tests."""
        self.workers[worker].is_last_known = True

    def run(self, scheduler: Scheduler) -> Outcome:
        """Run all tests; raises RuntimeError if some never run."""
        scheduler.start(self)
        self._begin_all(scheduler)
        while self._events:
            self.now, _, happen = heappop(self._events)
            happen()
            self._begin_all(scheduler)

        if len(self.log) != len(self.workload.cases):
            raise RuntimeError(
                f"{self.workload.name}: {len(self.log)} of {len(self.workload.cases)} tests ran"
            )
        return Outcome(
            max(end for *_, end in self.log), self._devices.count, self._devices.billed
        )

    def _at(self, moment: float, happen: Callable[[], None]) -> None:
        heappush(self._events, (moment, next(self._numbers), happen))

    def _begin_all(self, scheduler: Scheduler) -> None:
        for worker in self.workers:
            if worker.is_last_known and not worker.pending and not worker.is_busy:
                self._stop_all(worker)
        for worker in self.workers:
            knows_next = len(worker.pending) > 1 or worker.is_last_known
            if worker.pending and knows_next and not worker.is_busy:
                self._begin(worker, scheduler)

    def _stop_all(self, worker: _Worker) -> None:
        for kind in list(worker.devices):
            self._devices.stop(worker, kind, self.now)

    def _begin(self, worker: _Worker, scheduler: Scheduler) -> None:
        test = worker.pending[0]
        case = self.workload.cases[test]
        if case.kind is not None and case.kind not in worker.devices:
            if not scheduler.keeps_devices:
                self._stop_others(worker, {case.kind})
            if not self._devices.has_room():
                return  # until another worker stops one
            self._boot(worker, case.kind, scheduler)

        worker.is_busy = True
        self._prefetch(worker, scheduler)
        begins = self.now
        if case.kind is not None:
            begins = max(begins, worker.devices[case.kind])
        ends = begins + case.seconds
        self.log.append((worker.name, test, begins, ends))
        self._at(ends, lambda: self._end(worker, test, scheduler))

    def _end(self, worker: _Worker, test: int, scheduler: Scheduler) -> None:
        worker.pending.popleft()
        worker.is_busy = False
        if not scheduler.keeps_devices:
            following = {self.workload.cases[one].kind for one in worker.pending}
            self._stop_others(worker, following)
        scheduler.on_end(worker.name, test)

    def _stop_others(self, worker: _Worker, needed: set[str | None]) -> None:
        for kind in worker.devices.keys() - needed:
            self._devices.stop(worker, kind, self.now)

    def _prefetch(self, worker: _Worker, scheduler: Scheduler) -> None:
        """Boot the next device that the worker lacks, as a worker does when it begins a test."""
        if scheduler.keeps_devices:
            return
        kinds = [self.workload.cases[test].kind for test in worker.pending]
        other = next((kind for kind in kinds if kind and kind != kinds[0]), None)
        if other and other not in worker.devices and self._devices.has_room():
            self._boot(worker, other, scheduler)

    def _boot(self, worker: _Worker, kind: str, scheduler: Scheduler) -> None:
        self._devices.boot(worker, kind, self.now)
        seconds = self.workload.boots[kind]
        self._at(self.now + seconds, lambda: scheduler.on_boot(kind, seconds))


class PluginScheduler:
    """The plugin's dispatcher, driven as ``plugin.xdist.scheduler`` drives it."""

    keeps_devices = False

    def __init__(self, history: History | None = None) -> None:
        self.history = history or History(None)

    def start(self, run: VirtualRun) -> None:
        workload = run.workload
        kinds = list(workload.boots)
        groups = [DeviceGroup()]
        groups += [DeviceGroup((number,), (number,)) for number in range(len(kinds))]
        group_of = {kind: number for number, kind in enumerate(kinds, 1)}
        tests = [
            (group_of[case.kind] if case.kind else 0, NO_BOND)
            for case in workload.cases
        ]
        self._run = run
        self._nodeids = [case.nodeid for case in workload.cases]
        plan = TestPlan(
            groups,
            kinds,
            tests,
            may_order=True,
            sizes=[case.size for case in workload.cases],
        )
        self._models = kinds
        self._boots = plan.boots(self.history)
        limits = Limits(workload.workers, workload.sessions or inf)
        self.dispatcher = plan.dispatcher(
            self._nodeids, self.history, self._boots, limits
        )
        for worker in run.workers:
            self.dispatcher.add_worker(worker.name)
        self._assign()

    def on_boot(self, kind: str, seconds: float) -> None:
        self.history.add_boot(kind, seconds)

    def on_end(self, worker: int, test: int) -> None:
        nodeid = self._nodeids[test]
        self.history.add_test(nodeid, self._run.workload.cases[test].seconds)
        self.dispatcher.done(
            worker, test, self.history.test_seconds(nodeid), self._run.now
        )
        self._assign()

    def _assign(self) -> None:
        self._boots[:] = map(self.history.usual_boot, self._models)
        for worker, tests, is_over in self.dispatcher.assign(self._run.now):
            self._run.assign(worker, tests)
            if is_over:
                self._run.end(worker)


def known_history(workload: Workload) -> History:
    """Return a history with the duration of every test and boot."""
    history = History(None)
    for case in workload.cases:
        history.add_test(case.nodeid, case.seconds)
    for kind, seconds in workload.boots.items():
        history.add_boot(kind, seconds)
    return history


class _Node:
    """What pytest-xdist's schedulers use of a ``WorkerController``."""

    def __init__(self, run: VirtualRun, name: int) -> None:
        self._run = run
        self.name = name
        self.gateway = SimpleNamespace(id=f"gw{name}", spec=f"gw{name}")
        self.shutting_down = False
        self.stolen: list[int] | None = None

    def send_runtest_some(self, tests: Sequence[int]) -> None:
        self._run.assign(self.name, tests)

    def send_runtest_all(self) -> None:
        self._run.assign(self.name, range(len(self._run.workload.cases)))

    def send_steal(self, tests: Sequence[int]) -> None:
        self.stolen = list(tests)

    def shutdown(self) -> None:
        self.shutting_down = True
        self._run.end(self.name)


class XdistScheduler:
    """One of pytest-xdist's schedulers, in a suite with a session-scoped fixture for each kind of device."""

    keeps_devices = True

    def __init__(self, dist: str) -> None:
        self._dist = dist

    def start(self, run: VirtualRun) -> None:
        self._run = run
        values: dict[str, Any] = {
            "tx": ["popen"] * len(run.workers),
            "maxschedchunk": None,
            "loadscopereorder": True,
        }
        config: Any = SimpleNamespace(
            getvalue=values.get,
            getoption=values.get,
            option=SimpleNamespace(**values),
        )
        log = Producer("simulated", enabled=False)
        self._scheduler: Any = XDIST[self._dist](config, log)
        self._nodes: list[Any] = [_Node(run, worker.name) for worker in run.workers]
        names = [case.nodeid for case in run.workload.cases]
        if self._dist == "loadgroup":
            names = [
                f"{case.nodeid}@{case.kind}" if case.kind else case.nodeid
                for case in run.workload.cases
            ]
        for node in self._nodes:
            self._scheduler.add_node(node)
        for node in self._nodes:
            self._scheduler.add_node_collection(node, names)
        self._scheduler.schedule()

    def on_boot(self, kind: str, seconds: float) -> None:
        """Nothing: it knows no devices."""

    def on_end(self, worker: int, test: int) -> None:
        node = self._nodes[worker]
        self._scheduler.mark_test_complete(
            node, test, self._run.workload.cases[test].seconds
        )
        for other in self._nodes:
            if other.stolen is not None:
                self._hand_back(other)
        if self._scheduler.tests_finished:
            for other in self._nodes:
                if not other.shutting_down:
                    other.shutdown()

    def _hand_back(self, node: Any) -> None:
        """Answer as a worker: with all tests, or none if it may already begin one of them."""
        wanted, node.stolen = set(node.stolen), None
        worker = self._run.workers[node.name]
        untouched = set(list(worker.pending)[2:])
        stolen = [test for test in worker.pending if test in wanted]
        if not wanted <= untouched:
            stolen = []
        worker.pending = deque(test for test in worker.pending if test not in stolen)
        self._scheduler.remove_pending_tests_from_node(node, stolen)


XDIST: Final[Mapping[str, Any]] = {
    "load": LoadScheduling,
    "worksteal": WorkStealingScheduling,
    "loadfile": LoadFileScheduling,
    "loadgroup": LoadGroupScheduling,
}
"""pytest-xdist's schedulers, by the value of ``--dist``."""
