"""Links to an app's routes by name; a misspelled name fails before a device is used."""

import pytest
from appium.webdriver.common.appiumby import AppiumBy
from appium.webdriver.webdriver import WebDriver

from pytest_device import ConfigError
from pytest_device.app import Links, Project

PAGES = {
    "/": "Home",
    "/settings": "Settings",
    "/notes": "All notes",
    "/notes/[id]": "Note 7",
    "/help/[...rest]": "Help: guide, start",
}
VALUES = {"id": "7", "rest": ["guide", "start"]}


def by_test_id(name: str) -> tuple[str, str]:
    """Return a locator for a test ID: a resource ID on Android, a name on iOS."""
    return AppiumBy.XPATH, f"//*[@resource-id='{name}' or @name='{name}']"


@pytest.mark.device(platform=["android", "ios"], type="appium", device_identifier="chromium")
def test_each_route_opens_its_page(device_driver: WebDriver, device_app: Project, device_link: Links) -> None:
    for route, parameters in device_app.routes.linkable.items():
        device_driver.get(device_link(route, {one.name: VALUES[one.name] for one in parameters}))
        shown = device_driver.find_element(*by_test_id("page")).text
        assert shown == PAGES[route.replace("/(tabs)", "")]


def test_a_note_has_a_link(device_link: Links) -> None:
    assert device_link("/notes/[id]", id="7") == "notes://notes/7"


def test_a_wrong_link_names_the_right_one(device_link: Links) -> None:
    with pytest.raises(ConfigError, match=r"did you mean '/notes/\[id\]'"):
        device_link("/note/[id]", id="7")
