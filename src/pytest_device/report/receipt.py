"""Counts a run's sessions, times and errors from its events."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple, TypeVar

from pytest_device.figures import counted, duration
from pytest_device.report.fold import Entry
from pytest_device.report.lines import (
    Incident,
    cause_of,
    color_of,
    group_incidents,
    line_of,
    normalize,
    with_pages,
)
from pytest_device.report.phase import TestPhase
from pytest_device.sessions.events import (
    Created,
    CreateUnknown,
    Event,
    Kept,
    KeptWarm,
    Note,
    Queued,
    Ready,
    SessionEvent,
    StartFailed,
    Stopped,
    TakenOver,
    Unused,
    detail_of,
    end_of,
)
from pytest_device.sessions.states import (
    OVER,
    RETRIABLE,
    State,
    final_state,
    is_left_by_all,
)

MAX_LISTED: Final = 10
"""Maximum number of listed items of one kind: more would push the test results off the screen."""
_MIN_QUEUED_SECONDS: Final = 1.0
"""Minimum queue time to show: shorter times are single lock attempts, not waits."""
_ALWAYS: Final = frozenset({"created", "stopped"})
"""Counts that are shown even if they are 0: that all sessions are stopped is what readers look for."""
_COUNT_NAMES: Final = {
    "taken_over": "taken over",
    "stopped": "stopped (confirmed)",
    "kept_warm": "kept warm",
    "start_failed": "failed to start",
}
_EventT = TypeVar("_EventT", bound=SessionEvent)


class Line(NamedTuple):
    """A line of the receipt, and its color if the output has colors."""

    text: str
    color: str = ""


class DeviceTime(NamedTuple):
    """Seconds of device time, and whether the true time may be shorter or longer."""

    seconds: float = 0.0
    may_be_shorter: bool = False
    may_be_longer: bool = False

    @classmethod
    def sum(cls, times: "Iterable[DeviceTime]") -> "DeviceTime":
        all_times = list(times)
        return cls(
            sum(time.seconds for time in all_times),
            any(time.may_be_shorter for time in all_times),
            any(time.may_be_longer for time in all_times),
        )

    @property
    def bound(self) -> str:
        """How the seconds limit the true time: ``exactly``, ``at most``, ``at least`` or ``about``."""
        if self.may_be_shorter and self.may_be_longer:
            return "about"
        if self.may_be_shorter:
            return "at most"
        if self.may_be_longer:
            return "at least"

        return "exactly"


class _Record:
    """The events of one session, in order of arrival."""

    def __init__(self) -> None:
        self.events: list[SessionEvent] = []

    def events_of(self, kind: type[_EventT]) -> list[_EventT]:
        return [event for event in self.events if isinstance(event, kind)]

    def _last(self, kind: type[_EventT]) -> _EventT | None:
        events = self.events_of(kind)
        return events[-1] if events else None

    @property
    def end(self) -> State | None:
        """Return how the session ended, None while nothing has tried to end it."""
        return final_state(self._ends(), self._users())

    def not_stopped(self) -> SessionEvent:
        """Return the event that best explains why it may be running: that of the newest stop, else the newest."""
        tried_to_stop = [event for event in self.events if end_of(event) in RETRIABLE]
        if tried_to_stop:
            return tried_to_stop[-1]

        return self.events[-1]

    def device_time(self) -> "DeviceTime":
        """Return how long the run used it: each process reports its own time, except in the last stop.

        If all processes had kept it warm before, that stop reports the whole time since its creation.
        """
        times = [
            DeviceTime(event.used_seconds or 0.0) for event in self.events_of(KeptWarm)
        ]
        stopped = self._last(Stopped)
        if stopped:
            last_stop = _stopped_time(stopped)
            if not is_left_by_all(self._ends(), self._users()):
                times.append(last_stop)
            elif self.events_of(Created):
                times = [last_stop]
            # Else an earlier run created it: that stop would count the time of that run, too.

        is_open = self.end not in {State.STOPPED, State.WARM, State.ATTACHED}
        return DeviceTime.sum([*times, DeviceTime(may_be_longer=is_open)])

    def waited_seconds(self) -> float:
        """Return the seconds that the run waited for it, not counting its start in the background."""
        usable = self._last(Ready) or self._last(TakenOver)
        # It was ready before a test asked for it, or no test did.
        if usable and usable.session.late_seconds is not None:
            return 0.0
        if self._last(Unused):
            return 0.0

        first = self.events[0].session
        last = (usable or self.events[-1]).session
        in_background = 0.0
        if first.late_seconds is not None:
            in_background = first.waited_seconds + first.late_seconds

        return max(0.0, last.waited_seconds - in_background)

    def _ends(self) -> list[State]:
        ends = map(end_of, self.events)
        return [end for end in ends if end is not None]

    def _users(self) -> int:
        """Return how many processes used it."""
        return len(self.events_of(Created)) + len(self.events_of(TakenOver))


class Receipt:
    """Sessions created, confirmed as stopped, unknown; seconds waited and run; infrastructure errors.

    A fold over events; ``states`` decides how each session ended.
    """

    def __init__(self, *, has_pages: bool = True) -> None:
        self._has_pages = has_pages
        """Whether session pages still exist when the receipt is read."""
        self.incidents: list[Incident] = []
        """Errors that are not the tests' own."""
        self.lost: list[CreateUnknown] = []
        """Create calls whose response was lost."""
        self._records: dict[str, _Record] = {}
        """By session ID."""
        self._earlier: set[str] = set()
        """IDs of sessions that only earlier runs used and this run stopped."""
        self._queued_seconds = 0.0
        """Seconds that tests waited for a slot, before a session was requested."""
        self._not_started: list[StartFailed] = []
        """Sessions that failed to start."""
        self._notes: dict[str, None] = {}
        """Notes about the whole run, each once."""

    def add(self, entry: Entry, /) -> None:
        match entry:
            case Incident():
                self.incidents.append(entry)
            case Note():
                self._notes[entry.text] = None
                self._earlier.add(entry.session_id)
            case Queued():
                self._queued_seconds += entry.waited_seconds
            case CreateUnknown():
                self.lost.append(entry)
            case TestPhase():
                pass
            case _ if self._has_pages:
                self._add(entry)
            case _:
                self._add(replace(entry, session=replace(entry.session, url="")))

    def _add(self, event: SessionEvent) -> None:
        if not event.session.session_id:
            return

        record = self._records.setdefault(event.session.session_id, _Record())
        record.events.append(event)
        if isinstance(event, StartFailed):
            self._not_started.append(event)

    @property
    def has_sessions(self) -> bool:
        """Return whether a session was created, or may have been."""
        return bool(self._records or self.lost)

    def not_stopped(self) -> list[SessionEvent]:
        """Return the newest event of each session that is neither confirmed as stopped nor deliberately kept."""
        return [
            record.not_stopped()
            for record in self._records.values()
            if record.end not in OVER
        ]

    def settled(self) -> set[str]:
        """Return the IDs of sessions whose end is known, and the names of those with unknown IDs."""
        over = {key for key, record in self._records.items() if record.end in OVER}
        return over | {event.name for event in self.lost}

    def lines(self, *, with_causes: bool = True) -> Iterator[Line]:
        """Yield the receipt, nothing if no session was requested and nothing went wrong.

        Without ``with_causes``, errors only name their tests: the output has the errors themselves.
        """
        not_stopped = self.not_stopped()
        kept = self._ended_as(State.KEPT, Kept)
        if self.has_sessions:
            color = "green"
            if not_stopped or self.lost:
                color = "red"
            elif kept or self._not_started:
                color = "yellow"

            yield Line(self._counted(), color)

        yield from _of_events([*kept, *self._ended_as(State.WARM, KeptWarm)])

        for event in not_stopped:
            yield Line(_not_stopped(event), "red")

        yield from _of_events(self.lost)

        groups = group_incidents(self.incidents, self._not_started)
        # The others are listed with the error that they have caused.
        failed = [
            _not_started(event)
            for event in self._not_started
            if normalize(event.reason) not in groups
        ]
        yield from listed(failed, "yellow")

        for note in self._notes:
            yield Line(note)

        for verdict, count in self._errors().items():
            tests = "not a test failure" if count == 1 else "not test failures"
            yield Line(f"{counted(count, f'{verdict} error')} ({tests})", "red")
            lines = [
                group.line(with_cause=with_causes)
                for group in groups.values()
                if group.incidents[0].verdict == verdict
            ]
            yield from listed(lines, "red")

    def to_json(self) -> dict[str, Any]:
        """Return the receipt as plain values."""
        ran = self.device_time()

        return {
            **self._numbers(),
            "not_stopped": [
                {"id": event.session.session_id, "page": event.session.url}
                for event in self.not_stopped()
            ],
            "device_seconds": ran.seconds,
            "device_seconds_bound": ran.bound,
            "waited_seconds": self._waited_seconds(),
            "queued_seconds": self._queued_seconds,
            "errors": dict(self._errors()),
        }

    def device_times(self) -> Mapping[str, DeviceTime]:
        """Return how long each session ran that this run used, by session ID."""
        return {
            session_id: record.device_time()
            for session_id, record in self._records.items()
            if session_id not in self._earlier
        }

    def ends(self) -> Mapping[str, State | None]:
        """Return how each session ended by its ID, None while nothing has tried to end it."""
        return {session_id: record.end for session_id, record in self._records.items()}

    def waiting_seconds(self) -> float:
        """Return how long the run waited for sessions and slots."""
        return self._waited_seconds() + self._queued_seconds

    def _counted(self) -> str:
        ran = self.device_time()
        bound = "" if ran.bound == "exactly" else f"{ran.bound} "
        numbers = [
            f"{number} {_COUNT_NAMES.get(name, name)}"
            for name, number in self._numbers().items()
            if number or name in _ALWAYS
        ]

        times = [
            f"{bound}{duration(ran.seconds)} of device time",
            f"{duration(self._waited_seconds())} waiting for devices",
        ]
        if self._queued_seconds >= _MIN_QUEUED_SECONDS:
            times.append(f"{duration(self._queued_seconds)} queued")

        return f"devices: {', '.join(numbers)}; {', '.join(times)}"

    def _own(self) -> list[_Record]:
        """Return the records of sessions that this run used."""
        return [
            record
            for session_id, record in self._records.items()
            if session_id not in self._earlier
        ]

    def _numbers(self) -> dict[str, int]:
        own = self._own()
        all_records = self._records.values()
        attached = sum(record.end is State.ATTACHED for record in own)
        taken_over = sum(
            bool(record.events_of(TakenOver)) and not record.events_of(Created)
            for record in all_records
        )

        return {
            "created": len(own) - taken_over - attached,
            "taken_over": taken_over,
            "attached": attached,
            "stopped": sum(record.end is State.STOPPED for record in own),
            "gone": sum(record.end is State.GONE for record in own),
            "kept": len(self._ended_as(State.KEPT, Kept)),
            "kept_warm": len(self._ended_as(State.WARM, KeptWarm)),
            "unknown": len(self.lost),
            "start_failed": len(self._not_started),
            "unused": sum(bool(record.events_of(Unused)) for record in all_records),
        }

    def _ended_as(self, end: State, kind: type[_EventT]) -> list[_EventT]:
        """Return the last event of a kind of each session with this end."""
        return [
            record.events_of(kind)[-1]
            for record in self._records.values()
            if record.end is end
        ]

    def _errors(self) -> Counter[str]:
        return Counter(incident.verdict for incident in self.incidents)

    def device_time(self) -> DeviceTime:
        """Return how long the sessions ran, by the service's timestamps."""
        # A session whose create call has no response may be running.
        of_lost = DeviceTime(may_be_longer=bool(self.lost))
        return DeviceTime.sum(
            [*(record.device_time() for record in self._own()), of_lost]
        )

    def _waited_seconds(self) -> float:
        """Return how long the run waited for the sessions."""
        return sum(record.waited_seconds() for record in self._own())


def _stopped_time(event: Stopped) -> DeviceTime:
    if event.running_seconds is None and event.max_running_seconds is not None:
        return DeviceTime(event.max_running_seconds, may_be_shorter=True)

    return DeviceTime(event.running_seconds or 0.0)


def _not_started(event: StartFailed) -> str:
    session = event.session
    return with_pages(
        f"failed to start: {session.label}: {cause_of(event)}", [session.url]
    )


def _not_stopped(event: SessionEvent) -> str:
    session = event.session
    cost = ""
    if session.minutes:
        cost = f"it may be billed for up to {session.minutes} more minutes"

    facts = "; ".join(filter(None, (detail_of(event), cost)))
    stop = f"pytest-device stop {session.session_id}"

    return with_pages(
        f"{session.label}: NOT CONFIRMED AS STOPPED: {facts}", [session.url, stop]
    )


def _of_events(events: Sequence[Event]) -> Iterator[Line]:
    for event in events:
        yield Line(line_of(event), color_of(event))


def listed(lines: Sequence[str], color: str) -> Iterator[Line]:
    """Yield the first lines of one kind, and how many there are more."""
    for text in lines[:MAX_LISTED]:
        yield Line(text, color)
    if len(lines) > MAX_LISTED:
        yield Line(f"and {len(lines) - MAX_LISTED} more", color)
