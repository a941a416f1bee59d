"""Runs with a local service that the run starts, with a real Appium for every session."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest

from tests.fakes.programs import FakeProgram
from tests.waiting import eventually

APP = """
<app id="notes"><MockInputField id="name"/><MockButton id="go" showAlert="hi"/><alert id="hi" text="Hello"/></app>
"""
CONFTEST = """
import pathlib, pytest

@pytest.fixture
def device_appium_options():
    return {"app": str(pathlib.Path(__file__).with_name("app.xml"))}
"""

pytestmark = pytest.mark.usefixtures("installed_programs")


@pytest.fixture(autouse=True)
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the suite an app."""
    monkeypatch.setenv("DEVICE_IDENTIFIER", "fake")
    pytester.makeconftest(CONFTEST)
    pytester.makefile(".xml", app=APP)


def programs() -> list[psutil.Process]:
    """Find leftover processes of this test's runs: services and Appium servers."""
    mine = str(Path.cwd())
    return [
        p
        for p in psutil.process_iter()
        if p.pid != os.getpid() and mine in _workplace(p)
    ]


def _workplace(process: psutil.Process) -> str:
    try:
        return " ".join([process.cwd(), process.environ().get("TMPDIR", "")])
    # The latter from older versions of psutil for what has just gone.
    except (
        psutil.Error,
        FileNotFoundError,
    ):
        return ""


SUITE = {
    "test_1_drives": """
        import pytest
        from appium.webdriver.common.appiumby import AppiumBy

        @pytest.mark.device(platform="ios", type="appium")
        def test_driven(device_session, device_driver):
            name = device_driver.find_element(AppiumBy.ACCESSIBILITY_ID, "name")
            name.send_keys("Ada")
            assert name.text == "Ada"
            device_driver.find_element(AppiumBy.ACCESSIBILITY_ID, "go").click()
            assert device_driver.switch_to.alert.text == "Hello"
            assert device_driver.capabilities["app"].endswith("app.xml")
            assert device_driver.capabilities["newCommandTimeout"] == 600
            assert device_session.remote_config.capabilities["platformName"] == "Fake"
        """,
    "test_2_options": """
        import pytest
        from appium.options.common import AppiumOptions

        @pytest.fixture
        def device_appium_options(device_appium_options):
            return AppiumOptions().load_capabilities({**device_appium_options, "newCommandTimeout": 77})

        @pytest.mark.device(platform="ios", type="appium")
        def test_driven(device_driver):
            assert device_driver.capabilities["newCommandTimeout"] == 77
        """,
    "test_3_refused": """
        import pytest

        @pytest.fixture
        def device_appium_options(device_appium_options):
            return {"app": device_appium_options["app"].replace("app.xml", "missing.xml")}

        @pytest.mark.device(platform="ios", type="appium")
        def test_driven(request, device_session): request.getfixturevalue("device_driver")  # unknown before
        """,
    "test_4_afresh": """
        import pytest
        from appium.webdriver.common.appiumby import AppiumBy
        pytestmark = pytest.mark.device(platform="ios", type="appium")
        seen = set()

        @pytest.mark.parametrize("n", [1, 2])
        def test_starts_afresh(device_session, device_driver, n):
            name = device_driver.find_element(AppiumBy.ACCESSIBILITY_ID, "name")
            assert not name.text
            name.send_keys("Ada")
            seen.add((device_session.id, device_driver.session_id))
            assert len(seen) == n and len({session for session, _ in seen}) == 1
        """,
    "test_5_lost": """
        import psutil, pytest
        pytestmark = pytest.mark.device(platform="ios", type="appium")
        seen = []

        def test_loses_its_server(device_session, device_driver):
            seen.append(device_session.id)
            for server in [p for p in psutil.process_iter(["cwd"]) if str(device_session.id) in (p.info["cwd"] or "")]:
                server.kill()
                server.wait()
            device_driver.page_source

        def test_goes_on(device_session, device_driver):
            assert device_session.id not in seen
            assert device_driver.page_source
        """,
    "test_6_several": """
        import pytest

        @pytest.mark.device("alice", platform="android", type="appium", vendor_go=True)
        @pytest.mark.device("bob", platform="ios", type="appium")
        def test_chats(device_drivers):
            assert sorted(device_drivers) == ["alice", "bob"]
            assert device_drivers["alice"].session_id == device_drivers["bob"].session_id
        """,
    "test_8_missing": """
        import pytest

        @pytest.fixture
        def device_appium_options(device_appium_options):
            return {"app": device_appium_options["app"].replace("app.xml", "missing.xml")}

        @pytest.mark.device(platform="ios", type="appium")
        def test_driven(device_driver): pass
        """,
    "test_7_ends": """
        import signal, psutil, pytest

        @pytest.mark.device(platform="ios", type="appium")
        def test_quits(device_driver):
            device_driver.quit()

        @pytest.mark.device(platform="ios", type="appium")
        @pytest.mark.parametrize("number", [signal.SIGKILL])
        def test_loses_its_server(device_session, device_driver, number):
            servers = [p for p in psutil.process_iter(["cwd"]) if str(device_session.id) in (p.info["cwd"] or "")]
            for server in servers:
                server.send_signal(number)
                server.wait()
        """,
}
"""Files of one suite, which run in this order: each start of Appium takes seconds."""


class Ran(NamedTuple):
    """The finished run of the suite."""

    result: pytest.RunResult
    directory: Path
    left: list[psutil.Process]

    def assert_passed(self, *tests: str) -> None:
        assert {
            line.split()[1]
            for line in self.result.outlines
            if line.startswith("PASSED ")
        } >= set(tests)


@pytest.fixture(scope="module")
def done() -> list[Ran]:
    return []


@pytest.fixture
def ran(pytester: pytest.Pytester, suite: None, done: list[Ran]) -> Ran:
    """The run of the suite, made for the first test that needs it."""
    del suite
    if not done:
        pytester.makepyfile(**SUITE)
        pytester.makeini("[pytest]\ndevice_vendor = acme\n")
        result = pytester.runpytest_subprocess(
            "--device-local",
            "--device-no-reorder",
            "--device-artifacts-dir=left",
            "-rA",
        )
        done.append(Ran(result, pytester.path, programs()))
    return done[0]


def test_a_test_drives_a_real_appium(ran: Ran) -> None:
    ran.assert_passed("test_1_drives.py::test_driven")
    ran.result.assert_outcomes(passed=7, failed=1, errors=3)
    ran.result.stdout.fnmatch_lines(["devices: 3 created, 3 stopped (confirmed); *"])
    assert ran.left == []


def test_the_clients_own_options_class_is_accepted(ran: Ran) -> None:
    ran.assert_passed("test_2_options.py::test_driven")


def test_options_that_appium_rejects_are_reported_with_its_message(ran: Ran) -> None:
    ran.result.stdout.fnmatch_lines(["*ERROR at call of test_driven*"])
    ran.result.stdout.fnmatch_lines(
        ["app: Appium could not install and start the app */missing.xml: *"]
    )


def test_an_app_that_does_not_exist_is_reported_before_there_is_a_session(
    ran: Ran,
) -> None:
    ran.result.stdout.fnmatch_lines(
        ["*ERROR at setup of test_driven*", "config: appium:app='*/missing.xml' of *"]
    )
    ran.result.stdout.fnmatch_lines(["devices: 3 created, 3 stopped (confirmed); *"])


def test_a_driver_whose_session_or_server_is_gone_does_not_delay_the_end(
    ran: Ran,
) -> None:
    ran.assert_passed(
        "test_7_ends.py::test_quits", "test_7_ends.py::test_loses_its_server[9]"
    )
    ran.result.stdout.fnmatch_lines(["devices: 3 created, 3 stopped (confirmed); *"])


def test_each_test_has_its_own_driver_on_a_shared_device(ran: Ran) -> None:
    ran.assert_passed(*(f"test_4_afresh.py::test_starts_afresh[{n}]" for n in (1, 2)))


def test_a_server_that_dies_during_a_test_is_an_infrastructure_error_and_is_replaced(
    ran: Ran,
) -> None:
    ran.result.stdout.fnmatch_lines(
        ["*ERROR at call of test_loses_its_server*", "infrastructure: the session is*"]
    )
    ran.assert_passed("test_5_lost.py::test_goes_on")
    ran.result.stdout.fnmatch_lines(["devices: 3 created, 3 stopped (confirmed); *"])


def test_the_local_service_ignores_the_accounts_vendor_prefix(ran: Ran) -> None:
    ran.result.stdout.fnmatch_lines(
        ["FAILED test_6_several.py::test_chats - *assert *"]
    )


def test_a_failed_test_saves_screenshot_and_source_and_each_device_has_a_driver(
    ran: Ran,
) -> None:
    assert [
        line
        for line in ran.result.outlines
        if line.startswith("FAILED test_6_several.py::test_chats")
    ]
    (place,) = (ran.directory / "left").glob("test_6_several.py-test_chats-*")
    for name in ("alice", "bob"):
        assert (place / name / "screenshot.png").read_bytes().startswith(b"\x89PNG")
        assert "notes" in (place / name / "source.xml").read_text()


SLOW = """
import pathlib, time, pytest

@pytest.mark.device(platform="android", type="appium")
def test_driven(device_driver):
    pathlib.Path("started").touch()
    for _ in range(1200):  # a signal just before one long sleep would be handled after it
        time.sleep(0.1)
"""
SLOW_WITHOUT_APPIUM = SLOW.replace("appium", "web-preview-only").replace(
    "device_driver", "device_session"
)


def one_emulator(directory: Path) -> str:
    """Create a recorded adb with one emulator; return its directory."""
    adb = FakeProgram.made(directory / "bin" / "adb")
    adb.answers(
        {
            "devices*": "List of devices attached\nemulator-5554 device product:sdk model:sdk device:emu64x\n"
        }
    )
    return str(adb.path.parent)


@pytest.mark.parametrize(
    ("number", "options"),
    [
        # The service ends its programs in one of these two ways: at the run's request, or because the run is gone.
        (signal.SIGTERM, ["--device-local-real"]),
        (signal.SIGKILL, ["--device-local", "-n1"]),
        *(
            pytest.param(*case, marks=pytest.mark.nightly)
            for case in (
                (signal.SIGINT, ["--device-local"]),
                (signal.SIGKILL, ["--device-local-real"]),
                (signal.SIGINT, ["--device-local-real", "-n1"]),
            )
        ),
    ],
)
def test_no_program_survives_the_run_however_it_ends(
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
    number: signal.Signals,
    options: list[str],
) -> None:
    temporary = tmp_path_factory.mktemp("temporary")
    monkeypatch.setenv("TMPDIR", str(temporary))
    real = "--device-local" in options
    if not real:
        monkeypatch.delenv("DEVICE_IDENTIFIER")
        monkeypatch.setenv("PATH", one_emulator(pytester.path), prepend=os.pathsep)
    pytester.makepyfile(SLOW if real else SLOW_WITHOUT_APPIUM)
    command = [sys.executable, "-m", "pytest", *options]
    run = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )

    assert eventually(Path("started").exists)
    assert len(programs()) >= 2 + real  # the run, the service, Appium
    run.send_signal(number)
    run.wait(60)

    assert eventually(lambda: programs() == [])
    assert eventually(lambda: list(temporary.iterdir()) == [])


@pytest.mark.nightly
def test_without_node_the_required_package_is_named(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    pytester.makepyfile(SLOW)

    result = pytester.runpytest_subprocess("--device-local")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: the local service failed to start: Appium needs Node.js *"]
    )
    assert programs() == []


def test_a_failing_npm_is_reported_with_its_message_and_leaves_nothing(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    FakeProgram.made(tmp_path / "bin/node").answers(
        {"*": f'["24.1.0", "{tmp_path}/real/node"]'}
    )
    npm = FakeProgram.made(tmp_path / "bin/npm")
    npm.answers({"*": "!npm error code ECONNREFUSED"})
    monkeypatch.setenv("PATH", str(npm.path.parent), prepend=os.pathsep)
    pytester.makepyfile(SLOW)

    result = pytester.runpytest_subprocess("--device-local")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [
            "ERROR: the local service failed to start: Appium * could not be installed: *",
            "*ECONNREFUSED*",
            "Fix: check the network*",
        ]
    )
    assert npm.asked
    assert programs() == []


def test_a_run_without_device_tests_installs_nothing(
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    FakeProgram.made(tmp_path / "bin/node").answers(
        {"*": f'["24.1.0", "{tmp_path}/real/node"]'}
    )
    npm = FakeProgram.made(tmp_path / "bin/npm")
    npm.answers({"*": "!npm must not be called"})
    monkeypatch.setenv("PATH", str(npm.path.parent), prepend=os.pathsep)
    pytester.makeini("[pytest]\nmarkers = slow")
    pytester.makepyfile(
        """
        import pytest

        on_a_device = pytest.mark.device(platform="ios", type="appium")

        def test_plain(): pass

        @pytest.mark.skip
        @on_a_device
        def test_skipped(device_driver): pass

        @pytest.mark.skipif(True, reason="no device here")
        @on_a_device
        def test_skipped_under_a_condition(device_driver): pass

        @pytest.mark.skipif(condition=True, reason="no device here")
        @on_a_device
        def test_skipped_under_a_named_condition(device_driver): pass

        @pytest.mark.slow
        @on_a_device
        def test_deselected(device_driver): pass
        """
    )

    result = pytester.runpytest_subprocess("--device-local", "-m", "not slow")

    result.assert_outcomes(passed=1, skipped=3, deselected=1)
    assert result.ret == pytest.ExitCode.OK
    assert not npm.asked
    assert programs() == []


def test_missing_packages_of_the_local_service_are_named(
    pytester: pytest.Pytester,
) -> None:
    pytester.makeconftest("import sys\nsys.modules['uvicorn'] = None\n")
    pytester.makepyfile(test_it=SLOW)

    result = pytester.runpytest_subprocess("--device-local")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: the local service needs uvicorn: pip install 'pytest-device[[]local]'"]
    )
