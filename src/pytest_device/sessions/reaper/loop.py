"""The loop that decides: what to send for which session, until all of them are done with."""

import os
import selectors
import socket
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Final

from pytest_device.sessions.ledger import KEPT, LIVE, LOST, STOPPED, Entry, Ledger
from pytest_device.sessions.partial import page_in, says_stopped, session_id_in
from pytest_device.sessions.reaper.messages import Lines, line
from pytest_device.sessions.reaper.warmth import Warmth
from pytest_device.sessions.retry_policy import created_nothing
from pytest_device.spec import SESSIONS_PATH

CREATE_ATTEMPTS: Final = 3
"""How often a create call is tried that certainly never left."""
BACKOFF_SECONDS: Final = 0.5
"""Before the second attempt; doubled before each further one."""
BACKOFF_MOST_SECONDS: Final = 15.0
RETRY_AFTER_MOST_SECONDS: Final = 60.0
"""The longest pause before a stop is tried again, whatever the service says: the session goes on costing."""
COURIER_IDLE_SECONDS: Final = 5.0
LOOK_SECONDS: Final = 1.0
"""How often processes are looked for where the system cannot tell of their end."""

_CHUNK_BYTES: Final = 64 * 1024
_OK, _NOT_FOUND = 200, 404
_PASSING = frozenset({408, 425, 429})
_REFUSED = range(400, 500)


class _Life:
    """One session from its create command until it is done with."""

    def __init__(self, entry: Entry, deadline: float, body: Any = None, due: float | None = None) -> None:
        self.entry, self.deadline, self.body, self.due = entry, deadline, body, due
        self.attempts = 0
        self.wanted = True
        self.doubted = False
        """Whether a stop was answered with 404, which a gateway says too: then the session itself is asked for."""
        self.is_due = False
        """Whether its stop is the end that it was to have, of which nobody has to be told."""


class Watch:
    """Takes commands from one end, calls the service through a courier, tells what came of it.

    Commands are lines: ``{"do": "create", "entry": …, "body": …}``, ``{"do": "adopt", "entry": …}`` for a session that
    is there already, ``{"do": "stop", "intent": …}``, ``{"do": "keep", "intent": …}``, ``{"do": "end"}``;
    ``{"do": "warm", "entry": …, "seconds": …}`` to leave a session up for so long, and
    ``{"do": "claim", "entry": …, "of": …}`` to have one that another ledger's owner left up. When the other end closes,
    or one of the processes dies, everything that is alive is stopped; then it stays, if it ``lingers``, with what is
    kept warm until that has been claimed or its time is over.
    """

    def __init__(
        self,
        channel: socket.socket,
        courier: Callable[[], socket.socket],
        ledger: Ledger | None,
        *,
        token: str,
        processes: tuple[int, ...] = (),
        leaves_word: bool = False,
        lingers: bool = True,
    ) -> None:
        self._channel, self._hire, self._ledger, self._token = channel, courier, ledger, token
        self._leaves_word, self._lingers = leaves_word, lingers
        self._warmth = Warmth(ledger)
        self._lives: dict[str, _Life] = {}
        self._calls: dict[int, str] = {}
        self._number = 0
        self._alone = self._ending = False
        self._courier: socket.socket | None = None
        self._idle_since = 0.0
        self._commands, self._answers = Lines(), Lines()
        self._unsent = b""
        self._selector = selectors.DefaultSelector()
        self._pids: list[int] = []
        channel.setblocking(False)
        self._selector.register(channel, selectors.EVENT_READ, self._use_channel)
        for pid in processes:
            self._follow(pid)

    def run(self, lines: Lines | None = None, commands: Iterable[dict[str, Any]] = ()) -> None:
        """Return when the owner has said ``end`` or is gone and no session is left to be stopped.

        ``commands`` have been read already, by ``lines``, which may hold the beginning of another.
        """
        self._commands = lines or self._commands
        for command in commands:
            self._obey(command)
        while self._lives or not (self._ending or self._alone) or (self._lingers and self._warmth):
            self._send_due(time.monotonic())
            self._dismiss_idle(time.monotonic())
            for key, _ in self._selector.select(self._pause(time.monotonic())):
                key.data()
            if any(not _exists(pid) for pid in self._pids):
                self._left_alone()
            self._end_warm(self._warmth.over())
        self._channel.settimeout(LOOK_SECONDS)
        self._tell("", "ended")
        if self._courier:
            self._dismiss(self._courier)
        self._selector.close()

    # The owner: its commands, its end, what it is told.

    def _follow(self, pid: int) -> None:
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            self._left_alone()
        except (AttributeError, OSError):  # a system that has none
            self._pids.append(pid)
        else:
            self._selector.register(handle, selectors.EVENT_READ, lambda: self._ended(handle))

    def _ended(self, handle: int) -> None:
        self._selector.unregister(handle)
        os.close(handle)
        self._left_alone()

    def _use_channel(self) -> None:
        self._flush()
        try:
            data = self._channel.recv(_CHUNK_BYTES)
        except BlockingIOError:  # it was ready to be written to
            return
        except OSError:
            data = b""
        if not data:
            self._selector.unregister(self._channel)
            self._left_alone()
        for command in self._commands.feed(data):
            self._obey(command)

    def _left_alone(self) -> None:
        self._alone = True
        self._stop_all()

    def _stop_all(self) -> None:
        for life in self._lives.values():
            self._unwant(life)

    def _obey(self, command: dict[str, Any]) -> None:
        match command:
            case {"do": "create", "entry": values, "body": body}:
                life = self._begin(Entry(**values), body, due=time.monotonic())
                self._record(life.entry)
            case {"do": "adopt", "entry": values}:
                life = self._begin(Entry(**values))
            case {"do": "stop", "intent": intent}:
                self._end(intent)
            case {"do": "keep", "intent": intent} if intent in self._lives:
                self._record(self._lives.pop(intent).entry._replace(state=KEPT))
                self._tell(intent, "kept")
            case {"do": "warm", "entry": values, "seconds": seconds} if values["intent"] in self._lives:
                self._keep_warm(Entry(**values), seconds)
            case {"do": "claim", "entry": values, "of": directory}:
                self._claim(Entry(**values), Ledger(directory))
            case {"do": "end"}:
                self._ending = True
                self._stop_all()
            case _:  # of a session that is done with already
                pass

    def _end(self, intent: str) -> None:
        if intent in self._lives:
            self._unwant(self._lives[intent])
        elif intent not in self._warmth:  # it is done with already
            return
        elif entry := self._warmth.taken_back(intent):
            self._end_warm([entry])
        else:
            self._tell(intent, "gone")

    def _keep_warm(self, entry: Entry, seconds: float) -> None:
        try:
            self._warmth.keep(entry, seconds)
        except OSError as error:
            self._tell_damage(error)
            self._tell(entry.intent, "not-kept")
        else:
            del self._lives[entry.intent]
            self._tell(entry.intent, "kept")

    def _claim(self, entry: Entry, of: Ledger) -> None:
        if not self._warmth.claim(entry, of):
            self._tell(entry.intent, "gone")
            return
        self._begin(entry)
        self._record(entry)
        self._tell(entry.intent, "claimed")

    def _end_warm(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            life = self._begin(entry)
            life.is_due = True
            self._tell(entry.intent, "due")
            self._unwant(life)

    def _begin(self, entry: Entry, body: Any = None, due: float | None = None) -> _Life:
        life = self._lives[entry.intent] = _Life(entry, time.monotonic() + entry.minutes * 60, body, due)
        if self._ending or self._alone:
            self._unwant(life)
        return life

    def _unwant(self, life: _Life) -> None:
        if life.wanted and life.entry.session_id:
            life.attempts, life.due = 0, time.monotonic()
        life.wanted = False

    def _tell(self, intent: str, what: str, **values: Any) -> None:
        self._unsent += line(intent=intent, what=what, **values)
        self._flush()

    def _flush(self) -> None:
        """Send what the channel takes; an owner that is stopped (SIGSTOP) must not stop this loop."""
        try:
            while self._unsent:
                self._unsent = self._unsent[self._channel.send(self._unsent) :]
        except BlockingIOError:
            pass
        except OSError:  # nobody reads it any more
            self._unsent = b""
        if self._channel in self._selector.get_map():
            waiting = selectors.EVENT_WRITE if self._unsent else 0
            self._selector.modify(self._channel, selectors.EVENT_READ | waiting, self._use_channel)

    # The service: what is sent, and what its answers mean.

    def _pause(self, now: float) -> float | None:
        times = [life.due for life in self._lives.values() if life.due is not None]
        if self._courier is not None and not self._calls:
            times.append(self._idle_since + COURIER_IDLE_SECONDS)
        if self._pids:
            times.append(now + LOOK_SECONDS)
        if self._warmth:
            times.append(now + self._warmth.pause())
        return max(0.0, min(times) - now) if times else None

    def _send_due(self, now: float) -> None:
        for intent, life in list(self._lives.items()):
            if life.due is not None and life.due <= now:
                life.due = None
                if not life.entry.session_id and not life.wanted:
                    self._forget(life)  # was never sent, and is not wanted any more
                    values = {"problem": "it was not sent", "sent": False, "body": "", "refused": True}
                    self._tell(intent, "answer", session_id="", page="", **values)
                else:
                    self._call(intent, life)

    def _call(self, intent: str, life: _Life) -> None:
        life.attempts += 1
        self._number += 1
        self._calls[self._number] = intent
        method, path, body = "POST", SESSIONS_PATH, life.body
        if life.entry.session_id:
            method, path, body = "POST", f"{SESSIONS_PATH}/{life.entry.session_id}/stop", None
        if life.doubted:
            method, path = "GET", path.removesuffix("/stop")
        try:
            self._hired().sendall(line(call=self._number, method=method, path=path, body=body))
        except OSError as error:  # no process can be started, or the last one has just died
            self._hear({"call": self._number, "problem": str(error), "sent": False, "body": ""})

    def _hired(self) -> socket.socket:
        if self._courier is None:
            self._courier, self._answers = self._hire(), Lines()
            self._selector.register(self._courier, selectors.EVENT_READ, self._read_answers)
        return self._courier

    def _dismiss_idle(self, now: float) -> None:
        if self._courier and not self._calls and now - self._idle_since >= COURIER_IDLE_SECONDS:
            self._dismiss(self._courier)

    def _dismiss(self, courier: socket.socket) -> None:
        self._selector.unregister(courier)
        courier.close()
        self._courier = None

    def _read_answers(self) -> None:
        courier = self._hired()
        data = b""
        with suppress(OSError):
            data = courier.recv(_CHUNK_BYTES)
        if not data:
            self._dismiss(courier)
            for call in list(self._calls):
                self._hear({"call": call, "problem": "the process that sent it was killed", "sent": True, "body": ""})
        for answer in self._answers.feed(data):
            self._hear(answer)

    def _hear(self, answer: dict[str, Any]) -> None:
        self._idle_since = time.monotonic()
        life = self._lives.get(self._calls.pop(answer.pop("call")))
        if life is None:
            return
        if life.entry.session_id:
            self._hear_of_stop(life, answer)
        else:
            self._hear_of_create(life, answer)

    def _hear_of_create(self, life: _Life, answer: dict[str, Any]) -> None:
        body = answer["body"].encode("latin-1")
        refused = _is_refused(answer, body)
        if answer.get("sent") is False and life.wanted and life.attempts < CREATE_ATTEMPTS:
            life.due = time.monotonic() + _backoff(life.attempts)
            return
        session_id, page = ("", "") if refused else (session_id_in(body) or "", page_in(body))
        if self._token in page:
            page = ""
        if session_id:
            life.entry = life.entry._replace(session_id=session_id, page=page, state=LIVE)
            self._record(life.entry)
            if not life.wanted:
                life.attempts, life.due = 0, time.monotonic()
        elif refused:
            self._forget(life)
        else:  # the ledger goes on naming it, until its time is over
            del self._lives[life.entry.intent]
            self._record(life.entry._replace(state=LOST))
        self._tell(life.entry.intent, "answer", session_id=session_id, page=page, refused=refused, **answer)

    def _hear_of_stop(self, life: _Life, answer: dict[str, Any]) -> None:
        status, now = answer.get("status"), time.monotonic()
        if status == _NOT_FOUND and not life.doubted:
            life.doubted, life.due = True, now
            return
        if status == _NOT_FOUND or (
            status == _OK and says_stopped(answer["body"].encode("latin-1"), life.entry.session_id)
        ):
            self._forget(life)
            what = "stopped"
        elif status in _REFUSED and status not in _PASSING:
            del self._lives[life.entry.intent]
            what = "refused"
        elif now >= life.deadline:
            del self._lives[life.entry.intent]
            what = "gave-up"
        else:
            asked = min(answer.get("retry_after", 0.0), RETRY_AFTER_MOST_SECONDS)
            life.doubted, life.due = False, now + max(asked, _backoff(life.attempts))
            what = "delayed"
        self._tell(life.entry.intent, what, **answer)

    # The ledger.

    def _forget(self, life: _Life) -> None:
        """Remove what is done with; where nobody may be left to be told, leave word for whoever looks next."""
        entry = life.entry
        del self._lives[entry.intent]
        if not self._ledger:
            return
        leaves_word = (self._alone or self._leaves_word) and not life.is_due
        if leaves_word and entry.session_id and self._ledger.holds(entry.intent):
            self._record(entry._replace(state=STOPPED))
            return
        try:
            self._ledger.remove(entry.intent)
        except OSError as error:
            self._tell_damage(error)

    def _record(self, entry: Entry) -> None:
        if not self._ledger:
            return
        try:
            self._ledger.write(entry)
        except OSError as error:
            self._tell_damage(error)

    def _tell_damage(self, error: OSError) -> None:
        where = self._ledger.directory if self._ledger else ""
        self._tell("", "ledger", problem=f"{error.strerror or error} ({where})")  # the same of every file: said once


def _is_refused(answer: dict[str, Any], body: bytes) -> bool:
    """Tell whether a create call certainly made no session."""
    if "status" in answer:
        return created_nothing(answer["status"], body, answer.get("retry_after"))
    return answer["sent"] is False


def _backoff(attempts: int) -> float:
    return min(BACKOFF_SECONDS * 2.0 ** min(attempts - 1, 10), BACKOFF_MOST_SECONDS)


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
