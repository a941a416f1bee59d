"""A session's ID is sent back as the service spelled it, since services may be case-sensitive."""

import os
import subprocess
from collections.abc import Generator
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from uuid import UUID

import pytest

from pytest_device import DeviceClient, lease
from tests.cli.running import call
from tests.contract.document import example_session
from tests.fakes.http_server import Answer, ScriptedServer, running, says
from tests.sessions.reaper_clients import (
    Served,
    either_way,
    entries,
    entry_of,
    reaper_client_at,
    request_at,
    write_entry,
)

ID = UUID("7d7a1f0e-0f4c-4f2e-9b0a-0c9d6a1f2b3c")
TOKEN = "open-sesame-open"
spellings = pytest.mark.parametrize("text", [str(ID).upper(), ID.hex.upper()])


class SingleSessionService(ScriptedServer):
    """A service with one session, which it knows by exactly one text."""

    def __init__(self, text: str) -> None:
        super().__init__(self._reply)
        self.text, self.status = text, "in-progress"
        self.found: dict[str, Any] = {}
        """What a lookup says instead."""
        self.served = Served(self.url, TOKEN, str(UUID(int=1)))

    def session(self) -> dict[str, Any]:
        details = {"appiumUrl": "http://127.0.0.1:4723", "capabilities": {}}
        return example_session(
            id=self.text,
            status=self.status,
            platform="android",
            type="appium",
            remoteConfig=details,
        )

    def _reply(self, call: str) -> Answer:
        method, _, path = call.partition(" ")
        _, _, of = unquote(path).partition("/device-run-sessions")
        match method, of.removeprefix(f"/{self.text}"):
            case ("POST", "/stop"):
                self.status = "stopped"
            case ("GET", ""):
                return says({"data": self.session() | self.found})
            case ("POST", ""):
                pass
            case _:
                missing = {"code": "NOT_FOUND", "message": f"no session at {path}"}
                return says({"errors": [missing]}, 404)
        return says({"data": self.session()})


@pytest.fixture
def exact(text: str) -> Generator[SingleSessionService]:
    with running(SingleSessionService(text)) as server:
        yield server


@spellings
def test_the_client_keeps_the_spelling_of_an_id(exact: SingleSessionService) -> None:
    with DeviceClient(exact.served.url, TOKEN) as client:
        created = client.create(request_at(exact.served))
        found = client.get(created.id)

        assert client.stop(created.id).status == "stopped"

    assert found.id == created.id == ID
    assert str(created.id) == created.model_dump(mode="json")["id"] == exact.text


@pytest.mark.parametrize("text", [str(ID).upper()])
def test_an_id_keeps_its_spelling_from_creation(exact: SingleSessionService) -> None:
    exact.status, exact.found = "new", {"id": str(ID), "status": "in-progress"}
    with (
        DeviceClient(exact.served.url, TOKEN) as client,
        lease(client, request_at(exact.served), sleep=lambda _seconds: None) as session,
    ):
        assert str(session.id) == exact.text

    assert exact.status == "stopped"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="ends processes as Unix does")
@either_way
@spellings
def test_reaper_and_ledger_keep_the_spelling_of_an_id(
    exact: SingleSessionService, tmp_path: Path, *, is_detached: bool
) -> None:
    client = reaper_client_at(exact.served, tmp_path, is_detached=is_detached)
    try:
        created = client.create(request_at(exact.served))
        (entry,) = entries(tmp_path)
        stopped = client.stop(ID)  # in the usual spelling
    finally:
        client.close(10)

    assert entry.session_id == exact.text
    assert (stopped.id, stopped.status, exact.status) == (
        created.id,
        "stopped",
        "stopped",
    )


@pytest.mark.parametrize("text", [str(ID).upper()])
def test_a_session_in_the_ledger_is_stopped_by_its_id_in_any_spelling(
    exact: SingleSessionService, tmp_path: Path
) -> None:
    write_entry(tmp_path, entry_of(exact.text, exact.served))

    stopped = stop(exact, tmp_path, str(ID))

    assert stopped.returncode == 0, stopped.stderr
    assert exact.status == "stopped"


@pytest.mark.parametrize("text", [str(ID).upper()])
def test_a_session_that_is_in_no_ledger_is_stopped_by_its_id_as_typed(
    exact: SingleSessionService, tmp_path: Path
) -> None:
    stopped = stop(exact, tmp_path, exact.text)

    assert stopped.returncode == 0, stopped.stderr
    assert exact.status == "stopped"


def stop(
    exact: SingleSessionService, state_dir: Path, session_id: str
) -> subprocess.CompletedProcess[str]:
    """Stop a session by the command."""
    return call(
        "stop",
        session_id,
        "--state-dir",
        str(state_dir),
        DEVICE_URL=exact.served.url,
        DEVICE_TOKEN=TOKEN,
    )
