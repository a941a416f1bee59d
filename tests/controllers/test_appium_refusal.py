"""A start that Appium rejects: the app's fault, the options' or the server's, by the messages of real drivers."""

import pytest

from pytest_device.controllers.appium.drivers import driver
from pytest_device.errors import AppError, ConfigError, ControllerError
from pytest_device.report.verdict import verdict_of
from tests.controllers.appium_servers import appium, refuses, session_on
from tests.fakes.http_server import ScriptedServer

ARCHIVE = "https://user:pw@builds.example/notes.apk?sig=abcdef"
SERVER_SIDE = "An unknown server-side error occurred while processing the command. Original error: "
OF_THE_APP = [
    f"The application at '{ARCHIVE}' does not exist or is not accessible",
    "The protocol 'ftp:' used in 'ftp://a/b.apk' is not supported. Only http: and https: protocols are supported",
    "Cannot download the app from https://builds.example/notes.apk?sig=abcdef: Request failed with status code 404",
    "Cannot download the app from https://builds.example/notes.apk?sig=abcdef: connect ECONNREFUSED 10.0.0.1:443",
    "Cannot fetch the application: aborted",
    "New app path '/tmp/2024/notes.html' did not have extensions: .apk,.apks",
    f"ENOENT: no such file or directory, open '{ARCHIVE}'",
    "Could not find app apk at '/tmp/notes.apk'",
    "adb: failed to install /tmp/notes.apk: Failure [INSTALL_FAILED_NO_MATCHING_ABIS: Failed to extract libraries]",
    "adb: failed to install /tmp/notes.apk: Failure [INSTALL_PARSE_FAILED_NOT_APK: Failed to parse /tmp/notes.apk]",
    "adb: failed to install /tmp/notes.apk: Failure [INSTALL_FAILED_VERSION_DOWNGRADE]",
    (
        "Cannot start the 'com.example.notes' application. Original error: Activity name '.Main' used to start the app "
        "doesn't exist or cannot be launched! Make sure it exists and is a launchable activity"
    ),
    "The archive did not have any matching .app or .ipa bundles. Please make sure the provided package is valid",
    "Cannot prepare the application for testing. Original error: Is it a valid ZIP archive?",
    "Cannot extract Info.plist from '/tmp/notes.ipa'. Is it a valid application bundle?",
    "Simulator architecture is not supported by the com.example.notes application. Make sure the correct deployment",
    "The com.example.notes application does not support the arm64 Simulator architecture:\nNon-fat file",
    "The app under test cannot be installed: it answered 404 Not Found",
    "A new session could not be created. Details: https://***@builds.example/notes.apk?… answered 404 Not Found",
]
NOT_INSTALLED = [
    "App with bundle identifier 'com.example.notes' unknown",
    "Unable to resolve the launchable activity of 'com.example.notes'. Is it installed on the device?",
    "Cannot activate 'com.example.notes'. Are you sure it is installed?",
    "the app com.example.notes is not installed on this device; installed: none. Give appium:app",
]
OF_THE_SERVER = [
    "App with bundle identifier 'com.example.WebDriverAgentRunner' unknown",
    "adb: failed to install /node_modules/io.appium.settings/apks/a.apk: Failure [INSTALL_FAILED_VERIFICATION_FAILURE]",
    "adb: failed to install /tmp/notes.apk: Failure [INSTALL_FAILED_INSUFFICIENT_STORAGE]",
    "Error executing adbExec. Original error: 'Command '/sdk/adb' timed out after 20000ms'",
    "spawn /sdk/platform-tools/adb ENOENT",
    "Unable to launch WebDriverAgent. Original error: xcodebuild failed with code 65",
    "Could not find a connected Android device in 20000ms",
    "Could not find a driver for automationName 'Espresso' and platformName 'Android'. Have you installed a driver?",
    "A new session could not be created. Details: session not created: This version of ChromeDriver only supports 99",
]


def _error(
    controller: ScriptedServer,
    message: str,
    options: dict[str, object],
) -> Exception:
    controller.answer = appium(session=refuses("session not created", message))
    with (
        pytest.raises((AppError, ConfigError, ControllerError)) as caught,
        driver(session_on(controller), options),
    ):
        pass
    # Once: what is refused is refused the next time too.
    assert [path for path, _ in controller.asked] == ["/session"]
    return caught.value


@pytest.mark.parametrize("message", OF_THE_APP)
def test_an_app_that_cannot_be_installed_or_started_is_reported_as_the_apps_fault(
    controller: ScriptedServer, message: str
) -> None:
    error = _error(controller, SERVER_SIDE + message, {"app": ARCHIVE})

    assert isinstance(error, AppError)
    assert verdict_of(error) == "app"
    assert "https://***@builds.example/notes.apk?…" in str(error)
    assert "\nFix: " in str(error)
    assert not any(secret in str(error) for secret in ("sig=", "user:pw"))


@pytest.mark.parametrize(
    ("app", "fix"),
    [
        (
            "https://builds.example/notes.zip",
            "Appium's machine downloads it: the URL must be correct",
        ),
        (
            "/builds/notes",
            "Appium looks for it on its own machine: set the URL of an archive",
        ),
    ],
)
def test_the_fix_for_an_app_that_the_local_device_cannot_get_depends_on_whether_it_has_a_url(
    controller: ScriptedServer, app: str, fix: str
) -> None:
    error = _error(
        controller,
        f"A new session could not be created. Details: {app} cannot be read",
        {"app": app},
    )

    assert f"\nFix: {fix}" in str(error)


@pytest.mark.parametrize("message", OF_THE_SERVER)
def test_other_failures_are_not_reported_as_the_apps_fault(
    controller: ScriptedServer, message: str
) -> None:
    error = _error(controller, SERVER_SIDE + message, {"app": ARCHIVE})

    assert isinstance(error, ControllerError)
    assert verdict_of(error) == "infrastructure"


@pytest.mark.parametrize(
    "message",
    [
        "A new session could not be created. Details: 'noReset' must be of type boolean",
        "A new session could not be created. Details: 'deviceName' is required to be present",
        "The desiredCapabilities object was not valid for the following reason(s): 'noReset' must be of type boolean",
        "Session capabilities were not valid for the following reason(s): 'noReset' must be of type boolean",
        "All non-standard capabilities should have a vendor prefix. The following capabilities did not have one: x",
    ],
)
def test_rejected_options_are_the_suites_fault(
    controller: ScriptedServer, message: str
) -> None:
    error = _error(controller, message, {})

    assert isinstance(error, ConfigError)
    assert "device_appium_options" in str(error)


@pytest.mark.parametrize("message", NOT_INSTALLED)
def test_an_app_that_is_named_but_not_installed_is_the_suites_fault(
    controller: ScriptedServer, message: str
) -> None:
    error = _error(
        controller, SERVER_SIDE + message, {"appPackage": "com.example.notes"}
    )

    assert isinstance(error, ConfigError)
    assert verdict_of(error) == "config"
    assert "\nFix: set appium:app or application_archive_url as well" in str(error)


def test_text_that_selenium_appends_is_removed(controller: ScriptedServer) -> None:
    assert "selenium.dev" not in str(_error(controller, "no", {}))
