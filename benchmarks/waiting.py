"""Delay and number of requests until a ready session is noticed: learned polling compared with fixed polling.

Runs the plugin's ``lease`` on a fake clock that only its pauses advance, over a service whose devices boot for 10 to
180 s. Device configurations differ in the distribution of their boot times. Each is measured with several histories
of earlier boots from the same distribution, and both policies wait for the same new boots. Exits with 1 if a bar is
missed.
"""

import argparse
import math
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Final
from uuid import UUID

# Its own modules, however it is started.
sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.parallel import results

from pytest_device.sessions.lease import lease
from pytest_device.sessions.lifecycle import WaitPolicy
from pytest_device.sessions.models import Session
from pytest_device.sessions.request import SessionRequest
from pytest_device.spec import Status
from pytest_device.testing import FakeClock

SHORTEST_SECONDS: Final = 10.0
LONGEST_SECONDS: Final = 180.0
PAST: Final = (0, 1, 5, 10, 19, 20, 50)
"""How many past boots are known."""
ENOUGH: Final = 20
DELAY_BAR: Final = 0.72
REQUESTS_BAR: Final = 1.0
"""From ``ENOUGH`` past boots on, over the fixed pace."""
BEFORE_BAR: Final = 1.05
"""Of both, with fewer."""

Law = Callable[[Random], float]


def lognormal(median: float, spread: float) -> Law:
    """Return boots whose logarithms are spread so far."""
    return lambda random: median * math.exp(random.gauss(0, spread))


def either(one: Law, other: Law, share: float) -> Law:
    """Return boots of two kinds: a device that is at hand, or one that has to be made."""
    return lambda random: (one if random.random() < share else other)(random)


KINDS: Final[Mapping[str, Law]] = {
    **{
        f"lognormal {spread}, median {m} s": lognormal(m, spread)
        for spread in (0.2, 0.3, 0.4)
        for m in (15, 40, 100)
    },
    "two peaks, 20 s and 80 s": either(lognormal(20, 0.15), lognormal(80, 0.15), 0.6),
    "two peaks, 40 s and 70 s": either(lognormal(40, 0.15), lognormal(70, 0.15), 0.5),
    "40 s, then 20 s more on average": lambda random: 40 + random.expovariate(1 / 20),
    "gamma, mean 60 s": lambda random: random.gammavariate(8, 60 / 8),
    "anything from 30 to 90 s": lambda random: random.uniform(30, 90),
    "anything from 10 to 180 s": lambda random: random.uniform(
        SHORTEST_SECONDS, LONGEST_SECONDS
    ),
}

REQUEST: Final = SessionRequest.from_arguments(
    app_id="0b8e4d52-9c1f-4f3a-a7d6-5e2c8b9f1043",
    platform="android",
    type="appium",
    max_duration_minutes=60,
)
NEW: Final = Session.from_wire(
    {
        "id": "3f2a9d10-5b7c-4e8f-9a1b-2c3d4e5f6a7b",
        "appId": str(REQUEST.app_id),
        "url": "https://devices.example/sessions/1",
        "jobRunId": "a-job",
        "type": "appium",
        "platform": "android",
        "status": "new",
        "maxDurationMinutes": 60,
        "createdAt": "2026-01-01T00:00:00Z",
        "updatedAt": "2026-01-01T00:00:00Z",
    }
)
CONFIG: Final[dict[str, object]] = {
    "appiumUrl": "https://appium.example",
    "capabilities": {},
}
READY: Final = Session.from_wire(
    NEW.model_dump(mode="json", by_alias=True)
    | {"status": "in-progress", "remoteConfig": CONFIG}
)
STOPPED: Final = NEW.model_copy(update={"status": Status.STOPPED})


class Service:
    """One session that boots for so long."""

    base_url = "https://devices.example"

    def __init__(self, clock: FakeClock, boot_seconds: float) -> None:
        self._clock, self._ready_at = clock, clock() + boot_seconds
        self.looks = 0

    def create(
        self,
        request: SessionRequest,  # noqa: ARG002  # there is but one
        *,
        timeout_seconds: float | None = None,  # noqa: ARG002  # there is but one
    ) -> Session:
        """Begin to boot."""
        return NEW

    def get(self, session_id: UUID | str) -> Session:  # noqa: ARG002
        """Count a poll."""
        self.looks += 1
        return NEW if self._clock() < self._ready_at else READY

    def stop(self, session_id: UUID | str) -> Session:  # noqa: ARG002
        """Return a stopped session."""
        return STOPPED

    def leaves_unknown(self, error: BaseException) -> bool:  # noqa: ARG002
        """Return no: each answer arrives."""
        return False


@dataclass(frozen=True, slots=True)
class Wait:
    """How late a session was noticed, in seconds, and after how many polls."""

    delay: float
    looks: int


@dataclass(frozen=True, slots=True)
class Waits:
    """The same boots with both polling modes."""

    fixed: list[Wait]
    learned: list[Wait]

    @property
    def delay(self) -> float:
        """Return the mean delay over that of the fixed interval."""
        return _sum(wait.delay for wait in self.learned) / _sum(
            wait.delay for wait in self.fixed
        )

    @property
    def requests(self) -> float:
        """Return the polls over those of the fixed interval."""
        return _sum(wait.looks for wait in self.learned) / _sum(
            wait.looks for wait in self.fixed
        )

    def meets(self, past: int) -> bool:
        """Return whether the bars for this number of past boots are met."""
        if past < ENOUGH:
            return max(self.delay, self.requests) <= BEFORE_BAR
        return self.delay <= DELAY_BAR and self.requests <= REQUESTS_BAR


def _sum(values: Iterator[float]) -> float:
    return math.fsum(values)


def wait(boot_seconds: float, policy: WaitPolicy) -> Wait:
    """Lease one session."""
    clock = FakeClock()
    service = Service(clock, boot_seconds)
    with lease(service, REQUEST, policy=policy, clock=clock, sleep=clock.sleep):
        return Wait(clock() - boot_seconds, service.looks)


def drawn(law: Law, random: Random, count: int) -> list[float]:
    """Return so many boots."""
    return [
        min(max(law(random), SHORTEST_SECONDS), LONGEST_SECONDS) for _ in range(count)
    ]


def waits(law: Law, random: Random, past: int, *, histories: int, boots: int) -> Waits:
    """Wait for boots of a kind, after so many past ones."""
    both = Waits([], [])
    for _ in range(histories):
        learned = WaitPolicy(learned=True, past_boots=drawn(law, random, past))
        for boot in drawn(law, random, boots):
            seed = random.random()  # of the jitter: the same for both
            fixed = replace(learned, learned=False, random=Random(seed).random)
            both.fixed.append(wait(boot, fixed))
            both.learned.append(
                wait(boot, replace(learned, random=Random(seed).random))
            )
    return both


def reported(waits: Sequence[Wait]) -> str:
    """Return what there is to say of one pace."""
    delays = [wait.delay for wait in waits]
    mean, late = statistics.fmean(delays), statistics.quantiles(delays, n=20)[-1]
    return f"{mean:.2f} s late, 95th percentile {late:.2f} s, {statistics.fmean(w.looks for w in waits):.1f} requests"


def main() -> int:
    """Print every figure next to its bar; return 1 if one is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--histories",
        type=int,
        default=20,
        help="histories of each kind (default: %(default)s)",
    )
    parser.add_argument(
        "--boots",
        type=int,
        default=10,
        help="boots after each history (default: %(default)s)",
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--write", action="store_true", help=f"refresh {results.PAGE.name}"
    )
    arguments = parser.parse_args()
    rows: list[str] = []
    met = True
    for past in PAST:
        kinds = {
            name: waits(
                law,
                Random(f"{arguments.seed} {name} {past}"),
                past,
                histories=arguments.histories,
                boots=arguments.boots,
            )
            for name, law in KINDS.items()
        }
        every = Waits(
            [w for one in kinds.values() for w in one.fixed],
            [w for one in kinds.values() for w in one.learned],
        )
        rows.append(row(past, every))
        met &= every.meets(past)
        print(
            f"{past} past boots: fixed {reported(every.fixed)}; learned {reported(every.learned)}"
        )
        print(
            f"  delay {every.delay:.3f}, requests {every.requests:.3f} of the fixed pace ({bars(past)})",
            flush=True,
        )
        for name, one in kinds.items():
            print(f"    {name:34} delay {one.delay:.2f}, requests {one.requests:.2f}")
    if arguments.write:
        results.write("waiting", "\n".join([*HEAD, *rows]))
    print("bars met" if met else "BAR MISSED")
    return 0 if met else 1


HEAD: Final = (
    "| past boots | fixed pace | learned pace | delay of the fixed | requests of the fixed | bars |",
    "| ---: | --- | --- | ---: | ---: | --- |",
)


def row(past: int, every: Waits) -> str:
    """Return a row of the page of results."""
    figures = f"{reported(every.fixed)} | {reported(every.learned)} | {every.delay:.2f} | {every.requests:.2f}"
    return f"| {past} | {figures} | {bars(past)} |"


def bars(past: int) -> str:
    """Return the bars for so many past boots."""
    if past < ENOUGH:
        return f"bar: {BEFORE_BAR:.2f} each"
    return f"bars: {DELAY_BAR:.2f} and {REQUESTS_BAR:.2f}"


if __name__ == "__main__":
    sys.exit(main())
