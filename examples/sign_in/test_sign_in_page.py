"""Sign-in on the provider's page: success, cancellation, denial, expiry and revocation."""

import pytest
from appium.webdriver.common.appiumby import AppiumBy
from appium.webdriver.webdriver import WebDriver
from selenium.webdriver.support import expected_conditions
from selenium.webdriver.support.wait import WebDriverWait

from pytest_device.auth.provider import IdentityProvider

pytestmark = pytest.mark.device(platform=["android", "ios"], type="appium", device_identifier="chromium")


def by_test_id(name: str) -> tuple[str, str]:
    """Return a locator for a test ID: a resource ID on Android, a name on iOS."""
    return AppiumBy.XPATH, f"//*[@resource-id='{name}' or @name='{name}']"


STATUS = by_test_id("status")


def fill_in(driver: WebDriver) -> None:
    """Complete the sign-in form of the provider."""
    driver.find_element(*by_test_id("sign-in")).click()
    wait = WebDriverWait(driver, 10)
    wait.until(expected_conditions.presence_of_element_located(by_test_id("user"))).send_keys("ada")
    driver.find_element(*by_test_id("password")).send_keys("analytical engine")
    driver.find_element(*by_test_id("allow")).click()


def wait_for_status(driver: WebDriver, text: str) -> None:
    WebDriverWait(driver, 10).until(expected_conditions.text_to_be_present_in_element(STATUS, text))


def test_a_user_signs_in(device_driver: WebDriver, device_identity_provider: IdentityProvider) -> None:
    fill_in(device_driver)

    assert device_identity_provider.wait_for_sign_in("ada").scopes == ("openid", "profile")
    wait_for_status(device_driver, "Hello Ada Lovelace")


@pytest.mark.device(platform="android")  # an iPhone has no Back key
def test_a_user_cancels(device_driver: WebDriver) -> None:
    device_driver.find_element(*by_test_id("sign-in")).click()
    WebDriverWait(device_driver, 10).until(expected_conditions.presence_of_element_located(by_test_id("deny")))

    device_driver.back()

    wait_for_status(device_driver, "Signed out")


def test_a_user_denies(device_driver: WebDriver) -> None:
    device_driver.find_element(*by_test_id("sign-in")).click()
    deny = expected_conditions.presence_of_element_located(by_test_id("deny"))
    WebDriverWait(device_driver, 10).until(deny).click()

    wait_for_status(device_driver, "You denied the sign-in")


def test_an_expired_session_is_refreshed(device_driver: WebDriver, device_identity_provider: IdentityProvider) -> None:
    fill_in(device_driver)
    wait_for_status(device_driver, "Hello Ada Lovelace")

    device_identity_provider.clock.advance(3601)
    device_driver.find_element(*by_test_id("profile")).click()

    def is_refreshed(_driver: WebDriver) -> bool:
        return device_identity_provider.tokens[-1].grant_type == "refresh_token"

    WebDriverWait(device_driver, 10).until(is_refreshed)
    wait_for_status(device_driver, "Hello Ada Lovelace")


def test_a_revoked_session_ends(device_driver: WebDriver, device_identity_provider: IdentityProvider) -> None:
    fill_in(device_driver)
    wait_for_status(device_driver, "Hello Ada Lovelace")

    device_identity_provider.revoke_user("ada")
    device_driver.find_element(*by_test_id("profile")).click()

    wait_for_status(device_driver, "Please sign in again")


def test_a_failing_provider_is_reported(device_driver: WebDriver, device_identity_provider: IdentityProvider) -> None:
    device_identity_provider.fail("token", "server_error")

    fill_in(device_driver)

    wait_for_status(device_driver, "The sign-in failed")
