"""An Appium driver: started with the suite's options, and quit in limited time unless it is left running."""

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

import httpx
import pytest
from appium.options.android import UiAutomator2Options
from appium.options.common import AppiumOptions
from appium.options.ios import XCUITestOptions
from selenium.common.exceptions import InvalidSessionIdException, WebDriverException
from urllib3.exceptions import ReadTimeoutError

from pytest_device.controllers.appium.connection import DriverPolicy
from pytest_device.controllers.appium.drivers import QUIT_SECONDS, driver
from pytest_device.errors import AppError, ConfigError, ControllerError, DeviceError
from pytest_device.sessions.models import Session
from pytest_device.sessions.remote_config import AppiumConfig
from pytest_device.sessions.request import SessionRequest
from tests.controllers.appium_servers import appium, received, refuses, session_on
from tests.controllers.servers import session_at
from tests.fakes.http_server import Answer, ScriptedServer, says
from tests.waiting import eventually

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
    ids=[
        "mapping",
        "prefixed",
        "AppiumOptions",
        "UiAutomator2Options",
        "XCUITestOptions",
    ],
)
def test_options_are_accepted_in_every_form(appium: Session, options: Options) -> None:
    with driver(appium, options) as driven:
        assert driven.capabilities["newCommandTimeout"] == 77
        assert driven.capabilities["automationName"] == "Fake"


def test_a_rejected_command_cannot_control_the_terminal(
    controller: ScriptedServer,
) -> None:
    controller.answer = appium(
        source=refuses("unknown error", "\x1b[31mred\n::error::owned")
    )

    with (
        driver(session_on(controller), {}) as driven,
        pytest.raises(WebDriverException) as raised,
    ):
        _ = driven.page_source

    assert "\\x1b[31mred\n\\::error::owned" in str(raised.value)
    assert "\x1b" not in str(raised.value)
    assert "\n::" not in str(raised.value)


@pytest.mark.parametrize(
    "page",
    [
        Answer(502, b"<html>Bad gateway</html>"),
        Answer(200, b"<!doctype html><title>Bad gateway</title>"),
        Answer(308, b"Bad gateway"),
        says({"message": "Bad gateway"}, 503),
    ],
)
def test_a_gateways_page_does_not_count_as_a_success(
    controller: ScriptedServer, page: Answer
) -> None:
    controller.answer = appium(back=page)

    with (
        driver(session_on(controller), {}) as driven,
        pytest.raises(WebDriverException, match=r"Appium.*: .*Bad gateway"),
    ):
        driven.back()


def test_a_driver_is_quit_at_the_end(appium: Session) -> None:
    with driver(appium, {}) as driven:
        pass

    with pytest.raises(InvalidSessionIdException):
        _ = driven.page_source


def test_a_driver_to_be_left_alone_is_not_quit(appium: Session) -> None:
    is_asked_to_stay = False
    with driver(appium, {}, leave=lambda: is_asked_to_stay) as driven:
        is_asked_to_stay = True

    assert "<app" in driven.page_source
    driven.quit()


def test_quitting_a_driver_whose_appium_session_has_ended_is_silent(
    appium: Session, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "pytest_device")
    assert isinstance(appium.remote_config, AppiumConfig)

    with driver(appium, {}) as driven:
        ended = httpx.delete(
            f"{appium.remote_config.appium_url}/session/{driven.session_id}",
            trust_env=False,
        )
        assert ended.is_success

    logged = [
        (record.levelname, record.message)
        for record in caplog.records
        if record.name == "pytest_device"
    ]
    assert logged == [
        ("INFO", "the Appium session had ended before its driver was quit")
    ]


def test_quitting_a_driver_whose_server_was_killed_logs_a_warning(
    appium: Session, kill_appium: Callable[[], None], caplog: pytest.LogCaptureFixture
) -> None:
    with driver(appium, {}):
        kill_appium()

    logged = [
        record.message for record in caplog.records if record.name == "pytest_device"
    ]
    assert [message.partition(": ")[0] for message in logged] == [
        "the Appium driver did not quit"
    ]


def test_quitting_has_its_own_time_limit(controller: ScriptedServer) -> None:
    limits: list[object] = []
    controller.answer = lambda _call: says(
        {"value": {"sessionId": "1", "capabilities": {}}}
    )
    with driver(session_at(controller.url), {}) as driven:
        config = driven.command_executor.client_config

        def answer(call: str) -> Answer:
            limits.append((call, config.timeout))
            return says({"value": None})

        controller.answer = answer

    assert limits == [("DELETE /session/1", QUIT_SECONDS)]


HANGS = Answer(rest=b" ", pause=60)
SHORT = DriverPolicy(timeout_seconds=0.2)
PATIENT_START = {"appium:wdaLaunchTimeout": 100}
"""Gives the start of a driver a limit of its own."""


def test_a_hanging_quit_times_out_and_the_device_counts_as_in_use(
    controller: ScriptedServer, caplog: pytest.LogCaptureFixture
) -> None:
    lost: list[bool] = []
    controller.answer = appium()

    with driver(
        session_on(controller),
        PATIENT_START,
        policy=SHORT,
        lost=lambda: lost.append(True),
    ):
        controller.answer = lambda _call: HANGS

    assert lost == [True]
    # Asked once, not four times.
    assert eventually(
        lambda: [path for path, _ in controller.asked] == ["/session", "/session/1"]
    )
    assert "the Appium driver did not quit: " in caplog.text


def test_a_hanging_start_times_out_and_the_device_counts_as_in_use(
    controller: ScriptedServer,
) -> None:
    lost: list[bool] = []
    controller.answer = lambda _call: HANGS

    with (
        pytest.raises(ControllerError, match=r"no response within 0\.2 s "),
        driver(
            session_on(controller), {}, policy=SHORT, lost=lambda: lost.append(True)
        ),
    ):
        pass

    assert lost == [True]
    assert eventually(lambda: [path for path, _ in controller.asked] == ["/session"])


def test_a_start_that_builds_web_driver_agent_has_its_own_limit_but_commands_do_not(
    controller: ScriptedServer,
) -> None:
    server = appium(source=HANGS)

    def slow_start(call: str) -> Answer:
        if call.startswith("POST") and call.endswith("/session"):
            time.sleep(0.5)  # longer than a command may take
        return server(call)

    controller.answer = slow_start

    with (
        driver(session_on(controller), PATIENT_START, policy=SHORT) as driven,
        pytest.raises(ReadTimeoutError),
    ):
        _ = driven.page_source


@pytest.mark.parametrize(
    "answer",
    [refuses("session not created", "no"), refuses("invalid session id", "gone", 404)],
)
def test_after_any_response_the_device_does_not_count_as_in_use(
    controller: ScriptedServer, answer: Answer
) -> None:
    lost: list[bool] = []
    controller.answer = appium(session=answer)

    with (
        pytest.raises(ControllerError),
        driver(session_on(controller), {}, lost=lambda: lost.append(True)),
    ):
        pass

    assert lost == []


def test_a_command_can_take_as_long_as_the_policy_allows(
    controller: ScriptedServer,
) -> None:
    controller.answer = appium(source=HANGS)

    with (
        driver(session_on(controller), PATIENT_START, policy=SHORT) as driven,
        pytest.raises(ReadTimeoutError),
    ):
        _ = driven.page_source


def test_a_driver_that_the_test_has_quit_is_not_quit_again(
    controller: ScriptedServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "pytest_device")
    controller.answer = appium()
    with driver(session_on(controller), {}) as driven:
        driven.quit()
        controller.answer = lambda _call: refuses(
            "invalid session id", "A session is either terminated or not started", 404
        )

    assert caplog.messages == []


def _asked(platform: str = "android") -> SessionRequest:
    return SessionRequest.from_arguments(
        app_id=UUID(int=1),
        platform=platform,
        type="appium",
        application_archive_url="https://builds.example/app.zip",
        open_url=LINK,
    )


LINK = "https://notes.example/open?key=sesame"


@pytest.mark.parametrize(
    ("platform", "capabilities", "arguments"),
    [
        (
            "android",
            {"appPackage": "com.example.notes"},
            {"package": "com.example.notes"},
        ),
        ("android", {}, {}),
        (
            "ios",
            {"appium:bundleId": "com.example.notes"},
            {"bundleId": "com.example.notes"},
        ),
    ],
)
def test_the_link_of_the_marker_is_opened_in_the_app_that_was_started(
    controller: ScriptedServer,
    platform: str,
    capabilities: dict[str, str],
    arguments: dict[str, str],
) -> None:
    controller.answer = appium(capabilities)

    with driver(
        session_on(controller, platform=platform), {}, request=_asked(platform)
    ):
        assert received(controller, "/execute/sync") == [
            {"script": "mobile: deepLink", "args": [{"url": LINK, **arguments}]}
        ]


def test_a_browser_goes_to_the_link_of_the_marker(controller: ScriptedServer) -> None:
    controller.answer = appium()

    with driver(session_on(controller), {"browserName": "Chrome"}, request=_asked()):
        assert received(controller, "/url") == [{"url": LINK}]


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (
            refuses(
                "unknown error",
                f"Error: Activity not started, unable to resolve {LINK}",
            ),
            AppError,
            "unable to",
        ),
        (
            refuses("unknown method", "Unsupported execute method 'mobile: deepLink'"),
            ConfigError,
            "remove open_url",
        ),
        (
            refuses("unknown command", "no such route", 404),
            ConfigError,
            "remove open_url",
        ),
        (HANGS, ControllerError, "timed out"),
    ],
    ids=["refused", "unknown method", "unknown command", "hangs"],
)
def test_a_link_that_cannot_be_opened_is_reported_and_the_driver_is_quit(
    controller: ScriptedServer, answer: Answer, kind: type[DeviceError], words: str
) -> None:
    controller.answer = appium(sync=answer)

    with (
        pytest.raises(kind) as caught,
        driver(session_on(controller), {}, request=_asked(), policy=SHORT),
    ):
        pass

    message = str(caught.value)
    assert (
        "started, but open_url='https://notes.example/open?…' could not be opened"
        in message
    )
    assert words in message
    assert "sesame" not in message
    assert controller.asked[-1][0] == "/session/1"
