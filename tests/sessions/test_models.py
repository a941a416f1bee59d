"""Sessions and connection details show no secret; their fields row by row are in the contract tests."""

from typing import Any

import pytest

from pytest_device import (
    AgentDeviceConfig,
    AppiumConfig,
    RemoteConfig,
    Session,
    WebPreviewConfig,
)
from tests.contract.document import example_session

ID = "7d7a1f0e-0f4c-4f2e-9b0a-0c9d6a1f2b3c"


def session(**fields: Any) -> Session:
    return Session.from_wire(
        {
            "id": ID,
            "appId": ID,
            "url": "https://vendor.example/s/1",
            "jobRunId": "job-1",
            "name": None,
            "type": "agent-device",
            "packageVersion": None,
            "buildId": None,
            "applicationArchiveUrl": None,
            "platform": "ios",
            "status": "in-progress",
            "remoteConfig": None,
            "maxDurationMinutes": 30,
            "maxIdleTimeMinutes": None,
            "startedAt": None,
            "finishedAt": None,
            "createdAt": "2026-11-21T10:00:00.000Z",
            "updatedAt": "2026-11-21T10:00:00.000Z",
            **fields,
        }
    )


SECRETIVE = {
    "agentDeviceRemoteSessionUrl": "https://secret-host.example/a",
    "agentDeviceRemoteSessionToken": "sesame-1",
    "webPreviewUrl": "https://user:sesame-2@secret-preview.example/",
    "extra": {"apiKey": "sesame-3", "list": ["https://secret-list.example"]},
}


def test_no_repr_contains_a_connection_detail() -> None:
    got = session(remoteConfig=SECRETIVE, surprise="sesame-4")

    for shown in (
        repr(got),
        str(got),
        repr(got.remote_config),
        str(got.remote_config),
        repr([got]),
    ):
        assert "sesame" not in shown
        assert "secret" not in shown
    assert repr(got.remote_config) == "AgentDeviceConfig()"


def test_every_secret_of_the_connection_details_is_masked() -> None:
    config = session(remoteConfig=SECRETIVE).remote_config

    assert config is not None
    assert {
        "sesame-1",
        "sesame-2",
        "sesame-3",
        "secret-host.example",
        "secret-preview.example",
    } <= set(config.secrets())
    assert "https://secret-list.example" in set(config.secrets())


def test_ordinary_capabilities_and_loopback_addresses_are_not_secrets() -> None:
    details = {
        "appiumUrl": "http://127.0.0.1:4723",
        "capabilities": {"appium:automationName": "UiAutomator2"},
    }
    config = session(type="appium", remoteConfig=details).remote_config

    assert config is not None
    assert list(config.secrets()) == []


@pytest.mark.parametrize(
    ("kind", "details", "expected"),
    [
        ("agent-device", SECRETIVE, AgentDeviceConfig),
        ("appium", {"appiumUrl": "https://a", "capabilities": {}}, AppiumConfig),
        ("web-preview-only", {"webPreviewUrl": "https://a"}, WebPreviewConfig),
        ("serve-sim", {"anything": 1}, RemoteConfig),
        ("holodeck", {"anything": 1}, RemoteConfig),
    ],
)
def test_connection_details_have_the_class_of_the_sessions_type(
    kind: str, details: dict[str, Any], expected: type[RemoteConfig]
) -> None:
    got = session(type=kind, remoteConfig=details)

    assert type(got.remote_config) is expected
    assert got.type == kind


def test_a_session_survives_a_round_trip_through_json() -> None:
    details = {
        "appiumUrl": "https://a",
        "capabilities": {"platformName": "iOS"},
        "surprise": 1,
    }
    got = session(type="appium", remoteConfig=details, surprise=2)

    assert Session.from_wire(got.model_dump(mode="json", by_alias=True)) == got


START = "2026-01-05T10:00:00.000Z"
LATER = "2026-01-05T10:01:30.000Z"


@pytest.mark.parametrize(
    ("times", "exact", "at_most"),
    [
        ({"status": "stopped", "finishedAt": LATER}, 90, None),
        ({"status": "errored", "finishedAt": LATER}, 90, None),
        ({"status": "errored", "finishedAt": None}, None, 90),
        ({"status": "errored", "finishedAt": None, "startedAt": None}, None, None),
        (
            {
                "status": "errored",
                "finishedAt": None,
                "updatedAt": "2026-01-05T09:00:00.000Z",
            },
            None,
            None,
        ),
        (
            {
                "status": "errored",
                "finishedAt": None,
                "updatedAt": "2036-01-05T09:00:00.000Z",
            },
            None,
            None,
        ),
        ({"status": "in-progress", "finishedAt": None}, None, None),
    ],
)
def test_the_last_update_bounds_the_running_time_of_an_ended_session_without_an_end(
    times: dict[str, str | None], exact: float | None, at_most: float | None
) -> None:
    session = Session.from_wire(
        example_session(**{"startedAt": START, "updatedAt": LATER, **times})
    )

    assert (session.running_seconds, session.max_running_seconds) == (exact, at_most)
