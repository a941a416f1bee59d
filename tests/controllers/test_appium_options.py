"""Capabilities: the service's device, overridden by the marker's app, overridden by the suite's options."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from appium.options.android import UiAutomator2Options
from appium.options.common import AppiumOptions
from appium.options.ios import XCUITestOptions

from pytest_device.controllers.appium.options import check_local_app, merged_options
from pytest_device.errors import ConfigError
from pytest_device.sessions.models import Session
from pytest_device.sessions.remote_config import AppiumConfig
from pytest_device.sessions.request import SessionRequest
from tests.contract.document import example_session

Options = AppiumOptions | Mapping[str, Any]

ANDROID = {
    "platformName": "Android",
    "appium:automationName": "UiAutomator2",
    "appium:udid": "emulator-5554",
}
IOS = {"platformName": "iOS", "appium:automationName": "XCUITest", "appium:udid": "A1"}
ARCHIVE = "https://builds.example/notes.apk?sig=abc"
BUILD = "c41a7e96-2d83-4b0f-9e15-8a6f3d7c0b24"


def _session(capabilities: Mapping[str, Any], **changes: Any) -> Session:
    config = {"appiumUrl": "http://127.0.0.1:9", "capabilities": dict(capabilities)}
    blank = {
        "type": "appium",
        "buildId": None,
        "applicationArchiveUrl": None,
        "maxIdleTimeMinutes": None,
    }
    return Session.from_wire(
        example_session(**blank | {"remoteConfig": config} | changes)
    )


def _asked(platform: str = "android", **arguments: Any) -> SessionRequest:
    return SessionRequest.from_arguments(
        app_id=UUID(int=1), platform=platform, type="appium", **arguments
    )


def _merged(
    options: Options,
    capabilities: Mapping[str, Any] = ANDROID,
    request: SessionRequest | None = None,
    **changes: Any,
) -> dict[str, Any]:
    session = _session(capabilities, **changes)
    assert isinstance(session.remote_config, AppiumConfig)
    merged: dict[str, Any] = merged_options(
        session, session.remote_config, options, request
    ).to_capabilities()
    return {
        name: value
        for name, value in merged.items()
        if name != "appium:newCommandTimeout"
    }


def test_the_service_overrides_the_defaults_of_an_options_class() -> None:
    service = {"platformName": "Fake", "automationName": "Fake"}

    assert _merged(UiAutomator2Options(), service) == {
        "platformName": "Fake",
        "appium:automationName": "Fake",
    }
    assert _merged(XCUITestOptions(), {}, platform="ios") == {
        "platformName": "iOS",
        "appium:automationName": "XCUITest",
    }


def test_without_capabilities_of_the_service_its_session_still_names_the_platform() -> (
    None
):
    assert _merged({"automationName": "Espresso"}, {}) == {
        "platformName": "android",
        "appium:automationName": "Espresso",
    }


def test_the_suites_values_override_the_service() -> None:
    options = UiAutomator2Options()
    options.automation_name = "Espresso"

    assert _merged(options)["appium:automationName"] == "Espresso"
    assert _merged(
        {"deviceName": None}, {"appium:deviceName": "1", "appium:app": "a"}
    ) == {"appium:app": "a"}


@pytest.mark.parametrize(
    "options",
    [
        {"automationName": "UiAutomator2"},
        {"platformName": "Android"},
        UiAutomator2Options(),
    ],
)
def test_the_local_browser_device_accepts_capabilities_of_android_suites(
    options: Options,
) -> None:
    assert _merged(options) == ANDROID


def test_the_suites_own_options_are_not_changed() -> None:
    options = UiAutomator2Options()
    before = options.to_capabilities()

    _merged(options, {"platformName": "Fake"})

    assert options.to_capabilities() == before


@pytest.mark.parametrize(
    ("idle", "options", "seconds"),
    [(None, {}, 0), (10, {}, 600), (10, {"newCommandTimeout": 77}, 77)],
)
def test_appiums_idle_limit_is_the_sessions_unless_the_suite_sets_one(
    idle: int | None, options: Options, seconds: int
) -> None:
    session = _session(ANDROID, maxIdleTimeMinutes=idle)
    assert isinstance(session.remote_config, AppiumConfig)

    merged = merged_options(session, session.remote_config, options)

    assert merged.get_capability("appium:newCommandTimeout") == seconds


@pytest.mark.parametrize("word", ["Android", "android", "Fake"])
def test_the_platform_is_spelled_as_the_service_does(word: str) -> None:
    assert _merged({"platformName": word}, {"platformName": "Fake"}) == {
        "platformName": "Fake"
    }
    assert _merged({"platformName": "android"}, {}) == {"platformName": "android"}


def test_a_platform_that_differs_from_the_marker_is_a_configuration_error() -> None:
    options = UiAutomator2Options().load_capabilities({"platformName": "iOS"})

    with pytest.raises(
        ConfigError,
        match=r"platformName='iOS', the marker platform='android'.*device_platform",
    ):
        _merged(options)


@pytest.mark.parametrize(
    ("udid", "warnings"), [("emulator-5556", 1), (None, 0), ("emulator-5554", 0)]
)
def test_the_sessions_device_overrides_the_suites_udid(
    udid: str | None, warnings: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "pytest_device")

    assert _merged({"udid": udid}) == ANDROID
    assert len(caplog.messages) == warnings


@pytest.mark.parametrize(
    "options", [{}, UiAutomator2Options(), {"appPackage": "com.example.notes"}]
)
def test_the_archive_that_the_service_returns_is_the_app(options: Options) -> None:
    service = ANDROID | {"appium:app": "/blank.xml"}

    assert (
        _merged(options, service, applicationArchiveUrl=ARCHIVE)["appium:app"]
        == ARCHIVE
    )


@pytest.mark.parametrize(
    ("options", "app"),
    [
        ({"app": "/own.apk"}, "/own.apk"),
        ({"appium:app": "/own.apk"}, "/own.apk"),
        (UiAutomator2Options().load_capabilities({"app": "/own.apk"}), "/own.apk"),
        ({"app": None}, None),
        ({"browserName": "Chrome"}, None),
    ],
    ids=["unprefixed", "prefixed", "class", "none", "browser"],
)
def test_the_suites_own_app_overrides_it(options: Options, app: str | None) -> None:
    assert _merged(options, applicationArchiveUrl=ARCHIVE).get("appium:app") == app
    assert _merged(options, buildId=BUILD).get("appium:app") == app


@pytest.mark.parametrize(
    ("source", "asked"),
    [("build_id", _asked(build_id=BUILD)), ("vendor_go", _asked(vendor_go=True))],
    ids=["build_id", "vendor_go"],
)
def test_the_suite_must_set_an_app_for_which_the_service_returns_no_url(
    source: str, asked: SessionRequest
) -> None:
    with pytest.raises(
        ConfigError,
        match=rf"^{source}=.*device_appium_options.*application_archive_url",
    ):
        _merged({}, request=asked, buildId=asked.build_id and str(asked.build_id))


@pytest.mark.parametrize("name", ["appPackage", "bundleId"])
def test_an_app_on_the_device_needs_no_url(name: str) -> None:
    assert (
        _merged({name: "com.example.notes"}, buildId=BUILD)[f"appium:{name}"]
        == "com.example.notes"
    )


def test_launch_arguments_become_intent_arguments_on_android_and_process_arguments_on_ios() -> (
    None
):
    arguments: dict[str, Any] = {
        "launch_args": ["--es", "name", "Ada L"],
        "application_archive_url": ARCHIVE,
    }

    android = _merged({}, request=_asked(**arguments))
    ios = _merged({}, IOS, _asked("ios", **arguments), platform="ios")

    assert android["appium:optionalIntentArguments"] == "--es name Ada L"
    assert ios["appium:processArguments"] == {"args": ["--es", "name", "Ada L"]}


def test_the_suites_own_arguments_take_precedence() -> None:
    asked = _asked("ios", launch_args=["-a"], application_archive_url=ARCHIVE)
    own = XCUITestOptions()
    own.process_arguments = {"env": {"A": "1"}}

    assert _merged(own, IOS, asked, platform="ios")["appium:processArguments"] == {
        "env": {"A": "1"}
    }


def test_language_orientation_and_permissions_are_passed_unchanged() -> None:
    android = UiAutomator2Options()
    android.locale, android.language, android.orientation = "CA", "fr", "LANDSCAPE"
    android.auto_grant_permissions, android.no_reset = True, True
    ios = XCUITestOptions()
    ios.locale, ios.language, ios.auto_accept_alerts = "fr_CA", "fr", True
    ios.permissions = {"com.example.notes": {"camera": "yes"}}

    for options, service, platform in (
        (android, ANDROID, "android"),
        (ios, IOS, "ios"),
    ):
        own = {
            name: value
            for name, value in options.to_capabilities().items()
            if name.startswith("appium:")
        }
        assert len(own) == 4 + (platform == "android")
        assert _merged(options, service, platform=platform) == own | service


@pytest.mark.parametrize(
    "app",
    [
        "https://builds.example/none.apk",
        "build",
        "notes.apk",
        "notes.xml",
        "file://{place}/notes.apk",
        "",
        None,
        4,
    ],
)
def test_an_app_for_an_appium_on_this_machine_is_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, app: str | int | None
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "build").mkdir()
    (tmp_path / "notes.apk").write_bytes(b"PK\x03\x04")
    (tmp_path / "notes.xml").write_text("<app/>")
    given = app.format(place=tmp_path) if isinstance(app, str) else app

    check_local_app({"app": given}, _asked())
    check_local_app({}, _asked())


@pytest.mark.parametrize(
    ("app", "problem"),
    [
        (
            "none.apk",
            r"^appium:app='none.apk' of device_appium_options does not exist: /.*/none.apk. Set the path",
        ),
        (
            "file:///none/none.zip",
            r"does not exist: /none/none.zip. Set the path of a file",
        ),
        (
            "text.apk",
            r"is not an app: a file with the extension .apk must be a zip archive",
        ),
        (
            "text.IPA",
            r"is not an app: a file with the extension .IPA must be a zip archive",
        ),
    ],
)
def test_a_file_that_is_no_app_is_refused_for_an_appium_on_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, app: str, problem: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("text.apk", "text.IPA"):
        (tmp_path / name).write_text("<!doctype html>")

    with pytest.raises(ConfigError, match=problem):
        check_local_app({"appium:app": app}, _asked())


def test_appiums_fake_device_accepts_any_extension(tmp_path: Path) -> None:
    (tmp_path / "notes.apk").write_text("<app/>")

    check_local_app(
        {"app": str(tmp_path / "notes.apk")}, _asked(device_identifier="fake")
    )
