"""The moments that rows wait for and the faults they trigger, by name."""

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
"""How long a request is delayed, so that a fault can strike during it."""


def at_once(*acts: Act) -> Act:
    """Return an act that performs several acts in order."""

    def act(room: Room) -> None:
        for one in acts:
            one(room)

    return act


def in_test(room: Room) -> None:
    """Wait until a test holds its session."""
    room.wait_reached()


def in_two_tests(room: Room) -> None:
    """Wait until two processes each hold a session."""
    room.wait_reached(2)


def while_booting(room: Room) -> None:
    """Wait until a session exists and is not ready."""
    room.wait_status("new")


def beside_one_ahead(room: Room) -> None:
    """Wait until a test holds its session and the session of the next test is created."""
    room.wait_reached()
    room.wait_requests("create", 2)


def boots_for_ever(room: Room) -> None:
    """Make all boots take forever."""
    room.service.add_fault("boot", "delay", seconds=3600, times=None)


def inside(operation: str) -> Act:
    """Wait until a request is in progress."""
    return lambda room: room.wait_request(operation)


def slow(operation: str, seconds: float = SLOW_SECONDS) -> Act:
    """Delay the first request of an operation before the service carries it out."""
    return lambda room: room.service.add_fault(operation, "delay", seconds=seconds)


def service_fault(operation: str, effect: str, **options: Any) -> Act:
    """Add a fault to the service."""
    return lambda room: room.service.add_fault(operation, effect, **options)


def network_strikes(room: Room) -> None:
    """Wait until the network has interfered."""
    room.wait_for(
        lambda: room.network_struck_at() is not None, "interference by the network"
    )


def trick(operation: str, play: Trick, *, times: int = 1) -> Act:
    """Make the network interfere with requests of an operation."""
    return lambda room: room.network.play(operation, play, times=times)


def sends(*numbers: signal.Signals, pause: float = 0.3) -> Act:
    """Send signals to pytest itself, with a pause in between (seconds)."""
    return lambda room: _in_turn(room, room.send, numbers, pause)


def sends_group(*numbers: signal.Signals, pause: float = 0.3) -> Act:
    """Send signals to the process group, with a pause in between (seconds)."""
    return lambda room: _in_turn(room, room.send_group, numbers, pause)


def sends_worker(number: signal.Signals) -> Act:
    """Send a signal to a process that is running its test."""
    return lambda room: room.send_to(room.wait_reached()[0], number)


def sends_reapers(number: signal.Signals, count: int = 1) -> Act:
    """Send a signal to the reapers."""

    def act(room: Room) -> None:
        for reaper in room.wait_reapers(count):
            room.send_to(reaper.pid, number)

    return act


def network_becomes(state: str, seconds: float | None = None) -> Act:
    """Change the state of the network, for some seconds or permanently."""

    def act(room: Room) -> None:
        room.strike()
        room.network.become(state)
        if seconds is not None:
            time.sleep(seconds)
            room.network.become("up")

    return act


def waits(seconds: float) -> Act:
    """Wait while a fault lasts (seconds)."""
    return lambda _room: time.sleep(seconds)


def touches(name: str) -> Act:
    """Create the file that the suite is waiting for."""
    return lambda room: (room.directory / name).touch()


def _in_turn(
    room: Room,
    send: Callable[[signal.Signals], None],
    numbers: tuple[signal.Signals, ...],
    pause: float,
) -> None:
    for position, number in enumerate(numbers):
        if position:
            time.sleep(pause)
        if room.run.poll() is None:
            send(number)
