"""The scheduler of pytest-xdist runs: each worker gets the tests of the devices that it holds."""

import time
from collections.abc import Sequence
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING

import pytest
from xdist.report import report_collection_diff  # pyright: ignore[reportMissingTypeStubs]
from xdist.scheduler import LoadScheduling  # pyright: ignore[reportMissingTypeStubs]

from pytest_device.plugin.xdist.channel import DEALT, Line
from pytest_device.scheduling.dispatcher import Dealer
from pytest_device.scheduling.history import History
from pytest_device.scheduling.test_plan import Lineup

if TYPE_CHECKING:
    from xdist.remote import Producer  # pyright: ignore[reportMissingTypeStubs]
    from xdist.workermanage import WorkerController  # pyright: ignore[reportMissingTypeStubs]


class DeviceScheduling(LoadScheduling):
    """Deals tests by the devices that they need; a run without devices is xdist's own ``load``.

    ``lines`` lead to the workers, which tell over them what their tests need; ``most`` devices there may be at once.
    """

    def __init__(
        self,
        config: pytest.Config,
        log: "Producer",
        *,
        lines: "dict[WorkerController, Line]",
        history: History,
        most: int | None,
        fresh_ahead: int,
    ) -> None:
        super().__init__(config, log)
        self._lines, self._history, self._most, self._ahead = lines, history, most, fresh_ahead
        self._dealer: Dealer[WorkerController] | None = None
        self._lineup: Lineup | None = None
        self._boots: list[float | None] = []
        self._joined: set[WorkerController] = set()

    @property
    def tests_finished(self) -> bool:
        """Tell whether all tests are dealt and every worker may begin with its last."""
        if self._dealer is None:
            return super().tests_finished
        return self.collection_is_completed and self._dealer.is_over

    def add_node_collection(self, node: "WorkerController", collection: Sequence[str]) -> None:
        """Take note of what a worker has collected; one that takes another's place has to have collected the same."""
        super().add_node_collection(node, collection)
        if self._dealer is None or self.collection is None or node in self.node2collection:
            return
        name = str(node.gateway.id)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
        told = report_collection_diff(self.collection, collection, "the others", name) or "another order"
        report = pytest.CollectReport(nodeid=name, outcome="failed", longrepr=told, result=[])
        self.config.hook.pytest_collectreport(report=report)
        node.shutdown()
        if all(other.shutting_down for other in self._joined):
            raise pytest.Session.Interrupted(f"{name} takes the place of a worker and has collected other tests")

    def schedule(self) -> None:
        """Begin when all workers have collected; count on those that come later, too."""
        if self.collection is None and not self._check_nodes_have_same_collection():
            self.log("**Different tests collected, aborting run**")
        elif self._dealer or (self.collection is None and self._begin()):
            self._deal()
        else:
            super().schedule()

    def _begin(self) -> bool:
        self._lineup = next((lineup for node in self.node2collection if (lineup := self._lines[node].lineup)), None)
        if self._lineup is None or not self._lineup.has_devices():
            return False
        self.collection = next(iter(self.node2collection.values()))
        self._boots = self._lineup.boots(self._history)
        self._dealer = self._lineup.dealer(
            self.collection,
            self._history,
            self._boots,
            width=len(self.node2collection),
            most=inf if self._most is None else max(self._most, self._lineup.most_at_once()),
            fresh_ahead=self._ahead,
        )
        return True

    def _deal(self) -> None:
        dealer, lineup = self._begun()
        self._boots[:] = lineup.boots(self._history)
        for node in self.node2collection:
            if node in self.node2pending and node not in self._joined:
                self._joined.add(node)
                dealer.join(node)
        for node in self._joined:
            if node.shutting_down:  # the run ends early, or the worker is gone and xdist has not come to it
                dealer.end(node)
        for node, tests, is_over in dealer.deal(time.monotonic()):
            if tests:
                self._lines[node].tell(DEALT, tests)
                with suppress(OSError):  # the worker is gone; its tests are dealt again when xdist comes to it
                    node.send_runtest_some(tests)
                    self.node2pending[node] += tests
            if is_over:
                node.shutdown()

    def _begun(self) -> "tuple[Dealer[WorkerController], Lineup]":
        if self._dealer is None or self._lineup is None:
            raise RuntimeError("nothing is dealt before all workers have collected")
        return self._dealer, self._lineup

    def mark_test_complete(self, node: "WorkerController", item_index: int, duration: float = 0) -> None:
        """Deal the worker more."""
        if self._dealer is None or self.collection is None:
            super().mark_test_complete(node, item_index, duration)
            return
        self.node2pending[node].remove(item_index)
        self._dealer.done(node, item_index, self._history.test_seconds(self.collection[item_index]), time.monotonic())
        if not node.shutting_down:
            self._deal()

    def mark_test_pending(self, item: str) -> None:
        """Deal a test once more, after its worker has crashed."""
        if self._dealer is None or self.collection is None:
            super().mark_test_pending(item)
            return
        self._dealer.put_back(self.collection.index(item))
        self._deal()

    def remove_node(self, node: "WorkerController") -> str | None:
        """Take back what the worker had not begun; return the test in which it crashed, None when it did not."""
        if self._dealer is None or self.collection is None or node not in self._joined:
            return super().remove_node(node)
        self._joined.remove(node)
        pending: Sequence[int] = self.node2pending.pop(node)
        undone = self._dealer.leave(node)
        if undone and not pending:  # it was never told of what it was to do
            self._dealer.put_back(undone[0])
        self._deal()
        return self.collection[pending[0]] if pending else None
