"""The service's errors for invalid requests, and its own choices."""

import json
from typing import Any

import pytest

from pytest_device.spec import SESSIONS_PATH
from tests.fakes.local_service import APP_ID, InProcessService

OWN_CHOICES = [
    # options, what the message says
    (
        {"name": None},
        "name must be a string that is not blank, of up to 255 characters, not null",
    ),
    (
        {"maxDurationMinutes": 30.0},
        "maxDurationMinutes must be an integer from 0 to 115, not 30.0",
    ),
    (
        {"maxIdleTimeMinutes": None},
        "maxIdleTimeMinutes must be an integer from 1 to 114, not null",
    ),
    (
        {"maxDuration": 30},
        '"maxDuration" is not an option of a create request: did you mean maxDurationMinutes?',
    ),
    (
        {"vendor_go": True},
        '"vendor_go" is not an option of a create request: did you mean vendorGo?',
    ),
    (
        {"colour": "red"},
        '"colour" is not an option of a create request: the options are appId, platform, name, ',
    ),
    ({"name": "half a \ud83d"}, "name must be a string"),
    (
        {"vendorGo": True, "launchArgs": ["\udc00"]},
        "launchArgs must be an array of strings, not an array",
    ),
    (
        {"deviceIdentifier": {"name": "pixel_8"}},
        "deviceIdentifier must be a string, not an object",
    ),
    ({"name": "n" * 300}, f'of up to 255 characters, not "{"n" * 79}…'),
    ({"type": "serve-sim"}, "(serve-sim was removed: use web-preview-only)"),
]

BODIES = [None, True, 17, 1.5, "text", [], [{"appId": APP_ID, "platform": "ios"}]]


def refused(service: InProcessService, body: object) -> list[str]:
    """Return the messages about the body of a create request."""
    reply = service.send(
        "POST",
        SESSIONS_PATH,
        content=json.dumps(body),
        headers={"Content-Type": "application/json"},
    )
    assert reply.status_code == 400
    return [error["message"] for error in reply.json()["errors"]]


def problems(service: InProcessService, **options: Any) -> list[str]:
    """Return the messages for a request with these options."""
    return refused(service, {"appId": APP_ID, "platform": "ios"} | options)


@pytest.mark.parametrize(("options", "said"), OWN_CHOICES)
def test_a_refusal_names_the_option_its_value_and_the_rule(
    service: InProcessService, options: dict[str, Any], said: str
) -> None:
    (message,) = problems(service, **options)

    assert said in message


@pytest.mark.parametrize("body", BODIES)
def test_a_body_that_is_not_an_object_is_refused(
    service: InProcessService, body: object
) -> None:
    (message,) = refused(service, body)

    assert "must be a JSON object" in message


def test_every_invalid_option_is_reported_at_once(service: InProcessService) -> None:
    messages = problems(
        service, platform="windows", name=" ", maxDurationMinutes=200, openUrl=3
    )

    assert [message.split()[0] for message in messages] == [
        "platform",
        "name",
        "maxDurationMinutes",
        "openUrl",
    ]


def test_every_broken_rule_about_several_options_is_reported_at_once(
    service: InProcessService,
) -> None:
    messages = problems(
        service,
        sdkVersion="54",
        openUrl="app://x",
        maxIdleTimeMinutes=10,
        type="web-preview-only",
    )

    assert [message.split()[0] for message in messages] == [
        "sdkVersion",
        "openUrl",
        "maxIdleTimeMinutes",
    ]


def test_an_invalid_source_is_not_also_reported_as_missing(
    service: InProcessService,
) -> None:
    assert len(problems(service, buildId="latest", openUrl="app://x")) == 1


def test_missing_options_are_named(service: InProcessService) -> None:
    app_id, platform = refused(service, {})

    assert app_id == "appId is missing: it must be a UUID"
    assert platform.startswith("platform is missing: ")
    assert "android" in platform


def test_credentials_in_a_refused_url_are_not_repeated(
    service: InProcessService,
) -> None:
    (message,) = problems(
        service, applicationArchiveUrl="https://user:hunter2@files.example.com/a b"
    )

    assert "hunter2" not in message
