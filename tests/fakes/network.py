"""A network between clients and the local service, which a test disturbs."""

import threading
from collections.abc import Callable

import httpx

from pytest_device import DeviceClient
from tests.fakes.local_service import BASE_URL, TOKEN, InProcessService

Fault = Callable[[httpx.Request, Callable[[], httpx.Response]], httpx.Response]
"""What the network does to one request: forward it or not, and return any response."""


class FakeNetwork:
    """Forwards requests to the local service in this process, unless a test has set ``faults``.

    The faults of an operation (create, get or stop) apply in turn, each to one request. ``requests`` has the operations
    in the order in which they were sent, ``answered`` those with a response so far. ``clock`` is that of the service.
    """

    def __init__(self, service: InProcessService) -> None:
        self.service = service
        self.clock = service.clock
        self.faults: dict[str, list[Fault]] = {}
        self.requests: list[str] = []
        self.answered: list[str] = []
        # A service has one thread, its clients may have several.
        self._one_at_a_time = threading.Lock()

    def client(self) -> DeviceClient:
        """Return a client with the token of the service's first account."""
        return DeviceClient(
            BASE_URL,
            TOKEN,
            transport=httpx.MockTransport(self._handle),
            sleep=self.clock.sleep,
        )

    def statuses(self) -> list[str]:
        """Return the status of each session, in the order of creation."""
        self.service.sessions.sweep()
        return [session.status for session in self.service.sessions]

    def _handle(self, request: httpx.Request) -> httpx.Response:
        operation = operation_of(request)
        self.requests.append(operation)

        faults = self.faults.get(operation, [])
        fault = faults.pop(0) if faults else forwarded
        reply = fault(request, lambda: self._carry_out(request))

        self.answered.append(operation)
        return reply

    def _carry_out(self, request: httpx.Request) -> httpx.Response:
        with self._one_at_a_time:
            return self.service.transport.handle_request(request)


def forwarded(
    _request: httpx.Request, carry_out: Callable[[], httpx.Response]
) -> httpx.Response:
    """Forward a request: the fault that is none."""
    return carry_out()


def operation_of(request: httpx.Request) -> str:
    """Return the operation of the REST interface: create, get or stop."""
    if request.method == "GET":
        return "get"
    return "stop" if request.url.path.endswith("/stop") else "create"
