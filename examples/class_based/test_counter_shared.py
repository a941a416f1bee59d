"""One driver for a whole class: it starts before ``setUpClass`` and quits after ``tearDownClass``."""

import unittest

import pytest
from appium.webdriver.common.appiumby import AppiumBy
from appium.webdriver.webdriver import WebDriver
from appium.webdriver.webelement import WebElement


@pytest.fixture(scope="class")
def driver(request: pytest.FixtureRequest, class_device_driver: WebDriver) -> WebDriver:
    if request.cls:
        request.cls.driver = class_device_driver
    return class_device_driver


@pytest.mark.device(platform="android", type="appium")
class TestCounter:
    def test_takes_a_step(self, driver: WebDriver) -> None:
        driver.find_element(AppiumBy.ACCESSIBILITY_ID, "step").send_keys("7")

    def test_keeps_the_step(self, driver: WebDriver) -> None:
        assert driver.find_element(AppiumBy.ACCESSIBILITY_ID, "step").text == "7"


@pytest.mark.device(platform="ios", type="appium")
@pytest.mark.usefixtures("driver")
class CounterTest(unittest.TestCase):
    driver: WebDriver
    step: WebElement

    @classmethod
    def setUpClass(cls) -> None:
        cls.step = cls.driver.find_element(AppiumBy.ACCESSIBILITY_ID, "step")

    def test_1_takes_a_step(self) -> None:
        self.step.send_keys("7")

    def test_2_keeps_the_step(self) -> None:
        assert self.step.text == "7"
