"""The later tests of a pytest-xdist worker, as sent by the coordinator."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice, takewhile
from math import inf
from threading import Lock
from typing import TYPE_CHECKING, Any, Self, assert_never

import pytest

from pytest_device.plugin.shard import SHARD_LINE
from pytest_device.plugin.state import (
    PROBLEMS,
    history_of,
    is_unshared,
    requirement_counts,
    requirements_of,
)
from pytest_device.plugin.xdist import messages
from pytest_device.plugin.xdist.channel import (
    CHANNEL,
    BreakerClient,
    Channel,
    unreadable,
)
from pytest_device.scheduling.test_plan import TestPlan
from pytest_device.spec import Share
from pytest_device.wire import MessageError

if TYPE_CHECKING:
    from pytest_device.scheduling.history import History
    from pytest_device.sessions.reporter import SafetyNet
    from pytest_device.sessions.request import DeviceRequirement
    from pytest_device.settings import Settings


class WorkerLink:
    """A worker's end of the channel to the coordinator."""

    def __init__(self, config: pytest.Config, channel: Channel, worker: str) -> None:
        self._config = config
        self._channel = channel
        self._worker = worker
        self.breaker = BreakerClient(channel)
        """Decides for all workers of the run."""

    @classmethod
    def of(cls, config: pytest.Config) -> Self | None:
        """Return the link of this process, None if it is not a worker."""
        worker_input: dict[str, Any] = getattr(config, "workerinput", {})
        if not worker_input.get(CHANNEL):
            return None

        return cls(config, worker_input[CHANNEL], worker_input["workerid"])

    def send_plan(self, plan: TestPlan) -> None:
        """Send this worker's collection."""
        shard = self._config.stash.get(SHARD_LINE, "")
        self._channel.send(messages.encode(messages.Collected(plan.to_wire(), shard)))

    def progress(self, text: str) -> None:
        """Show at once what this worker waits for, unless the coordinator is gone."""
        with suppress(OSError):
            self._channel.send(
                messages.encode(messages.Progress(f"{self._worker} {text}"))
            )

    def preview(self, label: str, url: str) -> None:
        with suppress(OSError):
            self._channel.send(
                messages.encode(messages.Preview(f"{self._worker} {label}", url))
            )

    def warn(self, net: "SafetyNet", text: str) -> None:
        """Show that a safety net is missing, unless another worker has said so."""
        with suppress(OSError):
            self._channel.send(messages.encode(messages.MissingSafetyNet(net, text)))

    def lookahead(
        self,
        items: Sequence[pytest.Item],
        settings: "Settings",
        on_interrupt: Callable[[], None],
    ) -> "WorkerLookahead":
        """Return the lookahead of this worker.

        ``on_interrupt`` is called when a signal ends the run, in the thread that reads the channel.
        """
        lookahead = WorkerLookahead(
            items, self._channel, history_of(self._config), settings
        )

        def receive(data: bytes) -> None:
            try:
                message = messages.from_coordinator(data)
            except MessageError as error:
                _add_problem(self._config, unreadable("the coordinator", error))
                return

            match message:
                case messages.Assigned(tests):
                    lookahead.assign(tests)
                case messages.Answered():
                    self.breaker.on_answer(message)
                case messages.Interrupt():
                    on_interrupt()
                case _:
                    assert_never(message)

        self._channel.setcallback(receive)
        return lookahead


def _add_problem(config: pytest.Config, problem: str) -> None:
    """Report a problem at the end of the run, which then exits as after a usage error."""
    output: dict[str, Any] = vars(config)["workeroutput"]
    output.setdefault(PROBLEMS, []).append(problem)


class WorkerLookahead:
    """The tests that the coordinator assigns.

    If the user chose how to distribute tests, it assigns none: the worker then keeps shared sessions until it has no
    test left, unless the number of sessions is limited.
    """

    def __init__(
        self,
        items: Sequence[pytest.Item],
        channel: Channel,
        history: "History",
        settings: "Settings",
    ) -> None:
        self._items = items
        self.history = history
        self._prefetch = settings.prefetch
        self._is_limited = settings.max_devices < inf
        self._channel = channel  # closed when no reference is left
        self._lock = Lock()
        self._pending: list[int] | None = None
        """Assigned tests that are not done; None if another scheduler assigns tests."""

    def assign(self, tests: Sequence[int]) -> None:
        """Add tests that this worker will run: their indexes."""
        with self._lock:
            self._pending = [*(self._pending or ()), *tests]

    def _following(self) -> list[pytest.Item]:
        with self._lock:
            return [self._items[number] for number in self._pending or ()]

    def done(self, item: pytest.Item) -> None:
        with self._lock:
            if self._pending is not None:
                self._pending = [
                    number
                    for number in self._pending
                    if self._items[number] is not item
                ]

    def needed_at_once(
        self, requirement: "DeviceRequirement", nextitem: pytest.Item | None
    ) -> float:
        """Return the number for pending tests; without assignments, use the next test and the sharing scope."""
        if self._pending is not None:
            return max(
                (requirement_counts(item)[requirement] for item in self._following()),
                default=0,
            )

        if nextitem is None:
            return 0

        if requirement.sharing_key == Share.RUN and not self._is_limited:
            return inf

        return requirement_counts(nextitem)[requirement]

    def upcoming(self, item: pytest.Item) -> Iterator[pytest.Item]:
        """Yield the next pending test with other devices."""
        own_requirements = requirements_of(item)
        others: list[pytest.Item] = []
        for later in self._following():
            requirements = requirements_of(later)
            if later is not item and requirements and requirements != own_requirements:
                others.append(later)

        if others and not is_unshared(others[0]):
            yield others[0]

        yield from islice(takewhile(is_unshared, others), self._prefetch)
