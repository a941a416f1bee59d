"""The local service in this process, without a network, on a clock that the test advances."""

import asyncio
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import httpx
from starlette.routing import BaseRoute

from pytest_device.service.accounts import AccessToken, Account, Accounts, Role
from pytest_device.service.api import create_app
from pytest_device.service.faults import Faults, FaultyRunner
from pytest_device.service.runners.base import Runner
from pytest_device.service.runners.simulated import BootSeconds, SimulatedRunner
from pytest_device.service.sessions import Sessions
from pytest_device.service.store import Store
from pytest_device.spec import SESSIONS_PATH
from tests.fakes.clock import FakeClock
from tests.in_process import transport_of

APP_ID: Final = "0b8e4d52-9c1f-4f3a-a7d6-5e2c8b9f1043"
SMALL_APP_ID: Final = "1b8e4d52-9c1f-4f3a-a7d6-5e2c8b9f1043"
CLOSED_APP_ID: Final = "2b8e4d52-9c1f-4f3a-a7d6-5e2c8b9f1043"
UNKNOWN_ID: Final = "ffffffff-9c1f-4f3a-a7d6-5e2c8b9f1043"
TOKEN: Final = "made-up-token-of-a-person"
DEVELOPER: Final = "made-up-token-of-a-developer"
VIEWER: Final = "made-up-token-of-a-viewer"
SMALL_TOKEN: Final = "made-up-token-of-a-small-account"
CLOSED_TOKEN: Final = "made-up-token-of-a-closed-account"
BASE_URL: Final = "http://127.0.0.1:8765"
NOW: Final = 1_800_000_000.25
BOOT_SECONDS: Final = 10.0

ACCOUNTS: Final = (
    Account(
        frozenset({APP_ID}),
        (
            AccessToken.of(TOKEN, Role.ADMIN),
            AccessToken.of(DEVELOPER, Role.DEVELOPER),
            AccessToken.of(VIEWER, Role.VIEWER),
        ),
    ),
    Account(
        frozenset({SMALL_APP_ID}),
        (AccessToken.of(SMALL_TOKEN, Role.ADMIN),),
        max_duration_minutes=40,
    ),
    Account(
        frozenset({CLOSED_APP_ID}),
        (AccessToken.of(CLOSED_TOKEN, Role.ADMIN),),
        simulator_access=False,
    ),
)


class InProcessService:
    """The application of the local service, and the requests that tests send to it.

    Its devices are simulated and boot within ``boot_seconds``, unless there is a ``runner``. The sessions are kept in
    ``file``, by default in memory: another service with the same file is this one after a restart. ``testing`` adds the
    test interface, ``more`` are further routes. ``clock`` replaces the fake clock. ``transport`` connects a client.
    """

    def __init__(
        self,
        *,
        file: Path | None = None,
        clock: Callable[[], float] | None = None,
        now: float = NOW,
        runner: Runner | None = None,
        boot_seconds: float | BootSeconds = BOOT_SECONDS,
        accounts: Sequence[Account] = ACCOUNTS,
        base_url: str = BASE_URL,
        any_host: bool = False,
        testing: bool = True,
        log: Callable[[str], None] = lambda _text: None,
        client_url: Callable[[str, str | None], str | None] = lambda *_wanted: None,
        more: Callable[[Sessions], Sequence[BaseRoute]] = lambda _sessions: (),
    ) -> None:
        self.clock = clock if isinstance(clock, FakeClock) else FakeClock(now)
        clock = clock or self.clock
        self.store = Store.open(file) if file else memory_store()

        faults = Faults(self.clock.sleep_async) if testing else None
        simulated = SimulatedRunner(clock=clock, boot_seconds=boot_seconds)
        self.runner: Runner = runner or simulated
        self.sessions = Sessions(
            store=self.store,
            runner=FaultyRunner(self.runner, faults, clock) if faults else self.runner,
            clock=clock,
            log=log,
            client_url=client_url,
        )

        self.base_url = base_url
        self.app = create_app(
            sessions=self.sessions,
            accounts=Accounts(accounts),
            base_url=base_url,
            any_host=any_host,
            faults=faults,
            more=[*simulated.routes(), *more(self.sessions)],
        )
        self.transport = transport_of(self.app)

    def send(
        self,
        method: str,
        path: str,
        *,
        token: str | None = TOKEN,
        broken: bool = False,
        **more: Any,
    ) -> httpx.Response:
        """Send any request to any path; return the reply of a ``broken`` service instead of raising its error."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        headers |= more.pop("headers", {})

        async def exchange() -> httpx.Response:
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=not broken)
            async with httpx.AsyncClient(
                transport=transport, base_url=self.base_url
            ) as client:
                return await client.request(method, path, headers=headers, **more)

        return asyncio.run(exchange())

    def create(self, token: str | None = TOKEN, **options: Any) -> httpx.Response:
        return self.send(
            "POST",
            SESSIONS_PATH,
            token=token,
            json={"appId": APP_ID, "platform": "android"} | options,
        )

    def create_as_host(self, host: str) -> httpx.Response:
        """Create a session by a request with its own Host header."""
        return self.send(
            "POST",
            SESSIONS_PATH,
            headers={"Host": host},
            json={"appId": APP_ID, "platform": "ios"},
        )

    def created(self, **options: Any) -> str:
        """Create a session and return its ID."""
        return str(data(self.create(**options))["id"])

    def get(self, session_id: str, token: str | None = TOKEN) -> httpx.Response:
        return self.send("GET", f"{SESSIONS_PATH}/{session_id}", token=token)

    def stop(self, session_id: str, token: str | None = TOKEN) -> httpx.Response:
        return self.send("POST", f"{SESSIONS_PATH}/{session_id}/stop", token=token)

    def listed(self, what: str) -> Any:
        """Return what the test interface lists."""
        return self.send("GET", f"/testing/{what}").json()["data"]

    def fault(self, operation: str, effect: str, **more: Any) -> None:
        reply = self.send(
            "POST",
            "/testing/faults",
            json={"operation": operation, "effect": effect, **more},
        )
        assert reply.status_code == 200, reply.text

    def close(self) -> None:
        """Close the file."""
        self.store.close()


def data(reply: httpx.Response) -> Mapping[str, Any]:
    """Return the session in a successful reply."""
    assert reply.status_code == 200, reply.text
    session: Mapping[str, Any] = reply.json()["data"]
    return session


def error(reply: httpx.Response) -> Mapping[str, Any]:
    """Return the single error in an error reply."""
    (only,) = reply.json()["errors"]
    assert isinstance(only, dict)
    return only


def memory_store() -> Store:
    """Open a store in memory, for use in any thread."""
    return Store(
        sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    )
