"""The service as a real process, as in a run: started through its pipes, reached through a socket."""

import json
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx

from pytest_device.spec import SESSIONS_PATH
from tests import forking
from tests.fakes.local_service import APP_ID, TOKEN

COMMAND: Final = (sys.executable, *forking.SERVICE)
PATIENCE_SECONDS: Final = 60.0


@dataclass(frozen=True)
class ServiceProcess:
    """A running service and a client of it."""

    process: subprocess.Popen[str]
    url: str
    http: httpx.Client

    def create(self, **options: Any) -> httpx.Response:
        return self.http.post(
            SESSIONS_PATH, json={"appId": APP_ID, "platform": "android"} | options
        )

    def get(self, session_id: str) -> httpx.Response:
        return self.http.get(f"{SESSIONS_PATH}/{session_id}")

    def fault(self, operation: str, effect: str, **more: Any) -> None:
        self.http.post(
            "/testing/faults", json={"operation": operation, "effect": effect} | more
        ).raise_for_status()

    def end(self) -> int:
        """Close the lifeline; return the exit status."""
        stdin(self.process).close()
        return self.process.wait(PATIENCE_SECONDS)


def config(directory: Path, **more: Any) -> dict[str, Any]:
    """Return the configuration of a service that keeps all its files in a directory."""
    return {
        "token": TOKEN,
        "app_id": APP_ID,
        "state_dir": str(directory / "state"),
        "log_path": str(directory / "service.log"),
        "runner": "simulated",
        "testing": True,
    } | more


@contextmanager
def started(line: str, **more: Any) -> Generator[subprocess.Popen[str]]:
    """Start a service with a first line of input; end it with the block."""
    pipes: dict[str, Any] = {
        "stdin": subprocess.PIPE,
        "stdout": subprocess.PIPE,
        "text": True,
    } | more
    with forking.Popen(COMMAND, **pipes) as process:
        try:
            stdin(process).write(f"{line}\n")
            stdin(process).flush()
            yield process
        finally:
            process.kill()


@contextmanager
def running(settings: dict[str, Any], **more: Any) -> Generator[ServiceProcess]:
    """Run a service, with options of ``Popen``; end it with the block."""
    with started(json.dumps(settings), **more) as process:
        event = next_event(process)
        assert event["event"] == "ready", event
        with httpx.Client(
            base_url=event["url"],
            headers={"Authorization": f"Bearer {TOKEN}"},
            verify=False,
        ) as http:
            yield ServiceProcess(process, event["url"], http)


def next_event(process: subprocess.Popen[str]) -> dict[str, Any]:
    """Return the next message of the process."""
    assert process.stdout
    event: dict[str, Any] = json.loads(process.stdout.readline())
    return event


def startup(settings: dict[str, Any], **more: Any) -> tuple[list[str], dict[str, Any]]:
    """Run a service until it has started, or failed to; return its steps and its last event."""
    with started(json.dumps(settings), **more) as process:
        return steps_of(process)


def steps_of(process: "subprocess.Popen[str]") -> tuple[list[str], dict[str, Any]]:
    """Return the steps of a service that is starting, and the event after them."""
    steps: list[str] = []
    while (event := next_event(process))["event"] == "progress":
        steps.append(event["text"])
    return steps, event


def refusal(line: str) -> str:
    """Return the error of a service that fails to start."""
    with started(line) as process:
        event = next_event(process)
        assert event["event"] == "error", event
        assert process.wait(PATIENCE_SECONDS) == 1
        return str(event["text"])


def stdin(process: subprocess.Popen[str]) -> Any:
    assert process.stdin
    return process.stdin
