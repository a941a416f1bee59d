"""The messages between a run, its reaper and the reaper's sender: typed values, one JSON line each."""

from collections.abc import Callable
from typing import Any, Final, Generic, NamedTuple, TypeVar, get_args

from pytest_device.sessions.ledger import Entry
from pytest_device.wire import Codec


class Endpoint(NamedTuple):
    """Connection settings of the service. ``proxy`` is an ``http://`` URL, or empty."""

    url: str
    token: str
    proxy: str = ""
    cafile: str | None = None
    capath: str | None = None


class Reply(NamedTuple):
    """A complete response of the service; ``retry_after`` in seconds, if given.

    ``located_id`` is the ID of the session that its ``Location`` names, empty without one.
    """

    status: int
    body: bytes
    retry_after: float | None = None
    located_id: str = ""


class NoReply(NamedTuple):
    """No complete response; ``sent`` is False only if the request was certainly never sent.

    ``body`` is the part of the response that arrived: it may hold a session's ID.
    """

    problem: str
    sent: bool
    body: bytes = b""


Answer = Reply | NoReply


# From the run to its reaper.


class Start(NamedTuple):
    """The first message: what to supervise. ``processes`` are those whose end ends the run.

    A session for which the service has returned 404 for ``gone_seconds`` is gone; with None, 404 never proves that.
    """

    endpoint: Endpoint
    ledger: str | None
    processes: tuple[int, ...]
    leaves_tombstones: bool
    gone_seconds: float | None


class Create(NamedTuple):
    """Create a session; ``body`` is the call's JSON text.

    With ``needs_entry``, the call is not sent if the ledger can't be written.
    """

    entry: Entry
    body: str
    needs_entry: bool = True


class Register(NamedTuple):
    """Supervise an existing session.

    ``is_foreign``: another token created it, so that a refusal may be final for this one.
    """

    entry: Entry
    is_foreign: bool = False


class Stop(NamedTuple):
    """Stop a session."""

    intent: str


class Keep(NamedTuple):
    """Deliberately leave a session to its own limits."""

    intent: str


class KeepWarm(NamedTuple):
    """Keep a session warm until it is claimed; stop it after ``seconds``."""

    entry: Entry
    seconds: float


class Claim(NamedTuple):
    """Take over a warm session from the ledger in this directory."""

    entry: Entry
    ledger: str


class End(NamedTuple):
    """Stop all sessions, then end."""


Request = Create | Register | Stop | Keep | KeepWarm | Claim | End


# From the reaper to its run.


class Ready(NamedTuple):
    """The reaper accepts requests."""


class Ended(NamedTuple):
    """The reaper ends, as requested."""


class LedgerFailed(NamedTuple):
    """The ledger could not be written."""

    problem: str


class Answered(NamedTuple):
    """The result of a create call: a session, none because the call was ``refused``, or unknown.

    ``session_id`` and ``url`` are as far as they could be read.
    """

    intent: str
    answer: Answer
    session_id: str = ""
    url: str = ""
    refused: bool = False


class NotSent(NamedTuple):
    """The create call was not sent, because its intent could not be written."""

    intent: str
    problem: str


class Stopped(NamedTuple):
    """The session has ended."""

    intent: str
    answer: Reply


class Missing(NamedTuple):
    """The service has returned 404 for the session for so long that it counts as gone."""

    intent: str
    answer: Reply


class Delayed(NamedTuple):
    """The session is not stopped yet; the next attempt is due later."""

    intent: str
    answer: Answer


class GaveUp(NamedTuple):
    """The session was not stopped within its own limit, or the service never knew it."""

    intent: str
    answer: Answer


class Kept(NamedTuple):
    """The session is left running, or kept warm."""

    intent: str


class NotKept(NamedTuple):
    """The session could not be kept warm: no run would find it."""

    intent: str


class Due(NamedTuple):
    """A warm session is being stopped: its time is up."""

    intent: str


class Claimed(NamedTuple):
    """The session now belongs to this run."""

    intent: str


class Gone(NamedTuple):
    """The session belongs to another process."""

    intent: str


SessionReport = (
    Answered
    | NotSent
    | Stopped
    | Missing
    | Delayed
    | GaveUp
    | Kept
    | NotKept
    | Due
    | Claimed
    | Gone
)
Report = Ready | Ended | LedgerFailed | SessionReport


# Between the reaper and its sender.


class Call(NamedTuple):
    """One call to the service; ``body`` is JSON text, ``seconds`` the maximum duration of the whole call.

    A response has ``reply_seconds`` from its first byte, however slowly it trickles in.
    """

    number: int
    method: str
    path: str
    body: str | None = None
    seconds: float = 60.0
    reply_seconds: float = 60.0


class Returned(NamedTuple):
    """The result of a call."""

    number: int
    answer: Answer


Message = Start | Request | Report | Endpoint | Call | Returned

_CODEC: Final = Codec((Entry, *get_args(Answer), *get_args(Message)))
T = TypeVar("T", bound=Message)

encode: Final[Callable[[Message], bytes]] = _CODEC.encode
"""Encodes a message as one line."""


class Decoder(Generic[T]):
    """Parses a stream of messages of these kinds; keeps incomplete lines."""

    def __init__(self, kinds: Any) -> None:
        self._kinds = kinds
        self._rest = b""

    def feed(self, data: bytes) -> list[T]:
        """Return the messages that these bytes complete.

        Raises MessageError for invalid ones.
        """
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [_CODEC.decode(line, self._kinds) for line in lines]
