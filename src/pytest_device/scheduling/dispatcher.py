"""Which tests each process of a run gets next, so that the run ends early and its devices are few. Pure.

A *kind* is what tests have in common that can run on the same devices, one after the other. A worker stays with a kind
for as long as it has tests left for it; the longest tests are dealt first. Then it gets, in this order: a kind that
nobody is at, those with most devices and most work first; a part of the kind that would end last, when that shortens
the run by more than the boot of one more device is worth; a test without a device; the end. One that has no test at all
waits while others have some: there may be room for it when they are done.

No limit can block: a kind is begun only when its devices fit beside those of the workers that go on, and the last one
to go on has all of the limit to itself. No kind starves: while it waits at the head for several free places, others go
past it only where a worker that goes on has as many as it needs.
"""

from bisect import insort
from collections import Counter, deque
from collections.abc import Hashable, Iterator, MutableSequence, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from math import inf
from typing import Final, Generic, TypeVar

from pytest_device.scheduling.estimates import LOOKED_AT, Estimates, end_of, level_of, turn_of

W = TypeVar("W", bound=Hashable)

HAND_SECONDS: Final = 0.25
"""A worker has so much to do behind the test at hand, for the time in which it is dealt more."""
_FEW: Final = 2
_MANY: Final = 50
"""So many tests fill a boot at most, be they ever so short: others have time for them, too."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Devices by number, none for tests without one."""

    needs: tuple[int, ...] = ()
    models: tuple[int, ...] = ()
    """Of each device what tells how long it boots, by number."""
    is_spread: bool = True
    """Whether several workers may be at it, each with devices of its own."""
    is_fresh: bool = False
    """Whether each test has devices of its own."""


@dataclass(frozen=True, slots=True)
class Unit:
    """Tests by index that run one after the other, for the sake of fixtures that they share."""

    kind: int
    tests: tuple[int, ...]


@dataclass(slots=True)
class _Stock:
    """What is left of a kind, in the order in which it is dealt."""

    place: int
    kind: Kind
    units: list[Unit] = field(default_factory=list[Unit])
    known_seconds: float = 0.0
    unknown: int = 0
    """So many of its tests are of unknown length."""


@dataclass(slots=True)
class Dealt:
    """A test in a worker's hand."""

    test: int
    kind: int
    boots: tuple[int, ...] = ()
    """The models that boot for it."""
    overlapping: float = 0.0
    """How long before its turn they begin to."""


@dataclass(slots=True, eq=False)
class _Worker:
    hand: deque[Dealt] = field(default_factory=deque[Dealt])
    """What it was dealt and has not done; it begins with the first when it knows the second, or that it is over."""
    at: int | None = None
    """The kind that it was dealt last."""
    since: float = 0.0
    """When it began with the first."""
    is_over: bool = False


class Dealer(Generic[W]):
    """Deals ``units`` of ``kinds`` to workers.

    ``seconds`` are the known lengths of tests, None for those that are not known; ``boots`` are the seconds that each
    model of device takes to be ready, and are filled in while the dealer deals. ``most`` devices there may be at once.
    ``fresh_ahead`` is how many tests with devices of their own a worker knows ahead, so that these can boot. ``now`` is
    the seconds of any one clock.
    """

    def __init__(
        self,
        kinds: Sequence[Kind],
        units: Sequence[Unit],
        seconds: Sequence[float | None],
        boots: MutableSequence[float | None],
        *,
        width: int,
        most: float = inf,
        longest_first: bool = True,
        fresh_ahead: int = 0,
    ) -> None:
        self.estimates = Estimates(seconds, boots)
        self._width, self._most = width, most
        self._longest_first, self._ahead = longest_first, fresh_ahead
        self._workers: dict[W, _Worker] = {}
        self._began = inf
        self._changed: dict[W, None] = {}
        """The workers that may want more."""
        self._stocks = [_Stock(place, kind) for place, kind in enumerate(kinds)]
        self._kind_of: dict[int, int] = {}
        for unit in units:
            self._stocks[unit.kind].units.append(unit)
            self._count(unit, 1)
            for test in unit.tests:
                self._kind_of[test] = unit.kind
                self.estimates.add(test, plain=not kinds[unit.kind].needs)
        if longest_first:
            for stock in self._stocks:
                stock.units.sort(key=self._length, reverse=True)
        self._waiting = sorted((self._rank(stock), stock.place) for stock in self._stocks if stock.kind.needs)
        """The kinds that nobody is at, and some that have found somebody since."""

    def join(self, worker: W) -> None:
        """Count on one more worker."""
        self._workers[worker] = _Worker()
        self._changed[worker] = None

    def end(self, worker: W) -> None:
        """Deal a worker no more."""
        at_work = self._workers[worker]
        if not at_work.is_over:
            at_work.is_over = True
            if at_work.at is not None:
                self._wait_again(self._stocks[at_work.at])

    def leave(self, worker: W) -> list[int]:
        """Count no more on a worker; take back what it had not begun, and return all that it had not done."""
        hand = self._workers.pop(worker).hand
        self._changed.pop(worker, None)
        for dealt in reversed(list(islice(hand, 1, None))):
            self.put_back(dealt.test)
        for place in {dealt.kind for dealt in hand}:
            self._wait_again(self._stocks[place])
        return [dealt.test for dealt in hand]

    def put_back(self, test: int) -> None:
        """Let a test be dealt next of its kind."""
        stock = self._stocks[self._kind_of[test]]
        unit = Unit(stock.place, (test,))
        stock.units.insert(0, unit)
        self._count(unit, 1)
        self._wait_again(stock)

    def done(self, worker: W, test: int, seconds: float | None, now: float) -> None:
        """Take note of a test's end; ``seconds`` is how long it took, without the wait for its devices."""
        at_work = self._workers[worker]
        if at_work.hand and at_work.hand[0].test == test:
            at_work.hand.popleft()
        else:  # another plugin may change the order
            at_work.hand = deque(dealt for dealt in at_work.hand if dealt.test != test)
        at_work.since = now
        self._changed[worker] = None
        if seconds is not None:
            self.estimates.learn(test, seconds, plain=self._is_plain(self._kind_of[test]))

    def hand(self, worker: W) -> Sequence[Dealt]:
        """Return what a worker has not done."""
        return tuple(self._workers[worker].hand)

    def has_devices(self, test: int) -> bool:
        """Tell whether a test, or one that it is kept together with, needs any."""
        return not self._is_plain(self._kind_of[test])

    @property
    def is_over(self) -> bool:
        """Whether all is dealt, and every worker may begin with the last that it has."""
        return not any(stock.units for stock in self._stocks) and all(
            one.is_over or len(one.hand) < 2  # noqa: PLR2004
            for one in self._workers.values()
        )

    def deal(self, now: float) -> Iterator[tuple[W, list[int], bool]]:
        """Yield for each worker that needs to know more the tests that it gets, and whether it is over after them."""
        self._began = min(self._began, now)
        given: dict[W, list[int]] = {}
        idle = (name for name, worker in self._workers.items() if not worker.hand and not worker.is_over)
        short, self._changed = list(self._changed | dict.fromkeys(idle)), {}
        while short := [name for name in short if self._wants(self._workers[name], now)]:
            for name in tuple(short):  # in turns: the longest tests are for those who have nothing
                given.setdefault(name, []).extend(dealt := self._more(self._workers[name], now))
                if not dealt:
                    short.remove(name)
        for name, tests in given.items():
            yield name, tests, self._workers[name].is_over

    def _wants(self, worker: _Worker, now: float) -> bool:
        return self._is_short(worker) or self._looks_ahead(worker, now)

    def _is_short(self, worker: _Worker) -> bool:
        if worker.is_over:
            return False
        behind = list(islice(worker.hand, 1, 1 + LOOKED_AT))
        if not behind or (len(behind) < LOOKED_AT and sum(map(self.expected, behind)) < HAND_SECONDS):
            return True
        return self._stocks[worker.hand[-1].kind].kind.is_fresh and len(behind) <= self._ahead

    def _looks_ahead(self, worker: _Worker, now: float) -> bool:
        """Tell whether the devices that a worker needs next should boot, beside those that it has."""
        if (
            worker.is_over
            or worker.at is None
            or self._free_in(worker, now) >= max(self.estimates.boots(), default=0.0)
        ):
            return False
        if self._stocks[worker.at].unknown or any(self.estimates.known(one.test) is None for one in worker.hand):
            return False  # a device is not to wait for who knows how long
        following = next(chain(self._unbegun(), self._last_begun(now)), None)
        if following is None or following.place == worker.at or not self._spares(worker, following):
            return False
        return self._free_in(worker, now) < self._boot(worker, following)

    def _more(self, worker: _Worker, now: float) -> list[int]:
        if not worker.hand:
            worker.since = now
        dealt = self._of_the_same(worker, now) or self._of_another(worker, now)
        worker.is_over = not dealt and self._is_short(worker) and not self._may_get_more(worker)
        worker.hand.extend(dealt)
        return [one.test for one in dealt]

    def _may_get_more(self, worker: _Worker) -> bool:
        """Tell whether a worker may wait for what others free: one that has a test has to know the next one."""
        if worker.hand or not any(stock.units for stock in self._stocks):
            return False
        return any(other.hand for other in self._beside(worker))

    def _of_the_same(self, worker: _Worker, now: float) -> list[Dealt]:
        if worker.at is None or not (stock := self._stocks[worker.at]).units or not stock.kind.needs:
            return []
        others = [self._left(other, now) for other in self._at(stock) if other is not worker]
        turn = turn_of(self._left(worker, now), others, map(self._length, stock.units))
        return [] if turn is None else self._taken(worker, stock, turn)

    def _of_another(self, worker: _Worker, now: float) -> list[Dealt]:
        stock = self._to_begin(worker, now) or self._to_join(worker, now)
        if stock is None:
            return self._plain(worker, now)
        boot = self._boot(worker, stock)
        ahead = self._left(worker, now) if self._spares(worker, stock) else 0.0
        filling = self._filling(boot - ahead)
        return [*filling, *self._taken(worker, stock, 0, ahead + sum(map(self.expected, filling)))]

    def _taken(self, worker: _Worker, stock: _Stock, place: int, overlapping: float | None = None) -> list[Dealt]:
        boots = () if overlapping is None else tuple(self._booting(worker, stock))
        unit = self._popped(stock, place)
        worker.at = stock.place
        first, *others = unit.tests
        return [Dealt(first, stock.place, boots, overlapping or 0.0), *(Dealt(test, stock.place) for test in others)]

    def _popped(self, stock: _Stock, place: int) -> Unit:
        unit = stock.units.pop(place if self._longest_first else 0)
        self._count(unit, -1)
        return unit

    def _count(self, unit: Unit, sign: int) -> None:
        stock = self._stocks[unit.kind]
        for test in unit.tests:
            known = self.estimates.known(test)
            if known is None:
                stock.unknown += sign
            else:
                stock.known_seconds += sign * known

    # Without devices.

    def _plains(self) -> Iterator[_Stock]:
        return (stock for stock in self._stocks if stock.units and not stock.kind.needs)

    def _plain(self, worker: _Worker, now: float) -> list[Dealt]:
        stock = next(self._plains(), None)
        if stock is None:
            return []
        others = [self._left(other, now) for other in self._others(worker)]
        turn = turn_of(self._left(worker, now), others, map(self._length, stock.units))
        return [] if turn is None else self._taken(worker, stock, turn)

    def _filling(self, seconds: float) -> list[Dealt]:
        """Take tests without devices that fill so many seconds; few of those whose length is not known."""
        filling: list[Dealt] = []
        for stock in self._plains():
            most = _FEW if stock.unknown else _MANY
            while seconds > 0 and stock.units and len(filling) < most:
                fits = (i for i, one in enumerate(stock.units[:LOOKED_AT]) if self._length(one) <= seconds)
                unit = self._popped(stock, next(fits, -1))
                filling += [Dealt(test, stock.place) for test in unit.tests]
                seconds -= self._length(unit)
        return filling

    # Kinds that nobody is at.

    def _rank(self, stock: _Stock) -> tuple[float, float]:
        if not self._longest_first:
            return 0, -self._whole(stock) if stock.known_seconds else 0
        return -len(stock.kind.needs), -self._whole(stock)

    def _wait_again(self, stock: _Stock) -> None:
        if stock.units and stock.kind.needs and not self._at(stock):
            insort(self._waiting, (self._rank(stock), stock.place))

    def _unbegun(self) -> Iterator[_Stock]:
        """Yield the kinds to begin with, the most urgent first."""
        while self._waiting and not self._is_unbegun(self._stocks[self._waiting[0][1]]):
            del self._waiting[0]
        return filter(self._is_unbegun, (self._stocks[place] for _, place in self._waiting))

    def _is_unbegun(self, stock: _Stock) -> bool:
        return bool(stock.units) and not self._at(stock)

    def _to_begin(self, worker: _Worker, now: float) -> _Stock | None:
        free = self._free_for(worker)
        unbegun = list(islice(self._unbegun(), LOOKED_AT))
        if not unbegun:
            return None
        if held := set(self._needs(worker)):  # what goes on with a device that is there spares a boot
            unbegun.sort(key=lambda stock: held.isdisjoint(stock.kind.needs))
        wanted = max(len(stock.kind.needs) for stock in unbegun)
        if wanted > free and not any(self._held(other) >= wanted for other in self._others(worker)):
            return None
        stock = next((stock for stock in unbegun if len(stock.kind.needs) <= free), None)
        if stock is None:
            return None
        others = [self._free_in(other, now) for other in self._others(worker)]
        turn = turn_of(self._left(worker, now), others, map(self._whole, unbegun))
        return stock if turn is not None else None

    def _free_in(self, worker: _Worker, now: float) -> float:
        """Return in how many seconds a worker may be done with its kind."""
        left = self._left(worker, now)
        if worker.at is None:
            return left
        stock = self._stocks[worker.at]
        return left + self._work(stock) / max(1, len(self._at(stock)))

    # A part of a kind that others are at.

    def _to_join(self, worker: _Worker, now: float) -> _Stock | None:
        stock = next(self._last_begun(now), None)
        if stock is None or stock.place == worker.at or len(stock.kind.needs) > self._free_for(worker):
            return None
        if not worker.hand and now > self._began and not all(map(self.estimates.is_boot_known, stock.kind.models)):
            return None  # the first of its devices boots still, and nobody knows how long: it can wait until they do
        lefts, boot, left = self._lefts(stock, now), self._boot(worker, stock), self._left(worker, now)
        ready = max(left, boot) if self._spares(worker, stock) else left + boot
        end = self._end(stock, lefts)
        if any(2 * self._length(plain.units[0]) > end - left for plain in self._plains()):
            return None  # a long test without devices would be the last to end
        saved = end - self._end(stock, [*lefts, ready])
        return stock if saved * min(self._width, self._most) > boot else None

    def _last_begun(self, now: float) -> Iterator[_Stock]:
        """Yield the kind that would end last of those that may have more workers."""
        begun = [stock for stock in self._begun() if stock.units and stock.kind.is_spread]
        if begun:
            yield max(begun, key=lambda stock: self._end(stock, self._lefts(stock, now)))

    def _begun(self) -> list[_Stock]:
        places = {worker.at for worker in self._workers.values() if worker.at is not None and not worker.is_over}
        return [self._stocks[place] for place in sorted(places) if self._stocks[place].kind.needs]

    def _end(self, stock: _Stock, lefts: list[float]) -> float:
        """Return in how many seconds a kind is done with by workers who are free in ``lefts`` seconds."""
        if len(stock.units) > LOOKED_AT or stock.unknown:
            return max(level_of(lefts, self._work(stock)), *lefts)
        return end_of(lefts, map(self._length, stock.units))

    # What workers have, and how long it lasts.

    def _beside(self, worker: _Worker) -> Iterator[_Worker]:
        """Yield the other workers."""
        return (other for other in self._workers.values() if other is not worker)

    def _others(self, worker: _Worker) -> Iterator[_Worker]:
        """Yield the other workers that go on."""
        return (other for other in self._beside(worker) if not other.is_over)

    def _at(self, stock: _Stock) -> list[_Worker]:
        return [worker for worker in self._workers.values() if worker.at == stock.place and not worker.is_over]

    def _lefts(self, stock: _Stock, now: float) -> list[float]:
        return [self._left(worker, now) for worker in self._at(stock)]

    def _left(self, worker: _Worker, now: float) -> float:
        """Return for how many seconds a worker has something to do."""
        if not worker.hand:
            return 0.0
        first, *behind = (self.wait(one) + self.expected(one) for one in worker.hand)
        at_least = first / 2 if self.estimates.known(worker.hand[0].test) is None else 0.0
        return max(first - (now - worker.since), at_least) + sum(behind)

    def _needs(self, worker: _Worker) -> tuple[int, ...]:
        return () if worker.at is None else self._stocks[worker.at].kind.needs

    def _held(self, worker: _Worker) -> int:
        """Return how many devices a worker has, or will."""
        places = [one.kind for one in worker.hand]
        if worker.at is not None and not worker.is_over:
            places.append(worker.at)
        return max((len(self._stocks[place].kind.needs) for place in places), default=0)

    def _free_for(self, worker: _Worker) -> float:
        """Return how many devices there may be beside those of others; one that is over is about to have none.

        A worker with nothing in hand begins at once, and would wait for what these are about to give back.
        """
        others = self._others(worker) if worker.hand else self._beside(worker)
        return self._most - sum(map(self._held, others))

    def _missing(self, worker: _Worker, stock: _Stock) -> Counter[int]:
        return Counter(stock.kind.needs) - Counter(self._needs(worker))

    def _spares(self, worker: _Worker, stock: _Stock) -> bool:
        """Tell whether a kind's devices can boot beside those that the worker has."""
        if stock.kind.is_fresh and not self._ahead:
            return False
        return sum(map(self._held, self._workers.values())) + self._missing(worker, stock).total() <= self._most

    def _boot(self, worker: _Worker, stock: _Stock) -> float:
        return max(map(self.estimates.boot, self._booting(worker, stock)), default=0.0)

    def _booting(self, worker: _Worker, stock: _Stock) -> Iterator[int]:
        """Yield the models that a worker lacks for a kind."""
        missing, kind = self._missing(worker, stock), stock.kind
        return (model for need, model in zip(kind.needs, kind.models, strict=True) if missing[need])

    # Lengths.

    def wait(self, dealt: Dealt) -> float:
        """Return for how many seconds a worker waits for the devices of a test, once all before it is done."""
        return max(0.0, max(map(self.estimates.boot, dealt.boots), default=0.0) - dealt.overlapping)

    def expected(self, dealt: Dealt) -> float:
        """Return how many seconds a test takes, or is thought to."""
        return self.estimates.of(dealt.test, plain=self._is_plain(dealt.kind))

    def _is_plain(self, place: int) -> bool:
        return not self._stocks[place].kind.needs

    def _length(self, unit: Unit) -> float:
        return sum(self.estimates.of(test, plain=self._is_plain(unit.kind)) for test in unit.tests)

    def _work(self, stock: _Stock) -> float:
        return stock.known_seconds + stock.unknown * self.estimates.guess(plain=not stock.kind.needs)

    def _whole(self, stock: _Stock) -> float:
        return max(map(self.estimates.boot, stock.kind.models), default=0.0) + self._work(stock)
