"""Behavior of the REST interface beyond the document's tables."""

import asyncio
import json
from typing import Any

import httpx
import pytest
from starlette.types import Message

from pytest_device.service.api import MAX_BODY_BYTES
from pytest_device.service.store import Store
from pytest_device.spec import SESSIONS_PATH
from tests.service.world import (
    APP_ID,
    BOOT_SECONDS,
    CLOSED_APP_ID,
    CLOSED_TOKEN,
    DEVELOPER,
    SMALL_APP_ID,
    SMALL_TOKEN,
    TOKEN,
    UNKNOWN_ID,
    VIEWER,
    World,
    data,
    error,
)

pytestmark = pytest.mark.newer_pythons

VALID = {"appId": APP_ID, "platform": "android"}
JSON = {"Content-Type": "application/json"}
RAW_JSON = [(b"content-type", b"application/json")]

AUTHORIZATIONS = [
    # header, status, code
    ({}, 400, "UNAUTHORIZED_ERROR"),
    ({"Authorization": ""}, 401, "INVALID_TOKEN"),
    ({"Authorization": "Bearer"}, 401, "INVALID_TOKEN"),
    ({"Authorization": "Bearer "}, 401, "INVALID_TOKEN"),
    ({"Authorization": "Bearer wrong"}, 401, "INVALID_TOKEN"),
    ({"Authorization": TOKEN}, 401, "INVALID_TOKEN"),
    ({"Authorization": f"Basic {TOKEN}"}, 401, "INVALID_TOKEN"),
    ({"Authorization": f"Bearer {TOKEN} {TOKEN}"}, 401, "INVALID_TOKEN"),
]

OPERATIONS = [
    ("POST", SESSIONS_PATH),
    ("GET", f"{SESSIONS_PATH}/{UNKNOWN_ID}"),
    ("POST", f"{SESSIONS_PATH}/{UNKNOWN_ID}/stop"),
]

BROKEN_BODIES = [
    pytest.param(b"", id="empty"),
    pytest.param(b"<html></html>", id="html"),
    pytest.param(b'{"appId": ', id="cut-off"),
    pytest.param(b'{"maxDurationMinutes": NaN}', id="nan"),
    pytest.param(b'{"maxDurationMinutes": Infinity}', id="infinity"),
    pytest.param(
        b'{"maxDurationMinutes": ' + b"9" * 5000 + b"}", id="number-without-end"
    ),
    pytest.param(b'{"name": "\xff"}', id="not-utf-8"),
    pytest.param('{"name": "x"}'.encode("utf-16"), id="utf-16"),
    pytest.param(b"[" * 60_000, id="nested-without-end"),
]

ELSEWHERE = [
    # method, path, status
    ("GET", "/nowhere", 404),
    ("POST", "/", 405),
    ("GET", "/v2", 404),
    ("POST", "/v1/device-run-sessions", 404),
    ("POST", f"{SESSIONS_PATH}/", 404),
    ("GET", f"{SESSIONS_PATH}/{UNKNOWN_ID}/", 404),
    ("GET", f"{SESSIONS_PATH}/{UNKNOWN_ID}/stop/now", 404),
    ("GET", SESSIONS_PATH, 405),
    ("DELETE", f"{SESSIONS_PATH}/{UNKNOWN_ID}", 405),
    ("GET", f"{SESSIONS_PATH}/{UNKNOWN_ID}/stop", 405),
    ("POST", f"/sessions/{UNKNOWN_ID}", 405),
]

OWN_HOSTS = ["127.0.0.1:8765", "localhost", "LOCALHOST:1", "[::1]:8765", "127.1.2.3"]
FOREIGN_HOSTS = [
    "evil.example",
    "localhost.evil.example:8765",
    "127.0.0.1.evil.example",
    "127.0.0.1@evil.example",
    "10.0.0.1",
    "[::1",
    "",
]


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
@pytest.mark.parametrize(("header", "status", "code"), AUTHORIZATIONS)
def test_a_request_without_a_valid_token_is_refused(
    world: World, method: str, path: str, header: dict[str, str], status: int, code: str
) -> None:
    reply = world.send(method, path, token=None, headers=header, json=VALID)

    assert (reply.status_code, error(reply)["code"]) == (status, code)


def test_the_authorization_scheme_is_case_insensitive(world: World) -> None:
    reply = world.send(
        "POST",
        SESSIONS_PATH,
        token=None,
        headers={"Authorization": f"bEARER {TOKEN}"},
        json=VALID,
    )

    assert reply.status_code == 200


def test_an_invalid_token_is_reported_with_the_expected_scheme(world: World) -> None:
    assert world.create(token="wrong").headers["WWW-Authenticate"] == "Bearer"


def test_a_refusal_does_not_repeat_the_token(world: World) -> None:
    assert "wrong-token" not in world.create(token="wrong-token").text


def test_a_viewer_can_get_but_neither_create_nor_stop(world: World) -> None:
    session_id = world.created()
    replies = [
        world.get(session_id, VIEWER),
        world.create(VIEWER),
        world.stop(session_id, VIEWER),
    ]

    assert [reply.status_code for reply in replies] == [200, 403, 403]


def test_a_missing_permission_is_named(world: World) -> None:
    reply = world.create(VIEWER)

    assert error(reply)["code"] == "FORBIDDEN"
    assert "developer" in error(reply)["message"]


def test_a_refused_stop_leaves_the_session_running(world: World) -> None:
    session_id = world.created()
    world.stop(session_id, VIEWER)

    assert data(world.get(session_id))["status"] == "new"


def test_a_developer_can_create_get_and_stop(world: World) -> None:
    session_id = data(world.create(DEVELOPER))["id"]

    assert world.get(session_id, DEVELOPER).status_code == 200
    assert world.stop(session_id, DEVELOPER).status_code == 200


def test_the_duration_defaults_to_the_limit_of_the_account(world: World) -> None:
    assert (
        data(world.create(SMALL_TOKEN, appId=SMALL_APP_ID))["maxDurationMinutes"] == 40
    )


def test_a_duration_above_the_limit_of_the_account_is_refused(world: World) -> None:
    reply = world.create(SMALL_TOKEN, appId=SMALL_APP_ID, maxDurationMinutes=41)

    assert reply.status_code == 400
    assert error(reply)["option"] == "maxDurationMinutes"
    assert "at most 40" in error(reply)["message"]


def test_an_account_without_simulator_access_gets_no_session(world: World) -> None:
    reply = world.create(CLOSED_TOKEN, appId=CLOSED_APP_ID)

    assert (reply.status_code, error(reply)["code"]) == (400, "SIMULATOR_ACCESS_ERROR")
    assert not list(world.sessions)


def test_a_refused_request_creates_no_session(world: World) -> None:
    world.create(maxDurationMinutes=116)

    assert not list(world.sessions)


def test_every_problem_of_a_request_is_a_separate_error(world: World) -> None:
    reply = world.create(name="", vendorGo=1)

    assert [(one["code"], one["option"]) for one in reply.json()["errors"]] == [
        ("VALIDATION_ERROR", "name"),
        ("VALIDATION_ERROR", "vendorGo"),
    ]


@pytest.mark.parametrize("body", BROKEN_BODIES)
def test_a_body_that_is_not_json_is_refused(world: World, body: bytes) -> None:
    reply = world.send("POST", SESSIONS_PATH, content=body, headers=JSON)

    assert (reply.status_code, error(reply)["code"]) == (400, "VALIDATION_ERROR")
    assert "the body is not JSON" in error(reply)["message"]


def test_an_aborted_request_is_not_a_failure_of_the_service(world: World) -> None:
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    async def exchange() -> None:
        headers = [
            (b"host", b"localhost"),
            (b"authorization", f"Bearer {TOKEN}".encode()),
            *RAW_JSON,
        ]
        await world.app(
            {
                "type": "http",
                "method": "POST",
                "path": SESSIONS_PATH,
                "headers": headers,
            },
            receive,
            send,
        )

    asyncio.run(exchange())

    assert sent[0]["status"] == 400
    assert not list(world.sessions)


@pytest.mark.parametrize(
    "content_type", ["", "text/plain", "application/jsonp", "multipart/form-data"]
)
def test_a_body_without_the_json_content_type_is_refused(
    world: World, content_type: str
) -> None:
    reply = world.send(
        "POST",
        SESSIONS_PATH,
        content=json.dumps(VALID).encode(),
        headers={"Content-Type": content_type},
    )

    assert reply.status_code == 400
    assert "Content-Type: application/json" in error(reply)["message"]


def test_the_content_type_can_name_a_charset(world: World) -> None:
    content_type = {"Content-Type": "Application/JSON; charset=utf-8"}

    assert (
        world.send(
            "POST", SESSIONS_PATH, content=json.dumps(VALID), headers=content_type
        ).status_code
        == 200
    )


@pytest.mark.parametrize(
    ("size", "status"), [(MAX_BODY_BYTES, 200), (MAX_BODY_BYTES + 1, 413)]
)
def test_a_body_is_read_up_to_a_limit(world: World, size: int, status: int) -> None:
    body = json.dumps(VALID).encode().ljust(size)

    assert (
        world.send("POST", SESSIONS_PATH, content=body, headers=JSON).status_code
        == status
    )


def test_the_body_of_a_stop_is_ignored(world: World) -> None:
    session_id = world.created()

    assert (
        world.send(
            "POST", f"{SESSIONS_PATH}/{session_id}/stop", content=b"{"
        ).status_code
        == 200
    )


def test_a_session_is_found_by_its_id_in_any_case(world: World) -> None:
    session_id = world.created()

    assert data(world.get(session_id.upper()))["id"] == session_id


@pytest.mark.parametrize(
    "session_id",
    ["1", UNKNOWN_ID.replace("-", ""), f"{{{UNKNOWN_ID}}}", f"{UNKNOWN_ID}%0A"],
)
def test_a_malformed_session_id_is_refused_with_its_value(
    world: World, session_id: str
) -> None:
    reply = world.get(session_id)

    assert reply.status_code == 400
    assert "must be a UUID, not " in error(reply)["message"]


@pytest.mark.parametrize(("method", "path", "status"), ELSEWHERE)
def test_a_missing_path_is_reported_as_json(
    world: World, method: str, path: str, status: int
) -> None:
    reply = world.send(method, path)

    assert reply.status_code == status
    assert error(reply)["message"]


def test_a_wrong_method_names_the_right_ones(world: World) -> None:
    assert world.send("GET", SESSIONS_PATH).headers["Allow"] == "POST"


def test_refusals_do_not_carry_the_headers_of_successes(world: World) -> None:
    replies = [
        world.create(name=""),
        world.get(UNKNOWN_ID),
        world.send("GET", "/nowhere"),
    ]

    assert not [
        reply for reply in replies if {"cache-control", "pragma"} & set(reply.headers)
    ]


@pytest.mark.parametrize("host", OWN_HOSTS)
def test_requests_for_names_of_this_machine_are_accepted(
    world: World, host: str
) -> None:
    assert world.create_as_host(host).status_code == 200


@pytest.mark.parametrize("host", FOREIGN_HOSTS)
def test_a_foreign_host_name_is_refused(world: World, host: str) -> None:
    reply = world.create_as_host(host)

    assert (reply.status_code, error(reply)["code"]) == (421, "FOREIGN_HOST")


def test_a_service_for_other_machines_has_no_pages_without_a_token(
    store: Store,
) -> None:
    assert World(store).send("GET", "/").status_code == 200
    assert World(store, any_host=True).send("GET", "/").status_code == 404


def test_any_host_name_is_accepted_if_configured(store: Store) -> None:
    assert (
        World(store, any_host=True).create_as_host("devices.example.com").status_code
        == 200
    )


def test_the_url_of_a_session_is_its_page_at_this_service(world: World) -> None:
    session = data(world.create(name="login <b>"))
    page = httpx.URL(session["url"])
    reply = world.send("GET", page.path, token=None)

    assert str(page).startswith("http://127.0.0.1:8765/sessions/")
    assert reply.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "login &lt;b&gt;" in reply.text
    assert "login <b>" not in reply.text


def test_the_page_of_a_failed_session_reports_why(world: World) -> None:
    world.fault("boot", "fail", reason="no device <booted>")
    session_id = world.created()

    assert (
        "no device &lt;booted&gt;"
        in world.send("GET", f"/sessions/{session_id}", token=None).text
    )


def test_the_page_shows_no_connection_details(world: World) -> None:
    options: dict[str, Any] = {
        "type": "argent",
        "applicationArchiveUrl": "https://files.example.com/a?key=hunter2",
    }
    session_id = world.created(**options)
    world.clock.now += BOOT_SECONDS
    config = data(world.get(session_id))["remoteConfig"]
    text = world.send("GET", f"/sessions/{session_id}", token=None).text

    assert "in-progress" in text
    assert config["toolsAuthToken"] not in text
    assert config["toolsUrl"] not in text
    assert "hunter2" not in text


@pytest.mark.parametrize(("session_id", "status"), [(UNKNOWN_ID, 404), ("1", 400)])
def test_an_unknown_session_has_no_page(
    world: World, session_id: str, status: int
) -> None:
    assert (
        world.send("GET", f"/sessions/{session_id}", token=None).status_code == status
    )


def test_an_unexpected_error_reveals_no_internals(world: World, store: Store) -> None:
    store.close()
    reply = world.send("POST", SESSIONS_PATH, broken=True, json=VALID)

    assert (reply.status_code, error(reply)["code"]) == (500, "INTERNAL_ERROR")
    assert "database" not in reply.text


def test_the_test_interface_is_disabled_by_default(store: Store) -> None:
    assert (
        World(store, testing=False).send("GET", "/testing/requests").status_code == 404
    )
