"""A process's hold on its sessions: every create and stop call goes through its reaper, which outlives it."""

import os
import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID, uuid4

from pytest_device.errors import ServiceError, StopDelayedError, TransportError, UnexpectedReplyError
from pytest_device.sessions.asked import Asked, body_of, ends_of, reason_of, stop_answer
from pytest_device.sessions.client import DeviceClient
from pytest_device.sessions.events import Event
from pytest_device.sessions.ledger import LIVE, Entry, Ledger
from pytest_device.sessions.models import Session
from pytest_device.sessions.reaper.link import Link
from pytest_device.sessions.reaper.service import Service
from pytest_device.sessions.replies import no_answer, read_session
from pytest_device.sessions.request import SessionRequest
from pytest_device.sessions.runs import OwnRun
from pytest_device.sessions.session_client import may_have_created
from pytest_device.spec import CLEANUP_MINUTES, DURATION_MAX_MINUTES

CREATE_SECONDS: Final = 120.0
"""How long to wait for the answer to a create call: all attempts of the reaper, and a little."""
STOP_SECONDS: Final = 5.0
"""How long a test's end waits for its stop; after that the reaper goes on with it beside the next test."""

_LOST: Final = {"sent": True, "refused": False, "body": ""}


@dataclass(frozen=True, slots=True)
class Terms:
    """How the sessions of a process are watched over."""

    detached: bool = True
    """By a reaper that outlives the process; else, and where none can be started, by a thread."""
    follow: tuple[int, ...] = ()
    """Processes whose end is the end of this one, too."""
    leaves_word: bool = False
    """Leave stopped sessions in the ledger, for the process that settles the run at its end."""
    stop_seconds: float = STOP_SECONDS


class Owner:
    """Creates, gets and stops sessions, so that they end with this process, however that ends.

    One for each process: a forked child makes its own. ``warn`` is told what makes the run less safe. The client is
    closed with the owner.
    """

    def __init__(
        self,
        client: DeviceClient,
        service: Service,
        *,
        vendor: str,
        run: OwnRun | None,
        terms: Terms,
        warn: Callable[[str], None],
    ) -> None:
        self.base_url = client.base_url
        self.pid = os.getpid()
        self._stop_seconds = terms.stop_seconds
        self._client, self._vendor, self._run, self._warn = client, vendor, run, warn
        self._asked: dict[str, Asked] = {}
        self._warned: set[str] = set()
        self._change = threading.Condition()
        self._ending = False
        self._link = Link(
            service,
            run.ledger.directory if run else None,
            processes=[self.pid, *terms.follow],
            leaves_word=terms.leaves_word,
            detached=terms.detached,
            hear=self._hear,
            again=self._again,
            warn=self._warn_once,
        )

    def create(self, request: SessionRequest) -> Session:
        """Create a session; an interrupt leaves it to the reaper to stop what comes of the call."""
        asked = self._intended(request)
        command = {"do": "create", "entry": asked.entry._asdict(), "body": request.to_wire(self._vendor)}
        try:
            self._send(asked, command)
            answer = self._next(asked, CREATE_SECONDS)
        except BaseException:
            self._unwant(asked)
            raise
        if answer is None:
            self._unwant(asked)
            raise TransportError(f"create: no answer within {CREATE_SECONDS:.0f} s", sent=True)
        asked.told = not asked.entry.session_id
        if answer["refused"]:  # there is nothing to remember, however often it is asked again
            del self._asked[asked.entry.intent]
        return self._created(answer, asked.entry.session_id)

    def get(self, session_id: UUID | str) -> Session:
        """Return the session as it is now."""
        return self._client.get(session_id)

    def stop(self, session_id: UUID | str) -> Session:
        """Stop a session; raises StopDelayedError when that takes longer and goes on beside what follows."""
        asked = self._of(session_id)
        if asked.last["what"] == "stopped":  # by an earlier call
            return stop_answer(asked.last)
        self._unwant(asked)
        until = time.monotonic() + self._stop_seconds
        while news := self._next(asked, until - time.monotonic()):
            if news["what"] in {"stopped", "refused"}:
                asked.told = True
                return stop_answer(news)
        raise StopDelayedError(reason_of(asked.last))

    def keep(self, session_id: UUID | str) -> None:
        """Leave a session to its own limits, on purpose."""
        asked = self._of(session_id)
        self._link.send({"do": "keep", "intent": asked.entry.intent})
        self._heard(asked, "kept")

    @property
    def can_keep_warm(self) -> bool:
        """Tell whether what is left up can be found again."""
        return self._run is not None

    def keep_warm(self, session_id: UUID | str, *, until: datetime, ends: datetime, asks: str) -> bool:
        """Leave a session up for whoever ``asks`` the same before ``until``; False where it cannot be left.

        It has run for its maximum duration when it ``ends``.
        """
        asked = self._of(session_id)
        if self._run is None:
            return False
        asked.entry = asked.entry._replace(asks=asks, until=_in_utc(until), ends=_in_utc(ends))
        seconds = (until - datetime.now(UTC)).total_seconds()
        self._link.send({"do": "warm", "entry": asked.entry._asdict(), "seconds": seconds})
        return self._heard(asked, "kept", "not-kept") == "kept"

    def take_over(self, entry: Entry, of: Ledger) -> bool:
        """Have a session that another owner has left up; False when it is somebody else's by now."""
        if self._run is None:
            return False
        entry = entry._replace(owner=self._run.owner, state=LIVE, until="", ends="", asks="")
        asked = self._asked[entry.intent] = Asked(entry)
        asked.is_claim = True
        try:
            self._send(asked, {"do": "claim", "entry": entry._asdict(), "of": of.directory})
            heard = self._heard(asked, "claimed", "gone")
        except BaseException:
            self._unwant(asked)
            raise
        if heard is None:
            self._unwant(asked)
        asked.is_claim = heard != "claimed"
        return not asked.is_claim

    def is_of_run(self, ledger: Ledger) -> bool:
        """Tell whether a ledger is that of the run which this owner takes part in."""
        return self._run is not None and self._run.ledger.directory == ledger.directory

    def end_warm(self) -> None:
        """Stop what this process has left up and nobody has taken over; ``close`` tells what came of it."""
        for asked in list(self._asked.values()):
            if self._keeps_warm(asked):
                asked.last, asked.told = {"what": "asked"}, False
                self._unwant(asked)

    def adopt(self, entry: Entry) -> None:
        """Stop a session that somebody else created; ``close`` tells what came of it."""
        self._unwant(self._adopted(entry))

    def leaves_unknown(self, error: BaseException) -> bool:
        """Tell whether a create call that ended so may have made a session that nobody will ever be able to name.

        Not so when it was interrupted: the reaper hears the answer.
        """
        return isinstance(error, ServiceError) and may_have_created(error)

    def pending(self) -> int:
        """Return how many sessions are not done with."""
        return sum(not asked.done for asked in list(self._asked.values()))

    def close(self, timeout_seconds: float) -> list[Event]:
        """Stop all that is left, side by side; return how each session ended of which nobody was told.

        What is not stopped after so many seconds is told as such; a detached reaper goes on with it.
        """
        self._ending = True
        self._link.send({"do": "end"})
        try:
            with self._change, suppress(KeyboardInterrupt):  # which cuts the wait only: the reaper goes on
                self._change.wait_for(self._is_over, timeout_seconds)
        finally:
            self._link.close()
            self._client.close()
            if self._run:
                self._run.leave()
        return [event for asked in list(self._asked.values()) if not asked.told for event in ends_of(asked)]

    def _is_over(self) -> bool:
        return not self.pending()

    def _intended(self, request: SessionRequest) -> Asked:
        longest = request.max_duration_minutes or DURATION_MAX_MINUTES
        entry = self._entry(f"{request.platform} {request.type}", request.name or "", longest + CLEANUP_MINUTES)
        asked = self._asked[entry.intent] = Asked(entry)
        return asked

    def _entry(self, label: str, name: str, minutes: int) -> Entry:
        owner = self._run.owner if self._run else ""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        return Entry(uuid4().hex, owner, self.base_url, label, name, now, minutes)

    def _of(self, session_id: UUID | str) -> Asked:
        for asked in list(self._asked.values()):  # another thread may create a session meanwhile
            if asked.entry.session_id == str(session_id):
                return asked
        return self._adopted(Entry.of_session(str(session_id)))

    def _adopted(self, entry: Entry) -> Asked:
        asked = self._asked[entry.intent] = Asked(entry)
        self._link.send({"do": "adopt", "entry": entry._asdict()})
        return asked

    def _send(self, asked: Asked, command: dict[str, Any]) -> None:
        for _ in range(2):  # a reaper that is gone has a successor
            self._link.await_ready()
            if self._link.send(command, sent=asked.note_sent):
                return

    def _keeps_warm(self, asked: Asked) -> bool:
        """Tell whether a session was left up here and nobody has claimed it."""
        return bool(self._run and asked.entry.until and self._run.ledger.keeps_warm(asked.entry.intent))

    def _unwant(self, asked: Asked) -> None:
        asked.wanted = False
        self._link.send({"do": "stop", "intent": asked.entry.intent})

    def _created(self, answer: dict[str, Any], session_id: str) -> Session:
        try:
            if "status" in answer:
                return read_session("create", answer["status"], body_of(answer), answer.get("retry_after"))
            raise no_answer("create", self.base_url, answer["problem"], sent=answer["sent"])
        except ServiceError as error:
            if not session_id:
                raise
            raise UnexpectedReplyError(str(error), session_id=session_id) from None

    def _heard(self, asked: Asked, *words: str) -> str | None:
        until = time.monotonic() + STOP_SECONDS
        while news := self._next(asked, until - time.monotonic()):
            if news["what"] in words:
                return str(news["what"])
        return None

    def _next(self, asked: Asked, seconds: float) -> dict[str, Any] | None:
        try:
            return asked.news.get(timeout=max(0.0, seconds))
        except queue.Empty:
            return None

    # The reaper's side, in the thread of the link.

    def _hear(self, told: dict[str, Any]) -> None:
        if told["what"] == "ledger":
            self._warn_once(
                f"the ledger cannot be written ({told['problem']}): a later run cannot stop what this one leaves"
            )
        asked = self._asked.get(told["intent"])
        if asked is None:
            return
        if told["what"] == "answer":
            asked.entry = asked.entry._replace(session_id=told["session_id"], page=told["page"])
        self._note(asked, told)

    def _note(self, asked: Asked, told: dict[str, Any]) -> None:
        asked.hear(told)
        with self._change:
            self._change.notify_all()

    def _again(self) -> Iterator[dict[str, Any]]:
        """Yield what a new reaper has to know, the former one having been killed."""
        for asked in list(self._asked.values()):
            if self._keeps_warm(asked):
                yield from self._again_warm(asked)
            elif not asked.done:
                yield from self._again_live(asked)
        if self._ending:
            yield {"do": "end"}

    def _again_live(self, asked: Asked) -> Iterator[dict[str, Any]]:
        if asked.is_claim and not (self._run and self._run.ledger.holds(asked.entry.intent)):
            self._note(asked, {"what": "gone"})
        elif asked.entry.session_id:
            yield {"do": "adopt", "entry": asked.entry._asdict()}
            if not asked.wanted:
                yield {"do": "stop", "intent": asked.entry.intent}
        elif asked.sent:
            self._note(asked, {"what": "answer", "problem": "the reaper was killed", **_LOST})

    def _again_warm(self, asked: Asked) -> Iterator[dict[str, Any]]:
        """Yield what lets a new reaper keep a session warm that nobody else claims in this moment, or stop it."""
        entry = asked.entry._replace(state=LIVE)
        yield {"do": "claim", "entry": entry._asdict(), "of": self._run.ledger.directory if self._run else ""}
        if asked.wanted:
            seconds = (datetime.fromisoformat(entry.until) - datetime.now(UTC)).total_seconds()
            yield {"do": "warm", "entry": entry._asdict(), "seconds": seconds}
        else:
            yield {"do": "stop", "intent": entry.intent}

    def _warn_once(self, text: str) -> None:
        if text not in self._warned:
            self._warned.add(text)
            self._warn(text)


def _in_utc(time: datetime) -> str:
    return time.astimezone(UTC).isoformat(timespec="seconds")
