"""The moments that rows wait for and the blows they strike, by name."""

import signal
import time
from collections.abc import Callable
from typing import Any, Final

from tests.faults.network import Trick
from tests.faults.room import Room
from tests.faults.row import Act

INT, TERM, HUP, QUIT, KILL, STOP, CONT = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGKILL,
    signal.SIGSTOP,
    signal.SIGCONT,
)
SLOW_SECONDS: Final = 1.5
"""How long a call under way is held, so that a fault can strike inside it."""


def at_once(*acts: Act) -> Act:
    """Return an act that does all of these, one after the other."""

    def act(room: Room) -> None:
        for one in acts:
            one(room)

    return act


def in_test(room: Room) -> None:
    """Wait until a test holds its session."""
    room.wait_reached()


def in_two_tests(room: Room) -> None:
    """Wait until two processes hold a session each."""
    room.wait_reached(2)


def while_booting(room: Room) -> None:
    """Wait until a session is there and not ready."""
    room.wait_status("new")


def beside_one_ahead(room: Room) -> None:
    """Wait until a test holds its session, and the next one's is created."""
    room.wait_reached()
    room.wait_requests("create", 2)


def boots_for_ever(room: Room) -> None:
    """Let no device become ready."""
    room.service.add_fault("boot", "delay", seconds=3600, times=None)


def inside(operation: str) -> Act:
    """Wait until a call is under way."""
    return lambda room: room.wait_request(operation)


def slow(operation: str, seconds: float = SLOW_SECONDS) -> Act:
    """Let the first call of an operation take its time before the service carries it out."""
    return lambda room: room.service.add_fault(operation, "delay", seconds=seconds)


def service_fault(operation: str, effect: str, **options: Any) -> Act:
    """Let the service misbehave."""
    return lambda room: room.service.add_fault(operation, effect, **options)


def network_strikes(room: Room) -> None:
    """Wait until the network has played a trick."""
    room.wait_for(lambda: room.network_struck_at() is not None, "a trick of the network")


def trick(operation: str, play: Trick, *, times: int = 1) -> Act:
    """Let the network play a trick."""
    return lambda room: room.network.play(operation, play, times=times)


def sends(*numbers: signal.Signals, pause: float = 0.3) -> Act:
    """Send signals to pytest itself, with a pause between two."""
    return lambda room: _in_turn(room, room.send, numbers, pause)


def sends_group(*numbers: signal.Signals, pause: float = 0.3) -> Act:
    """Send signals to the process group, with a pause between two."""
    return lambda room: _in_turn(room, room.send_group, numbers, pause)


def sends_worker(number: signal.Signals) -> Act:
    """Send a signal to one process that is inside its test."""
    return lambda room: room.send_to(room.wait_reached()[0], number)


def sends_reapers(number: signal.Signals, count: int = 1) -> Act:
    """Send a signal to the reapers."""

    def act(room: Room) -> None:
        for reaper in room.wait_reapers(count):
            room.send_to(reaper.pid, number)

    return act


def network_becomes(state: str, seconds: float | None = None) -> Act:
    """Let the network be down, for so many seconds or for good."""

    def act(room: Room) -> None:
        room.strike()
        room.network.become(state)
        if seconds is not None:
            time.sleep(seconds)
            room.network.become("up")

    return act


def waits(seconds: float) -> Act:
    """Let time pass: how long a fault lasts."""
    return lambda _room: time.sleep(seconds)


def touches(name: str) -> Act:
    """Let the suite, which waits for a file, go on."""
    return lambda room: (room.directory / name).touch()


def _in_turn(
    room: Room, send: Callable[[signal.Signals], None], numbers: tuple[signal.Signals, ...], pause: float
) -> None:
    for position, number in enumerate(numbers):
        if position:
            time.sleep(pause)
        if room.run.poll() is None:
            send(number)
