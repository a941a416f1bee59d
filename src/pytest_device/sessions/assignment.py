"""Who has a session: a test, the background thread, or nobody."""

from enum import Enum, auto

from pytest_device.sessions.quota import Slot


class Holder(Enum):
    """Who has a session: only its holder starts, uses or stops it."""

    NOBODY = auto()
    """It is idle, or being stopped."""
    TEST = auto()
    """A test that waits for it or uses it."""
    BACKGROUND = auto()
    """The background thread, which starts it for later tests; stays so once it is ready."""
    DROPPED = auto()
    """The background thread, which stops it: no test needs it anymore."""


class Assignment:
    """The use of one session. Only its pool calls these methods; everyone else reads.

    The background thread reads ``holder`` without a lock, so each method sets it once, last.
    """

    def __init__(self, slot: Slot | None = None) -> None:
        self.slot = slot
        """Occupied until the session has ended; None if the number of sessions is unlimited."""
        self.holder = Holder.NOBODY
        self.user: object = None
        """Its current or last user."""
        self.is_new = True
        """Whether no user has given it back or handed it over."""
        self.is_unused = False
        """Whether it was prefetched, and no test has waited for it or given it back."""
        self.is_unusable = False
        """Whether no other test may get it."""
        self.error: BaseException | None = None
        """Why it was given up in the background."""

    # For a test.

    def reserve(self) -> None:
        """Reserve it for a test that does not have all of its sessions yet."""
        self.holder = Holder.TEST

    def cancel(self) -> None:
        """Cancel a reservation: the test did not get its sessions."""
        self.holder = Holder.NOBODY

    def assign(self, user: object) -> None:
        """Assign a reserved session to its user."""
        self.user = user

    def hand_over(self, user: object) -> None:
        """Assign it to its next user, without giving it back in between."""
        self.user = user
        self.is_new = self.is_unused = False

    def give_back(self) -> None:
        """End its use: it is idle."""
        self.is_new = self.is_unused = False
        self.holder = Holder.NOBODY

    def mark_unusable(self) -> None:
        """Let no other test get it: it is stopped once it is given back."""
        self.is_unusable = True

    # For later tests.

    def prefetch(self) -> None:
        """Leave its start to the background thread."""
        self.is_unused = True
        self.holder = Holder.BACKGROUND

    def withdraw(self) -> None:
        """Take it from the background thread: a test waits for it."""
        self.is_unused = False
        self.holder = Holder.NOBODY

    def discard(self) -> None:
        """Take it from the background thread to stop it: others need its place."""
        self.is_unused = self.is_new
        self.holder = Holder.NOBODY

    def drop(self) -> None:
        """Leave its stop to the background thread."""
        self.is_unused = self.is_new
        self.holder = Holder.DROPPED

    def give_up(self, error: BaseException) -> None:
        """Record the error that ended its start in the background."""
        self.error = error
