"""A session for as long as a ``with`` block lasts: created, waited for, always stopped."""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

from pytest_device.sessions.background import Boot, wait_for
from pytest_device.sessions.device_session import Life, Sessions
from pytest_device.sessions.events import Report, ignore
from pytest_device.sessions.lifecycle import WaitPolicy
from pytest_device.sessions.models import Session
from pytest_device.sessions.request import SessionRequest

_DEFAULT_POLICY: Final = WaitPolicy()


@contextmanager
def lease(
    client: Sessions,
    request: SessionRequest,
    *,
    policy: WaitPolicy = _DEFAULT_POLICY,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
    report: Report = ignore,
) -> Generator[Session]:
    """Create a session, wait until its connection details are there, and stop it however the block ends.

    Raises a ServiceError when it cannot be created, a SessionError when it does not become ready, StopFailedError
    when it may still be running at the end. A stop that fails after another error becomes a note on that error.
    """
    life = Life(client, request, policy=policy, clock=clock, report=report)
    try:
        wait_for([Boot(iter([life]), clock)], clock, sleep)
        yield life.session
    except BaseException as error:
        life.stop_after(error)
        raise
    else:
        life.stop()
