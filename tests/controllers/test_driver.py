"""An Appium driver: started with the suite's options, quit at the end within bounds unless it is to be left."""

import logging
from collections.abc import Callable, Mapping
from typing import Any

import httpx
import pytest
from appium.options.android import UiAutomator2Options
from appium.options.common import AppiumOptions
from appium.options.ios import XCUITestOptions
from selenium.common.exceptions import InvalidSessionIdException

from pytest_device.controllers.appium import QUIT_SECONDS, driver, merged_options
from pytest_device.sessions.models import AppiumConfig, Session
from tests.controllers.servers import Answer, Controller, says, session_at

Options = AppiumOptions | Mapping[str, Any]


@pytest.mark.parametrize(
    "options",
    [
        {"newCommandTimeout": 77},
        {"appium:newCommandTimeout": 77},
        AppiumOptions().load_capabilities({"newCommandTimeout": 77}),
        UiAutomator2Options().load_capabilities({"appium:newCommandTimeout": 77}),
        XCUITestOptions().load_capabilities({"newCommandTimeout": 77}),
    ],
    ids=["mapping", "prefixed", "AppiumOptions", "UiAutomator2Options", "XCUITestOptions"],
)
def test_options_are_taken_however_the_suite_gives_them(appium: Session, options: Options) -> None:
    with driver(appium, options) as driven:
        assert driven.capabilities["newCommandTimeout"] == 77
        assert driven.capabilities["deviceName"] == "fake android device"


def _merged(options: Options, **capabilities: Any) -> dict[str, Any]:
    session = session_at("http://127.0.0.1:9", capabilities=capabilities)
    assert isinstance(session.remote_config, AppiumConfig)
    merged: dict[str, Any] = merged_options(session, session.remote_config, options).to_capabilities()
    return {name: value for name, value in merged.items() if name != "appium:newCommandTimeout"}


def test_what_an_option_class_sets_by_itself_yields_to_the_service() -> None:
    service = {"platformName": "Fake", "automationName": "Fake"}

    assert _merged(UiAutomator2Options(), **service) == {"platformName": "Fake", "appium:automationName": "Fake"}
    assert _merged(XCUITestOptions()) == {"platformName": "iOS", "appium:automationName": "XCUITest"}


def test_what_the_suite_sets_wins_over_the_service() -> None:
    options = UiAutomator2Options()
    options.automation_name = "Espresso"

    assert _merged(options, automationName="Fake")["appium:automationName"] == "Espresso"
    assert _merged({"udid": None}, **{"appium:udid": "1", "appium:app": "a"}) == {"appium:app": "a"}


def test_the_suite_s_own_options_are_not_changed() -> None:
    options = UiAutomator2Options()
    before = options.to_capabilities()

    _merged(options, platformName="Fake")

    assert options.to_capabilities() == before


def test_a_driver_is_quit_at_the_end(appium: Session) -> None:
    with driver(appium, {}) as driven:
        pass

    with pytest.raises(InvalidSessionIdException):
        _ = driven.page_source


def test_a_driver_that_is_to_be_left_goes_on(appium: Session) -> None:
    is_asked_to_stay = False
    with driver(appium, {}, leave=lambda: is_asked_to_stay) as driven:
        is_asked_to_stay = True

    assert "<app" in driven.page_source
    driven.quit()


def test_a_driver_whose_appium_session_has_ended_is_quit_in_silence(
    appium: Session, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "pytest_device")
    assert isinstance(appium.remote_config, AppiumConfig)

    with driver(appium, {}) as driven:
        ended = httpx.delete(f"{appium.remote_config.appium_url}/session/{driven.session_id}", trust_env=False)
        assert ended.is_success

    told = [(record.levelname, record.message) for record in caplog.records if record.name == "pytest_device"]
    assert told == [("INFO", "the Appium session had ended before its driver was quit")]


def test_a_driver_whose_server_was_killed_is_given_up_with_a_warning(
    appium: Session, kill_appium: Callable[[], None], caplog: pytest.LogCaptureFixture
) -> None:
    with driver(appium, {}):
        kill_appium()

    told = [record.message for record in caplog.records if record.name == "pytest_device"]
    assert [message.partition(": ")[0] for message in told] == ["the Appium driver did not quit"]


def test_the_quit_has_a_limit_of_its_own(far: Controller) -> None:
    limits: list[object] = []
    far.answer = lambda _call: says({"value": {"sessionId": "1", "capabilities": {}}})
    with driver(session_at(far.url), {}) as driven:
        config = driven.command_executor.client_config

        def answer(call: str) -> Answer:
            limits.append((call, config.timeout))
            return says({"value": None})

        far.answer = answer

    assert limits == [("DELETE /session/1", QUIT_SECONDS)]
