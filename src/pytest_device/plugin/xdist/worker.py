"""The later tests of a pytest-xdist worker, as sent by the coordinator."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice, takewhile
from math import inf
from threading import Lock
from typing import TYPE_CHECKING, Any, Self

import pytest

from pytest_device.plugin.shard import SHARD_LINE
from pytest_device.plugin.state import history_of, is_unshared, need_counts, needs_of
from pytest_device.plugin.xdist.channel import (
    ANSWER,
    ASSIGNED,
    CHANNEL,
    Channel,
    RemoteJudge,
)
from pytest_device.scheduling.test_plan import TestPlan
from pytest_device.spec import Share

if TYPE_CHECKING:
    from pytest_device.scheduling.history import History
    from pytest_device.sessions.requirement import DeviceRequirement
    from pytest_device.settings import Settings


class WorkerLink:
    """A worker's end of the channel to the coordinator."""

    def __init__(self, config: pytest.Config, channel: Channel, worker: str) -> None:
        self._config, self._channel, self._worker = config, channel, worker
        self.judge = RemoteJudge(channel)
        """Decides for all workers of the run."""

    @classmethod
    def of(cls, config: pytest.Config) -> Self | None:
        """Return the link of this process, None if it is not a worker."""
        given: dict[str, Any] = getattr(config, "workerinput", {})
        return (
            cls(config, given[CHANNEL], given["workerid"])
            if given.get(CHANNEL)
            else None
        )

    def send_plan(self, plan: TestPlan) -> None:
        """Send this worker's collection."""
        self._channel.send(
            (os.getpid(), plan.to_wire(), self._config.stash.get(SHARD_LINE, ""))
        )

    def progress(self, text: str) -> None:
        """Show at once what this worker waits for, unless the coordinator is gone."""
        with suppress(OSError):
            self._channel.send(f"{self._worker} {text}")

    def preview(self, label: str, url: str) -> None:
        with suppress(OSError):
            self._channel.send(("preview", f"{self._worker} {label}", url))

    def lookahead(
        self,
        items: Sequence[pytest.Item],
        needs: Mapping["DeviceRequirement", int],
        settings: "Settings",
    ) -> "WorkerLookahead":
        """Return the lookahead of this worker; ``needs`` are numbered as in the plan."""
        lookahead = WorkerLookahead(
            items, self._channel, needs, history_of(self._config), settings
        )

        def on_message(message: tuple[str, Sequence[Any]]) -> None:
            what, values = message
            if what == ANSWER:
                self.judge.on_answer(*values)
            else:
                lookahead.on_message(what, values)

        self._channel.setcallback(on_message)
        return lookahead


class WorkerLookahead:
    """The tests that the coordinator assigns; ``needs`` are numbered as in its plan.

    If the user chose how to distribute tests, the coordinator only sends which needs are over: the worker then keeps
    sessions for other tests, unless the number of sessions is limited, when it does not keep them for possible tests.
    """

    def __init__(
        self,
        items: Sequence[pytest.Item],
        channel: Channel,
        needs: Mapping["DeviceRequirement", int],
        history: "History",
        settings: "Settings",
    ) -> None:
        self._items, self._needs, self.history = items, needs, history
        self._prefetch, self._is_limited = (
            settings.prefetch,
            settings.most_devices < inf,
        )
        self._channel = channel  # closed when no reference is left
        self._lock = Lock()
        self._pending: list[int] | None = None
        """Assigned tests that are not done; None if another scheduler assigns tests."""
        self._over: set[int] = set()

    def on_message(self, what: str, numbers: Sequence[int]) -> None:
        with self._lock:
            if what == ASSIGNED:
                self._pending = [*(self._pending or ()), *numbers]
            else:
                self._over |= set(numbers)

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
        self, need: "DeviceRequirement", nextitem: pytest.Item | None
    ) -> float:
        """Return the number for pending tests; without assignments, use the next test and the needs that are over."""
        if self._pending is not None:
            return max(
                (need_counts(item)[need] for item in self._following()), default=0
            )
        if nextitem is None:
            return 0
        if (
            need.sharing_key == Share.RUN
            and not self._is_limited
            and self._needs.get(need) not in self._over
        ):
            return inf
        return need_counts(nextitem)[need]

    def upcoming(self, item: pytest.Item) -> Iterator[pytest.Item]:
        """Yield the next pending test with other devices."""
        mine = needs_of(item)
        others = [
            one
            for one in self._following()
            if needs_of(one) and one is not item and needs_of(one) != mine
        ]
        yield from islice(others, 1 if others and not is_unshared(others[0]) else 0)
        yield from islice(takewhile(is_unshared, others), self._prefetch)
