"""The page objects of the suite, unchanged by the migration."""

from appium.webdriver.common.appiumby import AppiumBy
from appium.webdriver.webdriver import WebDriver


class SignInPage:
    def __init__(self, driver: WebDriver) -> None:
        self._driver = driver

    def sign_in(self, name: str, password: str) -> str:
        """Fill in the form, click the button and return the greeting."""
        self._driver.find_element(AppiumBy.ACCESSIBILITY_ID, "username").send_keys(name)
        self._driver.find_element(AppiumBy.ACCESSIBILITY_ID, "password").send_keys(password)
        self._driver.find_element(AppiumBy.ACCESSIBILITY_ID, "sign-in").click()
        greeting: str = self._driver.switch_to.alert.text
        return greeting

    def name(self) -> str:
        return self._driver.find_element(AppiumBy.ACCESSIBILITY_ID, "username").text

    def offers_recovery(self) -> bool:
        return self._driver.find_element(AppiumBy.ACCESSIBILITY_ID, "forgotten").is_enabled()
