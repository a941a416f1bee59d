"""The scheduler for pytest-xdist: each worker gets tests for the devices that it holds."""

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from xdist.report import report_collection_diff  # pyright: ignore[reportMissingTypeStubs]
from xdist.scheduler import LoadScheduling  # pyright: ignore[reportMissingTypeStubs]

from pytest_device.plugin.xdist.channel import WorkerChannel
from pytest_device.plugin.xdist.messages import Assigned
from pytest_device.scheduling.dispatcher import Dispatcher
from pytest_device.scheduling.history import History
from pytest_device.scheduling.work import Limits

if TYPE_CHECKING:
    from xdist.remote import Producer  # pyright: ignore[reportMissingTypeStubs]
    from xdist.workermanage import WorkerController  # pyright: ignore[reportMissingTypeStubs]

    from pytest_device.settings import Settings


class DeviceScheduling(LoadScheduling):
    """Assigns tests by the devices that they need; a run without devices uses pytest-xdist's own ``load``.

    Workers send the requirements of their tests through ``channels``.
    """

    def __init__(
        self,
        config: pytest.Config,
        log: "Producer",
        *,
        channels: "dict[WorkerController, WorkerChannel]",
        history: History,
        settings: "Settings",
    ) -> None:
        super().__init__(config, log)
        self._channels = channels
        self._history = history
        self._settings = settings
        self._dispatcher: Dispatcher[WorkerController] | None = None
        self._models: Sequence[str] = ()
        self._boots: list[float | None] = []
        self._joined: set[WorkerController] = set()

    @property
    def tests_finished(self) -> bool:
        """Return whether all tests are assigned and every worker may begin with its last."""
        if self._dispatcher is None:
            return super().tests_finished

        return self.collection_is_completed and self._dispatcher.is_over

    def add_node_collection(
        self, node: "WorkerController", collection: Sequence[str]
    ) -> None:
        """Add a worker's collection; a replacement must have collected the same tests."""
        super().add_node_collection(node, collection)

        if (
            self._dispatcher is None
            or self.collection is None
            or node in self.node2collection
        ):
            return

        name = str(node.gateway.id)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
        difference = (
            report_collection_diff(self.collection, collection, "the others", name)
            or "different order"
        )
        report = pytest.CollectReport(
            nodeid=name, outcome="failed", longrepr=difference, result=[]
        )
        self.config.hook.pytest_collectreport(report=report)
        node.shutdown()

        if all(other.shutting_down for other in self._joined):
            raise pytest.Session.Interrupted(
                f"{name} replaced a worker, but collected different tests"
            )

    def schedule(self) -> None:
        """Start once all workers have collected; later workers join."""
        if self.collection is None and not self._check_nodes_have_same_collection():
            self.log("**Different tests collected, aborting run**")
        elif dispatcher := self._dispatcher or (
            self._new_dispatcher() if self.collection is None else None
        ):
            self._assign(dispatcher)
        else:
            super().schedule()

    def _new_dispatcher(self) -> "Dispatcher[WorkerController] | None":
        """Return a dispatcher of this run's tests, None in a run without devices."""
        plans = (self._channels[node].plan for node in self.node2collection)
        plan = next(filter(None, plans), None)
        if plan is None or not plan.has_devices():
            return None

        self.collection = next(iter(self.node2collection.values()))
        self._models = plan.models
        self._boots = plan.boots(self._history)
        max_devices = max(self._settings.max_devices, plan.max_devices())
        limits = Limits(len(self.node2collection), max_devices, self._settings.prefetch)
        self._dispatcher = plan.dispatcher(
            self.collection, self._history, self._boots, limits
        )

        return self._dispatcher

    def _assign(self, dispatcher: "Dispatcher[WorkerController]") -> None:
        # In place, since the dispatcher reads this list: boots of this run are known by now.
        self._boots[:] = map(self._history.usual_boot, self._models)
        for node in self.node2collection:
            if node in self.node2pending and node not in self._joined:
                self._joined.add(node)
                dispatcher.add_worker(node)

        for node in self._joined:
            if node.shutting_down:  # the run ends early, or the worker is gone and xdist has not noticed yet
                dispatcher.end_worker(node)

        for node, tests, is_over in dispatcher.assign(time.monotonic()):
            if tests:
                self._channels[node].send(Assigned(tuple(tests)))
                # The worker is gone; xdist will reassign its tests.
                with suppress(OSError):
                    node.send_runtest_some(tests)
                    self.node2pending[node] += tests

            if is_over:
                node.shutdown()

    def mark_test_complete(
        self, node: "WorkerController", item_index: int, duration: float = 0
    ) -> None:
        """Assign more tests to the worker."""
        if self._dispatcher is None or self.collection is None:
            super().mark_test_complete(node, item_index, duration)
            return

        self.node2pending[node].remove(item_index)
        self._dispatcher.done(
            node,
            item_index,
            self._history.test_seconds(self.collection[item_index]),
            time.monotonic(),
        )

        if not node.shutting_down:
            self._assign(self._dispatcher)

    def mark_test_pending(self, item: str) -> None:
        """Reassign a test after its worker crashed."""
        if self._dispatcher is None or self.collection is None:
            super().mark_test_pending(item)
            return

        self._dispatcher.requeue(self.collection.index(item))
        self._assign(self._dispatcher)

    def remove_node(self, node: "WorkerController") -> str | None:
        """Take back the worker's unstarted tests; return the test in which it crashed, None if it did not."""
        if (
            self._dispatcher is None
            or self.collection is None
            or node not in self._joined
        ):
            return super().remove_node(node)

        self._joined.remove(node)
        pending: Sequence[int] = self.node2pending.pop(node)
        undone = self._dispatcher.remove_worker(node)
        if undone and not pending:  # it never received its tests
            self._dispatcher.requeue(undone[0])

        self._assign(self._dispatcher)
        return self.collection[pending[0]] if pending else None
