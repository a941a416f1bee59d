"""The app under test as its tests see it."""

from appium.webdriver.common.appiumby import AppiumBy
from appium.webdriver.webdriver import WebDriver
from selenium.webdriver.support import expected_conditions
from selenium.webdriver.support.wait import WebDriverWait

SECONDS = 10


class NotesApp:
    """The running app; its elements are found by their test IDs."""

    def __init__(self, driver: WebDriver, identifier: str) -> None:
        self.driver, self.identifier = driver, identifier

    def open(self, link: str) -> None:
        """Open a deep link, also if the app is closed."""
        name = "package" if self.driver.capabilities["platformName"].lower() == "android" else "bundleId"
        self.driver.execute_script("mobile: deepLink", {"url": link, name: self.identifier})

    def tap(self, name: str) -> None:
        self._wait().until(expected_conditions.element_to_be_clickable(by_test_id(name))).click()

    def type(self, name: str, text: str) -> None:
        self._wait().until(expected_conditions.element_to_be_clickable(by_test_id(name))).send_keys(text)

    def wait_for(self, name: str, text: str) -> None:
        """Wait until an element shows a text."""
        self._wait().until(expected_conditions.text_to_be_present_in_element(by_test_id(name), text))

    def answer_permission(self, *, allow: bool) -> None:
        dialog = self._wait().until(expected_conditions.alert_is_present())
        if allow:
            dialog.accept()
        else:
            dialog.dismiss()

    def close(self) -> None:
        self.driver.terminate_app(self.identifier)

    def restart(self) -> None:
        self.close()
        self.driver.activate_app(self.identifier)

    def _wait(self) -> WebDriverWait[WebDriver]:
        return WebDriverWait(self.driver, SECONDS)


def by_test_id(name: str) -> tuple[str, str]:
    """Return a locator for a test ID: a resource ID on Android, a name on iOS."""
    return AppiumBy.XPATH, f"//*[@resource-id='{name}' or @name='{name}']"
