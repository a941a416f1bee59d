"""Failures of a real service, on demand: the faults of the test interface.

A fault has an ``operation``, an ``effect`` and the effect's parameters. It applies to ``times`` requests of its
operation (default 1, null for all) after skipping ``skip`` of them (default 0). If several faults have the same
operation, the first that applies takes the request, and later ones do not count it.

=================  ================================================  ===========================================
``operation``      ``effect``                                        needs
=================  ================================================  ===========================================
create, get, stop  ``delay``: the answer is slow                     ``seconds``
create, get, stop  ``lose-request``: the connection is closed        none
                   without an answer, nothing was carried out
create, get, stop  ``lose-answer``: the same, but it was carried     none
                   out: a session exists that no client knows
create, get, stop  ``reset-request``, ``reset-answer``: the same,    none
                   by a reset of the connection
create, get, stop  ``truncate``: the connection is closed after      none
                   half of the answer's body
create, get, stop  ``reply``: any answer in place of the service's   ``status``, ``body``, ``headers``,
                                                                     ``carried_out`` (default false)
create, get, stop  ``change``: fields of the answer's session are    ``fields``
                   changed or added
get, stop          ``expire``: the session reaches its limit first   none
boot               ``delay``: the device is not ready before         ``seconds`` since its creation
boot               ``fail``: the session becomes errored             ``reason``, ``seconds`` until then (default 0)
controller         those of get without ``change`` and ``expire``;   as above
                   and ``dead``: status 502 with an HTML page
=================  ================================================  ===========================================

``controller`` is a request to the controller of a simulated session; with ``times=null`` all of them stay dead. The
list of requests leaves these out.

The routes, all of which need a valid token:

- ``POST /testing/faults`` with a fault as JSON adds it.
- ``DELETE /testing/faults`` removes all faults, and ends the delays that they cause: delayed requests and boots go on.
- ``POST /testing/reset`` removes all faults and added tokens, and forgets the requests seen so far.
- ``POST /testing/tokens`` with ``{"token"}`` adds an access token of the same account, as when a token is rotated, and
  with ``"is_foreign": true`` one of another account, which has no project.
- ``GET /testing/requests`` lists the requests in their order: ``operation``, ``status`` (null: no response was sent),
  ``session`` (its ID; null: a create call).
- ``GET /testing/sessions`` lists every session: ``id``, ``name``, ``status``, ``reason``.
- ``POST /testing/sessions/ID/expire`` makes a session reach its limit now.
- ``POST /testing/sessions/ID/fail`` with ``{"reason"}`` makes its programs fail now, ready or not.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pytest_device.service.runners.base import Boot, Booting, Failed, Record, Runner

BOOT: Final = "boot"
BOOT_EFFECTS: Final = ("delay", "fail")
CONTROLLER: Final = "controller"
DEAD: Final = "dead"
MAX_SEEN: Final = 100_000
"""Maximum number of remembered requests, the newest."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault as requested."""

    operation: str
    effect: str
    times: int | None = 1
    skip: int = 0
    seconds: float = 0.0
    status: int = 500
    body: str = ""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    carried_out: bool = False
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    reason: str = "a fault of the test interface"


@dataclass(slots=True)
class Seen:
    """A request that reached the service; ``status`` is None until a response is sent."""

    operation: str
    session: str | None = None
    status: int | None = None


@dataclass(slots=True)
class _ArmedFault:
    """A fault, and the number of requests of its operation so far."""

    fault: Fault
    seen: int = 0

    def applies_to_next(self) -> bool:
        """Count a request; return whether the fault applies to it."""
        self.seen += 1
        skip, times = self.fault.skip, self.fault.times
        if self.seen <= skip:
            return False
        return times is None or self.seen <= skip + times


class Faults:
    """The faults that are set, and the requests seen; ``sleep`` takes seconds."""

    def __init__(
        self, sleep: Callable[[float], Coroutine[Any, Any, object]] = asyncio.sleep
    ) -> None:
        self._sleep = sleep
        self._armed: list[_ArmedFault] = []
        self._delays: set[asyncio.Task[object]] = set()
        """The sleeps of the requests that are delayed now."""
        self.seen: deque[Seen] = deque(maxlen=MAX_SEEN)
        self.boots: dict[str, tuple[float, Fault]] = {}
        """By session: a fault of its boot, and the Unix time from which it is ready or fails."""
        self.failed: dict[str, str] = {}
        """Sessions whose programs were made to fail, with the reason."""

    def add(self, fault: Fault) -> None:
        self._armed.append(_ArmedFault(fault))

    async def delay(self, seconds: float) -> None:
        """Sleep, at most until the faults are removed."""
        sleeping = asyncio.create_task(self._sleep(seconds))
        self._delays.add(sleeping)
        try:
            await asyncio.wait({sleeping})
        finally:
            self._delays.discard(sleeping)
            sleeping.cancel()

    def remove(self) -> None:
        """Remove all faults, and end the delays that they cause."""
        self._armed.clear()
        for sleeping in self._delays:
            sleeping.cancel()
        self.boots = {
            session_id: (at, fault)
            for session_id, (at, fault) in self.boots.items()
            if fault.effect != "delay"
        }

    def reset(self) -> None:
        self._armed.clear()
        # What is still delayed belongs to an earlier test: it does not go on in a later one.
        self._delays.clear()
        self.seen.clear()

    def take(self, operation: str) -> Fault | None:
        """Count one request and return the fault that applies to it, if any."""
        for armed in self._armed:
            if armed.fault.operation == operation and armed.applies_to_next():
                return armed.fault

        return None


class FaultyRunner:
    """A runner whose devices boot late, fail to boot or crash if a fault says so."""

    def __init__(
        self, runner: Runner, faults: Faults, clock: Callable[[], float]
    ) -> None:
        self._runner = runner
        self._faults = faults
        self._clock = clock

    def start(self, session_id: str, request: Mapping[str, Any]) -> None:
        """Start the session, with the fault that applies to its boot."""
        fault = self._faults.take(BOOT)
        if fault is not None:
            self._faults.boots[session_id] = (self._clock() + fault.seconds, fault)
        self._runner.start(session_id, request)

    def record(self, session_id: str) -> Record:
        """Return the state of the programs, as modified by their faults."""
        record = self._runner.record(session_id)
        boot = self._boot(session_id)
        return replace(record, boot=boot) if boot else record

    def _boot(self, session_id: str) -> Boot | None:
        """Return the state of the boot that a fault causes, None without one."""
        if session_id in self._faults.failed:
            return Failed(self._faults.failed[session_id])
        if session_id not in self._faults.boots:
            return None

        at, fault = self._faults.boots[session_id]
        if self._clock() < at:
            return Booting()
        return Failed(fault.reason) if fault.effect == "fail" else None

    def stop(self, session_id: str) -> None:
        self._runner.stop(session_id)

    async def close(self) -> None:
        await self._runner.close()
