"""The same with ``unittest``: its tests can't request fixtures, so an autouse fixture sets the driver."""

import unittest

import pytest
from appium.webdriver.common.appiumby import AppiumBy
from appium.webdriver.webdriver import WebDriver
from appium.webdriver.webelement import WebElement


@pytest.mark.device(platform="ios", type="appium")
class CounterTest(unittest.TestCase):
    driver: WebDriver
    step: WebElement

    @pytest.fixture(autouse=True)
    def open_app(self, device_driver: WebDriver) -> None:
        self.driver = device_driver

    def setUp(self) -> None:
        self.step = self.driver.find_element(AppiumBy.ACCESSIBILITY_ID, "step")

    def test_starts_without_a_step(self) -> None:
        self.assertEqual(self.step.text, "")

    def test_takes_a_step(self) -> None:
        self.step.send_keys("7")
        self.assertEqual(self.step.text, "7")
