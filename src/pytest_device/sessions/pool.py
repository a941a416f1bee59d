"""Which test gets which live session: shared by equal needs, booted ahead, replaced when it is spent or lost."""

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from pytest_device.errors import ConfigError, LeaseTimeoutError, SessionTimeoutError, StopFailedError
from pytest_device.option_table import MAX_SESSIONS
from pytest_device.sessions.background import Boot, Poller, serve, unused
from pytest_device.sessions.device_session import Life
from pytest_device.sessions.events import Queued
from pytest_device.sessions.lifecycle import WaitPolicy
from pytest_device.sessions.quota import Slot, Slots
from pytest_device.sessions.relay import Deferred, Relay
from pytest_device.sessions.request import SessionRequest
from pytest_device.sessions.requirement import Held, Need
from pytest_device.sessions.together import together
from pytest_device.spec import DURATION_MAX_MINUTES

__all__ = ["Held", "Need", "Pool", "World"]

CLOSE_SECONDS: Final = 5.0
"""How long the end waits for calls that are under way behind the tests."""
_TIME_OUTS: Final = (LeaseTimeoutError, SessionTimeoutError)
"""What ends a wait that was too long: behind the tests nobody has waited."""


def _none_found(_need: Need) -> Life | None:
    return None


def _no_room_made(_coming: Sequence[Need]) -> None:
    pass


def _none_stays(_held: Held) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class World:
    """What a pool works with. All but ``sleep``, ``stopping`` and ``stays`` may be called in another thread, too."""

    begin: Callable[[SessionRequest, WaitPolicy], Life]
    """Gives the life of a session that is not created yet. It is to emit its events to ``relay``."""
    clock: Callable[[], float]
    sleep: Callable[[float], None]
    leaves_unknown: Callable[[BaseException], bool]
    stopping: Callable[[Held], None]
    """Is told of each session that was in progress before it is stopped."""
    start_attempts: int = 1
    slots: Slots | None = None
    relay: Relay = field(default_factory=Relay)
    """Where events go: those of what boots behind the tests once it is taken, or at the end."""
    found: Callable[[Need], Life | None] = _none_found
    """Gives the life of a session in progress that an earlier run has left for a need; asked before a boot."""
    make_room: Callable[[Sequence[Need]], None] = _no_room_made
    """Asked before a session is created, none having been found; is given what other boots are yet to look for."""
    stays: Callable[[Held], bool] = _none_stays
    """Asked of a session that is good and that no test needs any more: True when it has been left up on purpose."""


class Pool:
    """The live sessions of one process, taken for a test and given back after it, and those that boot ahead.

    No two processes wait for each other's slots. A process waits for slots in ``take`` only, for all that it needs at
    once; before it does so it has stopped all that it holds: what lies idle, what boots ahead, what it meant to reuse
    for this very ``take``. A service that refuses a session for lack of capacity, and refuses it again, is waited for
    in the same way. Ahead it boots only what it gets a slot for without waiting. So whoever holds a slot while
    others wait is running a test, or waiting for the service: both come to an end, and the queue of slots is served in
    order. The one exception is a test, or a fixture, that takes a session while it has another one in use (as
    ``device_lease`` lets it): two that do so may want what the other one has, until the time-out ends the wait of one.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._pid = os.getpid()
        self._poller = Poller(world.clock, world.relay)
        self._held: list[Held] = []
        self._boots: dict[Boot, Need] = {}
        """What is not in progress yet, or was not when it was looked at last."""
        self._unused: list[Deferred] = []
        """What is to be told in the end."""

    def expect(self, needs: Sequence[Need], policy: WaitPolicy) -> None:
        """Begin to boot what meets these needs beside each other, first ones first, without waiting for anything.

        Each session that is held or boots already meets one of them. What gets no slot at once is not begun: expect it
        again. What goes wrong is raised by the ``take`` that wants the session.
        """
        if os.getpid() != self._pid:  # a forked child, which has no thread: its parent expects the same
            return
        self._settle()
        now = self._world.clock()
        met = [held.need for held in self._held if not held.is_lost and held.has_left(held.need.minutes, now)]
        met += [need for boot, need in self._boots.items() if boot.is_wanted]
        begun: list[Boot] = []
        try:
            for need in needs:
                if need in met:
                    met.remove(need)
                elif _may_wait(need) and not self._boot_ahead(need, policy, begun):
                    return
        finally:  # not before: the first of them has to know what the others will look for
            for boot in begun:
                self._poller.add(boot)

    def take(self, needs: Sequence[Need], policy: WaitPolicy) -> list[Held]:
        """Return a session for each need; those that have to be created boot side by side.

        Raises what ``Life`` raises, and LeaseTimeoutError; then nothing that was created here is left, nor what had
        begun to boot ahead for these needs.
        """
        self._settle()
        parts: list[Held | Boot | None] = []
        try:
            for need in needs:
                parts.append(self._reused(need) or self._expected(need))  # noqa: PERF401  # for the error's sake
            self._fill(parts, needs, policy)
            self._wait(parts, needs, policy)
        except BaseException as error:
            for part in parts:
                self._let_go(part, error)
            raise
        return [self._had(part) for part in parts if part]

    def give_back(self, taken: Iterable[Held], is_needed: Callable[[Need], bool]) -> None:
        """Take sessions back; stop those, and all others that lie idle, that are lost or not needed any more.

        What boots ahead and is not needed is stopped too, without waiting for it. Raises StopFailedError when one may
        still be running, after all have been asked to stop.
        """
        for held in taken:
            held.is_taken = held.is_new = False
        self._settle()
        done = [held for held in self._idle() if held.is_lost or not is_needed(held.need)]
        for boot in [boot for boot, need in self._boots.items() if boot.is_wanted and not is_needed(need)]:
            self._poller.drop(boot)
        self._end(done, self._world.stays)

    def leave(self, held: Held) -> None:
        """Let go of a session that is left running on purpose."""
        self._held.remove(held)
        held.life.leave()
        self._release(held)

    def close(self) -> None:
        """Stop all that is left; what cannot be stopped is told by its event."""
        for boot in self._boots:
            self._poller.drop(boot)
        try:
            with suppress(StopFailedError):
                self._end(self._held)
        finally:
            self._poller.close(CLOSE_SECONDS)
            self._unused += [boot.kept for boot in self._boots]
            for kept in self._unused:
                self._world.relay.tell(kept)

    # What is there.

    @property
    def has_any(self) -> bool:
        """Whether anything is held, or boots."""
        return bool(self._held or self._boots)

    def _idle(self) -> list[Held]:
        return [held for held in self._held if not held.is_taken]

    def _settle(self) -> None:
        """Take note of what has become ready, or has been stopped, behind the tests."""
        self._poller.add()  # to look at the clock again
        for boot, need in list(self._boots.items()):
            if boot.is_wanted and boot.is_ready:
                self._hold(boot, need)
            elif boot.is_over and not boot.is_wanted:
                self._unused.append(boot.kept)
                del self._boots[boot]

    def _hold(self, boot: Boot, need: Need) -> Held:
        held = Held(need, boot)
        self._held.append(held)
        del self._boots[boot]
        return held

    def _reused(self, need: Need) -> Held | None:
        for held in [one for one in self._idle() if one.need == need]:
            if not held.is_lost and held.has_left(need.minutes, self._world.clock()) and not held.life.loss():
                held.is_taken = True
                return held
            self._end([held])
        return None

    def _expected(self, need: Need) -> Boot | None:
        """Return what boots ahead for a need; raises what it was given up for."""
        ahead = (boot for boot, one in self._boots.items() if one == need and boot.is_ahead and boot.is_wanted)
        boot = next(ahead, None)
        if boot is None:
            return None
        self._poller.withdraw(boot)
        self._world.relay.tell(boot.kept)
        if boot.error:
            del self._boots[boot]
            if isinstance(boot.error, _TIME_OUTS):
                return None
            raise boot.error
        if not boot.is_created:
            boot.wait_anew()
        return boot

    def _had(self, part: Held | Boot) -> Held:
        held = self._hold(part, self._boots[part]) if isinstance(part, Boot) else part
        self._world.relay.tell(held.kept)
        return held

    def _let_go(self, part: Held | Boot | None, error: BaseException) -> None:
        match part:
            case Held():
                part.is_taken = False
            case Boot():
                part.give_up(error)
                del self._boots[part]
            case None:
                pass

    # What is begun.

    def _fill(
        self, parts: list[Held | Boot | None], needs: Sequence[Need], policy: WaitPolicy, since: float | None = None
    ) -> None:
        slots = self._slots(parts)
        for index, need in enumerate(needs):
            if parts[index] is None:
                parts[index] = self._begun(self._lives(need, policy, since), need, slots.pop(0), is_ahead=False)

    def _wait(self, parts: list[Held | Boot | None], needs: Sequence[Need], policy: WaitPolicy) -> None:
        """Wait until all are ready; while the service has no capacity for one, give up what others may wait for."""
        world, patience = self._world, 1
        since = world.clock()
        while waiting := [part for part in parts if isinstance(part, Boot) and not part.is_ready]:
            served = serve(waiting, world.clock, world.sleep)
            refused = [boot for boot in waiting if not boot.is_created]
            if not refused:
                self._fill(parts, needs, policy, since)
            elif any(boot.refusals > patience for boot in served) and not self._give_way():
                if any(part not in refused for part in parts if part):
                    patience *= 2  # what is stopped in vain has cost a boot
                self._part_with(parts, but=refused)

    def _boot_ahead(self, need: Need, policy: WaitPolicy, begun: list[Boot]) -> bool:
        """Begin a boot behind the tests; False when there is no slot."""
        slots = self._world.slots.try_take(1) if self._world.slots else [None]
        if slots is None:
            return False
        begun.append(self._begun(self._lives(need, policy), need, slots[0], is_ahead=True))
        return True

    def _begun(self, lives: Iterator[Life], need: Need, slot: Slot | None, *, is_ahead: bool) -> Boot:
        boot = Boot(lives, self._world.clock, self._world.leaves_unknown, slot=slot, is_ahead=is_ahead)
        self._boots[boot] = need
        return boot

    def _lives(self, need: Need, policy: WaitPolicy, since: float | None = None) -> Iterator[Life]:
        if life := self._world.found(need):
            yield life
        self._world.make_room(self._coming(need))
        for _ in range(self._world.start_attempts):
            life = self._world.begin(need.request, policy)
            if since is not None:
                life.wait_since(since)
            yield life

    def _coming(self, but: Need) -> list[Need]:
        """Return the needs that other boots are yet to meet."""
        boots = list(self._boots.items())  # another thread may change them meanwhile
        coming = [
            need for boot, need in boots if boot.is_wanted and not (boot.is_over or boot.is_created or boot.refusals)
        ]
        if but in coming:
            coming.remove(but)
        return coming

    def _slots(self, parts: list[Held | Boot | None]) -> list[Slot | None]:
        """Return a slot for each part that is missing; all of them are missing where there were too few at once."""
        missing, slots = parts.count(None), self._world.slots
        if slots is None or not missing:
            return [None] * missing
        self._check(parts, missing, slots.most)
        while (free := slots.try_take(missing)) is None:
            if not self._give_way():
                self._part_with(parts)
                return list(self._queued(slots, len(parts)))
        return list(free)

    def _queued(self, slots: Slots, count: int) -> list[Slot]:
        since = self._world.clock()
        try:
            return slots.take(count, self._give_way)
        finally:
            self._world.relay(Queued(self._world.clock() - since))

    def _check(self, parts: list[Held | Boot | None], missing: int, most: int) -> None:
        in_use = sum(held.is_taken and held not in parts for held in self._held)
        if in_use + len(parts) > most:
            raise ConfigError(
                f"{missing} more beside {in_use + len(parts) - missing} of this process that are in use would be more "
                f"sessions than {MAX_SESSIONS.option} allows ({most}), and none of them ends before: allow more"
            )

    # What is ended.

    def _give_way(self) -> bool:
        """Stop a session that can be done without, so that others can be had; False when there is none."""
        for boot in self._boots:
            if boot.is_ahead and not boot.is_over:
                self._stop_ahead(boot)
                return True
        idle = sorted(self._idle(), key=lambda held: not held.is_unused)[:1]
        self._end(idle)
        return bool(idle)

    def _stop_ahead(self, boot: Boot) -> None:
        self._poller.withdraw(boot)
        del self._boots[boot]
        self._unused.append(boot.kept)
        with self._world.relay.aside(boot.kept):
            if boot.is_created and not boot.is_over:
                self._world.relay(unused(boot.life))
            boot.stop()

    def _part_with(self, parts: list[Held | Boot | None], but: Sequence[Boot] = ()) -> None:
        """Stop what was meant to be used, too: whoever waits for slots, or for the service's capacity, holds none."""
        ending = [part for part in parts if part and part not in but]
        parts[:] = [part if part in but else None for part in parts]
        with ExitStack() as each:
            each.callback(self._end, [part for part in ending if isinstance(part, Held)])
            for part in ending:
                if isinstance(part, Boot):
                    del self._boots[part]
                    each.callback(part.stop)

    def _end(self, ending: Iterable[Held], stays: Callable[[Held], bool] = _none_stays) -> None:
        doomed: list[Held] = []
        with ExitStack() as each:  # one that raises does not keep the others from their end
            each.callback(self._stop_all, doomed)  # the last of all
            for held in list(ending):
                self._held.remove(held)
                each.callback(self._part_from, held, stays, doomed)

    def _part_from(self, held: Held, stays: Callable[[Held], bool], doomed: list[Held]) -> None:
        doomed.append(held)
        is_good = not held.is_lost and held.has_left(held.need.minutes, self._world.clock())
        with self._told_in_the_end(held) if held.is_unused else nullcontext():
            if is_good and stays(held):
                doomed.remove(held)
                self._release(held)
                return
            self._world.stopping(held)

    def _stop_all(self, doomed: list[Held]) -> None:
        """Stop sessions side by side; what happens is told when it has."""
        try:
            together([partial(self._stop, held) for held in doomed])
        finally:
            for held in doomed:
                if not held.is_unused:
                    self._world.relay.tell(held.kept)

    def _stop(self, held: Held) -> None:
        with ExitStack() as steps, self._world.relay.aside(held.kept):
            steps.callback(self._release, held)
            if held.is_unused:
                self._world.relay(unused(held.life))
            held.life.stop()

    @contextmanager
    def _told_in_the_end(self, held: Held) -> Generator[None]:
        self._unused.append(held.kept)
        with self._world.relay.aside(held.kept):
            yield

    @staticmethod
    def _release(held: Held) -> None:
        if held.slot:
            held.slot.release()


def _may_wait(need: Need) -> bool:
    """Tell whether a session for a need may lie idle before it is used and still last long enough."""
    return need.minutes < (need.request.max_duration_minutes or DURATION_MAX_MINUTES)
