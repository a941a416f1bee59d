"""The app leaves its origin: package, source, views and size are those of the browser that shows the page."""

from collections.abc import Generator
from typing import Final

import pytest
from appium.webdriver import Remote
from appium.webdriver.common.appiumby import AppiumBy as By
from selenium.common.exceptions import NoSuchElementException

from tests.fakes.http_server import Answer, scripted_server
from tests.service.appium_driver.conftest import APP_ID, fresh

PAGE: Final = b"""<!doctype html><meta name="viewport" content="width=device-width">
<input id="name" autofocus><button id="allow">Allow</button>"""


@pytest.fixture(scope="module")
def other_origin() -> Generator[str]:
    page = Answer(body=PAGE, headers={"Content-Type": "text/html"})
    with scripted_server(lambda _call: page) as server:
        yield server.url


@pytest.fixture
def outside(android_driver: Remote, other_origin: str) -> Generator[Remote]:
    driver = fresh(android_driver)
    driver.switch_to.context(f"WEBVIEW_{APP_ID}")
    driver.execute_script("location.href = arguments[0]", other_origin)
    driver.switch_to.context("NATIVE_APP")
    driver.find_element(By.XPATH, "//*[@resource-id='allow']")
    yield driver
    fresh(android_driver)


def test_package_source_and_views_say_the_same(outside: Remote) -> None:
    button = outside.find_element(By.CLASS_NAME, "android.widget.Button")
    assert outside.current_package == "com.android.chrome"
    assert button.get_attribute("package") == "com.android.chrome"
    assert 'package="com.android.chrome"' in outside.page_source
    assert APP_ID not in outside.page_source


def test_source_and_window_have_the_same_size(outside: Remote) -> None:
    size = outside.get_window_size()
    shown = f'width="{size["width"]}" height="{size["height"]}"'
    assert shown in outside.page_source


def test_the_keyboard_is_shown_for_a_field_that_is_tapped_not_for_one_with_autofocus(
    outside: Remote,
) -> None:
    field = outside.find_element(By.CLASS_NAME, "android.widget.EditText")
    assert field.get_attribute("focused") == "true"
    assert not outside.is_keyboard_shown()

    field.click()
    assert outside.is_keyboard_shown()


def test_a_view_of_the_app_is_missed_with_the_reason(
    outside: Remote, other_origin: str
) -> None:
    outside.implicitly_wait(0)
    with pytest.raises(NoSuchElementException) as missed:
        outside.find_element(By.ID, "title")
    assert f"left its origin: com.android.chrome shows {other_origin}" in str(
        missed.value
    )


def test_a_view_in_a_frame_of_another_origin_is_missed_with_the_reason(
    android_driver: Remote, other_origin: str
) -> None:
    driver = fresh(android_driver)
    driver.switch_to.context(f"WEBVIEW_{APP_ID}")
    driver.execute_script(
        "document.body.append(Object.assign(document.createElement('iframe'),"
        " { src: arguments[0] }))",
        other_origin,
    )
    driver.switch_to.context("NATIVE_APP")
    driver.implicitly_wait(0)
    with pytest.raises(NoSuchElementException) as missed:
        driver.find_element(By.XPATH, "//*[@resource-id='allow']")
    assert f"a frame of another origin, {other_origin}" in str(missed.value)
