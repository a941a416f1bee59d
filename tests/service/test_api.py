"""Behavior of the REST interface beyond the document's tables."""

import asyncio
import json
from contextlib import closing
from typing import Any

import httpx
import pytest
from starlette.types import Message

from pytest_device.service.api import MAX_BODY_BYTES
from pytest_device.spec import SESSIONS_PATH
from tests.fakes.local_service import (
    ACCOUNTS,
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
    InProcessService,
    data,
    error,
)

pytestmark = pytest.mark.every_python

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
    ({"Authorization": f"Bearer {TOKEN[:-1]}"}, 401, "INVALID_TOKEN"),
    ({"Authorization": f"Bearer {TOKEN.upper()}"}, 401, "INVALID_TOKEN"),
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
    service: InProcessService,
    method: str,
    path: str,
    header: dict[str, str],
    status: int,
    code: str,
) -> None:
    reply = service.send(method, path, token=None, headers=header, json=VALID)

    assert (reply.status_code, error(reply)["code"]) == (status, code)


def test_the_authorization_scheme_is_case_insensitive(
    service: InProcessService,
) -> None:
    reply = service.send(
        "POST",
        SESSIONS_PATH,
        token=None,
        headers={"Authorization": f"bEARER {TOKEN}"},
        json=VALID,
    )

    assert reply.status_code == 200


def test_an_invalid_token_is_reported_with_the_expected_scheme(
    service: InProcessService,
) -> None:
    assert service.create(token="wrong").headers["WWW-Authenticate"] == "Bearer"


def test_a_refusal_does_not_repeat_the_token(service: InProcessService) -> None:
    assert "wrong-token" not in service.create(token="wrong-token").text


def test_a_viewer_can_get_but_neither_create_nor_stop(
    service: InProcessService,
) -> None:
    session_id = service.created()
    replies = [
        service.get(session_id, VIEWER),
        service.create(VIEWER),
        service.stop(session_id, VIEWER),
    ]

    assert [reply.status_code for reply in replies] == [200, 403, 403]


def test_a_missing_permission_is_named(service: InProcessService) -> None:
    reply = service.create(VIEWER)

    assert error(reply)["code"] == "FORBIDDEN"
    assert "developer" in error(reply)["message"]


def test_a_refused_stop_leaves_the_session_running(service: InProcessService) -> None:
    session_id = service.created()
    service.stop(session_id, VIEWER)

    assert data(service.get(session_id))["status"] == "new"


def test_a_developer_can_create_get_and_stop(service: InProcessService) -> None:
    session_id = data(service.create(DEVELOPER))["id"]

    assert service.get(session_id, DEVELOPER).status_code == 200
    assert service.stop(session_id, DEVELOPER).status_code == 200


@pytest.mark.parametrize(
    ("token", "app_id"), [(SMALL_TOKEN, APP_ID), (TOKEN, SMALL_APP_ID)]
)
def test_a_role_on_another_account_is_not_sufficient(
    service: InProcessService, token: str, app_id: str
) -> None:
    assert service.create(token, appId=app_id).status_code == 403


def test_a_project_is_found_by_its_id_in_any_case(service: InProcessService) -> None:
    assert service.create(appId=APP_ID.upper()).status_code == 200


def test_an_unknown_project_is_not_found(service: InProcessService) -> None:
    reply = service.create(appId=UNKNOWN_ID)

    assert (reply.status_code, error(reply)["code"]) == (404, "NOT_FOUND")


def test_only_digests_of_tokens_are_stored() -> None:
    assert ACCOUNTS[0].tokens
    assert TOKEN not in repr(ACCOUNTS)


def test_the_duration_defaults_to_the_limit_of_the_account(
    service: InProcessService,
) -> None:
    assert (
        data(service.create(SMALL_TOKEN, appId=SMALL_APP_ID))["maxDurationMinutes"]
        == 40
    )


def test_a_duration_above_the_limit_of_the_account_is_refused(
    service: InProcessService,
) -> None:
    reply = service.create(SMALL_TOKEN, appId=SMALL_APP_ID, maxDurationMinutes=41)

    assert reply.status_code == 400
    assert error(reply)["option"] == "maxDurationMinutes"
    assert error(reply)["message"] == (
        "maxDurationMinutes 41 is above the limit of the account: at most 40"
    )


def test_an_account_without_simulator_access_gets_no_session(
    service: InProcessService,
) -> None:
    reply = service.create(CLOSED_TOKEN, appId=CLOSED_APP_ID)

    assert (reply.status_code, error(reply)["code"]) == (400, "SIMULATOR_ACCESS_ERROR")
    assert not list(service.sessions)


def test_a_refused_request_creates_no_session(service: InProcessService) -> None:
    service.create(maxDurationMinutes=116)

    assert not list(service.sessions)


def test_every_problem_of_a_request_is_a_separate_error(
    service: InProcessService,
) -> None:
    reply = service.create(name="", vendorGo=1)

    assert [(one["code"], one["option"]) for one in reply.json()["errors"]] == [
        ("VALIDATION_ERROR", "name"),
        ("VALIDATION_ERROR", "vendorGo"),
    ]


@pytest.mark.parametrize("body", BROKEN_BODIES)
def test_a_body_that_is_not_json_is_refused(
    service: InProcessService, body: bytes
) -> None:
    reply = service.send("POST", SESSIONS_PATH, content=body, headers=JSON)

    assert (reply.status_code, error(reply)["code"]) == (400, "VALIDATION_ERROR")
    assert "the body is not JSON" in error(reply)["message"]


def test_an_aborted_request_is_not_a_failure_of_the_service(
    service: InProcessService,
) -> None:
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
        await service.app(
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
    assert not list(service.sessions)


@pytest.mark.parametrize(
    "content_type", ["", "text/plain", "application/jsonp", "multipart/form-data"]
)
def test_a_body_without_the_json_content_type_is_refused(
    service: InProcessService, content_type: str
) -> None:
    reply = service.send(
        "POST",
        SESSIONS_PATH,
        content=json.dumps(VALID).encode(),
        headers={"Content-Type": content_type},
    )

    assert reply.status_code == 400
    assert "Content-Type: application/json" in error(reply)["message"]


def test_the_content_type_can_name_a_charset(service: InProcessService) -> None:
    content_type = {"Content-Type": "Application/JSON; charset=utf-8"}

    assert (
        service.send(
            "POST", SESSIONS_PATH, content=json.dumps(VALID), headers=content_type
        ).status_code
        == 200
    )


@pytest.mark.parametrize(
    ("size", "status"), [(MAX_BODY_BYTES, 200), (MAX_BODY_BYTES + 1, 413)]
)
def test_a_body_is_read_up_to_a_limit(
    service: InProcessService, size: int, status: int
) -> None:
    body = json.dumps(VALID).encode().ljust(size)

    assert (
        service.send("POST", SESSIONS_PATH, content=body, headers=JSON).status_code
        == status
    )


def test_the_body_of_a_stop_is_ignored(service: InProcessService) -> None:
    session_id = service.created()

    assert (
        service.send(
            "POST", f"{SESSIONS_PATH}/{session_id}/stop", content=b"{"
        ).status_code
        == 200
    )


def test_a_session_is_found_by_its_id_in_any_case(service: InProcessService) -> None:
    session_id = service.created()

    assert data(service.get(session_id.upper()))["id"] == session_id


@pytest.mark.parametrize(
    "session_id",
    ["1", UNKNOWN_ID.replace("-", ""), f"{{{UNKNOWN_ID}}}", f"{UNKNOWN_ID}%0A"],
)
def test_a_malformed_session_id_is_refused_with_its_value(
    service: InProcessService, session_id: str
) -> None:
    reply = service.get(session_id)

    assert reply.status_code == 400
    assert "must be a UUID, not " in error(reply)["message"]


@pytest.mark.parametrize(("method", "path", "status"), ELSEWHERE)
def test_a_missing_path_is_reported_as_json(
    service: InProcessService, method: str, path: str, status: int
) -> None:
    reply = service.send(method, path)

    assert reply.status_code == status
    assert error(reply)["message"]


def test_a_wrong_method_names_the_right_ones(service: InProcessService) -> None:
    assert service.send("GET", SESSIONS_PATH).headers["Allow"] == "POST"


def test_refusals_do_not_carry_the_headers_of_successes(
    service: InProcessService,
) -> None:
    replies = [
        service.create(name=""),
        service.get(UNKNOWN_ID),
        service.send("GET", "/nowhere"),
    ]

    assert not [
        reply for reply in replies if {"cache-control", "pragma"} & set(reply.headers)
    ]


@pytest.mark.parametrize("host", OWN_HOSTS)
def test_requests_for_names_of_this_machine_are_accepted(
    service: InProcessService, host: str
) -> None:
    assert service.create_as_host(host).status_code == 200


@pytest.mark.parametrize("host", FOREIGN_HOSTS)
def test_a_foreign_host_name_is_refused(service: InProcessService, host: str) -> None:
    reply = service.create_as_host(host)

    assert (reply.status_code, error(reply)["code"]) == (421, "FOREIGN_HOST")


def test_a_service_for_other_machines_has_no_pages_without_a_token(
    service: InProcessService,
) -> None:
    with closing(InProcessService(any_host=True)) as open_service:
        assert open_service.send("GET", "/").status_code == 404
    assert service.send("GET", "/").status_code == 200


def test_any_host_name_is_accepted_if_configured() -> None:
    with closing(InProcessService(any_host=True)) as service:
        assert service.create_as_host("devices.example.com").status_code == 200


def test_the_url_of_a_session_is_its_page_at_this_service(
    service: InProcessService,
) -> None:
    session = data(service.create(name="login <b>"))
    page = httpx.URL(session["url"])
    reply = service.send("GET", page.path, token=None)

    assert str(page).startswith("http://127.0.0.1:8765/sessions/")
    assert reply.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "login &lt;b&gt;" in reply.text
    assert "login <b>" not in reply.text


def test_the_page_of_a_failed_session_reports_why(service: InProcessService) -> None:
    service.fault("boot", "fail", reason="no device <booted>")
    session_id = service.created()

    assert (
        "no device &lt;booted&gt;"
        in service.send("GET", f"/sessions/{session_id}", token=None).text
    )


def test_the_page_shows_no_connection_details(service: InProcessService) -> None:
    options: dict[str, Any] = {
        "type": "argent",
        "applicationArchiveUrl": "https://files.example.com/a?key=hunter2",
    }
    session_id = service.created(**options)
    service.clock.now += BOOT_SECONDS
    config = data(service.get(session_id))["remoteConfig"]
    text = service.send("GET", f"/sessions/{session_id}", token=None).text

    assert "in-progress" in text
    assert config["toolsAuthToken"] not in text
    assert config["toolsUrl"] not in text
    assert "hunter2" not in text


@pytest.mark.parametrize(("session_id", "status"), [(UNKNOWN_ID, 404), ("1", 400)])
def test_an_unknown_session_has_no_page(
    service: InProcessService, session_id: str, status: int
) -> None:
    assert (
        service.send("GET", f"/sessions/{session_id}", token=None).status_code == status
    )


def test_an_unexpected_error_reveals_no_internals(service: InProcessService) -> None:
    service.store.close()
    reply = service.send("POST", SESSIONS_PATH, broken=True, json=VALID)

    assert (reply.status_code, error(reply)["code"]) == (500, "INTERNAL_ERROR")
    assert "database" not in reply.text


def test_the_test_interface_is_disabled_by_default() -> None:
    with closing(InProcessService(testing=False)) as service:
        assert service.send("GET", "/testing/requests").status_code == 404
