"""What the document promises of every service: asked of the local one, or of the one that the environment names.

``DEVICE_URL=… DEVICE_TOKEN=… DEVICE_APP_ID=… pytest tests/contract/test_any_service.py`` asks a real service. It rents
one session of each type that ``DEVICE_CONTRACT_TYPES`` names (all four by default), on ``DEVICE_PLATFORM`` (android by
default), each for at most five minutes, stops it and bills for it. What is refused costs nothing.
"""

import json
import os
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import uuid4

import httpx
import pytest

from pytest_device.controllers.health import problem_of
from pytest_device.local import LocalService
from pytest_device.sessions.models import Session
from pytest_device.settings import LOCAL_APP_ID
from pytest_device.spec import SESSIONS_PATH
from tests.contract.document import Row, each, is_a, refused, request_body, table

pytestmark = pytest.mark.every_python

ENVIRON: Final = {
    name: value for name, value in os.environ.items() if name.startswith("DEVICE_")
}
TYPES: Final = ENVIRON.get(
    "DEVICE_CONTRACT_TYPES", "agent-device,argent,appium,web-preview-only"
).split(",")
AT_NIGHT: Final = () if ENVIRON else ("agent-device", "argent")
"""Types of the local service whose programs other tests of the gate start: ``service/test_controllers``."""
PLATFORM: Final = ENVIRON.get("DEVICE_PLATFORM", "android")
READY_SECONDS: Final = 900
MINUTES: Final = 5


@dataclass(frozen=True)
class HttpService:
    """A service at the HTTP level: nothing of this package is between it and the tests."""

    app_id: str
    pause_seconds: float
    http: httpx.Client
    token: str = field(repr=False)

    def call(
        self,
        method: str,
        path: str = "",
        *,
        body: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        sent = {"Authorization": f"Bearer {self.token}"} if headers is None else headers
        content = None if body is None else json.dumps(body)
        # Without a body, too: the document has both headers on every request.
        typed = {"Content-Type": "application/json", **sent}
        return self.http.request(
            method, SESSIONS_PATH + path, content=content, headers=typed
        )

    def create(self, **options: Any) -> httpx.Response:
        return self.call(
            "POST", body={"appId": self.app_id, "platform": PLATFORM, **options}
        )

    @contextmanager
    def session(self, session_type: str) -> Iterator[dict[str, Any]]:
        """Create a session and make sure that it is stopped."""
        created = data_of(
            self.create(type=session_type, name="contract", maxDurationMinutes=MINUTES)
        )
        try:
            yield created
        finally:
            self.call("POST", f"/{created['id']}/stop")

    def ready(self, session_id: str) -> dict[str, Any]:
        """Poll a session, as the document recommends, until it has connection details."""
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            session = data_of(self.call("GET", f"/{session_id}"))
            if session["status"] != "new" and (
                session["remoteConfig"] or session["status"] != "in-progress"
            ):
                return session
            # What the document has clients do: there is nothing else to wait for.
            time.sleep(self.pause_seconds)
        raise TimeoutError(
            f"session {session_id} was not ready within {READY_SECONDS} s"
        )


def data_of(reply: httpx.Response) -> dict[str, Any]:
    assert reply.status_code == httpx.codes.OK, (
        f"{reply.status_code}: {reply.text[:500]}"
    )
    data: dict[str, Any] = reply.json()["data"]
    return data


@pytest.fixture(scope="module")
def service() -> Generator[HttpService]:
    if token := ENVIRON.get("DEVICE_TOKEN"):
        with httpx.Client(base_url=ENVIRON["DEVICE_URL"], timeout=60) as http:
            yield HttpService(ENVIRON["DEVICE_APP_ID"], 5.0, http, token)
        return
    local = LocalService.start(app_id=LOCAL_APP_ID, progress=print, runner="real")
    try:
        with httpx.Client(base_url=local.url, timeout=60, trust_env=False) as http:
            yield HttpService(LOCAL_APP_ID, 0.1, http, local.token)
    finally:
        local.close()


@dataclass(frozen=True)
class Story:
    """The responses over a session's whole lifecycle."""

    type: str
    created: dict[str, Any]
    ready: dict[str, Any]
    problem: str | None
    stopped: httpx.Response
    again: httpx.Response
    read: httpx.Response


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(name, marks=[pytest.mark.nightly] if name in AT_NIGHT else [])
        for name in TYPES
    ],
)
def story(request: pytest.FixtureRequest, service: HttpService) -> Story:
    """Create one session of a type, for all the tests that use it."""
    with service.session(request.param) as created:
        path = f"/{created['id']}"
        ready = service.ready(created["id"])
        problem = (
            problem_of(Session.from_wire(ready)) if ready["remoteConfig"] else None
        )
        stopped, again = (service.call("POST", f"{path}/stop") for _ in range(2))
        return Story(
            request.param,
            created,
            ready,
            problem,
            stopped,
            again,
            service.call("GET", path),
        )


def test_a_session_starts_as_new_without_connection_details(story: Story) -> None:
    shown = {
        name: story.created[name]
        for name in ("type", "status", "remoteConfig", "startedAt", "finishedAt")
    }

    assert shown == {
        "type": story.type,
        "status": "new",
        "remoteConfig": None,
        "startedAt": None,
        "finishedAt": None,
    }


def test_the_requested_values_are_reported(story: Story) -> None:
    assert (
        story.created["platform"],
        story.created["name"],
        story.created["maxDurationMinutes"],
    ) == (
        PLATFORM,
        "contract",
        MINUTES,
    )


def test_a_session_gets_in_progress_with_its_start_time(story: Story) -> None:
    assert (story.ready["status"], is_a("timestamp", story.ready["startedAt"])) == (
        "in-progress",
        True,
    )


def test_the_connection_details_match_the_type(story: Story) -> None:
    config = story.ready["remoteConfig"]
    rows = [row for row in table("remote_config") if row["type"] == story.type]
    given = [
        row for row in rows if row["required"] or config.get(row["field"]) is not None
    ]

    assert [
        row["field"] for row in given if not is_a(row["json"], config.get(row["field"]))
    ] == []


def test_the_controller_is_alive_once_the_session_is_in_progress(story: Story) -> None:
    assert story.problem is None


def test_a_stop_ends_a_session_and_removes_its_connection_details(story: Story) -> None:
    stopped = data_of(story.stopped)

    assert (stopped["status"], stopped["remoteConfig"]) == ("stopped", None)
    assert is_a("timestamp", stopped["finishedAt"])


def test_a_second_stop_changes_nothing(story: Story) -> None:
    assert data_of(story.again) == data_of(story.stopped) == data_of(story.read)


@pytest.mark.parametrize("status", ["created", "ready", "stopped"])
def test_every_response_has_the_documented_fields(story: Story, status: str) -> None:
    session = {
        "created": story.created,
        "ready": story.ready,
        "stopped": data_of(story.stopped),
    }[status]
    wrong = [
        row["field"]
        for row in table("session_fields")
        if row["field"] not in session
        or not (
            row["nullable"]
            if session[row["field"]] is None
            else is_a(row["type"], session[row["field"]])
        )
    ]

    assert wrong == []


@each("headers", where=lambda row: row["on"] == "success")
def test_a_success_has_the_documented_headers(story: Story, row: Row) -> None:
    assert [
        row["value"] in reply.headers[row["name"]]
        for reply in (story.stopped, story.read)
    ] == [True, True]


@each("request_fields", "request_combinations", where=refused)
def test_an_invalid_request_is_refused_and_creates_nothing(
    service: HttpService, row: Row
) -> None:
    is_about_the_project = "appId" in {*row.get("change", {}), *row.get("without", ())}
    project = {} if is_about_the_project else {"appId": service.app_id}

    assert (
        service.call("POST", body=request_body(row) | project).status_code
        == httpx.codes.BAD_REQUEST
    )


def test_an_unknown_session_is_not_found(service: HttpService) -> None:
    assert service.call("GET", f"/{uuid4()}").status_code == httpx.codes.NOT_FOUND


def test_an_unknown_project_is_not_found_or_not_permitted(service: HttpService) -> None:
    assert service.create(appId=str(uuid4())).status_code in {
        httpx.codes.NOT_FOUND,
        httpx.codes.FORBIDDEN,
    }


def test_an_invalid_token_is_refused(service: HttpService) -> None:
    reply = service.call(
        "GET",
        f"/{uuid4()}",
        headers={"Authorization": "Bearer made-up-token-of-no-one"},
    )

    assert reply.status_code == httpx.codes.UNAUTHORIZED


def test_a_missing_token_is_reported_with_its_code(service: HttpService) -> None:
    reply = service.call("GET", f"/{uuid4()}", headers={})

    assert (reply.status_code, "UNAUTHORIZED_ERROR" in reply.text) == (
        httpx.codes.BAD_REQUEST,
        True,
    )
