"""Fields other than text fields: dates, times, ranges, files, choices, switches."""

import pytest
from appium.webdriver import Remote
from appium.webdriver.common.appiumby import AppiumBy as By
from selenium.common.exceptions import (
    InvalidArgumentException,
    InvalidElementStateException,
)

from tests.service.appium_driver.conftest import fresh, seen


@pytest.fixture(params=["android_driver", "ios_driver"])
def driver(request: pytest.FixtureRequest) -> Remote:
    return fresh(request.getfixturevalue(request.param), "fields")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("day", "2026-11-22"),
        ("hour", "14:30"),
        ("hour", "14:30:15"),
    ],
)
def test_text_typed_into_a_field_reaches_the_app(
    driver: Remote, name: str, text: str
) -> None:
    seen(driver, name).send_keys(text)
    assert seen(driver, "heard").text == f"{name}={text}"


@pytest.mark.parametrize(("platform", "text"), [("android", "150"), ("ios", "0.75")])
def test_a_slider_takes_values_in_the_platforms_range(
    driver: Remote, platform: str, text: str
) -> None:
    if driver.capabilities["platformName"].lower() != platform:
        text = {"150": "0.75", "0.75": "150"}[text]
    seen(driver, "volume").send_keys(text)
    assert seen(driver, "heard").text == "volume=150"


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        (
            "day",
            "22.11.2026",
            "takes YYYY-MM-DD, for example 2026-11-22, not '22.11.2026'",
        ),
        ("day", "2025-12-31", "must be 2026-01-01 or more, not '2025-12-31'"),
        (
            "hour",
            "half past two",
            "takes HH:MM, for example 14:30, not 'half past two'",
        ),
        ("volume", "loud", "not 'loud'"),
        ("volume", "300", "not '300'"),
    ],
)
def test_an_invalid_value_for_a_field_is_refused(
    driver: Remote, name: str, text: str, reason: str
) -> None:
    with pytest.raises(InvalidArgumentException, match=reason):
        seen(driver, name).send_keys(text)
    assert seen(driver, "heard").text == ""


def test_a_date_field_is_cleared(driver: Remote) -> None:
    seen(driver, "day").send_keys("2026-11-22")
    seen(driver, "day").clear()
    assert seen(driver, "heard").text == "day="


@pytest.mark.parametrize("act", ["send_keys", "click"])
def test_a_file_cannot_be_chosen_in_the_native_context(
    driver: Remote, act: str
) -> None:
    photo = seen(driver, "photo")
    with pytest.raises(InvalidElementStateException, match=r"file picker.*web view"):
        photo.send_keys(__file__) if act == "send_keys" else photo.click()


def test_a_file_can_be_chosen_in_the_web_view(phone: Remote) -> None:
    phone.get("notes:///fields")
    phone.switch_to.context(phone.contexts[1])
    phone.find_element(By.CSS_SELECTOR, "[data-testid=photo]").send_keys(__file__)
    assert phone.find_element(By.CSS_SELECTOR, "[data-testid=heard]").text.endswith(
        "test_fields.py"
    )


@pytest.mark.parametrize("act", ["send_keys", "clear"])
def test_an_element_that_takes_no_text_refuses_it(driver: Remote, act: str) -> None:
    loud = seen(driver, "loud")
    with pytest.raises(InvalidElementStateException, match="takes no text"):
        loud.send_keys("yes") if act == "send_keys" else loud.clear()


def test_the_value_of_a_switch_is_one_or_zero_wherever_it_is_read(
    iphone: Remote,
) -> None:
    iphone.get("notes:///fields")
    seen(iphone, "loud").click()
    loud = seen(iphone, "loud")
    assert (loud.get_attribute("value"), loud.text) == ("1", "1")
    assert (
        iphone.find_element(
            By.XPATH, '//XCUIElementTypeSwitch[@value="1"]'
        ).get_attribute("name")
        == "loud"
    )
    on = "type == 'XCUIElementTypeSwitch' AND value == 1"
    assert iphone.find_element(By.IOS_PREDICATE, on).get_attribute("name") == "loud"
    loud.click()
    assert (loud.get_attribute("value"), loud.text) == ("0", "0")
