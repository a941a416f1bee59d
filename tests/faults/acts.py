"""The moments that rows wait for and the faults they trigger, by name."""

import signal
import time
from collections.abc import Callable
from typing import Any, Final

from tests.faults.network import Trick
from tests.faults.row import Act
from tests.faults.row_environment import RowEnvironment

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
"""How long a request is delayed, so that a fault can take effect during it."""


def at_once(*acts: Act) -> Act:
    """Return an act that performs several acts in order."""

    def act(env: RowEnvironment) -> None:
        for one in acts:
            one(env)

    return act


def in_test(env: RowEnvironment) -> None:
    """Wait until a test holds its session."""
    env.wait_reached()


def in_two_tests(env: RowEnvironment) -> None:
    """Wait until two processes each hold a session."""
    env.wait_reached(2)


def while_booting(env: RowEnvironment) -> None:
    """Wait until a session exists and is not ready."""
    env.wait_status("new")


def beside_one_ahead(env: RowEnvironment) -> None:
    """Wait until a test holds its session and the session of the next test is created."""
    env.wait_reached()
    env.wait_requests("create", 2)


def boots_for_ever(env: RowEnvironment) -> None:
    """Make all boots take forever."""
    env.service.add_fault("boot", "delay", seconds=3600, times=None)


def inside(operation: str) -> Act:
    """Wait until a request is in progress."""
    return lambda env: env.wait_request(operation)


def slow(operation: str, seconds: float = SLOW_SECONDS) -> Act:
    """Delay the first request of an operation before the service carries it out."""
    return lambda env: env.service.add_fault(operation, "delay", seconds=seconds)


def hangs(operation: str) -> Act:
    """Delay the first request of an operation until ``goes_on``."""
    return slow(operation, 3600)


def goes_on(env: RowEnvironment) -> None:
    """End the delay of ``hangs``, some time after the fault that struck during it."""
    time.sleep(SLOW_SECONDS)
    env.service.remove_faults()


def service_fault(operation: str, effect: str, **options: Any) -> Act:
    """Add a fault to the service."""
    return lambda env: env.service.add_fault(operation, effect, **options)


def network_strikes(env: RowEnvironment) -> None:
    """Wait until the network has interfered."""
    env.wait_for(
        lambda: env.network_struck_at() is not None, "interference by the network"
    )


def trick(operation: str, play: Trick, *, times: int = 1) -> Act:
    """Make the network interfere with requests of an operation."""
    return lambda env: env.network.play(operation, play, times=times)


def sends(*numbers: signal.Signals, pause: float = 0.3) -> Act:
    """Send signals to pytest itself, with a pause in between (seconds)."""
    return lambda env: _in_turn(env, env.send, numbers, pause)


def sends_group(*numbers: signal.Signals, pause: float = 0.3) -> Act:
    """Send signals to the process group, with a pause in between (seconds)."""
    return lambda env: _in_turn(env, env.send_group, numbers, pause)


def sends_worker(number: signal.Signals) -> Act:
    """Send a signal to a process that is running its test."""
    return lambda env: env.send_to(env.wait_reached()[0], number)


def sends_reapers(number: signal.Signals, count: int = 1) -> Act:
    """Send a signal to the reapers."""

    def act(env: RowEnvironment) -> None:
        for reaper in env.wait_reapers(count):
            env.send_to(reaper.pid, number)

    return act


def network_becomes(state: str, seconds: float | None = None) -> Act:
    """Change the state of the network, for some seconds or permanently."""

    def act(env: RowEnvironment) -> None:
        env.strike()
        env.network.become(state)
        if seconds is not None:
            time.sleep(seconds)
            env.network.become("up")

    return act


def waits(seconds: float) -> Act:
    """Wait while a fault lasts (seconds)."""
    return lambda _env: time.sleep(seconds)


def touches(name: str) -> Act:
    """Create the file that the suite is waiting for."""
    return lambda env: (env.directory / name).touch()


def _in_turn(
    env: RowEnvironment,
    send: Callable[[signal.Signals], None],
    numbers: tuple[signal.Signals, ...],
    pause: float,
) -> None:
    for position, number in enumerate(numbers):
        if position:
            time.sleep(pause)
        if env.run.poll() is None:
            send(number)
