"""What a test needs of a device, and a session in progress that is held for such needs."""

from dataclasses import dataclass, field

from pytest_device.sessions.background import Boot
from pytest_device.sessions.device_session import Life
from pytest_device.sessions.models import Session
from pytest_device.sessions.quota import Slot
from pytest_device.sessions.relay import Deferred
from pytest_device.sessions.request import SessionRequest


@dataclass(frozen=True, slots=True)
class Need:
    """What a test needs of a device: equal needs may be met by one session, one after the other.

    ``among`` names those with whom it may be shared. ``minutes`` must be left of a session that was used before.
    """

    request: SessionRequest
    among: str
    minutes: int = field(default=0, compare=False)
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Hash once: each of many tests is looked up by its needs."""
        object.__setattr__(self, "_hash", hash((self.request, self.among)))

    def __hash__(self) -> int:
        """Return the hash of what is compared."""
        return self._hash


class Held:
    """A session of the pool, in progress."""

    def __init__(self, need: Need, boot: Boot) -> None:
        self.need = need
        self.life: Life = boot.life
        self.slot: Slot | None = boot.slot
        self.session: Session = boot.life.session
        self.user: object = None
        """Who has it, or had it last."""
        self.is_taken = not boot.is_ahead
        self.is_new = True
        """Whether no test has had it before."""
        self.is_ahead = boot.is_ahead
        """Whether it was ready before it was asked for."""
        self.kept: Deferred = boot.kept
        """What is to be told of it when a test gets it."""
        self.is_lost = False
        """Whether it, or its controller, is of no use any more."""

    @property
    def is_unused(self) -> bool:
        """Tell whether it was booted ahead and no test has had it yet."""
        return self.is_ahead and self.is_new

    def has_left(self, minutes: int, now: float) -> bool:
        """Tell whether it may run for so long; never with a limit of 0, which the document does not explain."""
        since = now if self.life.ready_at is None else self.life.ready_at
        return self.session.max_duration_minutes * 60 - (now - since) >= minutes * 60
