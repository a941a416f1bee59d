"""The phones that a browser can emulate."""

import pytest

from pytest_device.errors import ControllerError
from pytest_device.service.devices.profiles import (
    PROFILES,
    Profile,
    find_profile,
    plain,
)
from pytest_device.spec import Platform


@pytest.mark.parametrize(
    ("platform", "identifier", "name"),
    [
        (Platform.ANDROID, None, "Pixel 8"),
        (Platform.IOS, None, "iPhone 16"),
        (Platform.ANDROID, "pixel_7", "Pixel 7"),
        (Platform.ANDROID, "Medium Phone API 36", "Medium Phone"),
        (Platform.IOS, "iphone-16-pro", "iPhone 16 Pro"),
        (Platform.IOS, "iPhone SE (3rd generation)", "iPhone SE (3rd generation)"),
        (Platform.IOS, "iphone se", "iPhone SE (3rd generation)"),
    ],
)
def test_a_phone_is_found_by_name_in_any_spelling(
    platform: Platform, identifier: str | None, name: str
) -> None:
    assert find_profile(platform, identifier).name == name


def test_an_unknown_phone_is_refused_with_the_known_ones() -> None:
    with pytest.raises(
        ControllerError,
        match=r"'Pixel 99' is not an android phone .* Pixel 8, .*, or leave it out",
    ):
        find_profile(Platform.ANDROID, "Pixel 99")


def test_a_phone_of_the_other_platform_is_unknown() -> None:
    with pytest.raises(ControllerError, match="'Pixel 8' is not an ios phone"):
        find_profile(Platform.IOS, "Pixel 8")


def test_no_two_phones_have_the_same_name() -> None:
    names = [
        (one.platform, plain(name))
        for one in PROFILES
        for name in (one.name, *one.aliases)
    ]

    assert len(names) == len(set(names))


@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.name)
def test_a_phone_is_in_portrait_and_identifies_itself_as_its_model(
    profile: Profile,
) -> None:
    reported = profile.user_agent("156.0.8078.79")

    assert profile.width < profile.height
    assert ("Mobile" in reported["userAgent"]) is (
        profile.platform is Platform.IOS or not profile.is_tablet
    )
    assert ("userAgentMetadata" in reported) is (profile.platform is Platform.ANDROID)
    assert "{" not in reported["userAgent"]


def test_an_ipad_is_an_ipad() -> None:
    reported = find_profile(Platform.IOS, "iPad").user_agent("156.0.8078.79")

    assert reported == {
        "userAgent": "Mozilla/5.0 (iPad; CPU OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) "
        "Version/18.5 Mobile/15E148 Safari/604.1",
        "platform": "iPad",
    }
