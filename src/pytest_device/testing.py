"""Tools for testing suites and plugins that build on this one: a clock, and the local service with faults.

The plugin itself imports nothing from here. ``pytest_device.service.faults`` describes the faults.
"""

from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from typing import Any, cast

import httpx

from pytest_device.local import LocalService
from pytest_device.redact import uses_tls
from pytest_device.settings import LOCAL_APP_ID


class FakeClock:
    """A clock that only ``sleep`` advances; call it to get the time in seconds."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        """Return the time."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Advance the clock at once."""
        self.now += seconds


class FaultyService:
    """A running local service with its test interface enabled: ``url``, ``token``, ``app_id``."""

    def __init__(self, service: LocalService) -> None:
        self.url = service.url
        self.token = service.token
        self.app_id = LOCAL_APP_ID
        self._before: set[str] = set()
        self._http = httpx.Client(
            base_url=f"{service.url}/testing",
            headers={"Authorization": f"Bearer {service.token}"},
            trust_env=False,
            verify=uses_tls(service.url),
        )

    def add_fault(self, operation: str, effect: str, **options: Any) -> None:
        """Add a fault; ``operation`` is create, get, stop, boot or controller."""
        self._ask(
            "POST", "/faults", {"operation": operation, "effect": effect, **options}
        )

    def remove_faults(self) -> None:
        """Remove all faults, and end the delays that they cause: delayed requests and boots go on."""
        self._ask("DELETE", "/faults")

    def reset(self) -> None:
        """Remove all faults and added tokens, forget previous requests, and exclude current sessions from the lists."""
        self._ask("POST", "/reset")
        self._before = {session["id"] for session in self._ask("GET", "/sessions")}

    def add_token(self, token: str, *, is_foreign: bool = False) -> None:
        """Let the service accept another token: of the same account, or of one that has no project."""
        self._ask("POST", "/tokens", {"token": token, "is_foreign": is_foreign})

    def expire(self, session_id: str) -> None:
        """Let a session reach its limit now."""
        self._ask("POST", f"/sessions/{session_id}/expire")

    def requests(self, session_id: str | None = None) -> list[tuple[str, int | None]]:
        """Return the requests since the last reset: operation and status, None if no response was sent.

        With a session ID, return only those for that session; without, leave out late ones for the sessions that were
        created before the reset.
        """
        requests = self._ask("GET", "/requests")
        if session_id is None:
            listed = [each for each in requests if each["session"] not in self._before]
        else:
            listed = [each for each in requests if each["session"] == session_id]

        return [(request["operation"], request["status"]) for request in listed]

    def sessions(self) -> list[dict[str, Any]]:
        """Return the sessions since the last reset: ``id``, ``name``, ``status``, ``reason``."""
        return [
            session
            for session in self._ask("GET", "/sessions")
            if session["id"] not in self._before
        ]

    def statuses(self) -> list[str]:
        """Return the status of each session."""
        return [session["status"] for session in self.sessions()]

    def _ask(self, method: str, path: str, body: object = None) -> list[dict[str, Any]]:
        reply = self._http.request(method, path, json=body)
        reply.raise_for_status()
        return cast("list[dict[str, Any]]", reply.json()["data"])

    def close(self) -> None:
        """Close the connection to the test interface."""
        self._http.close()


@contextmanager
def faulty_service(
    *, runner: str = "simulated", progress: Callable[[str], None] = print, **config: Any
) -> Generator[FaultyService]:
    """Run a local service with its test interface; with simulated devices unless ``runner="real"``."""
    service = LocalService.start(
        app_id=LOCAL_APP_ID, progress=progress, runner=runner, testing=True, **config
    )
    with closing(service), closing(FaultyService(service)) as faulty:
        yield faulty
