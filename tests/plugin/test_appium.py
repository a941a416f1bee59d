"""Tests with Appium: the marker's app, errors with the right verdict, and evidence of failures."""

import base64
import json
from collections.abc import Generator
from pathlib import Path

import pytest

# Loaded before the first run inside this process, which would load it anew each time.
from appium import webdriver as webdriver  # noqa: PLC0414

from pytest_device.testing import FaultyService
from tests.controllers.appium_servers import appium, received, refuses, started_with
from tests.fakes.http_server import Answer, ScriptedServer, says, scripted_server
from tests.plugin.runs import ON_WORKERS

ANDROID = {
    "platformName": "Android",
    "appium:automationName": "UiAutomator2",
    "appium:udid": "emulator-5554",
}
ARCHIVE = "https://builds.example/notes.zip?sig=abcdef"
DRIVEN = """
import pytest
pytestmark = pytest.mark.device(platform="android", type="appium", share="run"{more})

def test_one(device_driver): {body}

def test_two(device_driver): {body}
"""
ONE = DRIVEN.partition("def test_two")[0]


@pytest.fixture
def controller() -> Generator[ScriptedServer]:
    """Provide the Appium server that the service names for each session."""
    with scripted_server() as server:
        server.answer = appium()
        yield server


@pytest.fixture(autouse=True)
def _leading_there(
    service: FaultyService, controller: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    lead(service, controller.url)
    monkeypatch.setenv(
        "DEVICE_APPLICATION_ARCHIVE_URL", "https://builds.example/other.zip"
    )


def lead(service: FaultyService, url: str) -> None:
    """Give each session an Appium server at this URL."""
    config = {"appiumUrl": url, "capabilities": ANDROID}
    service.add_fault("get", "change", fields={"remoteConfig": config}, times=None)


def suite(
    pytester: pytest.Pytester, text: str, body: str = "pass", more: str = ""
) -> None:
    pytester.makepyfile(test_it=text.format(body=body, more=more))


def test_the_client_installs_and_launches_the_markers_app_and_opens_its_link(
    pytester: pytest.Pytester, controller: ScriptedServer
) -> None:
    controller.answer = appium({"appPackage": "com.example.notes"})
    app = f'application_archive_url="{ARCHIVE}", launch_args=["--es", "who", "Ada"], open_url="notes://list"'
    suite(pytester, ONE, more=f", {app}")

    pytester.runpytest().assert_outcomes(passed=1)

    wanted = {
        "appium:app": ARCHIVE,
        "appium:optionalIntentArguments": "--es who Ada",
        "appium:newCommandTimeout": 600,
    }
    link = {"url": "notes://list", "package": "com.example.notes"}
    assert started_with(controller) == ANDROID | wanted
    assert received(controller, "/execute/sync") == [
        {"script": "mobile: deepLink", "args": [link]}
    ]


def test_a_build_without_a_url_is_a_configuration_error(
    pytester: pytest.Pytester, controller: ScriptedServer, service: FaultyService
) -> None:
    suite(pytester, ONE, more=', build_id="c41a7e96-2d83-4b0f-9e15-8a6f3d7c0b24"')

    result = pytester.runpytest()

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        [
            "config: build_id='c41a7e96-*' cannot be installed by Appium: *device_appium_options*"
        ]
    )
    assert controller.asked == []
    assert service.statuses() == []


OPTIONS = """
import pytest

@pytest.fixture
def device_appium_options({arguments}): {body}
"""


@pytest.mark.parametrize(
    ("options", "problem", "fixture"),
    [
        (
            "import pytest",
            "no app for Appium: set one in device_appium_options (appium:app; *",
            "device_session, device_driver",
        ),
        (
            OPTIONS.format(
                arguments="device_platform", body="return {'language': 'de'}"
            ),
            "no app for Appium: set one *",
            "class_device_driver",
        ),
        (
            OPTIONS.format(arguments="", body="return ['app']"),
            "device_appium_options returned a list; it must return capabilities, *",
            "login",
        ),
        (
            OPTIONS.format(
                arguments="", body="{'app': 'https://builds.example/app.apk'}"
            ),
            "device_appium_options returned None; it must return capabilities, *: check its return statement",
            "device_session, device_driver",
        ),
    ],
    ids=["no app", "other options", "list", "no return"],
)
def test_invalid_options_are_reported_before_a_session_is_created(
    pytester: pytest.Pytester,
    service: FaultyService,
    monkeypatch: pytest.MonkeyPatch,
    options: str,
    problem: str,
    fixture: str,
) -> None:
    monkeypatch.delenv("DEVICE_APPLICATION_ARCHIVE_URL")
    pytester.makeconftest(
        f"""{options}
@pytest.fixture
def login(device_session, device_driver): pass
"""
    )
    suite(
        pytester, f"{ONE.partition('def test_one')[0]}def test_one({fixture}): {{body}}"
    )

    result = pytester.runpytest()

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"config: {problem}"])
    assert service.statuses() == []


@pytest.mark.parametrize(
    "capability",
    [
        "'appium:app': None",
        "'appPackage': 'a'",
        "'appium:bundleId': 'a'",
        "'browserName': 'Safari'",
    ],
)
def test_an_app_can_be_named_in_each_way(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, capability: str
) -> None:
    monkeypatch.delenv("DEVICE_APPLICATION_ARCHIVE_URL")
    pytester.makeconftest(OPTIONS.format(arguments="", body=f"return {{{capability}}}"))
    suite(pytester, ONE)

    pytester.runpytest().assert_outcomes(passed=1)


def test_an_app_that_cannot_be_installed_is_reported_as_such_and_costs_no_device(
    pytester: pytest.Pytester, controller: ScriptedServer, service: FaultyService
) -> None:
    controller.answer = appium(
        session=refuses(
            "unknown error", f"Cannot download the app from {ARCHIVE}: status code 404"
        )
    )
    suite(pytester, DRIVEN, more=f', application_archive_url="{ARCHIVE}"')

    result = pytester.runpytest("-s")

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        [
            "app: Appium could not install and start the app https://builds.example/notes.zip?…: Cannot *",
            "Fix: *",
            "devices: 1 created, 1 stopped (confirmed); *",
            "2 app errors (not test failures)",
            "app: 2 tests affected, first *",
            "*= 1 error, 1 not attempted in *",
        ]
    )
    result.stdout.no_fnmatch_line("*sig=abcdef*")
    assert (
        len(received(controller, "/session")) == 1
    )  # what is refused is not tried again
    assert service.statuses() == ["stopped"]


@pytest.mark.parametrize("options", ON_WORKERS)
def test_rejected_capabilities_do_not_cost_a_device_per_test(
    pytester: pytest.Pytester,
    controller: ScriptedServer,
    service: FaultyService,
    options: list[str],
) -> None:
    # One worker is refused while the other's device boots.
    service.add_fault("boot", "delay", seconds=3, times=1)
    controller.answer = appium(
        session=refuses("invalid argument", "'appium:nonsense' is unknown")
    )
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.device(platform="android", type="appium", share="test")
        @pytest.mark.parametrize("n", range(20))
        def test_driven(device_driver, n): pass
        """
    )

    result = pytester.runpytest(*options)

    outcomes = result.parseoutcomes()
    assert outcomes["errors"] <= 3
    result.stdout.fnmatch_lines(["*: * tests affected*"])
    # A worker whose device boots meanwhile learns of it too late.
    assert len(service.statuses()) <= 3


@pytest.mark.parametrize(
    ("message", "crashed"),
    [
        (
            "The application under test with bundle id 'com.example.notes' is not running, possibly crashed",
            True,
        ),
        ("tab crashed\n  (Session info: chrome=153)", True),
        ("An element could not be located: //*[@name='it crashed']", False),
    ],
)
def test_an_app_that_crashes_is_at_fault_and_the_next_test_keeps_the_device(
    pytester: pytest.Pytester,
    controller: ScriptedServer,
    service: FaultyService,
    message: str,
    *,
    crashed: bool,
) -> None:
    controller.answer = appium(element=refuses("unknown error", message))
    suite(pytester, DRIVEN, body="device_driver.find_element('id', 'title')")

    result = pytester.runpytest("-s")

    result.assert_outcomes(**{"errors" if crashed else "failed": 2})
    if crashed:
        line = message.partition("\n")[0]
        result.stdout.fnmatch_lines(
            [
                f"app: the app crashed: {line}",
                "-* Error in the test *-",
                "app: 2 tests affected*",
            ]
        )
    assert service.statuses() == ["stopped"]


@pytest.mark.parametrize(
    "message",
    [
        "'POST /element' cannot be proxied to UiAutomator2 server because the instrumentation process is not running",
        "An unknown server-side error occurred: Could not proxy command to the remote server: socket hang up",
    ],
)
def test_an_appium_server_that_dies_on_the_device_is_an_infrastructure_error_and_the_next_test_is_unaffected(
    pytester: pytest.Pytester,
    controller: ScriptedServer,
    service: FaultyService,
    message: str,
) -> None:
    controller.answer = appium(element=refuses("unknown error", message))
    suite(pytester, DRIVEN, body="device_driver.find_element('id', 'title')")

    result = pytester.runpytest()

    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines(
        [
            f"infrastructure: Appium lost the device: {message}",
            "infrastructure: 2 tests affected*",
        ]
    )
    assert service.statuses() == ["stopped", "stopped"]


def test_another_platform_in_the_options_is_reported_before_a_session_is_created(
    pytester: pytest.Pytester, controller: ScriptedServer, service: FaultyService
) -> None:
    suite(pytester, ONE)
    pytester.makeconftest(
        """
        import pytest
        from appium.options.common import AppiumOptions

        @pytest.fixture
        def device_appium_options():
            return AppiumOptions().load_capabilities({"platformName": "iOS"})
        """
    )

    result = pytester.runpytest()

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["config: device_appium_options sets platformName='iOS', the marker platform=*"]
    )
    assert received(controller, "/session") == []
    assert service.statuses() == []


def test_the_default_platform_of_an_option_class_is_not_the_suites_choice(
    pytester: pytest.Pytester, controller: ScriptedServer
) -> None:
    suite(pytester, ONE)
    pytester.makeconftest(
        """
        import pytest
        from appium.options.ios import XCUITestOptions

        @pytest.fixture
        def device_appium_options(): return XCUITestOptions()
        """
    )

    pytester.runpytest().assert_outcomes(passed=1)

    assert started_with(controller)["platformName"] == "Android"


def test_a_device_whose_driver_did_not_quit_is_not_given_to_the_next_test(
    pytester: pytest.Pytester, controller: ScriptedServer, service: FaultyService
) -> None:
    refused = refuses("unknown error", "the session is busy")
    controller.answer = lambda call: (
        refused if call.startswith("DELETE") else appium()(call)
    )
    suite(pytester, DRIVEN)

    pytester.runpytest().assert_outcomes(passed=2)

    assert len(service.sessions()) == 2


def test_a_failed_test_saves_the_devices_log_with_secrets_masked(
    pytester: pytest.Pytester, controller: ScriptedServer, service: FaultyService
) -> None:
    entry = {"timestamp": 0, "level": "I", "message": f"token={service.token}"}
    controller.answer = appium(
        types=says({"value": ["logcat"]}), log=says({"value": [entry]})
    )
    suite(pytester, ONE, body="assert False")

    pytester.runpytest("--device-artifacts-dir=left").assert_outcomes(failed=1)

    (logged,) = Path("left").rglob("logcat.txt")
    assert logged.read_text() == "1970-01-01T00:00:00.000+00:00 I token=***\n"


@pytest.mark.parametrize(
    ("options", "tests_with_log"),
    [
        ([], ["test_two"]),
        (["--device-trace=on"], ["test_one", "test_two"]),
    ],
    ids=["of failed tests", "of all tests"],
)
def test_the_devices_logs_are_saved(
    pytester: pytest.Pytester,
    controller: ScriptedServer,
    options: list[str],
    tests_with_log: list[str],
) -> None:
    entry = {"timestamp": 0, "level": "I", "message": "started"}
    controller.answer = appium(
        types=says({"value": ["logcat"]}), log=says({"value": [entry]})
    )
    suite(
        pytester,
        DRIVEN.replace(
            "test_two(device_driver): {body}", "test_two(device_driver): assert False"
        ),
    )

    pytester.runpytest("--device-artifacts-dir=left", *options).assert_outcomes(
        passed=1, failed=1
    )

    logs = sorted(Path("left").rglob("logcat.txt"))
    assert ["test_one" if "test_one" in str(log) else "test_two" for log in logs] == (
        tests_with_log
    )


def test_a_log_that_cannot_be_saved_leaves_the_test_as_it_is(
    pytester: pytest.Pytester, controller: ScriptedServer
) -> None:
    controller.answer = appium(
        types=says({"value": ["logcat"]}), log=says({"value": ["started"]})
    )
    suite(pytester, ONE)
    (pytester.path / "left").touch()

    result = pytester.runpytest("--device-artifacts-dir=left", "--device-trace=on")

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["cannot save artifacts in *"])


FINDS = 'device_driver.find_element("id", "pay")'
PAGE = '<hierarchy><android.widget.Button resource-id="app:id/paid"/></hierarchy>'


@pytest.mark.parametrize(
    ("trace", "summaries"),
    [("retain-on-failure", ["id 'pay': no match; nearest 'app:id/paid'"]), ("off", [])],
)
def test_without_a_trace_a_failure_names_no_nearest_element(
    pytester: pytest.Pytester,
    controller: ScriptedServer,
    trace: str,
    summaries: list[str],
) -> None:
    controller.answer = appium(
        element=refuses("no such element", "none", 404), source=says({"value": PAGE})
    )
    suite(pytester, ONE, body=FINDS)

    pytester.runpytest("--device-artifacts-dir=left", f"--device-trace={trace}")

    (path,) = Path("left").rglob("failure.json")
    failure = json.loads(path.read_text())
    nearest = failure["nearest"]
    assert ([nearest["summary"]] if nearest else []) == summaries
    assert failure["tree"][0]["elements"][0]["id"] == "app:id/paid"
    assert failure["error"]["type"] == "NoSuchElementException"


def test_an_error_in_the_teardown_reads_no_device(
    pytester: pytest.Pytester, controller: ScriptedServer
) -> None:
    broken = "import pytest\n@pytest.fixture\ndef broken(device_driver):\n    yield\n    assert False\n"
    suite(pytester, broken + ONE.replace("(device_driver)", "(broken)"))

    pytester.runpytest("--device-artifacts-dir=left").assert_outcomes(
        passed=1, errors=1
    )

    assert list(Path("left").rglob("failure.json")) == []
    assert "screenshot" not in _calls(controller)


UNITTEST = """
import unittest
import pytest

@pytest.mark.device(platform="android", type="appium")
class Notes(unittest.TestCase):
    @pytest.fixture(autouse=True)
    def open_app(self, device_driver):
        self.driver = device_driver

    {more}
    def test_looks(self):
        {body}
"""
QUITS = UNITTEST.replace(
    "    {more}", "    def tearDown(self):\n        self.driver.quit()\n\n    {more}"
)


@pytest.mark.parametrize(
    ("decorator", "body", "is_read"),
    [
        ("", "self.fail()", True),
        ("", "pytest.skip()", False),
        ("@unittest.expectedFailure", "self.fail()", False),
        *(
            pytest.param(*case, marks=pytest.mark.nightly)
            for case in (
                ("", "raise RuntimeError", True),
                ("", "pass", False),
                ("@pytest.mark.xfail", "self.fail()", False),
            )
        ),
    ],
)
def test_a_method_of_unittest_is_read_before_its_tear_down(
    pytester: pytest.Pytester,
    controller: ScriptedServer,
    decorator: str,
    body: str,
    is_read: bool,  # noqa: FBT001
) -> None:
    picture = says({"value": base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()})
    controller.answer = appium(screenshot=picture, source=says({"value": PAGE}))
    suite(pytester, QUITS, body=body, more=decorator)

    pytester.runpytest("--device-artifacts-dir=left")

    calls = _calls(controller)
    assert calls.count("screenshot") == is_read
    if is_read:
        (path,) = Path("left").rglob("failure.json")
        failure = json.loads(path.read_text())
        assert failure["missing"] == []
        assert "screenshot.png" in failure["files"]
        assert not any("Quit" in action["title"] for action in failure["actions"])
        quit_by_test = calls.index("1")
        assert calls.index("screenshot") < calls.index("source") < quit_by_test


MP4 = b"\0\0\0 ftypisom"


def _records(controller: ScriptedServer, video: bytes = MP4) -> None:
    encoded = base64.b64encode(video).decode()
    controller.answer = appium(
        start_recording_screen=says({"value": ""}),
        stop_recording_screen=says({"value": encoded}),
    )


def _calls(controller: ScriptedServer) -> list[str]:
    return [path.rpartition("/")[2] for path, _ in controller.asked]


@pytest.mark.parametrize(
    ("mode", "body", "videos"),
    [
        ("off", "assert False", []),
        ("retain-on-failure", "assert False", ["video.mp4"]),
        ("retain-on-failure", "pass", []),
        pytest.param(
            "retain-on-failure", "pytest.skip()", [], marks=pytest.mark.nightly
        ),
        ("on", "pass", ["video.mp4"]),
    ],
)
def test_a_video_is_kept_as_the_option_says(
    pytester: pytest.Pytester,
    controller: ScriptedServer,
    mode: str,
    body: str,
    videos: list[str],
) -> None:
    _records(controller)
    suite(pytester, ONE, body=body)

    pytester.runpytest("--device-artifacts-dir=left", f"--device-video={mode}")

    kept = list(Path("left").rglob("video.*"))
    assert [path.name for path in kept] == videos
    assert all(path.read_bytes() == MP4 for path in kept)
    calls = _calls(controller)
    assert ("start_recording_screen" in calls) == (mode != "off")
    if mode != "off":
        start, stop = "start_recording_screen", "stop_recording_screen"
        assert calls.index(start) < calls.index(stop) < len(calls) - 1


def test_a_video_is_among_the_files_of_a_failure_and_ends_before_the_device_is_read(
    pytester: pytest.Pytester, controller: ScriptedServer
) -> None:
    _records(controller, b"\x1aE\xdf\xa3 webm")
    suite(pytester, ONE, body="assert False")

    pytester.runpytest("--device-artifacts-dir=left", "--device-video=on")

    (path,) = Path("left").rglob("failure.json")
    assert "video.webm" in json.loads(path.read_text())["files"]
    calls = _calls(controller)
    assert calls.index("stop_recording_screen") < calls.index("screenshot")


def test_a_device_that_does_not_record_fails_no_test(
    pytester: pytest.Pytester, controller: ScriptedServer
) -> None:
    controller.answer = appium(
        start_recording_screen=refuses("unknown command", "no", 404)
    )
    suite(pytester, ONE)

    result = pytester.runpytest("--device-video=on", "-rA")

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*no video of the device: *"])


def test_a_recording_that_is_not_base64_fails_no_test(
    pytester: pytest.Pytester, controller: ScriptedServer
) -> None:
    controller.answer = appium(
        start_recording_screen=says({"value": ""}),
        stop_recording_screen=says({"value": None}),
    )
    suite(pytester, ONE)

    result = pytester.runpytest("--device-video=on", "-rA")

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*no video of the device: stop_recording_screen *"])


def test_a_suite_in_another_language_finds_the_device_and_credentials_stay_secret(
    pytester: pytest.Pytester, controller: ScriptedServer, service: FaultyService
) -> None:
    service.reset()
    lead(service, controller.url.replace("//", "//ada:open-sesame@"))
    pytester.makepyfile(
        test_it="""
        import json, os, subprocess, sys, pytest

        SUITE = '''
        import base64, json, os, sys, urllib.request
        from urllib.parse import urlsplit
        url, wanted = urlsplit(os.environ["APPIUM_URL"]), json.loads(os.environ["APPIUM_CAPS"])
        body = json.dumps({"capabilities": {"alwaysMatch": wanted}}).encode()
        basic = base64.b64encode(f"{url.username}:{url.password}".encode()).decode()
        headers = {"Content-Type": "application/json", "Authorization": f"Basic {basic}"}
        request = urllib.request.Request(f"http://{url.hostname}:{url.port}/session", body, headers)
        urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=10).close()
        print(url.geturl())
        '''.replace("\\n        ", "\\n")

        @pytest.mark.device(platform="android", type="appium")
        def test_elsewhere(device_environment):
            ran = subprocess.run([sys.executable, "-c", SUITE], env={**os.environ, **device_environment}, check=True)
            assert ran is device_environment
        """
    )

    result = pytester.runpytest("--showlocals")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*assert CompletedProcess*", "http://*@127.0.0.1:*"])
    result.stdout.no_fnmatch_line("*open-sesame*")
    (asked,) = [
        authorization for path, authorization in controller.asked if path == "/session"
    ]
    assert asked == "Basic YWRhOm9wZW4tc2VzYW1l"
    assert json.loads(controller.bodies[-1])["capabilities"]["alwaysMatch"] == ANDROID


INVALID = (
    "The desiredCapabilities object was not valid for the following reason(s): 'x'"
)
ON_FIRE = (
    "the emulator is on fire",
    "infrastructure: Appium did not start a driver: the emulator",
)


@pytest.mark.parametrize(
    ("reason", "cause", "distributed"),
    [
        (INVALID, "config: Appium rejected", []),
        pytest.param(
            f"Cannot download the app from {ARCHIVE}: status code 404",
            "app: Appium could not install",
            [],
            marks=pytest.mark.nightly,
        ),
        *(
            pytest.param(*ON_FIRE, distributed, marks=pytest.mark.nightly)
            for distributed in ([], ["-n2"])
        ),
    ],
)
def test_a_driver_that_cannot_start_costs_one_device_and_is_reported_once(
    pytester: pytest.Pytester,
    controller: ScriptedServer,
    service: FaultyService,
    reason: str,
    cause: str,
    distributed: list[str],
) -> None:
    controller.answer = appium(session=refuses("session not created", reason))
    pytester.makepyfile(
        test_it=f"""
        import pytest

        @pytest.mark.device(platform="android", type="appium", share="run", application_archive_url="{ARCHIVE}")
        @pytest.mark.parametrize("n", range(50))
        def test_driven(device_driver, n): pass
        """
    )

    result = pytester.runpytest(*distributed)

    # Two workers may start one each before they know of another's failure.
    most = 3 if distributed else 2
    assert len(received(controller, "/session")) <= most
    assert len(service.sessions()) <= most
    assert len(result.outlines) <= 42
    (reported,) = (
        line
        for line in result.outlines
        if " affected, first test_it.py::test_driven[" in line
    )
    assert ": 50 tests affected" in reported
    assert any(line.startswith(cause) for line in result.outlines)


LOOKUP = """
    find(device_driver)

def find(driver):
    return driver.find_element("id", "nosuch")
"""


def test_a_failed_lookup_is_reported_briefly_without_frames_of_clients_and_servers(
    pytester: pytest.Pytester, controller: ScriptedServer
) -> None:
    controller.answer = appium(
        element=refuses("no such element", "no element found", 404)
    )
    suite(pytester, ONE, body=LOOKUP)

    result = pytester.runpytest()

    result.assert_outcomes(failed=1)
    start = next(
        number for number, line in enumerate(result.outlines) if " test_one " in line
    )
    end = next(
        number
        for number, line in enumerate(result.outlines)
        if line.endswith("NoSuchElementException")
    )
    assert end - start < 20
    result.stdout.fnmatch_lines(
        [
            ">*find(device_driver)",
            ">*driver.find_element*",
            "E *Message: no element found",
        ]
    )
    result.stdout.no_fnmatch_line("*site-packages*")
    result.stdout.no_fnmatch_line("*at a line*")


@pytest.mark.parametrize(
    "options", [(), pytest.param(("--full-trace",), marks=pytest.mark.nightly)]
)
def test_a_connection_that_is_closed_is_reported_without_the_source_of_http_clients(
    pytester: pytest.Pytester, controller: ScriptedServer, options: tuple[str, ...]
) -> None:
    usual = appium()

    def hang_up(call: str) -> Answer:
        if call.endswith("/element"):
            raise ConnectionResetError
        return usual(call)

    controller.answer = hang_up
    suite(pytester, ONE, body="device_driver.find_element('id', 'title')")

    result = pytester.runpytest(*options)

    result.assert_outcomes(failed=1)
    output = result.stdout.str()
    assert ("http/client.py" in output) == ("urllib3/" in output) == bool(options)
    _, _, after = output.partition(" test_one _")
    error, _, _ = after.partition(" device -")
    assert "RemoteDisconnected" in error
    assert (len(error.splitlines()) < 12) != bool(options)
    if not options:
        result.stdout.fnmatch_lines([">*find_element('id', 'title')", "E *"])


GROUP = """
    errors = []
    try:
        device_driver.find_element("id", "nosuch")
    except Exception as error:
        errors.append(error)
    raise ExceptionGroup("soft assertions", errors)
"""


@pytest.mark.parametrize(
    ("style", "body"),
    [
        ("long", LOOKUP),
        ("native", LOOKUP),
        ("long", GROUP),
        *(
            pytest.param(style, LOOKUP, marks=pytest.mark.nightly)
            for style in ("short", "line")
        ),
    ],
)
def test_no_traceback_style_shows_frames_of_clients(
    pytester: pytest.Pytester, controller: ScriptedServer, style: str, body: str
) -> None:
    controller.answer = appium(
        element=refuses("no such element", "no element found", 404)
    )
    suite(pytester, ONE, body=body)

    result = pytester.runpytest(f"--tb={style}")

    result.stdout.fnmatch_lines(["*no element found*"])
    result.stdout.no_fnmatch_line("*/selenium/*")
    result.stdout.no_fnmatch_line("*at a line*")


def test_a_failed_lookup_in_a_unittest_class_has_no_frames_of_clients_and_servers(
    pytester: pytest.Pytester, controller: ScriptedServer
) -> None:
    controller.answer = appium(
        element=refuses("no such element", "no element found", 404)
    )
    suite(pytester, UNITTEST, body='self.driver.find_element("id", "x")')

    result = pytester.runpytest()

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [">*self.driver.find_element*", "E *Message: no element found", "*device ---*"]
    )
    result.stdout.no_fnmatch_line("*/selenium/*")
    result.stdout.no_fnmatch_line("*at a line*")


@pytest.mark.usefixtures("controller")
def test_a_lost_controller_in_a_unittest_class_is_an_infrastructure_error(
    pytester: pytest.Pytester,
) -> None:
    lost = "from pytest_device import ControllerLostError; raise ControllerLostError('the controller is gone')"
    suite(pytester, UNITTEST, body=lost)

    result = pytester.runpytest()

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["ERROR *test_looks - infrastructure: the controller is gone"]
    )


def test_full_trace_shows_the_frames_of_clients_and_servers(
    pytester: pytest.Pytester, controller: ScriptedServer
) -> None:
    controller.answer = appium(
        element=refuses("no such element", "no element found", 404)
    )
    suite(pytester, ONE, body=LOOKUP)

    result = pytester.runpytest("--full-trace")

    result.stdout.fnmatch_lines(["*selenium*webdriver*", "E *at a line*"])


def test_an_unreachable_server_is_reported_without_the_chain_of_connection_errors(
    pytester: pytest.Pytester, controller: ScriptedServer
) -> None:
    elsewhere = "device_driver.command_executor._client_config.remote_server_addr = 'http://127.0.0.1:9'"
    suite(
        pytester,
        ONE,
        body=f"""
    {elsewhere}
    device_driver.page_source""",
    )

    result = pytester.runpytest()

    result.assert_outcomes(failed=1)
    assert controller.asked
    result.stdout.fnmatch_lines(
        [">*device_driver.page_source", "E *urllib3.*127.0.0.1*"]
    )
    result.stdout.no_fnmatch_line("*site-packages*")
    result.stdout.no_fnmatch_line("*During handling of the above*")
