"""The line between the controlling process of a pytest-xdist run and a worker, beside pytest-xdist's own.

It is a channel of execnet, so it reaches workers on other machines, too. A worker tells what its tests need before it
tells pytest-xdist that it has collected them, and what a person is to read while it waits; it is told which tests it
gets before it gets them, and, where the user has chosen another way to distribute them, which devices no test needs any
more.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol

from pytest_device.scheduling.test_plan import Lineup

LINE: Final = "device_line"
"""Key of a worker's input: the worker's end."""
DEALT: Final = "dealt"
OVER: Final = "over"


class Channel(Protocol):
    """What is used of execnet's ``Channel``."""

    def send(self, item: object) -> None:
        """Send what is made of built-in types; raises OSError when the other end is gone."""
        ...

    def setcallback(self, callback: Callable[[Any], Any]) -> None:
        """Let what arrives be heard in the thread that receives it."""
        ...


class Line:
    """The controlling process's end."""

    def __init__(self, channel: Channel, say: Callable[[str], None]) -> None:
        self._channel, self._say = channel, say
        self.lineup: Lineup | None = None
        """What the worker has collected, None for tests without a device."""
        self.shard = ""
        """Which part of the suite it is."""
        self.pid: int | None = None
        """The worker's process, told with the lineup."""
        channel.setcallback(self._hear)

    def _hear(self, told: tuple[int, tuple[Any, ...], str] | str) -> None:
        if isinstance(told, str):
            self._say(told)
            return
        self.pid, values, self.shard = told
        self.lineup = Lineup(*values)

    def tell(self, what: str, numbers: Iterable[int]) -> None:
        """Tell the worker; one that is gone needs not know."""
        with suppress(OSError):
            self._channel.send((what, list(numbers)))


class Left:
    """Which needs tests have that are not begun, of a collection."""

    def __init__(self, lineup: Lineup, nodeids: Sequence[str]) -> None:
        self._tests: dict[int, set[str]] = defaultdict(set)
        self._needs: dict[str, tuple[int, ...]] = {}
        for nodeid, (kind, _) in zip(nodeids, lineup.tests, strict=True):
            self._needs[nodeid] = lineup.kinds[kind][0]
            for need in self._needs[nodeid]:
                self._tests[need].add(nodeid)

    def begun(self, nodeid: str) -> list[int]:
        """Take note of a test; return the needs that it was the last to have."""
        over: list[int] = []
        for need in set(self._needs.pop(nodeid, ())):
            self._tests[need].discard(nodeid)
            if not self._tests[need]:
                over.append(need)
        return over
