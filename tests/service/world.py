"""The service in-process: its application with a simulated runner and a fake clock."""

import asyncio
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import httpx

from pytest_device.service.accounts import AccessToken, Account, Accounts, Role
from pytest_device.service.api import create_app
from pytest_device.service.faults import Faults, FaultyRunner
from pytest_device.service.runners.simulated import SimulatedRunner
from pytest_device.service.sessions import Sessions
from pytest_device.service.store import Store
from pytest_device.spec import SESSIONS_PATH

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


@dataclass
class Clock:
    """A clock in Unix seconds that advances only by hand."""

    now: float = NOW
    slept: list[float] = field(default_factory=list[float])

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


class World:
    """A separate service, and the requests that tests send to it."""

    def __init__(
        self,
        store: Store,
        *,
        now: float = NOW,
        boot_seconds: float = BOOT_SECONDS,
        any_host: bool = False,
        base_url: str = BASE_URL,
        testing: bool = True,
    ) -> None:
        self.clock = Clock(now)
        self.faults = Faults(self.clock.sleep)
        self.runner = SimulatedRunner(clock=self.clock, boot_seconds=boot_seconds)
        self.sessions = Sessions(
            store=store,
            runner=FaultyRunner(self.runner, self.faults, self.clock),
            clock=self.clock,
        )
        self.app = create_app(
            sessions=self.sessions,
            accounts=Accounts(ACCOUNTS),
            base_url=base_url,
            any_host=any_host,
            faults=self.faults if testing else None,
            more=self.runner.routes(),
        )

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
                transport=transport, base_url=BASE_URL
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
