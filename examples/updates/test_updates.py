"""Tests of an app with over-the-air updates: applying, recovering from and rejecting updates."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest
from appium.webdriver.common.appiumby import AppiumBy
from appium.webdriver.webdriver import WebDriver
from selenium.webdriver.support import expected_conditions
from selenium.webdriver.support.wait import WebDriverWait

from pytest_device import Platform
from pytest_device.updates import (
    Build,
    CodeSigning,
    Constants,
    LaunchModel,
    Offer,
    Signature,
    Update,
    UpdateSettings,
    broken_rules,
    constants_of,
    differences,
)
from pytest_device.updates.service import DeviceUpdateService, FailureKind

pytestmark = pytest.mark.device(platform=["android", "ios"], type="appium", device_identifier="chromium")


def by_test_id(name: str) -> tuple[str, str]:
    """Return a locator for a test ID: a resource ID on Android, a name on iOS."""
    return AppiumBy.XPATH, f"//*[@resource-id='{name}' or @name='{name}']"


EXPORTS = Path(__file__).with_name("exports")
APP_ID = "notes"


def wait_for(driver: WebDriver, name: str, text: str) -> None:
    shown = expected_conditions.text_to_be_present_in_element(by_test_id(name), text)
    WebDriverWait(driver, 10).until(shown)


def restart(driver: WebDriver) -> None:
    driver.terminate_app(APP_ID)
    driver.activate_app(APP_ID)


def constants(driver: WebDriver) -> Constants:
    return Constants.read(json.loads(driver.find_element(*by_test_id("constants")).text))


@pytest.fixture
def model(device_platform: Platform, device_update_service: DeviceUpdateService, signing: CodeSigning) -> LaunchModel:
    """Return the launch model of this app, used as an oracle."""
    url = device_update_service.url
    settings = UpdateSettings.from_config({"updates": {"url": url, "codeSigningCertificate": "certificate.pem"}})
    created = datetime.fromisoformat("2026-01-01T00:00:00Z")
    embedded = Update("00000000-0000-4000-8000-000000000001", "1.0", device_platform, created, url, [])
    return LaunchModel(Build(device_platform, "1.0", settings, embedded, url, signing.certificate))


@pytest.fixture
def publish(device_platform: Platform, device_update_service: DeviceUpdateService, signing: CodeSigning) -> "Publish":
    return Publish(device_platform, device_update_service, Signature.valid(signing.certificate))


class Publish:
    """Factory that publishes an export and returns the update as the app receives it."""

    def __init__(self, platform: Platform, service: DeviceUpdateService, signature: Signature) -> None:
        self.platform, self.service, self.signature = platform, service, signature

    def __call__(self, version: str, signature: Signature | None = None) -> Update:
        update = self.service.publish(EXPORTS / version, runtime_version="1.0")[self.platform]
        return replace(update, scope=self.service.url, signature=signature or self.signature)


def test_an_update_is_applied_at_the_next_launch(
    device_driver: WebDriver, device_update_service: DeviceUpdateService, publish: Publish, model: LaunchModel
) -> None:
    wait_for(device_driver, "title", "Notes 1")
    wait_for(device_driver, "update", "up to date")
    model, _ = model.launch()
    assert differences(constants_of(model), constants(device_driver)) == []

    v2 = publish("v2")
    restart(device_driver)
    model, _ = model.launch(Offer(v2))
    wait_for(device_driver, "update", "pending")
    wait_for(device_driver, "title", "Notes 1")
    assert model.pending == v2
    assert device_update_service.wait_for_request(v2.id).current_update_id == model.embedded.id

    restart(device_driver)
    model, _ = model.launch()
    wait_for(device_driver, "title", "Notes 2")
    assert differences(constants_of(model), constants(device_driver)) == []
    assert broken_rules(constants(device_driver)) == []


def test_the_app_recovers_from_an_update_that_fails(
    device_driver: WebDriver, publish: Publish, model: LaunchModel
) -> None:
    v3 = publish("v3")
    device_driver.find_element(*by_test_id("check")).click()
    wait_for(device_driver, "update", "pending")

    restart(device_driver)
    wait_for(device_driver, "title", "Notes 1")
    reported = constants(device_driver)
    assert reported.emergency_launch_reason == "missing is not defined"
    model, _ = model.launch(Offer(v3))
    model, _ = model.launch()[0].emergency(reported.emergency_launch_reason)
    assert differences(constants_of(model), reported) == []

    restart(device_driver)  # the failed update is never tried again
    wait_for(device_driver, "update", "up to date")
    assert constants(device_driver).is_emergency_launch is False


def test_an_unsigned_update_is_refused(
    device_driver: WebDriver, device_update_service: DeviceUpdateService, publish: Publish, model: LaunchModel
) -> None:
    wait_for(device_driver, "update", "up to date")
    device_update_service.fail("missing_signature")
    v4 = publish("v4", signature=Signature.missing())
    device_driver.find_element(*by_test_id("check")).click()

    wait_for(device_driver, "update", "refused: it is not signed")
    model, _ = model.launch(Offer(v4))
    assert model.pending is None


BROKEN: Mapping[FailureKind, str] = {
    "wrong_signature": "its signature is wrong",
    "corrupt_asset": "its bundle is damaged",
    "server_error": "the service returned 500",
}


def test_a_broken_service_changes_nothing(
    device_driver: WebDriver, device_update_service: DeviceUpdateService, publish: Publish
) -> None:
    wait_for(device_driver, "update", "up to date")
    publish("v2")
    for failure, reason in BROKEN.items():
        device_update_service.fail(failure)
        device_driver.find_element(*by_test_id("check")).click()
        wait_for(device_driver, "update", f"refused: {reason}")

    device_driver.find_element(*by_test_id("check")).click()
    wait_for(device_driver, "update", "pending")
