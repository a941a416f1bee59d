"""The service's errors for invalid requests, and its own choices."""

from typing import Any

import pytest

from pytest_device.service.rules import CreateBody, InvalidBodyError, check, check_limit
from tests.service.world import APP_ID

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


def problems(**options: Any) -> list[str]:
    """Return the messages for a request with these options."""
    with pytest.raises(InvalidBodyError) as refused:
        check({"appId": APP_ID, "platform": "ios"} | options)
    return [problem.message for problem in refused.value.problems]


@pytest.mark.parametrize(("options", "said"), OWN_CHOICES)
def test_a_refusal_names_the_option_its_value_and_the_rule(
    options: dict[str, Any], said: str
) -> None:
    (message,) = problems(**options)

    assert said in message


@pytest.mark.parametrize("body", BODIES)
def test_a_body_that_is_not_an_object_is_refused(body: object) -> None:
    with pytest.raises(InvalidBodyError, match="must be a JSON object"):
        check(body)


def test_every_invalid_option_is_reported_at_once() -> None:
    messages = problems(platform="windows", name=" ", maxDurationMinutes=200, openUrl=3)

    assert [message.split()[0] for message in messages] == [
        "platform",
        "name",
        "maxDurationMinutes",
        "openUrl",
    ]


def test_every_broken_rule_about_several_options_is_reported_at_once() -> None:
    messages = problems(
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


def test_an_invalid_source_is_not_also_reported_as_missing() -> None:
    assert len(problems(buildId="latest", openUrl="app://x")) == 1


def test_missing_options_are_named() -> None:
    with pytest.raises(
        InvalidBodyError,
        match=r"appId is missing: it must be a UUID; platform is missing: .*android",
    ):
        check({})


def test_credentials_in_a_refused_url_are_not_repeated() -> None:
    (message,) = problems(
        applicationArchiveUrl="https://user:hunter2@files.example.com/a b"
    )

    assert "hunter2" not in message


def test_a_duration_above_the_limit_of_the_account_names_the_limit() -> None:
    body: CreateBody = {"appId": APP_ID, "platform": "ios", "maxDurationMinutes": 41}

    with pytest.raises(
        InvalidBodyError,
        match=r"maxDurationMinutes 41 is above the limit of the account: at most 40",
    ):
        check_limit(body, 40)
