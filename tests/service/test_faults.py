"""The effects of the test interface."""

import asyncio
import json
from typing import Any

import pytest
from starlette.types import Message

from pytest_device.service.effects import ConnectionLostError
from pytest_device.spec import SESSIONS_PATH
from tests.fakes.local_service import (
    APP_ID,
    BOOT_SECONDS,
    TOKEN,
    UNKNOWN_ID,
    InProcessService,
    data,
    error,
)

JSON = [(b"content-type", b"application/json")]

REFUSED = [
    # a fault, what the refusal says
    ({}, "no effect None for the operation None"),
    ({"operation": "list", "effect": "delay"}, "'list'"),
    ({"operation": "get", "effect": "explode"}, "'explode'"),
    ({"operation": "boot", "effect": "reply"}, "'reply' for the operation 'boot'"),
    ({"operation": "get", "effect": "fail"}, "'fail' for the operation 'get'"),
    (
        {"operation": "create", "effect": "expire"},
        "'expire' for the operation 'create'",
    ),
    ({"operation": "get", "effect": "dead"}, "'dead' for the operation 'get'"),
    (
        {"operation": "controller", "effect": "change"},
        "'change' for the operation 'controller'",
    ),
    (
        {"operation": "controller", "effect": "expire"},
        "'expire' for the operation 'controller'",
    ),
    (
        {"operation": "get", "effect": "delay", "second": 3},
        "invalid field of a fault, second 3",
    ),
    (
        {"operation": "get", "effect": "delay", "seconds": "3"},
        "invalid field of a fault, seconds '3'",
    ),
    (
        {"operation": "get", "effect": "delay", "times": True},
        "invalid field of a fault, times True",
    ),
    ([], "must be a JSON object"),
]


def statuses(service: InProcessService, count: int) -> list[int]:
    """Return the statuses of so many requests for a session."""
    session_id = next(iter(service.sessions)).id
    return [service.get(session_id).status_code for _ in range(count)]


def path(session_id: str, operation: str) -> tuple[str, str]:
    """Return the method and the path of an operation."""
    return {
        "create": ("POST", SESSIONS_PATH),
        "get": ("GET", f"{SESSIONS_PATH}/{session_id}"),
        "stop": ("POST", f"{SESSIONS_PATH}/{session_id}/stop"),
    }[operation]


def messages(
    service: InProcessService, method: str, path: str, body: bytes
) -> list[Message]:
    """Return what the application sends before the connection is lost."""
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    headers = [
        (b"host", b"127.0.0.1"),
        (b"authorization", f"Bearer {TOKEN}".encode()),
        *JSON,
    ]
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "headers": headers,
        "query_string": b"",
    }

    async def exchange() -> None:
        await service.app(scope, receive, send)

    with pytest.raises(ConnectionLostError):
        asyncio.run(exchange())
    return sent


@pytest.mark.parametrize(
    ("times", "skip", "expected"),
    [
        (1, 0, [503, 200, 200, 200]),
        (2, 0, [503, 503, 200, 200]),
        (1, 2, [200, 200, 503, 200]),
        (None, 1, [200, 503, 503, 503]),
        (0, 0, [200, 200, 200, 200]),
    ],
)
def test_a_fault_affects_a_number_of_requests_after_skipping_some(
    service: InProcessService, times: int | None, skip: int, expected: list[int]
) -> None:
    service.created()
    service.fault("get", "reply", status=503, times=times, skip=skip)

    assert statuses(service, 4) == expected


def test_faults_of_one_operation_take_effect_in_order(
    service: InProcessService,
) -> None:
    service.created()
    service.fault("get", "reply", status=500)
    service.fault("get", "reply", status=502)

    assert statuses(service, 3) == [500, 502, 200]


def test_a_fault_affects_its_own_operation_only(service: InProcessService) -> None:
    service.fault("stop", "reply", status=500)
    session_id = service.created()

    assert (
        service.get(session_id).status_code,
        service.stop(session_id).status_code,
    ) == (
        200,
        500,
    )


def test_a_slow_response_is_delayed(service: InProcessService) -> None:
    service.fault("create", "delay", seconds=7.5)

    assert service.create().status_code == 200
    assert service.clock.slept == [7.5]


@pytest.mark.parametrize(
    ("effect", "sessions"),
    [
        ("lose-request", 0),
        ("lose-answer", 1),
        ("reset-request", 0),
        ("reset-answer", 1),
    ],
)
def test_a_connection_is_lost_before_or_after_a_session_was_created(
    service: InProcessService, effect: str, sessions: int
) -> None:
    service.fault("create", effect)
    with pytest.raises(ConnectionLostError) as lost:
        service.create()

    assert lost.value.reset is effect.startswith("reset")
    assert len(list(service.sessions)) == sessions


def test_a_stop_with_a_lost_response_has_stopped_the_session(
    service: InProcessService,
) -> None:
    session_id = service.created()
    service.fault("stop", "lose-answer")
    with pytest.raises(ConnectionLostError):
        service.stop(session_id)

    assert data(service.get(session_id))["status"] == "stopped"


def test_half_of_a_truncated_response_arrives(service: InProcessService) -> None:
    service.fault("create", "truncate")
    started, half = messages(
        service,
        "POST",
        SESSIONS_PATH,
        json.dumps({"appId": APP_ID, "platform": "ios"}).encode(),
    )
    promised = int(dict(started["headers"])[b"content-length"])

    assert started["status"] == 200
    assert len(half["body"]) == promised // 2
    assert half["more_body"] is True


@pytest.mark.parametrize(
    ("more", "sessions"),
    [({}, 0), ({"carried_out": False}, 0), ({"carried_out": True}, 1)],
)
def test_any_response_can_replace_the_real_one(
    service: InProcessService, more: dict[str, Any], sessions: int
) -> None:
    service.fault(
        "create",
        "reply",
        status=429,
        body="<html>slow down</html>",
        headers={"Content-Type": "text/html", "Retry-After": "30"},
        **more,
    )
    reply = service.create()

    assert (reply.status_code, reply.text) == (429, "<html>slow down</html>")
    assert (reply.headers["Content-Type"], reply.headers["Retry-After"]) == (
        "text/html",
        "30",
    )
    assert len(list(service.sessions)) == sessions


def test_fields_of_a_response_can_be_changed_and_added(
    service: InProcessService,
) -> None:
    session_id = service.created()
    service.fault("get", "change", fields={"status": "dreaming", "colour": "red"})
    changed, unchanged = data(service.get(session_id)), data(service.get(session_id))

    assert changed == {**unchanged, "status": "dreaming", "colour": "red"}


def test_a_changed_response_keeps_its_headers(service: InProcessService) -> None:
    session_id = service.created()
    plain = service.get(session_id)
    service.fault("get", "change", fields={"colour": "red"})
    changed = service.get(session_id)

    assert {**changed.headers, "content-length": ""} == {
        **plain.headers,
        "content-length": "",
    }


def test_a_refusal_has_no_fields_to_change(service: InProcessService) -> None:
    service.fault("get", "change", fields={"status": "dreaming"})

    assert error(service.get(UNKNOWN_ID))["code"] == "NOT_FOUND"


@pytest.mark.parametrize("operation", ["get", "stop"])
def test_a_session_expires_before_a_request(
    service: InProcessService, operation: str
) -> None:
    session_id = service.created()
    service.clock.now += BOOT_SECONDS
    service.sessions.sweep()
    service.fault(operation, "expire")
    session = data(service.send(*path(session_id, operation)))

    assert session["status"] == "stopped"
    assert next(iter(service.sessions)).reason == "limit reached early, by a test"


def test_a_device_boots_late(service: InProcessService) -> None:
    service.fault("boot", "delay", seconds=BOOT_SECONDS + 5)
    session_id = service.created()
    service.clock.now += BOOT_SECONDS + 4

    assert data(service.get(session_id))["status"] == "new"

    service.clock.now += 1

    assert data(service.get(session_id))["status"] == "in-progress"


def test_a_boot_that_a_fault_delays_goes_on_without_it(
    service: InProcessService,
) -> None:
    service.fault("boot", "delay", seconds=3600, times=None)
    session_id = service.created()
    service.clock.now += BOOT_SECONDS
    assert data(service.get(session_id))["status"] == "new"

    service.send("DELETE", "/testing/faults")

    assert data(service.get(session_id))["status"] == "in-progress"


def test_a_device_does_not_boot(service: InProcessService) -> None:
    service.fault("boot", "fail", seconds=3, reason="no device booted")
    session_id = service.created()

    assert data(service.get(session_id))["status"] == "new"

    service.clock.now += 3

    assert data(service.get(session_id))["status"] == "errored"
    assert service.listed("sessions") == [
        {
            "id": session_id,
            "name": None,
            "status": "errored",
            "reason": "no device booted",
        }
    ]


def test_the_next_device_boots_again(service: InProcessService) -> None:
    service.fault("boot", "fail")
    failing, booting = service.created(), service.created()
    service.clock.now += BOOT_SECONDS

    assert [data(service.get(one))["status"] for one in (failing, booting)] == [
        "errored",
        "in-progress",
    ]


def test_a_simulated_controller_can_be_dead_for_a_while(
    service: InProcessService,
) -> None:
    health = f"/simulated/{service.created()}/health"
    service.fault("controller", "dead", skip=1)
    replies = [service.send("GET", health, token=None) for _ in range(3)]

    assert [reply.status_code for reply in replies] == [200, 502, 200]
    assert replies[1].headers["content-type"] == "text/html"
    assert "<h1>502 Bad Gateway</h1>" in replies[1].text
    assert [seen["operation"] for seen in service.listed("requests")] == ["create"]


@pytest.mark.parametrize("seconds", [0.0, BOOT_SECONDS])
def test_a_session_can_be_made_to_fail_at_any_time(
    service: InProcessService, seconds: float
) -> None:
    session_id = service.created()
    service.clock.now += seconds
    service.sessions.sweep()
    service.send(
        "POST", f"/testing/sessions/{session_id}/fail", json={"reason": "tunnel gone"}
    )
    session = data(service.get(session_id))

    assert (session["status"], session["remoteConfig"]) == ("errored", None)
    assert service.listed("sessions")[0]["reason"] == "tunnel gone"


def test_a_session_can_be_made_to_reach_its_limit_at_any_time(
    service: InProcessService,
) -> None:
    session_id = service.created()
    service.send("POST", f"/testing/sessions/{session_id}/expire")

    assert data(service.get(session_id))["status"] == "stopped"


def test_a_token_can_be_added_as_when_it_is_rotated(service: InProcessService) -> None:
    session_id = service.created()
    service.send("POST", "/testing/tokens", json={"token": "rotated"})

    assert (
        service.send(
            "POST", f"/v2/device-run-sessions/{session_id}/stop", token="rotated"
        ).status_code
        == 200
    )

    service.send("POST", "/testing/reset")
    assert (
        service.send(
            "GET", f"/v2/device-run-sessions/{session_id}", token="rotated"
        ).status_code
        == 401
    )


def test_an_added_token_of_another_account_may_not_use_its_sessions(
    service: InProcessService,
) -> None:
    session_id = service.created()
    service.send(
        "POST", "/testing/tokens", json={"token": "theirs", "is_foreign": True}
    )

    assert (
        service.send(
            "POST", f"/v2/device-run-sessions/{session_id}/stop", token="theirs"
        ).status_code
        == 403
    )


@pytest.mark.parametrize(
    "body", [{}, {"token": " "}, {"token": 1}, {"token": "a", "is_foreign": "no"}]
)
def test_an_invalid_token_cannot_be_added(
    service: InProcessService, body: dict[str, object]
) -> None:
    assert service.send("POST", "/testing/tokens", json=body).status_code == 400


@pytest.mark.parametrize("route", [f"{UNKNOWN_ID}/expire", f"{UNKNOWN_ID}/explode"])
def test_nothing_happens_to_an_unknown_session(
    service: InProcessService, route: str
) -> None:
    assert service.send("POST", f"/testing/sessions/{route}").status_code == 404


def test_every_request_is_listed_in_its_order_with_its_session_and_status(
    service: InProcessService,
) -> None:
    service.fault("stop", "lose-answer")
    session_id = service.created()
    service.get(UNKNOWN_ID)
    with pytest.raises(ConnectionLostError):
        service.stop(session_id)
    service.send("GET", f"/sessions/{session_id}", token=None)
    service.get(session_id)

    assert service.listed("requests") == [
        {"operation": "create", "session": None, "status": 200},
        {"operation": "get", "session": UNKNOWN_ID, "status": 404},
        {"operation": "stop", "session": session_id, "status": None},
        {"operation": "get", "session": session_id, "status": 200},
    ]


def test_the_list_of_sessions_is_current(service: InProcessService) -> None:
    service.created()
    service.clock.now += BOOT_SECONDS

    assert service.listed("sessions")[0]["status"] == "in-progress"


def test_a_reset_removes_the_faults_and_forgets_the_requests(
    service: InProcessService,
) -> None:
    service.fault("create", "reply", times=None)
    service.create()
    service.send("POST", "/testing/reset")

    assert service.listed("requests") == []
    assert service.create().status_code == 200


@pytest.mark.parametrize(("fault", "said"), REFUSED)
def test_an_invalid_fault_is_refused(
    service: InProcessService, fault: Any, said: str
) -> None:
    reply = service.send("POST", "/testing/faults", json=fault)

    assert reply.status_code == 400
    assert said in error(reply)["message"]


@pytest.mark.parametrize(
    ("method", "route"),
    [
        ("POST", "faults"),
        ("POST", "reset"),
        ("GET", "requests"),
        ("GET", "sessions"),
        ("POST", f"sessions/{UNKNOWN_ID}/expire"),
    ],
)
@pytest.mark.parametrize(("token", "status"), [(None, 400), ("wrong", 401)])
def test_the_test_interface_needs_a_token_too(
    service: InProcessService, method: str, route: str, token: str | None, status: int
) -> None:
    assert service.send(method, f"/testing/{route}", token=token).status_code == status


def test_the_token_of_the_tests_is_valid(service: InProcessService) -> None:
    assert service.send("GET", "/testing/requests", token=TOKEN).status_code == 200
