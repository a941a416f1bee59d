"""Sessions with real programs at the running service, and what tests ask of them.

Their processes are found by the code that ends them: it alone knows their marks, and finds children of children.
"""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx
import psutil

from pytest_device.service.programs.processes import end, find_processes
from pytest_device.spec import SESSIONS_PATH
from tests.fakes.local_service import data
from tests.service.process import ServiceProcess
from tests.waiting import eventually

LIMIT_SECONDS: Final = 90.0


@dataclass(frozen=True)
class Session:
    """A session and a client of its controller."""

    service: ServiceProcess
    id: str
    directory: Path

    @property
    def facts(self) -> Mapping[str, Any]:
        return data(self.service.get(self.id))

    def ready(self) -> Mapping[str, Any]:
        assert eventually(lambda: self.facts["status"] != "new", LIMIT_SECONDS)
        facts = self.facts
        assert facts["status"] == "in-progress", self.reason()
        return dict(facts["remoteConfig"])

    def reason(self) -> str:
        listed = self.service.http.get("/testing/sessions").json()["data"]
        return str(next(one["reason"] for one in listed if one["id"] == self.id))

    def errored(self) -> str:
        assert eventually(lambda: self.facts["status"] == "errored", LIMIT_SECONDS)
        assert self.facts["remoteConfig"] is None
        return self.reason()

    def timeline(self) -> list[str]:
        """Return the entries on its page: status changes, and what was noted of its programs."""
        entries = self._page("facts").json()["data"]["timeline"]
        return [entry["text"] for entry in entries]

    def log(self) -> str:
        """Return the output of its controller."""
        return self._page("log").text

    def stop(self) -> None:
        path = f"{SESSIONS_PATH}/{self.id}/stop"
        self.service.http.post(path).raise_for_status()

    def is_gone(self) -> bool:
        # The listing costs most.
        return not self.directory.exists() and not find_processes([self.directory])

    def processes(self, name: str = "") -> list[psutil.Process]:
        """Return its processes with ``name`` in their command line."""
        return [
            process
            for process in find_processes([self.directory])
            if name in _command(process)
        ]

    def rpc(self, command: str, *positionals: str, **flags: Any) -> Any:
        """Ask the agent-device daemon as its clients do."""
        remote = self.ready()
        flags = {"platform": "android", **flags}
        params = {
            "session": "s",
            "command": command,
            "positionals": positionals,
            "flags": flags,
            "meta": {},
        }
        reply = httpx.post(
            f"{remote['agentDeviceRemoteSessionUrl']}/rpc",
            json={
                "jsonrpc": "2.0",
                "id": 1,
                "method": "agent_device.command",
                "params": params,
            },
            headers={
                "Authorization": f"Bearer {remote['agentDeviceRemoteSessionToken']}"
            },
            timeout=LIMIT_SECONDS,
        ).json()
        assert "result" in reply, reply
        return reply["result"]["data"]

    def labels(self) -> list[str]:
        return [node.get("label") for node in self.rpc("snapshot")["nodes"]]

    def tool(self, name: str, **arguments: Any) -> Any:
        """Ask the argent tool server as its clients do."""
        remote = self.ready()
        reply = httpx.post(
            f"{remote['toolsUrl']}/tools/{name}",
            json=arguments,
            headers={"Authorization": f"Bearer {remote['toolsAuthToken']}"},
            timeout=LIMIT_SECONDS,
        )
        assert reply.status_code == 200, reply.text
        return reply.json()["data"]

    def driver(self, **capabilities: str) -> str:
        """Start a session of Appium with a driver; return its URL."""
        remote = self.ready()
        url = f"{remote['appiumUrl']}/session"
        wanted = {**remote["capabilities"], **capabilities}
        reply = httpx.post(
            url, json={"capabilities": {"alwaysMatch": wanted}}, timeout=LIMIT_SECONDS
        )
        assert reply.status_code == 200, reply.text
        return f"{url}/{reply.json()['value']['sessionId']}"

    def ports(self) -> list[int]:
        """Return the TCP ports at which the service and the session's processes listen."""
        processes = [psutil.Process(self.service.process.pid), *self.processes()]
        connections = [
            connection
            for process in processes
            for connection in process.net_connections("inet")
        ]
        return sorted(
            {
                connection.laddr.port
                for connection in connections
                if connection.status == psutil.CONN_LISTEN
            }
        )

    def _page(self, name: str) -> httpx.Response:
        return self.service.http.get(f"/sessions/{self.id}/{name}").raise_for_status()


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.NoSuchProcess:  # a short one, which has just ended
        return ""


Create = Callable[..., Session]


def created(service: ServiceProcess, directory: Path, **options: Any) -> Session:
    """Create a session on the browser, unless ``options`` name another device."""
    session_id = data(service.create(**{"deviceIdentifier": "chromium"} | options))[
        "id"
    ]
    return Session(service, session_id, directory / "state/programs" / session_id)


@contextmanager
def creating(service: ServiceProcess, directory: Path) -> Generator[Create]:
    """Provide a function that creates sessions, as ``created`` does; stop them at the end of the block."""
    sessions: list[Session] = []

    def create(**options: Any) -> Session:
        session = created(service, directory, **options)
        sessions.append(session)
        return session

    yield create
    for session in sessions:
        session.stop()
    for session in sessions:
        assert eventually(session.is_gone, LIMIT_SECONDS)


def kill_leftovers(directory: Path) -> None:
    """Kill the programs of sessions that a failed test has left."""
    end(list(directory.glob("state/programs/*")), grace_seconds=0)
