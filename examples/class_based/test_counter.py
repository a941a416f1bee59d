"""Tests in a class, with the driver on ``self``. ``share="class"`` limits the device to the class."""

import pytest
from appium.webdriver.common.appiumby import AppiumBy
from appium.webdriver.webdriver import WebDriver


@pytest.mark.device(platform="android", type="appium", share="class", max_duration_minutes=10)
class TestCounter:
    driver: WebDriver

    @pytest.fixture(autouse=True)
    def open_app(self, device_driver: WebDriver) -> None:
        self.driver = device_driver

    def test_adds_one(self) -> None:
        self.driver.find_element(AppiumBy.ACCESSIBILITY_ID, "add").click()
        assert self.driver.switch_to.alert.text == "One more"

    def test_takes_a_step(self) -> None:
        step = self.driver.find_element(AppiumBy.ACCESSIBILITY_ID, "step")
        step.send_keys("7")
        assert step.text == "7"
