"""A session for the duration of a ``with`` block: created, waited for, always stopped."""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

from pytest_device.sessions.attempt import ProblemOf, SessionConfig
from pytest_device.sessions.client import SessionClient
from pytest_device.sessions.device_session import DeviceSession, advance_due
from pytest_device.sessions.events import Event
from pytest_device.sessions.lifecycle import WaitPolicy, skip_controller_check
from pytest_device.sessions.models import Session
from pytest_device.sessions.reporter import Relay
from pytest_device.sessions.request import DeviceRequirement, SessionRequest

_DEFAULT_POLICY: Final = WaitPolicy()


@contextmanager
def lease(
    client: SessionClient,
    request: SessionRequest,
    *,
    policy: WaitPolicy = _DEFAULT_POLICY,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
    on_event: Callable[[Event], object] | None = None,
    problem_of: ProblemOf = skip_controller_check,
) -> Generator[Session]:
    """Create a session, wait until its connection details are available, and stop it however the block ends.

    A stop that fails after another error becomes a note on that error.

    Args:
        client: A client of the service.
        request: What to create.
        policy: How long to wait, and how often to poll.
        clock: Returns seconds that never go back.
        sleep: Sleeps for some seconds.
        on_event: Called with each event of the session, a class of ``pytest_device.events``.
        problem_of: Returns the problem with the session's controller while that is unreachable.

    Returns:
        The session in progress, for the block.

    Raises:
        ServiceError: The session can't be created.
        SessionError: The session doesn't become ready.
        StopFailedError: The session may still be running at the end.

    >>> with lease(client, request) as session:
    ...     session.remote_config
    AppiumConfig()
    >>> client.get(session.id).status
    <Status.STOPPED: 'stopped'>

    >>> events = []
    >>> with lease(client, request, on_event=events.append):
    ...     pass
    >>> events[0], events[-1]
    (Created(session=SessionRef(...)), Stopped(session=SessionRef(...), status='stopped', ...))
    """
    config = SessionConfig(client, clock, Relay(on_event), problem_of)
    # No key: nobody else can share it.
    session = DeviceSession(DeviceRequirement(request, sharing_key=""), policy, config)
    try:
        while not session.is_ready:
            advance_due([session], clock, sleep)
        yield session.session
    except BaseException as error:
        session.stop_after(error)
        raise
    else:
        session.stop()
    finally:
        session.deliver()
