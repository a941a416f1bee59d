"""Drivers that tests share, in the styles of existing suites."""

import re
from collections.abc import Generator

import pytest

# Loaded before the first run inside this process, which would load it anew each time.
from appium import webdriver as webdriver  # noqa: PLC0414

from pytest_device.testing import FaultyService
from tests.controllers.appium_servers import appium, received, refuses
from tests.fakes.http_server import ScriptedServer, scripted_server

OPTIONS = """
import pytest

@pytest.fixture
def device_appium_options(device_platform):
    return {"appium:appPackage": f"com.example.{device_platform}"}
"""
HEAD = """
import pytest
pytestmark = pytest.mark.device(platform="android", type="appium", share="run")
seen = set()
"""


@pytest.fixture
def controller(
    service: FaultyService, pytester: pytest.Pytester
) -> Generator[ScriptedServer]:
    """Provide the Appium server that the service names for each session, and a suite's options."""
    with scripted_server() as server:
        server.answer = appium()
        config: dict[str, object] = {"appiumUrl": server.url, "capabilities": {}}
        service.add_fault("get", "change", fields={"remoteConfig": config}, times=None)
        pytester.makeconftest(OPTIONS)
        yield server


def drivers(controller: ScriptedServer) -> tuple[int, int]:
    """Return how many drivers were started, and how many were quit."""
    paths = [path for path, _ in controller.asked]
    return len(received(controller, "/session")), paths.count("/session/1")


def test_the_suites_function_scoped_driver_is_new_for_each_test(
    pytester: pytest.Pytester, controller: ScriptedServer, service: FaultyService
) -> None:
    pytester.makepyfile(
        HEAD
        + """
@pytest.fixture
def driver(device_driver):
    device_driver.implicitly_wait(5)
    yield device_driver
    device_driver.get_screenshot_as_base64()

def test_one(driver): pass
def test_two(driver): pass
"""
    )

    pytester.runpytest().assert_outcomes(passed=2)

    assert drivers(controller) == (2, 2)
    assert service.statuses() == ["stopped"]


@pytest.mark.parametrize(
    ("scope", "started"),
    [
        ("class", 3),
        pytest.param("module", 2, marks=pytest.mark.nightly),
        ("session", 1),
    ],
)
def test_a_wider_scoped_driver_lasts_as_long_as_the_fixture_that_uses_it(
    pytester: pytest.Pytester,
    controller: ScriptedServer,
    service: FaultyService,
    scope: str,
    started: int,
) -> None:
    suite = f"""{HEAD}
@pytest.fixture(scope="{scope}")
def driver({scope}_device_driver):
    yield {scope}_device_driver
    {scope}_device_driver.get_screenshot_as_base64()

class TestOne:
    def test_one(self, driver, device_session): seen.add((driver, device_session.id))
    def test_two(self, driver, device_session): assert seen == {{(driver, device_session.id)}}
    def test_without(self, device_session): assert device_session.id in {{id for _, id in seen}}
"""
    other = """
class TestOther:
    def test_three(self, driver): pass
    def test_four(self, driver): pass
"""
    pytester.makepyfile(test_a=suite + other, test_b=suite)

    result = pytester.runpytest()

    result.assert_outcomes(passed=8)
    result.stdout.fnmatch_lines(["devices: 1 created, 1 stopped (confirmed); *"])
    assert drivers(controller) == (started, started)
    assert service.statuses() == ["stopped"]


def test_a_class_with_its_driver_runs_on_one_worker(
    pytester: pytest.Pytester, controller: ScriptedServer, service: FaultyService
) -> None:
    for name in ("test_a", "test_b"):
        tests = "".join(
            f"    def test_{n}(self, class_device_driver): pass\n" for n in range(3)
        )
        pytester.makepyfile(**{name: f"{HEAD}\nclass TestIt:\n{tests}"})

    pytester.runpytest("-n2").assert_outcomes(passed=6)

    assert drivers(controller) == (2, 2)
    assert set(service.statuses()) == {"stopped"}


def test_a_class_on_several_platforms_has_a_driver_on_each(
    pytester: pytest.Pytester, controller: ScriptedServer, service: FaultyService
) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.device(platform=["android", "ios"], type="appium", share="run")
        class TestIt:
            @pytest.fixture(autouse=True)
            def _opened(self, class_device_driver): self.driver = class_device_driver
            def test_one(self, device_platform): pass
            def test_two(self, device_platform, device_session): assert device_session.platform == device_platform
        """
    )

    pytester.runpytest().assert_outcomes(passed=4)

    bodies = [str(body) for body in received(controller, "/session")]
    assert ["com.example.ios" in body for body in bodies] == [False, True]
    assert service.statuses() == ["stopped", "stopped"]


MIXED = """
import pytest

@pytest.mark.device(platform=["android", "ios"], type="appium", share="run")
class TestOne:
    def test_one(self, device_platform, SCOPE_device_driver): pass
    def test_two(self, device_platform, SCOPE_device_driver): pass
    @pytest.mark.skip
    def test_three(self, device_platform, SCOPE_device_driver): pass

@pytest.mark.device(platform="ios", type="appium", share="run")
class TestOther:
    def test_one(self, SCOPE_device_driver): pass
    def test_two(self, SCOPE_device_driver): pass

def test_one_in_between(): pass
"""
ORDERED = """
def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.name.partition("[")[0])
"""
BY_PLATFORM = """
def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: (item.nodeid.partition("[")[0].rpartition("::")[0], "ios" in item.name), reverse=True)
"""
ONE_AT_A_TIME = "together, or run one platform at a time with --device-platform"
BY_CLASS = f"keep the tests of a class that run on the same platform {ONE_AT_A_TIME}"
OF_ALL = f"keep all tests that run on the same platform {ONE_AT_A_TIME}"


@pytest.mark.parametrize(
    ("scope", "hook", "options", "starts", "note"),
    [
        ("class", ORDERED, [], 6, f"class* 6 times where 3 would do: {BY_CLASS}"),
        (
            "class",
            ORDERED,
            ["--device-platform=ios"],
            4,
            "class* 4 times where 2 would do: keep the tests of a class together",
        ),
        (
            "class",
            ORDERED,
            ["-k", "Other or between", "--device-no-reorder"],
            2,
            "class* 2 times where 1 would do: keep the tests of a class together, *",
        ),
        ("session", ORDERED, [], 4, f"session* 4 times where 2 would do: {OF_ALL}"),
        (
            "class",
            "",
            ["--device-no-reorder"],
            5,
            f"class* 5 times where 3 would do: {BY_CLASS}, or remove --device-no-reorder",
        ),
        ("class", BY_PLATFORM, [], 3, ""),
        ("class", "", [], 3, ""),
    ],
    ids=["platforms", "classes", "others", "session", "option", "sorted", "own order"],
)
def test_an_order_that_starts_a_shared_driver_needlessly_is_noted_with_the_cure(
    pytester: pytest.Pytester,
    controller: ScriptedServer,
    scope: str,
    hook: str,
    options: list[str],
    starts: int,
    note: str,
) -> None:
    pytester.makeconftest(OPTIONS + hook)
    pytester.makepyfile(MIXED.replace("SCOPE", scope))

    result = pytester.runpytest(*options)

    assert result.ret == pytest.ExitCode.OK
    assert drivers(controller)[0] == starts
    if note:
        result.stdout.fnmatch_lines([f"the order of the tests starts {note}"])
    else:
        result.stdout.no_fnmatch_line("*would do*")


UNITTEST = """
import unittest
import pytest

@pytest.fixture(scope="class")
def driver_of_class(request, class_device_driver):
    request.cls.driver = class_device_driver

@pytest.mark.device(platform="android", type="appium", share="run")
@pytest.mark.usefixtures("driver_of_class")
class Counter(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.driver.implicitly_wait(1)

    def setUp(self): self.driver.implicitly_wait(2)
    def test_one(self): self.driver.implicitly_wait(3)
    def test_two(self): self.driver.implicitly_wait(4)

    @classmethod
    def tearDownClass(cls):
        cls.driver.implicitly_wait(5)
"""


def test_a_unittest_case_has_its_driver_in_set_up_class(
    pytester: pytest.Pytester, controller: ScriptedServer, service: FaultyService
) -> None:
    pytester.makepyfile(UNITTEST)

    pytester.runpytest().assert_outcomes(passed=2)

    waits = [body["implicit"] // 1000 for body in received(controller, "/timeouts")]
    assert waits == [1, 2, 3, 2, 4, 5]
    assert drivers(controller) == (1, 1)
    assert service.statuses() == ["stopped"]


def test_setup_class_and_setup_module_find_the_driver(
    pytester: pytest.Pytester, controller: ScriptedServer
) -> None:
    pytester.makepyfile(
        HEAD
        + """
@pytest.fixture(scope="module")
def driver(request, module_device_driver):
    request.module.DRIVER = module_device_driver
    return module_device_driver

pytestmark = [pytestmark, pytest.mark.usefixtures("driver")]
def setup_module(): DRIVER.implicitly_wait(1)

class TestIt:
    @classmethod
    def setup_class(cls): DRIVER.implicitly_wait(2)
    def test_one(self): pass
"""
    )

    pytester.runpytest().assert_outcomes(passed=1)

    assert [body["implicit"] for body in received(controller, "/timeouts")] == [
        1000,
        2000,
    ]


def test_each_failed_test_saves_evidence_from_the_shared_driver(
    pytester: pytest.Pytester, controller: ScriptedServer, service: FaultyService
) -> None:
    pytester.makepyfile(
        HEAD
        + """
def test_one(module_device_driver): pass
def test_two(module_device_driver): assert False
def test_three(module_device_driver): assert False
"""
    )

    pytester.runpytest("--device-artifacts-dir=left").assert_outcomes(
        passed=1, failed=2
    )

    left = {
        path.parent.name.partition("-test")[2]
        for path in (pytester.path / "left").glob("*/session.json")
    }
    assert (
        len([path for path, _ in controller.asked if path.endswith("/screenshot")]) == 2
    )
    assert len(left) == 2
    assert service.statuses() == ["stopped"]


def test_a_lost_device_is_replaced_and_dependent_fixtures_are_set_up_again(
    pytester: pytest.Pytester, controller: ScriptedServer, service: FaultyService
) -> None:
    pytester.makepyfile(
        HEAD
        + """
@pytest.fixture(scope="module")
def signed_in(module_device_driver):
    module_device_driver.implicitly_wait(1)
    return module_device_driver

def test_one(signed_in, device_session, device_client):
    device_client.stop(device_session.id)
    assert False

def test_two(signed_in, device_session): assert device_session.status == "in-progress"
def test_three(signed_in): pass
"""
    )

    result = pytester.runpytest()

    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["infrastructure: the session is gone: *"])
    assert len(received(controller, "/timeouts")) == 2
    assert service.statuses() == ["stopped", "stopped"]


def test_a_crashed_app_is_started_again_for_the_next_test_on_the_same_device(
    pytester: pytest.Pytester, controller: ScriptedServer, service: FaultyService
) -> None:
    message = "The application under test with bundle id 'com.example.notes' is not running, possibly crashed"
    controller.answer = appium(element=refuses("unknown error", message))
    pytester.makepyfile(
        HEAD
        + """
def test_one(session_device_driver): session_device_driver.find_element("id", "title")
def test_two(session_device_driver): pass
"""
    )

    pytester.runpytest().assert_outcomes(passed=1, errors=1)

    assert drivers(controller) == (2, 2)
    assert service.statuses() == ["stopped"]


def test_a_driver_that_failed_to_start_is_retried_for_the_next_test(
    pytester: pytest.Pytester, controller: ScriptedServer, service: FaultyService
) -> None:
    service.add_fault("boot", "fail", times=1)
    pytester.makepyfile(
        HEAD
        + """
def test_one(session_device_driver): pass
def test_two(session_device_driver): pass
"""
    )

    pytester.runpytest().assert_outcomes(passed=1, errors=1)

    assert drivers(controller) == (1, 1)
    assert service.statuses() == ["errored", "stopped"]


def test_the_device_of_a_failed_test_is_left_unchanged(
    pytester: pytest.Pytester, controller: ScriptedServer, service: FaultyService
) -> None:
    pytester.makepyfile(
        HEAD
        + """
def test_one(module_device_driver): assert False
def test_two(module_device_driver): pass
def test_three(module_device_driver): assert False
"""
    )

    result = pytester.runpytest("--device-keep-on-failure")

    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(
        ["devices: 2 created, 0 stopped (confirmed), 2 kept; *"]
    )
    assert drivers(controller) == (2, 0)
    assert service.statuses() == ["in-progress", "in-progress"]


MISTAKES = {
    "differs": (
        """
class TestIt:
    def test_one(self, class_device_driver): pass
    @pytest.mark.device(max_duration_minutes=9)
    def test_two(self, class_device_driver): pass
""",
        (
            "test_two: its marker differs from that of test_differs.py::TestIt::test_one in max_duration_minutes, "
            "max_idle_time_minutes, but class_device_driver shares one device between them: use the same marker, or "
            "device_driver"
        ),
    ),
    "narrow": (
        """
@pytest.fixture(scope="class")
def driver(device_driver): return device_driver
def test_one(driver): pass
""",
        (
            "test_one: the class-scoped fixture driver can't request device_driver, which is function-scoped: request "
            "class_device_driver"
        ),
    ),
    "package": (
        """
@pytest.fixture(scope="package")
def driver(class_device_driver): return class_device_driver
def test_one(driver): pass
""",
        (
            "test_one: the package-scoped fixture driver can't request class_device_driver, which is class-scoped: "
            "request session_device_driver"
        ),
    ),
    "session": (
        """
@pytest.fixture(scope="module")
def page(device_session): return device_session.url
def test_one(page): pass
""",
        (
            "test_one: the module-scoped fixture page can't request device_session, which is function-scoped: make it "
            "function-scoped, or create a session for it with device_lease"
        ),
    ),
    "share": (
        """
@pytest.mark.device(share="test")
def test_one(module_device_driver): pass
""",
        (
            "test_one: share='test' is too narrow for module_device_driver: it must be 'module' or 'run'"
        ),
    ),
    "two": (
        "def test_one(module_device_driver, device_driver): pass",
        "test_one: module_device_driver and device_driver can't be used in one test, because a device has one driver",
    ),
    "several": (
        """
@pytest.mark.device("alice")
@pytest.mark.device("bob")
def test_one(module_device_driver): pass
""",
        (
            "test_one: module_device_driver can't be used with several devices (alice, bob); use "
            'device_drivers["alice"]'
        ),
    ),
    "type": (
        """
@pytest.mark.device(type="argent")
def test_one(module_device_driver): pass
""",
        "test_one: module_device_driver needs type='appium', not 'argent': add type='appium' to the marker",
    ),
}


@pytest.mark.usefixtures("controller")
def test_tests_that_cannot_share_a_driver_are_reported_at_collection(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(
        **{f"test_{name}": HEAD + suite for name, (suite, _) in MISTAKES.items()}
    )

    result = pytester.runpytest()

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    reported = [
        re.sub(r"^(ERROR: )?test_(\w+)\.py:\d+: ", r"\2: ", line.strip())
        for line in result.errlines
        if line
    ]
    assert sorted(reported) == sorted(
        f"{name}: {problem}" for name, (_, problem) in MISTAKES.items()
    )
    assert service.statuses() == []
