"""Sessions that boot side by side: looked at when they are due, by who waits for them or by one thread behind."""

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from typing import Final

from pytest_device.errors import SessionFailedError
from pytest_device.sessions.device_session import Life, may_have_created
from pytest_device.sessions.events import SessionRef, Unused
from pytest_device.sessions.quota import Slot
from pytest_device.sessions.relay import Deferred, Relay

_SLICE_SECONDS: Final = 1.0
"""Of a wait for a lock: on Windows no signal breaks one."""


class Boot:
    """One session on its way, until it is ready or over, with the next of ``lives`` in its place when it turns errored.

    ``lives`` may begin with one that is in progress already. A boot is in the hands of one thread at a time: of the
    poller's while it ``is_ahead``, else of whoever waits for it.
    """

    def __init__(
        self,
        lives: Iterator[Life],
        clock: Callable[[], float],
        leaves_unknown: Callable[[BaseException], bool] = may_have_created,
        *,
        slot: Slot | None = None,
        is_ahead: bool = False,
    ) -> None:
        self.slot, self.is_ahead = slot, is_ahead
        self.is_wanted = True
        self.due = clock()
        """When it is to be looked at again."""
        self.is_ready = self.is_over = False
        self.error: BaseException | None = None
        """Why it was given up behind the tests."""
        self.kept: Deferred = []
        """What happened behind the tests."""
        self.hold = threading.Lock()
        """Held by the poller's thread while it does something with it."""
        self._lives, self._clock, self._leaves_unknown = lives, clock, leaves_unknown
        self._life: Life | None = None
        self._is_begun = False

    @property
    def life(self) -> Life:
        """Return the session that boots, or has."""
        if self._life is None:
            raise RuntimeError("the boot has not begun")
        return self._life

    @property
    def is_created(self) -> bool:
        """Tell whether there is a session."""
        return self._life is not None and self._life.is_created

    @property
    def refusals(self) -> int:
        """Return how often the service has had no capacity for it, 0 when it is created."""
        return 0 if self._life is None or self._life.is_created else self._life.refusals

    @property
    def is_settled(self) -> bool:
        """Tell whether there is nothing to do with it for the poller."""
        return self.is_over or not self.is_ahead or (self.is_ready and self.is_wanted)

    def step(self) -> None:
        """Create the session, or look at it once; raises what ``Life`` raises when it is given up."""
        try:
            pause = self._advanced().pause()
            self.due, self.is_ready = self._clock() + pause, not pause
        except SessionFailedError as error:
            following = next(self._lives, None)
            if following is None:
                raise
            self.life.fail_to_start(str(error))
            self._life, self._is_begun, self.due = following, False, self._clock()

    def _advanced(self) -> Life:
        life = self._life = self._life or next(self._lives)
        if self._is_begun:
            life.look()
        elif not life.is_created:
            life.create(self._leaves_unknown)
        self._is_begun = True
        return life

    def wait_anew(self) -> None:
        """Count the wait from here on: until now nobody has waited for it."""
        if self._life:
            self._life.wait_since(self._clock())

    def stop(self) -> None:
        """Stop what there is of it; raises StopFailedError when it may still be running."""
        with self._ending():
            if self._life:
                self._life.stop()

    def give_up(self, error: BaseException) -> None:
        """Stop what there is of it because of an error: a stop that fails becomes a note on it."""
        with self._ending():
            if self._life:
                self._life.stop_after(error)

    def _ending(self) -> ExitStack:
        steps = ExitStack()
        steps.callback(self._end)
        if self.slot:
            steps.callback(self.slot.release)
        return steps

    def _end(self) -> None:
        self.is_over = True


def wait_for(boots: Sequence[Boot], clock: Callable[[], float], sleep: Callable[[float], None]) -> None:
    """Serve boots until all of them are ready; raises what makes one of them give up."""
    while waiting := [boot for boot in boots if not boot.is_ready]:
        serve(waiting, clock, sleep)


def serve(boots: Sequence[Boot], clock: Callable[[], float], sleep: Callable[[float], None]) -> list[Boot]:
    """Wait until one of these boots is due, look at those that are, and return them; raises what makes one give up."""
    first = min(boot.due for boot in boots)
    if (pause := first - clock()) > 0:
        sleep(pause)
    now = max(clock(), first)  # a suite may have stopped the clock
    due = [boot for boot in boots if boot.due <= now]
    for boot in due:
        boot.step()
    return due


def unused(life: Life) -> Unused:
    """Return the event of a session that was booted ahead and that no test has had."""
    request, session = life.request, life.session
    return Unused(SessionRef(f"{request.platform} {request.type}", str(session.id), session.url))


class Poller:
    """Serves the boots that nobody waits for yet, and stops those that nobody wants any more.

    All of them in one thread, which is there only as long as there is something to do. What a boot meets is put aside
    with it. Nothing here waits for the thread but ``withdraw`` and ``close``.
    """

    def __init__(self, clock: Callable[[], float], relay: Relay) -> None:
        self._clock, self._relay = clock, relay
        self._news: queue.SimpleQueue[Boot | None] = queue.SimpleQueue()
        # Both of these are made in C: no signal can strike within, so none leaves the lock taken.
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def add(self, boot: Boot | None = None) -> None:
        """Serve a boot from here on; without one, only look at the clock again."""
        with self._lock:
            if self._thread is None and boot is None:
                return
            self._news.put(boot)
            if self._thread is None:
                thread = threading.Thread(target=self._serve, name="pytest-device-poller", daemon=True)
                thread.start()
                self._thread = thread

    def drop(self, boot: Boot) -> None:
        """Stop a boot behind the tests, whatever is being done with it; its events tell what came of it."""
        boot.is_wanted, boot.is_ahead = False, True
        self.add(boot)

    def withdraw(self, boot: Boot) -> None:
        """Take a boot out of the thread's hands; waits while it calls the service for it, which has an end.

        Whatever breaks the wait leaves the boot to the thread, to be stopped.
        """
        boot.is_ahead = False
        try:
            while not boot.hold.acquire(timeout=_SLICE_SECONDS):
                pass
        except BaseException:
            self.drop(boot)
            raise
        boot.hold.release()

    def close(self, timeout_seconds: float) -> None:
        """Wait until all is done, for so many seconds at most."""
        if thread := self._thread:
            thread.join(timeout_seconds)

    # In the thread.

    def _serve(self) -> None:
        boots: dict[Boot, None] = {}
        while self._hear(boots):
            for boot in boots:
                if boot.due <= self._clock() or not boot.is_wanted:
                    self._step(boot)

    def _hear(self, boots: dict[Boot, None]) -> bool:
        """Wait for news until a boot is due; False when nothing is left to be done."""
        for boot in [boot for boot in boots if boot.is_settled]:
            del boots[boot]
        with self._lock:
            if not boots and self._news.empty():
                self._thread = None
                return False
        pause = max(0.0, min(boot.due for boot in boots) - self._clock()) if boots else 0.0
        with suppress(queue.Empty):
            while True:
                if news := self._news.get(timeout=pause):
                    boots[news] = None
                pause = 0.0
        return True

    def _step(self, boot: Boot) -> None:
        with boot.hold, self._relay.aside(boot.kept):
            if boot.is_settled:  # taken over since
                return
            try:
                self._do(boot)
            except BaseException as error:  # noqa: BLE001  # raised where somebody asks for the session
                boot.error = error
                boot.give_up(error)

    def _do(self, boot: Boot) -> None:
        if boot.is_wanted:
            boot.step()
            return
        if boot.is_created:
            self._relay(unused(boot.life))
        boot.stop()
