"""Who advances a session that is not ready yet."""

from enum import Enum, auto


class Server(Enum):
    """Who advances a session."""

    TEST = auto()
    """The test that waits for it."""
    BACKGROUND = auto()
    """Nobody waits for it yet; it stays so when it is ready before a test gets it."""
    DROPPED = auto()
    """Nobody will wait for it any more: it is stopped in the background."""
    NOBODY = auto()
    """It was started ahead and is being stopped before any test used it."""
