"""Defines who advances a session that is not ready yet."""

from enum import Enum, auto


class AdvancedBy(Enum):
    """Who advances a session."""

    TEST = auto()
    """The test that waits for it."""
    BACKGROUND = auto()
    """The background thread, for later tests; stays so if it becomes ready before a test uses it."""
    DROPPED = auto()
    """The background thread, which stops it: no test needs it any more."""
    NOBODY = auto()
    """Nobody: it was prefetched and is being stopped unused."""
