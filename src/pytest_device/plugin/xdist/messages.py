"""The messages between the coordinator of a pytest-xdist run and a worker: typed values."""

from collections.abc import Callable
from typing import Final, NamedTuple, get_args

from pytest_device.sessions.breaker import Answer, Cause, Pause
from pytest_device.sessions.reporter import SafetyNet
from pytest_device.wire import Codec

# From a worker to the coordinator.


class Collected(NamedTuple):
    """The worker has collected its tests.

    ``plan`` is a ``TestPlan`` as text, ``shard`` the line that describes the shard,
    empty without one.
    """

    plan: str
    shard: str


class Progress(NamedTuple):
    """What the worker waits for; shown at once."""

    text: str


class Preview(NamedTuple):
    """The live preview of a device."""

    label: str
    url: str


class MissingSafetyNet(NamedTuple):
    """The worker's sessions are without a safety net; shown once per run."""

    net: SafetyNet
    text: str


class Ask(NamedTuple):
    """May the worker make this attempt? The reply is ``Answered``."""

    key: str
    number: int


class Succeeded(NamedTuple):
    """The attempt succeeded."""

    key: str
    number: int


class Released(NamedTuple):
    """The attempt was abandoned before it succeeded or failed."""

    key: str
    number: int


class Failed(NamedTuple):
    """The attempt failed; ``is_final`` if another one would fail, too."""

    key: str
    number: int
    cause: Cause
    is_final: bool


class Used(NamedTuple):
    """The use of the attempt's session begins or, with its ``seconds``, has ended."""

    number: int
    seconds: float | None


OfAttempt = Ask | Succeeded | Released | Failed | Used
FromWorker = Collected | Progress | Preview | MissingSafetyNet | OfAttempt


# From the coordinator to a worker.


class Assigned(NamedTuple):
    """The worker gets these tests: their indexes in its collection."""

    tests: tuple[int, ...]


class Answered(NamedTuple):
    """The breaker's answer: whether the attempt may be made now."""

    number: int
    answer: Answer


class Interrupt(NamedTuple):
    """A signal ends the run: the worker must end, too."""


FromCoordinator = Assigned | Answered | Interrupt

_CODEC: Final = Codec((Cause, Pause, *get_args(FromWorker), *get_args(FromCoordinator)))

encode: Final[Callable[[FromWorker | FromCoordinator], bytes]] = _CODEC.encode
"""Encodes a message: execnet carries bytes, not named tuples."""


def from_worker(data: bytes) -> FromWorker:
    """Decode a worker's message; raises MessageError for any other."""
    message: FromWorker = _CODEC.decode(data, FromWorker)
    return message


def from_coordinator(data: bytes) -> FromCoordinator:
    """Decode a message of the coordinator; raises MessageError for any other."""
    message: FromCoordinator = _CODEC.decode(data, FromCoordinator)
    return message
