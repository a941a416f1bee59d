"""The device of a session over HTTP."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.fakes.devices import FakeBrowserDevice
from tests.service.pages import ServedSession


@pytest.fixture
def device() -> FakeBrowserDevice:
    device = FakeBrowserDevice(
        held="LANDSCAPE", screen=b"picture", in_front="org.example.notes"
    )
    device.log(1.5, "SEVERE", "it broke")
    return device


@pytest.fixture
def session(device: FakeBrowserDevice, tmp_path: Path) -> ServedSession:
    return ServedSession(device=device, files=tmp_path)


@pytest.fixture
def client(session: ServedSession) -> httpx.Client:
    return httpx.Client(
        transport=session.service.transport, base_url=session.device_url
    )


@pytest.mark.parametrize(
    ("path", "body", "asked"),
    [
        (
            "launch",
            {"applicationId": "notes", "arguments": ["-a", 1]},
            ("launch", "notes", "-a", "1"),
        ),
        ("launch", {"applicationId": "notes"}, ("launch", "notes")),
        ("open-url", {"url": "notes://7"}, ("open_url", "notes://7", None)),
        (
            "open-url",
            {"url": "notes://7", "applicationId": "notes"},
            ("open_url", "notes://7", "notes"),
        ),
        ("clear", {}, ("clear", None)),
        ("orientation", {"orientation": "PORTRAIT"}, ("rotate", "PORTRAIT")),
    ],
)
def test_posted_commands_reach_the_device(
    client: httpx.Client,
    device: FakeBrowserDevice,
    path: str,
    body: dict[str, Any],
    asked: tuple[Any, ...],
) -> None:
    assert client.post(path, json=body).json() == {}
    assert device.calls == [asked]


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("apps", {"apps": {"org.example.notes": 4}}),
        ("orientation", {"orientation": "LANDSCAPE"}),
        (
            "log",
            {"lines": [{"timestamp": 1500, "level": "SEVERE", "message": "it broke"}]},
        ),
    ],
)
def test_the_devices_result_is_returned(
    client: httpx.Client, path: str, answer: dict[str, Any]
) -> None:
    assert client.get(path).json() == answer


def test_the_screenshot_is_returned_unchanged(client: httpx.Client) -> None:
    assert client.get("screenshot").content == b"picture"


@pytest.mark.parametrize(
    ("application_id", "done"), [("org.example.notes", True), ("other", False)]
)
def test_terminating_an_app_reports_whether_it_was_running(
    client: httpx.Client, application_id: str, *, done: bool
) -> None:
    assert client.post("terminate", json={"applicationId": application_id}).json() == {
        "done": done
    }


def test_a_directory_is_installed_under_the_given_id(
    client: httpx.Client, device: FakeBrowserDevice, tmp_path: Path
) -> None:
    (tmp_path / "index.html").write_text("<p>Hello")
    asked = {"app": tmp_path.as_uri(), "applicationId": "org.example.notes"}

    first, again = (client.post("install", json=asked).json() for _ in range(2))

    there = {"applicationId": "org.example.notes"}
    assert first == {"installed": {**there, "isClear": False}}
    assert again == {"installed": {**there, "isClear": True}}
    assert [app.path for app in device.builds] == [tmp_path, tmp_path]


def test_a_missing_app_is_refused_with_the_reason(
    client: httpx.Client, tmp_path: Path
) -> None:
    reply = client.post("install", json={"app": str(tmp_path / "none.zip")})
    assert reply.status_code == 500
    assert "none.zip" in reply.json()["message"]


def test_unsupported_commands_are_refused_with_the_devices_message(
    client: httpx.Client,
) -> None:
    reply = client.post("remove", json={"applicationId": "notes"})
    assert (reply.status_code, reply.json()) == (
        500,
        {"message": "notes cannot be removed"},
    )


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("launch", b"{}", "applicationId is missing"),
        ("launch", b"[]", "the body must be a JSON object"),
        ("launch", b"{", "the body is not JSON"),
        ("launch", b'{"applicationId": 1}', "applicationId must be a string"),
        (
            "launch",
            b'{"applicationId": "a", "arguments": "b"}',
            "arguments must be a list of strings",
        ),
        (
            "orientation",
            b'{"orientation": "UP"}',
            "orientation must be one of PORTRAIT, LANDSCAPE, not 'UP'",
        ),
    ],
)
def test_an_invalid_request_is_refused_with_the_rule(
    client: httpx.Client, path: str, body: bytes, message: str
) -> None:
    reply = client.post(path, content=body)
    assert reply.status_code == 400
    assert message in reply.json()["message"]


def test_a_wrong_key_is_not_found(client: httpx.Client, session: ServedSession) -> None:
    wrong = session.preview.replace("/preview/", "/devices/")
    assert client.get(f"{wrong}/apps").status_code == 404


def test_a_session_without_a_device_is_not_found(
    client: httpx.Client, session: ServedSession
) -> None:
    session.record.device = None
    assert client.get("apps").status_code == 404
