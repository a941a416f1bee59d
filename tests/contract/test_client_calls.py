"""The client calls the documented endpoints."""

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from pytest_device import errors
from pytest_device.errors import StatusError, UnexpectedReplyError
from pytest_device.sessions.client import DeviceClient
from pytest_device.sessions.lease import lease
from pytest_device.sessions.lifecycle import WaitPolicy
from pytest_device.sessions.models import Session
from pytest_device.sessions.request import SessionRequest
from tests.contract.document import Row, arguments, each, example_session, request_body

pytestmark = pytest.mark.every_python

BASE_URL = "https://devices.example.com/api"
TOKEN = "made-up-access-token"
REQUEST = SessionRequest.from_arguments(**arguments(request_body({})))
Answer = Callable[[httpx.Request], httpx.Response]


def reply(status: int, body: str) -> httpx.Response:
    """Return an unread response, as it arrives from a network."""
    return httpx.Response(status, stream=httpx.ByteStream(body.encode()))


def client_for(
    answer: Answer, sleep: Callable[[float], None] = lambda _seconds: None
) -> DeviceClient:
    return DeviceClient(
        BASE_URL, TOKEN, transport=httpx.MockTransport(answer), sleep=sleep
    )


def call(operation: str, answer: Answer) -> Session:
    with client_for(answer) as client:
        match operation:
            case "create":
                return client.create(REQUEST)
            case "get":
                return client.get(example_session()["id"])
            case _:
                return client.stop(example_session()["id"])


def sent_by(operation: str) -> httpx.Request:
    sent: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        request.read()
        sent.append(request)
        ended = (
            {"status": "stopped", "remoteConfig": None} if operation == "stop" else {}
        )
        return reply(200, json.dumps({"data": example_session(**ended)}))

    call(operation, answer)
    (request,) = sent
    return request


@each("operations")
def test_a_call_has_the_documented_method_path_and_body(row: Row) -> None:
    request = sent_by(row["operation"])

    assert request.method == row["method"]
    assert str(request.url) == BASE_URL + row["path"].replace(
        ":deviceRunSessionId", example_session()["id"]
    )
    assert (
        (json.loads(request.content) == REQUEST.to_wire())
        if row["body"]
        else (request.content == b"")
    )


@pytest.mark.parametrize("operation", ["create", "get", "stop"])
@each("headers", where=lambda row: row["on"] == "request")
def test_a_call_has_the_documented_headers(row: Row, operation: str) -> None:
    expected = row["value"].replace("<ACCESS_TOKEN>", TOKEN)

    assert sent_by(operation).headers.get_list(row["name"]) == [expected]


@pytest.mark.parametrize("operation", ["create", "get", "stop"])
@each("envelopes")
def test_only_a_success_with_a_session_in_data_is_read(
    row: Row, operation: str
) -> None:
    body = json.dumps(row["reply"]).replace(
        '"<Session>"', json.dumps(example_session())
    )

    if row["readable"]:
        assert (
            str(call(operation, lambda _: reply(row["status"], body)).id)
            == example_session()["id"]
        )
    else:
        with pytest.raises(UnexpectedReplyError):
            call(operation, lambda _: reply(row["status"], body))


@pytest.mark.parametrize("operation", ["create", "get", "stop"])
@each("error_replies")
def test_a_refusal_raises_the_error_of_its_status_with_the_message(
    row: Row, operation: str
) -> None:
    body = row["body"] if isinstance(row["body"], str) else json.dumps(row["body"])

    with pytest.raises(StatusError) as caught:
        call(operation, lambda _: reply(row["status"], body))

    assert type(caught.value) is getattr(errors, row["error"])
    assert caught.value.status == row["status"]
    assert row["shown"] in str(caught.value)


class ScriptedService:
    """Answers create and get with the replies of a row in turn, on a clock that only sleeping moves."""

    def __init__(self, row: Row) -> None:
        self.now = 0.0
        self.slept: list[float] = []
        self.calls: list[str] = []
        self._replies = iter(row["replies"])

    def answer(self, request: httpx.Request) -> httpx.Response:
        stopping = request.url.path.endswith("/stop")
        self.calls.append(
            "stop" if stopping else {"POST": "create", "GET": "get"}[request.method]
        )
        status, has_config = ("stopped", False) if stopping else next(self._replies)
        changes: dict[str, Any] = (
            {"status": status}
            if has_config
            else {"status": status, "remoteConfig": None}
        )
        return reply(200, json.dumps({"data": example_session(**changes)}))

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def lease(self, policy: WaitPolicy) -> Session:
        with (
            client_for(self.answer, self.sleep) as client,
            lease(
                client, REQUEST, policy=policy, clock=lambda: self.now, sleep=self.sleep
            ) as session,
        ):
            return session


@each("waiting")
def test_waiting_ends_as_documented(row: Row) -> None:
    service, policy = (
        ScriptedService(row),
        WaitPolicy(timeout_seconds=row.get("timeout_seconds", 900), jitter=0),
    )

    if row["outcome"] == "ready":
        assert service.lease(policy).remote_config is not None
    else:
        with pytest.raises(
            getattr(errors, row["outcome"]), match=example_session()["url"]
        ):
            service.lease(policy)

    polls = len(row["replies"]) - 1
    assert service.calls == ["create", *["get"] * polls, "stop"]
    assert service.slept == [5] * polls
