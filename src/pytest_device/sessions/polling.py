"""When to poll a session that starts, by how long past starts took. Pure.

Between two polls lie ``sqrt(2 * cost / hazard)`` seconds, which weighs the price of a poll against the delay of who
waits for one. The hazard is the share of boots that are ready in the next second, of those that are not yet: it is
learned. The cost is chosen so that no more polls are expected than with the fixed interval.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Final, NamedTuple

MOST_BOOTS: Final = 50
"""So many past boots are used, the newest: older ones weigh less than a fifth of the newest."""
FEWEST_BOOTS: Final = 4
"""Fewer say nothing of how far boots lie apart: the interval is the fixed one."""
SHORTEST_DELAY: Final = 0.2
LONGEST_DELAY: Final = 2.0
"""Of the fixed interval: from 1 to 10 s where that is 5 s. Shorter ones could run into a rate limit, which the document
does not show; longer ones cost a person more than the polls that they save."""

_LONGEST_SECONDS: Final = 86_400.0
"""No session lasts for a day: a boot that did was measured by a clock that was set."""
_QUICKEST: Final = 0.05
"""A boot that took less of the fixed interval took no time worth a poll; the logarithm of 0 has no end."""
_HALF_LIFE_BOOTS: Final = 20.0
"""A boot weighs half of one that is so many boots newer: a service changes its speed."""
_USUAL_SPREAD: Final = 0.3
_USUAL_SPREAD_BOOTS: Final = 3.0
"""How far boots lie apart where nothing is known, in logarithms, and how many boots that knowledge is worth.

About a third more or less, an assumption that a handful of boots outweighs."""
_BROAD_SPREAD: Final = 1.0
_BROAD_BOOTS: Final = 2.0
"""Any boot may be unlike all before, for a new image or a full queue: one that takes a third or three times as
long is as likely as if so many had been."""
_SMOOTHING: Final = 0.9
"""Silverman's, with the number of boots to the power of -1/5."""
_CELLS: Final = 200
"""A finer plan changes no poll by more than a jitter does."""
_HALVINGS: Final = 25
_COSTS: Final = (1e-4, 1e4)
"""Costs of any boot lie between these; so many halvings find one to a millionth."""

Schedule = Callable[[float], float]
"""Gives the delay in seconds, from how many seconds the session has been booting."""


def schedule_of(past_seconds: Sequence[float], base_seconds: float) -> Schedule:
    """Return when to poll a session, from how long boots of its kind took, the newest last.

    Where few are known, and once a boot takes longer than any that is known, delays become ``base_seconds``.
    """
    past = [max(one / base_seconds, _QUICKEST) for one in past_seconds if 0 <= one < _LONGEST_SECONDS]
    if len(past) < FEWEST_BOOTS:
        return lambda _booting_seconds: base_seconds
    plan = _plan_of(tuple(past[-MOST_BOOTS:]))
    return lambda booting_seconds: plan.delay(booting_seconds / base_seconds) * base_seconds


class _Plan(NamedTuple):
    """How many polls there are to have been by some times; times are in fixed intervals, as everywhere below."""

    times: Sequence[float]
    polls: Sequence[float]

    def delay(self, booting: float) -> float:
        """Return the time until there is to have been one poll more."""
        if booting >= self.times[-1]:
            return 1.0
        wanted = _between(self.times, self.polls, booting) + 1
        return min(max(_between(self.polls, self.times, wanted) - booting, SHORTEST_DELAY), LONGEST_DELAY)


def _between(places: Sequence[float], values: Sequence[float], place: float) -> float:
    """Return the value at a place by a straight line; beyond the last place values grow as places do."""
    if place >= places[-1]:
        return values[-1] + place - places[-1]
    index = bisect_right(places, place)
    share = (place - places[index - 1]) / (places[index] - places[index - 1])
    return values[index - 1] + share * (values[index] - values[index - 1])


class _Cell(NamedTuple):
    """A piece of time: how likely a boot is to last that long, and if so to be like those known; their hazard."""

    lasting: float
    known: float
    hazard: float

    def rate(self, cost: float) -> float:
        """Return how many polls there are to be in one fixed interval."""
        rate = math.sqrt(self.known * self.hazard / (2 * cost) + 1 - self.known)
        return min(max(rate, 1 / LONGEST_DELAY), 1 / SHORTEST_DELAY)


@lru_cache(maxsize=32)
def _plan_of(past: tuple[float, ...]) -> _Plan:
    step, cells = _cells_of(past)
    most = math.fsum(cell.lasting for cell in cells)  # with the fixed interval
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
    """Return the length of the cells, and what past boots say of each."""
    weights = _weights_of(len(past))
    count = 1 / math.fsum(weight**2 for weight in weights)
    logs = [math.log(one) for one in past]
    middle = math.fsum(weight * log for weight, log in zip(weights, logs, strict=True))
    squares = count * math.fsum(weight * (log - middle) ** 2 for weight, log in zip(weights, logs, strict=True))
    squares += _USUAL_SPREAD_BOOTS * _USUAL_SPREAD**2
    width = _SMOOTHING * count**-0.2 * math.sqrt(squares / (_USUAL_SPREAD_BOOTS + count - 1))
    step = math.exp(max(logs) + 3 * width) / _CELLS
    ends = [math.log(step * index) for index in range(1, _CELLS + 1)]
    known = [math.fsum(w * _beyond(end, log, width) for w, log in zip(weights, logs, strict=True)) for end in ends]
    broad = [_beyond(end, middle, _BROAD_SPREAD) for end in ends]
    trust = count / (count + _BROAD_BOOTS)
    pairs = zip(pairwise([1.0, *known]), pairwise([1.0, *broad]), strict=True)
    return step, [_cell(step, trust, one, other) for one, other in pairs]


def _weights_of(count: int) -> list[float]:
    weights = [0.5 ** (age / _HALF_LIFE_BOOTS) for age in reversed(range(count))]
    total = math.fsum(weights)
    return [weight / total for weight in weights]


def _cell(step: float, trust: float, known: tuple[float, float], broad: tuple[float, float]) -> _Cell:
    """Return a cell from the shares that last to its beginning and its end, of the boots known and of any others."""
    share = sum(known) / 2
    lasting = trust * share + (1 - trust) * sum(broad) / 2
    return _Cell(lasting, trust * share / lasting, (known[0] - known[1]) / step / share if share else 0.0)


def _beyond(log: float, middle: float, spread: float) -> float:
    """Return the share of a normal law above a value."""
    return math.erfc((log - middle) / (spread * math.sqrt(2))) / 2
