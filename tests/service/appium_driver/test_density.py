"""With the setting displayDensity, an Android suite sees and sends pixels, as on a phone."""

import base64
from collections.abc import Generator
from typing import Final

import pytest
from appium.webdriver import Remote
from appium.webdriver.applicationstate import ApplicationState
from appium.webdriver.common.appiumby import AppiumBy as By
from selenium.common.exceptions import (
    InvalidArgumentException,
    SessionNotCreatedException,
)

from pytest_device.sessions.models import Session
from tests.service.appium_driver.conftest import APP, APP_ID, driven, seen

DENSITY: Final = 320
"""Dots per inch: two pixels for each point of the page."""


@pytest.fixture
def dense(phone: Remote) -> Generator[Remote]:
    phone.update_settings({"displayDensity": DENSITY})
    yield phone
    phone.update_settings({"displayDensity": 160})


def size_of_png(content: str) -> tuple[int, int]:
    header = base64.b64decode(content)[16:24]
    return int.from_bytes(header[:4]), int.from_bytes(header[4:])


def test_all_sizes_are_in_pixels(phone: Remote) -> None:
    points = phone.get_window_size()
    rect = seen(phone, "title").rect

    phone.update_settings({"displayDensity": DENSITY})
    try:
        pixels = phone.get_window_size()
        assert pixels == {name: 2 * length for name, length in points.items()}
        title = seen(phone, "title")
        assert title.rect == {name: 2 * length for name, length in rect.items()}
        right, below = 2 * (rect["x"] + rect["width"]), 2 * (rect["y"] + rect["height"])
        assert str(title.get_attribute("bounds")).endswith(f"[{right},{below}]")
        assert f'width="{pixels["width"]}"' in phone.page_source
        assert phone.get_display_density() == DENSITY
        assert size_of_png(phone.get_screenshot_as_base64()) == tuple(pixels.values())
    finally:
        phone.update_settings({"displayDensity": 160})


def middle(driver: Remote, name: str) -> tuple[int, int]:
    rect = seen(driver, name).rect
    return rect["x"] + rect["width"] // 2, rect["y"] + rect["height"] // 2


def test_touches_are_in_pixels(dense: Remote) -> None:
    seen(dense, "text").send_keys("Milk")
    dense.tap([middle(dense, "add")])
    assert seen(dense, "note-0").text == ""
    assert seen(dense, "count").text == "You have 1 notes"


def test_gestures_are_in_pixels(dense: Remote) -> None:
    seen(dense, "text").send_keys("Milk")
    x, y = middle(dense, "add")
    dense.execute_script("mobile: clickGesture", {"x": x, "y": y})
    assert seen(dense, "count").text == "You have 1 notes"


@pytest.mark.parametrize("density", [0, 5000, "high"])
def test_an_impossible_density_is_refused(
    android_driver: Remote, density: object
) -> None:
    with pytest.raises(InvalidArgumentException, match="from 80 to 1000 dots per inch"):
        android_driver.update_settings({"displayDensity": density})


def test_capabilities_can_have_settings(android: Session) -> None:
    settings = {
        "appium:settings[displayDensity]": DENSITY,
        "appium:settings[disableIdLocatorAutocompletion]": True,
    }
    app = {"app": str(APP), "appium:appPackage": APP_ID}
    with driven(android, {**app, **settings}) as driver:
        assert driver.get_display_density() == DENSITY
        assert driver.find_element(By.ID, "title").text == "Notes"


def test_a_session_that_is_refused_for_its_settings_ends(
    phone: Remote, android: Session
) -> None:
    settings = {"appium:settings[displayDensity]": 1}
    with (
        pytest.raises(SessionNotCreatedException, match="from 80 to 1000 dots"),
        driven(android, {"appium:appPackage": APP_ID, **settings}),
    ):
        pass

    # At its time limit, it would end the app of another session.
    assert phone.query_app_state(APP_ID) == ApplicationState.NOT_RUNNING


def test_on_ios_points_stay_points(iphone: Remote) -> None:
    points = iphone.get_window_size()
    iphone.update_settings({"displayDensity": DENSITY})
    try:
        assert iphone.get_window_size() == points
    finally:
        iphone.update_settings({"displayDensity": 160})
