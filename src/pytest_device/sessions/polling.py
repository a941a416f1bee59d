"""Decides when to poll a starting session, based on how long past starts took. Pure.

The pause between two polls is ``sqrt(2 * cost / hazard)`` seconds, which balances the cost of a poll against the delay
of the waiting test. The hazard, learned from past boots, is the share of the unfinished boots that finish in the next
second. The cost is chosen so that the expected number of polls does not exceed that of the fixed interval.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Final, NamedTuple

MAX_BOOTS: Final = 50
"""Maximum number of past boots to use: older ones weigh less than a fifth of the newest."""
MIN_BOOTS: Final = 4
"""Fewer boots do not show how much they vary: the interval stays fixed."""
MIN_DELAY: Final = 0.2
MAX_DELAY: Final = 2.0
"""Multiples of the fixed interval: 1 to 10 s for 5 s. Shorter pauses could exceed a rate limit, which the document does
not show; longer ones cost users more than the saved polls are worth."""

_MAX_SECONDS: Final = 86_400.0
"""No session lasts a day: a longer boot was measured while someone set the clock."""
_QUICKEST: Final = 0.05
"""Minimum boot time, as a share of the fixed interval: shorter boots are not worth a poll, and log(0) is infinite."""
_HALF_LIFE_BOOTS: Final = 20.0
"""A boot has half the weight of one that is this many boots newer: a service changes its speed."""
_USUAL_SPREAD: Final = 0.3
_USUAL_SPREAD_BOOTS: Final = 3.0
"""Prior spread of boot times, as a standard deviation of their logarithms, and the number of boots that it counts as.

About a third more or less, an assumption that a handful of boots outweighs.
"""
_BROAD_SPREAD: Final = 1.0
_BROAD_BOOTS: Final = 2.0
"""Any boot may differ from all before, because of a new image or a full queue: a broad distribution, by a factor of
about three, that counts as this many boots."""
_SMOOTHING: Final = 0.9
"""Silverman's rule, with the number of boots to the power of -1/5."""
_CELLS: Final = 200
"""A finer plan would change no poll by more than the jitter does."""
_HALVINGS: Final = 25
_COSTS: Final = (1e-4, 1e4)
"""Bounds of the cost for any boot; this many halvings find it to a millionth."""

Schedule = Callable[[float], float]
"""Maps the seconds that a session has been booting to the delay in seconds."""


def schedule_of(past_seconds: Sequence[float], base_seconds: float) -> Schedule:
    """Return a polling schedule based on the boot times of equal devices, newest last.

    With few boots, and for a boot longer than all past ones, the delay becomes ``base_seconds``.
    """
    past = [
        max(seconds / base_seconds, _QUICKEST)
        for seconds in past_seconds
        if 0 <= seconds < _MAX_SECONDS
    ]
    if len(past) < MIN_BOOTS:
        return lambda _booting_seconds: base_seconds

    plan = _plan_of(tuple(past[-MAX_BOOTS:]))
    return lambda booting_seconds: (
        plan.delay(booting_seconds / base_seconds) * base_seconds
    )


class _Plan(NamedTuple):
    """Expected number of polls by certain times; all times here and below are in fixed intervals."""

    times: Sequence[float]
    polls: Sequence[float]

    def delay(self, booting: float) -> float:
        """Return the time until one more poll is expected."""
        if booting >= self.times[-1]:
            return 1.0

        next_poll = _between(self.times, self.polls, booting) + 1
        return min(
            max(_between(self.polls, self.times, next_poll) - booting, MIN_DELAY),
            MAX_DELAY,
        )


def _between(places: Sequence[float], values: Sequence[float], place: float) -> float:
    """Interpolate linearly between places; beyond the last place, values grow as places do."""
    if place >= places[-1]:
        return values[-1] + place - places[-1]
    index = bisect_right(places, place)
    share = (place - places[index - 1]) / (places[index] - places[index - 1])
    return values[index - 1] + share * (values[index] - values[index - 1])


class _Cell(NamedTuple):
    """An interval: shares of boots that last that long, of those modelled on past boots; and their hazard."""

    lasting: float
    known: float
    hazard: float

    def rate(self, cost: float) -> float:
        """Return the number of polls per fixed interval."""
        rate = math.sqrt(self.known * self.hazard / (2 * cost) + 1 - self.known)
        return min(max(rate, 1 / MAX_DELAY), 1 / MIN_DELAY)


@lru_cache(maxsize=32)
def _plan_of(past: tuple[float, ...]) -> _Plan:
    step, cells = _cells_of(past)
    # As many polls as with the fixed interval.
    most = math.fsum(cell.lasting for cell in cells)
    cheap, dear = _COSTS

    for _ in range(_HALVINGS):
        cost = math.sqrt(cheap * dear)
        if math.fsum(cell.lasting * cell.rate(cost) for cell in cells) > most:
            cheap = cost
        else:
            dear = cost

    polls = accumulate((cell.rate(dear) * step for cell in cells), initial=0.0)
    return _Plan([step * index for index in range(_CELLS + 1)], list(polls))


def _cells_of(past: Sequence[float]) -> tuple[float, list[_Cell]]:
    """Return the length of the cells, and the cells that follow from past boots."""
    weights = _weights_of(len(past))
    count = 1 / math.fsum(weight**2 for weight in weights)
    logs = [math.log(seconds) for seconds in past]

    middle = math.fsum(weight * log for weight, log in zip(weights, logs, strict=True))
    squares = count * math.fsum(
        weight * (log - middle) ** 2 for weight, log in zip(weights, logs, strict=True)
    )
    squares += _USUAL_SPREAD_BOOTS * _USUAL_SPREAD**2

    width = (
        _SMOOTHING
        * count**-0.2
        * math.sqrt(squares / (_USUAL_SPREAD_BOOTS + count - 1))
    )
    # Beyond three times the width, hardly any boot remains.
    step = math.exp(max(logs) + 3 * width) / _CELLS
    ends = [math.log(step * index) for index in range(1, _CELLS + 1)]

    past_lasting = [
        math.fsum(
            weight * _beyond(end, log, width)
            for weight, log in zip(weights, logs, strict=True)
        )
        for end in ends
    ]
    broad_lasting = [_beyond(end, middle, _BROAD_SPREAD) for end in ends]

    trust = count / (count + _BROAD_BOOTS)
    pairs = zip(
        pairwise([1.0, *past_lasting]), pairwise([1.0, *broad_lasting]), strict=True
    )

    return step, [
        _cell(step, trust, past_shares, broad_shares)
        for past_shares, broad_shares in pairs
    ]


def _weights_of(count: int) -> list[float]:
    weights = [0.5 ** (age / _HALF_LIFE_BOOTS) for age in reversed(range(count))]
    total = math.fsum(weights)
    return [weight / total for weight in weights]


def _cell(
    step: float, trust: float, past: tuple[float, float], broad: tuple[float, float]
) -> _Cell:
    """Return a cell from the shares of past and of any other boots that last to its beginning and its end."""
    share = sum(past) / 2
    lasting = trust * share + (1 - trust) * sum(broad) / 2
    return _Cell(
        lasting,
        trust * share / lasting,
        (past[0] - past[1]) / step / share if share else 0.0,
    )


def _beyond(log: float, middle: float, spread: float) -> float:
    """Return the share of a normal distribution above a value."""
    return math.erfc((log - middle) / (spread * math.sqrt(2))) / 2
