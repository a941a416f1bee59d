"""Which test gets which live session: shared by equal needs, replaced when it is spent or lost."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field

from pytest_device.errors import ConfigError, SessionFailedError, StopFailedError
from pytest_device.option_table import MAX_SESSIONS
from pytest_device.sessions.life import Life, wait_for
from pytest_device.sessions.lifecycle import WaitPolicy
from pytest_device.sessions.models import Session
from pytest_device.sessions.quota import Slot, Slots
from pytest_device.sessions.request import SessionRequest


@dataclass(frozen=True, slots=True)
class Need:
    """What a test needs of a device: equal needs may be met by one session, one after the other.

    ``among`` names those with whom it may be shared. ``minutes`` must be left of a session that was used before.
    """

    request: SessionRequest
    among: str
    minutes: int = field(default=0, compare=False)


class Held:
    """A session of the pool, in progress."""

    def __init__(self, need: Need, life: Life, slot: Slot | None) -> None:
        self.need = need
        self.life = life
        self.slot = slot
        self.session: Session = life.session
        self.user: object = None
        """Who has it, or had it last."""
        self.is_taken = True
        self.is_new = True
        """Whether no test has had it before."""
        self.is_lost = False
        """Whether it, or its controller, is of no use any more."""

    def has_left(self, minutes: int, now: float) -> bool:
        """Tell whether it may run for so long; never with a limit of 0, which the document does not explain."""
        since = now if self.life.ready_at is None else self.life.ready_at
        return self.session.max_duration_minutes * 60 - (now - since) >= minutes * 60


@dataclass(frozen=True, slots=True)
class World:
    """What a pool works with."""

    begin: Callable[[SessionRequest, WaitPolicy], Life]
    """Gives the life of a session that is not created yet."""
    clock: Callable[[], float]
    sleep: Callable[[float], None]
    leaves_unknown: Callable[[BaseException], bool]
    stopping: Callable[[Held], None]
    """Is told of each session that was in progress before it is stopped."""
    start_attempts: int = 1
    slots: Slots | None = None


class Pool:
    """The live sessions of one process, taken for a test and given back after it."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._held: list[Held] = []

    def take(self, needs: Sequence[Need], policy: WaitPolicy) -> list[Held]:
        """Return a session for each need; those that have to be created boot side by side.

        Raises what ``Life`` raises, and LeaseTimeoutError; then nothing that was created here is left.
        """
        found: list[Held | None] = []
        try:
            for need in needs:
                found.append(self._reused(need))  # noqa: PERF401  # what was found before one raises is given back
            missing = [need for need, held in zip(needs, found, strict=True) if held is None]
            fresh = iter(self._booted(missing, policy))
        except BaseException:
            for held in filter(None, found):
                held.is_taken = False
            raise
        return [held or next(fresh) for held in found]

    def give_back(self, taken: Iterable[Held], is_needed: Callable[[Need], bool]) -> None:
        """Take sessions back; stop those, and all others that lie idle, that are lost or not needed any more.

        Raises StopFailedError when one may still be running, after all have been asked to stop.
        """
        for held in taken:
            held.is_taken = held.is_new = False
        self._end(held for held in self._idle() if held.is_lost or not is_needed(held.need))

    def leave(self, held: Held) -> None:
        """Let go of a session that is left running on purpose."""
        self._held.remove(held)
        held.life.leave()
        if held.slot:
            held.slot.release()

    def close(self) -> None:
        """Stop all that is left; what cannot be stopped is told by its event."""
        with suppress(StopFailedError):
            self._end(self._held)

    def _idle(self) -> list[Held]:
        return [held for held in self._held if not held.is_taken]

    def _reused(self, need: Need) -> Held | None:
        held = next((one for one in self._idle() if one.need == need), None)
        if held is None:
            return None
        if held.is_lost or not held.has_left(need.minutes, self._world.clock()) or held.life.loss():
            self._end([held])
            return None
        held.is_taken = True
        return held

    def _booted(self, needs: Sequence[Need], policy: WaitPolicy) -> list[Held]:
        if not needs:
            return []
        slots: Sequence[Slot | None] = []
        lives: list[Life] = []
        try:
            slots = self._slots(len(needs))
            for need in needs:
                lives.append(self._world.begin(need.request, policy))
                lives[-1].create(self._world.leaves_unknown)
            self._wait(lives, policy)
        except BaseException as error:
            for life in lives:
                life.stop_after(error)
            for slot in filter(None, slots):
                slot.release()
            raise
        fresh = [Held(need, life, slot) for need, life, slot in zip(needs, lives, slots, strict=True)]
        self._held += fresh
        return fresh

    def _wait(self, lives: list[Life], policy: WaitPolicy) -> None:
        """Wait until all are ready, a few times with a new session in the place of one that turns errored."""
        left = [self._world.start_attempts - 1] * len(lives)
        while True:
            try:
                return wait_for(lives, self._world.sleep)
            except SessionFailedError as error:
                index = next(i for i, life in enumerate(lives) if str(life.session.id) == error.session_id)
                if not left[index]:
                    raise
                left[index] -= 1
                lives[index].fail_to_start(str(error))
            lives[index] = self._world.begin(lives[index].request, policy)
            lives[index].create(self._world.leaves_unknown)

    def _slots(self, count: int) -> Sequence[Slot | None]:
        slots = self._world.slots
        if slots is None:
            return [None] * count
        taken = len(self._held) - len(self._idle())
        if taken + count > slots.most:
            raise ConfigError(
                f"{count} more beside {taken} of this process that are in use would be more sessions than "
                f"{MAX_SESSIONS.option} allows ({slots.most}), and none of them ends before: allow more"
            )
        return slots.take(count, self._give_way)

    def _give_way(self) -> bool:
        """Stop a session that lies idle, so that others can be had; False when none does."""
        idle = self._idle()[:1]
        self._end(idle)
        return bool(idle)

    def _end(self, ending: Iterable[Held]) -> None:
        with ExitStack() as each:  # one that raises does not keep the others from their end
            for held in list(ending):
                self._held.remove(held)
                each.callback(self._end_one, held)

    def _end_one(self, held: Held) -> None:
        with ExitStack() as steps:
            if held.slot:
                steps.callback(held.slot.release)
            steps.callback(held.life.stop)
            self._world.stopping(held)
