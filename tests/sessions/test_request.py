"""A request is valid by construction; its rules row by row are in the contract tests."""

from uuid import UUID

import pytest
from pydantic import ValidationError

from pytest_device import ConfigError, Platform, SessionRequest

APP_ID = UUID("7d7a1f0e-0f4c-4f2e-9b0a-0c9d6a1f2b3c")


def test_the_constructor_checks_the_rules_between_arguments_too() -> None:
    with pytest.raises(ValidationError, match="smaller than max_duration_minutes=5"):
        SessionRequest(
            app_id=APP_ID,
            platform=Platform.IOS,
            max_duration_minutes=5,
            max_idle_time_minutes=5,
        )


def test_all_mistakes_are_reported_at_once_including_rules_between_arguments() -> None:
    with pytest.raises(ConfigError) as caught:
        SessionRequest.from_arguments(
            app_id="x",
            platform="ios",
            max_idle_time_minutes=9,
            max_duration_minutes=9,
            sdk_version="54",
            open=1,
        )

    assert list(caught.value.problems) == [
        "open is not an argument of the marker: did you mean open_url?",
        "sdk_version='54' is valid only with vendor_go=True",
        "max_idle_time_minutes=9 must be smaller than max_duration_minutes=9",
        "app_id='x' must be the project's UUID",
    ]


def test_a_single_broken_rule_between_arguments_is_reported_once() -> None:
    with pytest.raises(ConfigError) as caught:
        SessionRequest.from_arguments(app_id=APP_ID, platform="ios", sdk_version="54")

    assert len(caught.value.problems) == 1


def test_an_unknown_argument_without_a_close_match_is_reported_with_all_arguments() -> (
    None
):
    with pytest.raises(
        ConfigError,
        match="zzz is not an argument of the marker: the arguments are app_id, platform",
    ):
        SessionRequest.from_arguments(app_id=APP_ID, platform="ios", zzz=1)


def test_a_long_value_is_shortened_in_its_message() -> None:
    with pytest.raises(ConfigError) as caught:
        SessionRequest.from_arguments(app_id=APP_ID, platform="ios", name="n" * 300)

    assert len(str(caught.value)) < 160
    assert "(300 characters)" in str(caught.value)


def test_the_accounts_vendor_prefix_is_sent() -> None:
    request = SessionRequest.from_arguments(
        app_id=APP_ID, platform="ios", vendor_go=True, sdk_version="54"
    )

    assert request.to_wire()["vendorGo"] is True
    assert request.to_wire(vendor="acme") == {
        "appId": str(APP_ID),
        "platform": "ios",
        "type": "agent-device",
        "acmeGo": True,
        "sdkVersion": "54",
    }


@pytest.mark.parametrize("text", ["\ud800", "a\udfff"])
def test_text_that_json_cannot_encode_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="package_version"):
        SessionRequest.from_arguments(
            app_id=APP_ID, platform="ios", package_version=text
        )
