"""The values of the current test, in memory and of limited number: for what is written at its end."""

from collections import deque
from typing import Final

from pytest_device.trace.values import (
    Action,
    LogLine,
    Output,
    Picture,
    TestError,
    Tree,
    Value,
)

MAX_ACTIONS: Final = 1_000
MAX_LINES: Final = 1_000


class Recording:
    """Keeps the last actions, log lines and outputs, and the last tree and picture of each device."""

    def __init__(self) -> None:
        self._actions: dict[str, Action] = {}
        self.trees: dict[str, Tree] = {}
        """The last tree of each device, by its key."""
        self.pictures: dict[str, Picture] = {}
        """The last picture of each device, by its key."""
        self.lines: deque[LogLine] = deque(maxlen=MAX_LINES)
        self.outputs: deque[Output] = deque(maxlen=MAX_LINES)
        self.errors: list[TestError] = []

    @property
    def actions(self) -> list[Action]:
        """The last actions in the order in which they began, each as it was recorded last."""
        return list(self._actions.values())

    def add(self, value: Value, /) -> None:
        """Keep a value in place of older ones."""
        match value:
            case Action():
                # Recorded again, it keeps its place.
                self._actions[value.key] = value
                if len(self._actions) > MAX_ACTIONS:
                    del self._actions[next(iter(self._actions))]
            case Tree():
                self.trees[value.device.key] = value
            case Picture():
                self.pictures[value.device.key] = value
            case LogLine():
                self.lines.append(value)
            case Output():
                self.outputs.append(value)
            case TestError():
                self.errors.append(value)
