"""Where the device minutes of a run went, and what they cost."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from pytest_device.options import Options
from pytest_device.report.phase import TestPhase, sessions_of
from pytest_device.report.receipt import DeviceTime
from pytest_device.sessions.events import (
    Attached,
    Created,
    Event,
    Note,
    Queued,
    Ready,
    SessionEvent,
    StartFailed,
    TakenOver,
)

_MINUTE: Final = 60.0


@dataclass(slots=True)
class SessionUse:
    """One session of a run: what it cost in seconds, and what for."""

    session_id: str
    label: str
    """Platform and type."""
    page: str = ""
    boot_seconds: float = 0.0
    """From the create call until it was ready or failed."""
    is_created: bool = False
    """Whether this run created it: one of its workers may also have taken it over, when another had kept it warm."""
    is_taken_over: bool = False
    is_attached: bool = False
    tests: set[str] = field(default_factory=set[str])
    used_seconds: float = 0.0
    retried_seconds: float = 0.0
    """The part of ``used_seconds`` of attempts that were repeated."""
    by_owner: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    """Used seconds, by the tests' owners."""

    @property
    def platform(self) -> str:
        return self.label.partition(" ")[0]

    @property
    def paid_boot_seconds(self) -> float:
        """Its boot, if this run has paid for it: that of a session that was already running is another's."""
        return self.boot_seconds if self.is_created else 0.0


@dataclass(frozen=True, slots=True)
class Minutes:
    """Device minutes of a run. ``paid`` is what the account may be billed: from the create call until the stop.

    The service's document does not say whether a boot is billed, so ``paid`` includes it. ``used`` and the wasted
    ones add up to ``paid``: ``boot``, ``idle`` (between and around tests), ``retried`` (attempts that were repeated) and
    ``left_over`` (sessions that no test used). ``waited`` is the wait of tests for devices.
    """

    paid: float = 0.0
    bound: str = "exactly"
    boot: float = 0.0
    idle: float = 0.0
    retried: float = 0.0
    left_over: float = 0.0
    waited: float = 0.0
    by_platform: Mapping[str, float] = field(default_factory=dict[str, float])
    by_owner: Mapping[str, float] = field(default_factory=dict[str, float])

    @property
    def wasted(self) -> float:
        return self.boot + self.idle + self.retried + self.left_over

    def to_json(self) -> dict[str, Any]:
        """Return the minutes as plain values, rounded to a thousandth."""
        return {
            "paid": _rounded(self.paid),
            "paid_bound": self.bound,
            "used": _rounded(self.paid - self.wasted),
            "wasted": _rounded_all(
                boot=self.boot,
                idle=self.idle,
                retried=self.retried,
                left_over=self.left_over,
            ),
            "waited": _rounded(self.waited),
            "by_platform": _rounded_all(**self.by_platform),
            "by_owner": {
                owner: _rounded(minutes) for owner, minutes in self.by_owner.items()
            },
        }


class Bill:
    """Adds up the use of each session, from events and from the phases of tests."""

    def __init__(self) -> None:
        self.uses: dict[str, SessionUse] = {}
        """By session ID."""

    def add_event(self, event: Event) -> None:
        if isinstance(event, Note | Queued):
            return

        use = self._use_in(event)
        if use is None:
            return

        session = event.session
        use.page = session.url or use.page

        match event:
            case Created():
                use.is_created = True
            case TakenOver():
                use.is_taken_over = True
            case Attached():
                use.is_attached = True
            case Ready(boot_seconds=seconds) if seconds is not None:
                use.boot_seconds = seconds
            # Without the service's timestamps, the boot took as long as this process waited.
            case Ready() | StartFailed():
                use.boot_seconds = session.waited_seconds
            case _:
                pass

    def _use_in(self, event: SessionEvent) -> SessionUse | None:
        """Return the use of an event's session; None for one of an earlier run that this run only stopped."""
        session = event.session
        is_begun = isinstance(event, Created | TakenOver | Attached)
        if is_begun and session.session_id and session.session_id not in self.uses:
            use = SessionUse(session.session_id, session.label)
            self.uses[session.session_id] = use

        return self.uses.get(session.session_id)

    def add_attempt(self, phases: Sequence[TestPhase], *, is_retried: bool) -> None:
        """Count an attempt at a test for each session that it had, with its whole time: all its devices run that long."""
        seconds = sum(phase.seconds for phase in phases)

        for session_id in sessions_of(phases):
            use = self.uses.get(session_id)
            if use is None:
                continue

            use.tests.add(phases[0].test)
            use.used_seconds += seconds
            use.by_owner[phases[0].owner] += seconds
            if is_retried:
                use.retried_seconds += seconds

    def minutes(
        self, times: Mapping[str, DeviceTime], bound: str, waited_seconds: float
    ) -> Minutes:
        """Return the sums.

        Arguments:
            times: The running times by session ID, by the service's timestamps.
            bound: How their sum limits the true time, such as ``at least`` if a session without a known ID may be running.
            waited_seconds: How long tests waited for devices.
        """
        sums: dict[str, float] = defaultdict(float)
        by_platform: dict[str, float] = defaultdict(float)
        by_owner: dict[str, float] = defaultdict(float)

        for use in self.uses.values():
            running = _running_seconds(use, times)
            boot = use.paid_boot_seconds
            paid = boot + running

            for name, seconds in _split(use, running):
                sums[name] += seconds

            sums["boot"] += boot
            sums["paid"] += paid

            by_platform[use.platform] += paid / _MINUTE
            for owner, share in _shares(use):
                by_owner[owner] += share * paid / _MINUTE

        return Minutes(
            **{name: seconds / _MINUTE for name, seconds in sums.items()},
            waited=waited_seconds / _MINUTE,
            bound=bound,
            by_platform=by_platform,
            by_owner=by_owner,
        )

    def paid_by_session(self, times: Mapping[str, DeviceTime]) -> Iterator[float]:
        """Yield the minutes of each session that the run pays for."""
        for use in self.uses.values():
            # Whoever created it pays for it.
            if use.is_attached:
                continue

            yield (use.paid_boot_seconds + _running_seconds(use, times)) / _MINUTE


def _running_seconds(use: SessionUse, times: Mapping[str, DeviceTime]) -> float:
    time = times.get(use.session_id)
    return time.seconds if time else 0.0


def _split(use: SessionUse, running: float) -> Iterator[tuple[str, float]]:
    """Yield the wasted parts of a session's running time."""
    if not use.tests:
        yield "left_over", running
        return

    # A test also takes time before its device is ready and after it has stopped.
    used = min(use.used_seconds, running)
    yield "idle", running - used
    yield "retried", min(use.retried_seconds, used)


def _shares(use: SessionUse) -> Iterator[tuple[str, float]]:
    """Yield each owner with the share of a session that its tests used; an empty owner for what has none."""
    if not use.used_seconds:
        yield "", 1.0
        return

    for owner, seconds in use.by_owner.items():
        yield owner, seconds / use.used_seconds


@dataclass(frozen=True, slots=True)
class Cost:
    """What a run's minutes cost at a price per minute."""

    price: Decimal
    minutes: Decimal

    @property
    def amount(self) -> Decimal:
        return self.minutes * self.price

    def to_json(self) -> dict[str, str]:
        """Return the cost as texts: JSON's numbers are not exact."""
        return {
            "amount": f"{self.amount:.4f}",
            "minutes": f"{self.minutes:.4f}",
            "price": str(self.price),
        }

    def __str__(self) -> str:
        minutes = f"{self.minutes:.2f} minutes at {self.price}"
        return f"{self.amount:.2f} ({minutes}, boots included)"


def cost_of(minutes: Iterable[float], price: str) -> Cost:
    """Return the cost of sessions' minutes.

    Arguments:
        minutes: The minutes of each session.
        price: The price of a minute, as the setting has it.

    Raises:
        ValueError: The price is not a number; the message has the rule and an example.

    >>> print(cost_of([1.5, 2.5], "0.05"))
    0.20 (4.00 minutes at 0.05, boots included)
    """
    problem = (
        f"{Options.minute_price.flag}={price!r} must be a number that is not negative, for example 0.05: "
        "no cost is shown"
    )

    try:
        minute_price = Decimal(price)
    except InvalidOperation:
        raise ValueError(problem) from None

    if not minute_price.is_finite() or minute_price < 0:
        raise ValueError(problem)

    # By its text, a float is the decimal that the report shows, without the error of its binary form.
    total = sum((Decimal(str(of_session)) for of_session in minutes), Decimal(0))
    return Cost(minute_price, total)


def _rounded(minutes: float) -> float:
    return round(minutes, 3)


def _rounded_all(**minutes: float) -> dict[str, float]:
    return {name: _rounded(value) for name, value in minutes.items()}
