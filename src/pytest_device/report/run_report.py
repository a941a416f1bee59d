"""The report of a run as data: its tests with their attempts, its sessions, causes and minutes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pytest_device.figures import counted
from pytest_device.report.bill import Bill, Cost, Minutes, cost_of
from pytest_device.report.fold import Entry
from pytest_device.report.lines import Incident, group_incidents
from pytest_device.report.phase import (
    CRASH,
    REPEATED,
    TestPhase,
    deciding_phase,
    outcome_of,
    sessions_of,
)
from pytest_device.report.receipt import Line, Receipt, listed
from pytest_device.settings import Settings

_MIN_MINUTES: Final = 0.05
"""Minimum of a part of the minutes to show: less would be 0.0."""
VERSION: Final = 1
"""Incremented with each change that would make readers of an older version misread ``device-run.json``."""


@dataclass(slots=True)
class _Attempt:
    """The phases of one attempt at a test, in order."""

    number: int
    phases: list[TestPhase] = field(default_factory=list[TestPhase])

    @property
    def outcome(self) -> str:
        return outcome_of(self.phases)

    @property
    def verdict(self) -> str:
        return deciding_phase(self.phases).verdict

    @property
    def error(self) -> str:
        return deciding_phase(self.phases).error

    @property
    def is_repeated(self) -> bool:
        return self.outcome in REPEATED

    def to_json(self) -> dict[str, Any]:
        """Return the attempt as plain values."""
        seconds = sum(phase.seconds for phase in self.phases)
        waited_seconds = sum(phase.waited_seconds for phase in self.phases)

        return {
            "attempt": self.number,
            "outcome": self.outcome,
            "verdict": self.verdict or None,
            "error": self.error or None,
            "seconds": round(seconds, 3),
            "waited_seconds": round(waited_seconds, 3),
            "sessions": sessions_of(self.phases),
        }


class RunReport:
    """A fold over the run: everything that ``device-run.json`` contains.

    ``receipt`` is the receipt of the same run, which gets each entry first.
    """

    def __init__(self, receipt: Receipt, settings: Settings) -> None:
        self._receipt = receipt
        self._settings = settings
        self._tests: dict[str, dict[int, _Attempt]] = {}
        """Attempts by node ID and number."""
        self._before_crash: dict[str, int] = {}
        """Number of attempts of a test until its worker crashed: the next worker counts them anew."""
        self._bill = Bill()

    def add(self, entry: Entry, /) -> None:
        """Add an event, an error or a phase of a test."""
        match entry:
            case TestPhase():
                self._attempt_of(entry).phases.append(entry)
            # The receipt has it.
            case Incident():
                pass
            case _:
                self._bill.add_event(entry)

    def _attempt_of(self, phase: TestPhase) -> _Attempt:
        """Return the attempt that a phase belongs to."""
        attempts = self._tests.setdefault(phase.test, {})
        earlier = self._before_crash.get(phase.test, 0)
        if phase.when == CRASH:
            # The worker may not have reported the setup of this attempt.
            number = max([*attempts, earlier + 1])
            self._before_crash[phase.test] = number
        else:
            number = earlier + phase.attempt

        return attempts.setdefault(number, _Attempt(number))

    def minutes(self) -> Minutes:
        """Return where the device minutes went."""
        bill = self._complete_bill()
        receipt = self._receipt
        return bill.minutes(
            receipt.device_times(),
            receipt.device_time().bound,
            receipt.waiting_seconds(),
        )

    def cost(self) -> Cost | None:
        """Return what the run cost, None without a price; raises ValueError if the price is not a number."""
        price = self._settings.minute_price
        if price is None:
            return None

        minutes = self._bill.paid_by_session(self._receipt.device_times())
        return cost_of(minutes, price)

    def _complete_bill(self) -> Bill:
        """Return the bill with the use by tests.

        It is counted anew each time: whether an attempt was repeated is known only at its end.
        """
        bill = self._bill
        for use in bill.uses.values():
            use.tests.clear()
            use.by_owner.clear()
            use.used_seconds = 0.0
            use.retried_seconds = 0.0

        for attempts in self._tests.values():
            for attempt in attempts.values():
                bill.add_attempt(attempt.phases, is_retried=attempt.is_repeated)

        return bill

    def lines(self) -> Iterator[Line]:
        """Yield the retried and quarantined tests and the minutes for the summary."""
        yield from listed(list(self._retried()), "yellow")
        yield from listed(list(self._quarantined()), "yellow")
        yield from self.minute_lines()

    def minute_lines(self) -> Iterator[Line]:
        """Yield where the minutes went, and what they cost; nothing if there was no session."""
        if not self._receipt.has_sessions:
            return

        minutes = self.minutes()
        yield Line(_line_of(minutes))
        yield from _shares(minutes)

        budget = self._settings.budget_minutes
        if budget is not None:
            color = "red" if minutes.paid >= budget else ""
            # A budget of seconds would always seem to be unused.
            paid = f"{minutes.paid:.1f}" if budget >= 1 else f"{minutes.paid:.2g}"
            yield Line(f"budget: {paid} of {budget:g} minutes used", color)

        yield from self._cost_line()

    def _cost_line(self) -> Iterator[Line]:
        try:
            cost = self.cost()
        except ValueError as error:
            yield Line(str(error), "yellow")
        else:
            if cost is not None:
                yield Line(f"cost: {cost}")

    def _retried(self) -> Iterator[str]:
        for test, attempts in self._tests.items():
            retried = [
                attempt for attempt in attempts.values() if attempt.outcome == "retried"
            ]
            if not retried:
                continue

            tries = counted(len(attempts), "attempt")
            last = attempts[max(attempts)].outcome
            yield f"retried: {test}: {retried[0].error} ({tries}, the last one: {last})"

    def _quarantined(self) -> Iterator[str]:
        for test, attempts in self._tests.items():
            last = attempts[max(attempts)]
            if last.outcome == "quarantined":
                yield f"quarantined: {test}: {last.error}"

    def to_json(self, run: str, shard: str = "") -> dict[str, Any]:
        """Return the report as plain values; docs/device-run.md describes them."""
        minutes = self.minutes()
        try:
            cost = self.cost()
        # A line of the summary says so.
        except ValueError:
            cost = None

        causes = group_incidents(self._receipt.incidents, []).values()

        return {
            "version": VERSION,
            "run": run,
            "shard": shard or None,
            "tests": [
                _test_to_json(test, attempts) for test, attempts in self._tests.items()
            ],
            "sessions": list(self._sessions()),
            "causes": [_cause_to_json(group.incidents) for group in causes],
            "minutes": minutes.to_json(),
            "budget_minutes": self._settings.budget_minutes,
            "cost": None if cost is None else cost.to_json(),
            "receipt": self._receipt.to_json(),
        }

    def _sessions(self) -> Iterator[Mapping[str, Any]]:
        times = self._receipt.device_times()
        ends = self._receipt.ends()
        for use in self._bill.uses.values():
            time = times.get(use.session_id)
            yield {
                "id": use.session_id,
                "platform": use.platform,
                "type": use.label.partition(" ")[2],
                "page": use.page or None,
                "end": ends.get(use.session_id),
                "boot_seconds": round(use.boot_seconds, 3),
                "running_seconds": None if time is None else round(time.seconds, 3),
                "running_bound": None if time is None else time.bound,
                "taken_over": use.is_taken_over,
                "attached": use.is_attached,
                "tests": sorted(use.tests),
            }


def _cause_to_json(incidents: Sequence[Incident]) -> dict[str, Any]:
    first = incidents[0]
    # A test that is run again may meet the cause again.
    tests = dict.fromkeys(incident.test for incident in incidents)

    return {"verdict": first.verdict, "error": first.text, "tests": list(tests)}


def _test_to_json(test: str, attempts: Mapping[int, _Attempt]) -> dict[str, Any]:
    ordered = [attempts[number] for number in sorted(attempts)]
    last = ordered[-1]

    return {
        "test": test,
        "outcome": last.outcome,
        "verdict": last.verdict or None,
        "owner": last.phases[0].owner or None,
        "attempts": [attempt.to_json() for attempt in ordered],
    }


def _line_of(minutes: Minutes) -> str:
    bound = "" if minutes.bound == "exactly" else f"{minutes.bound} "
    wasted = _parts(
        boot=minutes.boot,
        idle=minutes.idle,
        retried=minutes.retried,
        left_over=minutes.left_over,
    )
    line = f"device minutes: {bound}{minutes.paid:.1f} paid, of these {minutes.wasted:.1f} wasted{wasted}"

    return f"{line}; {minutes.waited:.1f} waited"


def _shares(minutes: Minutes) -> Iterator[Line]:
    """Yield the minutes by platform and owner, if there are several."""
    if len(minutes.by_platform) > 1:
        yield Line(f"by platform: {_named(**minutes.by_platform)}")

    if any(minutes.by_owner):
        owners = {name or "no owner": value for name, value in minutes.by_owner.items()}
        shares = ", ".join(f"{name} {value:.1f}" for name, value in owners.items())
        yield Line(f"by owner: {shares}")


def _parts(**minutes: float) -> str:
    """Return the parts of a sum in parentheses, without those that are too short to show."""
    shown = {name: value for name, value in minutes.items() if value >= _MIN_MINUTES}
    return f" ({_named(**shown)})" if shown else ""


def _named(**minutes: float) -> str:
    return ", ".join(
        f"{name.replace('_', ' ')} {value:.1f}" for name, value in minutes.items()
    )
