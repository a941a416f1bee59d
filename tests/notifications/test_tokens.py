"""The request for a push token, and the endpoint that answers it."""

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final

import httpx
import pytest

from pytest_device import ConfigError
from pytest_device.notifications import NotificationError, PushToken, PushTokenRequest
from pytest_device.notifications.endpoint import PushEndpoint
from tests.notifications.cases import cases

pytestmark = pytest.mark.every_python

OPTIONS: Final = {
    "applicationId": "application_id", "deviceId": "device_id", "projectId": "project_id", "baseUrl": "base_url",
}  # fmt: skip
TOKEN: Final = {"type": "ios", "data": "aabb"}


def request(**given: Any) -> PushTokenRequest:
    known = {
        "application_id": "com.acme.app",
        "device_id": "DEVICE-ID-UPPER",
        "base_url": "https://push.example/",
    }
    return PushTokenRequest(
        **{
            "platform": "ios",
            "device_push_token": TOKEN,
            **known,
            "project_id": "p",
            **given,
        }
    )


def client(answer: Callable[[httpx.Request], httpx.Response]) -> httpx.Client:
    return httpx.Client(transport=httpx.MockTransport(answer))


@pytest.fixture
def endpoint() -> Iterator[PushEndpoint]:
    with PushEndpoint() as running:
        yield running


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case["name"]) for case in cases("get_push_token")]
)
def test_a_reference_case_has_the_same_request_and_outcome(
    case: dict[str, Any],
) -> None:
    given, sent = case["input"], list[dict[str, Any]]()

    def answer(http: httpx.Request) -> httpx.Response:
        headers = {"content-type": http.headers["content-type"]}
        sent.append(
            {
                "url": str(http.url),
                "method": http.method,
                "headers": headers,
                "body": json.loads(http.content),
            }
        )
        body = given["response"]["body"]
        text = body if isinstance(body, str) else json.dumps(body)
        return httpx.Response(given["response"]["status"], text=text)

    options = {
        OPTIONS.get(name, name): value for name, value in given["options"].items()
    }
    common = {
        name: given[name]
        for name in ("platform", "device_push_token", "apns_environment")
    }
    asked = request(
        **common, config_extra=given["app_config_extra"], project_id=None, **options
    )

    if "output" in case:
        token = asked.send(client(answer))
        assert {"type": token.type, "data": token.data} == case["output"]["token"]
        assert sent == [case["output"]["request"]]
        return
    with pytest.raises(NotificationError) as raised:
        asked.send(client(answer))
    assert raised.value.code == case["error"]["code"]
    assert sent == [one for one in [case["error"]["request"]] if one]


@pytest.mark.parametrize(
    ("missing", "code"),
    [
        ("project_id", "ERR_NOTIFICATIONS_NO_EXPERIENCE_ID"),
        ("application_id", "ERR_NOTIFICATIONS_NO_APPLICATION_ID"),
        ("device_id", "ERR_NOTIF_DEVICE_ID"),
    ],
)
def test_missing_arguments_are_named_before_anything_is_sent(
    missing: str, code: str
) -> None:
    with pytest.raises(NotificationError, match=missing) as raised:
        request(**{missing: None}).body()
    assert raised.value.code == code


@pytest.mark.parametrize(
    ("environment", "expected"),
    [("development", True), ("production", False), (None, False)],
)
def test_only_on_ios_the_build_selects_the_sandbox(
    environment: Any,
    expected: bool,  # noqa: FBT001
) -> None:
    assert request(apns_environment=environment).body()["development"] is expected
    assert (
        request(platform="android", apns_environment=environment).body()["development"]
        is False
    )


@pytest.mark.parametrize(
    "given",
    [
        {"base_url": None},
        {"url": "ftp://push.example"},
        {"base_url": "push.example"},
        {"url": "https://"},
    ],
)
def test_there_is_no_default_push_service(given: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="url or base_url"):
        request(**given).url()


@pytest.mark.parametrize(
    "name", ["application_id", "device_id", "project_id", "type", "base_url", "url"]
)
def test_an_option_of_the_wrong_type_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name} must be a string, not int"):
        request(**{name: 7})
    with pytest.raises(ConfigError, match="development 'yes' must be True or False"):
        request(development="yes")


@pytest.mark.parametrize(
    "token",
    [
        None,
        {},
        {"type": "ios"},
        {"data": "aabb"},
        {"type": 7, "data": "aabb"},
        {"type": "web", "data": {"endpoint": "e"}},
    ],
)
def test_a_device_token_without_type_or_data_is_refused(token: Any) -> None:
    with pytest.raises(ConfigError, match="device_push_token"):
        request(device_push_token=token)


@pytest.mark.parametrize(
    "response",
    [
        httpx.Response(200, text="oops"),
        httpx.Response(200, text="x" * 10_000_000),
        httpx.Response(200, json=None),
        httpx.Response(200, json={"data": []}),
        httpx.Response(200, json={"data": {"vendorPushToken": 7}}),
        httpx.Response(307, headers={"location": "https://elsewhere.example"}),
        httpx.Response(204),
    ],
)
def test_any_other_reply_is_a_server_error(response: httpx.Response) -> None:
    with pytest.raises(NotificationError) as raised:
        request().send(client(lambda _: response))
    assert raised.value.code == "ERR_NOTIFICATIONS_SERVER_ERROR"
    assert len(str(raised.value)) < 500


@pytest.mark.parametrize(
    "error",
    [httpx.ReadTimeout("late"), httpx.InvalidURL("no")],
)
def test_each_failure_of_the_request_is_a_network_error(error: Exception) -> None:
    def answer(_: httpx.Request) -> httpx.Response:
        raise error

    with pytest.raises(NotificationError) as raised:
        request().send(client(answer))
    assert raised.value.code == "ERR_NOTIFICATIONS_NETWORK_ERROR"


def test_no_repr_contains_a_token() -> None:
    assert "secret" not in repr(PushToken("secret"))


def test_the_endpoint_returns_a_token_and_records_the_request(
    endpoint: PushEndpoint,
) -> None:
    asked = request(base_url=endpoint.base_url)
    with httpx.Client() as http:
        first, second = asked.send(http), asked.send(http)
        other = request(base_url=endpoint.base_url, device_id="other").send(http)

    assert first == second != other
    assert endpoint.tokens == (first, other)
    assert endpoint.wait_for_request(after=2).body["deviceId"] == "other"
    assert endpoint.requests[0].body == asked.body()


def test_a_rotated_token_is_replaced(endpoint: PushEndpoint) -> None:
    with httpx.Client() as http:
        old = request(base_url=endpoint.base_url).send(http)
        new = endpoint.roll(old)

        assert new != old
        assert endpoint.tokens == (new,)
        assert request(base_url=endpoint.base_url).send(http) == new
    with pytest.raises(ConfigError, match="unknown push token"):
        endpoint.roll(old)


@pytest.mark.parametrize("kind", ["server_error", "not_json", "no_token"])
def test_the_endpoint_fails_as_often_as_requested(
    endpoint: PushEndpoint, kind: Any
) -> None:
    endpoint.fail(kind)
    with httpx.Client() as http:
        with pytest.raises(NotificationError) as raised:
            request(base_url=endpoint.base_url).send(http)
        assert raised.value.code == "ERR_NOTIFICATIONS_SERVER_ERROR"
        assert (
            request(base_url=endpoint.base_url)
            .send(http)
            .data.startswith("VendorPushToken[")
        )


def test_a_silent_endpoint_is_a_network_error(endpoint: PushEndpoint) -> None:
    endpoint.fail("hang")
    with httpx.Client(timeout=0.2) as http, pytest.raises(NotificationError) as raised:
        request(base_url=endpoint.base_url).send(http)
    assert raised.value.code == "ERR_NOTIFICATIONS_NETWORK_ERROR"
    assert endpoint.wait_for_request().status is None


@pytest.mark.parametrize("content", [b"oops", b"[]", b"{}", b" " * 100_000])
def test_the_endpoint_refuses_an_invalid_token_request(
    endpoint: PushEndpoint, content: bytes
) -> None:
    reply = httpx.post(f"{endpoint.base_url}push/getPushToken", content=content)

    assert reply.status_code == 400
    assert "projectId" in reply.text


def test_without_its_extra_the_endpoint_names_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "starlette", None)
    with (
        pytest.raises(ConfigError, match=r"pip install 'pytest-device\[services\]'"),
        PushEndpoint(),
    ):
        pass
