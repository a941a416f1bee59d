"""Tests that run again because their device failed, and only then."""

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from zipfile import ZipFile

import pytest

from pytest_device.testing import FaultyService
from tests.plugin.runs import ON_A_WORKER, ON_WORKERS
from tests.plugin.test_device_report import attempts_of

SUITE = """
import pytest
pytestmark = pytest.mark.device(platform="android")

@pytest.mark.parametrize("number", range(COUNT))
def test_uses_its_device(device_session, number):
    assert device_session.status == "in-progress"
"""
FAILS = """
@pytest.mark.parametrize("number", range(3))
def test_fails_itself(device_session, number):
    assert number < 0
"""
RECORDS_QUESTIONS = """
import json, pathlib

def pytest_configure(config):
    if hasattr(config, "workerinput"):
        channel = config.workerinput["device_channel"]
        send = channel.send
        path = pathlib.Path(__file__).with_name(config.workerinput["workerid"] + ".questions")

        def recorded(data):
            message = json.loads(data)
            if message["type"] == "Ask":
                with path.open("a") as file:
                    print(json.dumps([message["number"], message["key"]]), file=file)
            send(data)

        channel.send = recorded
"""
RETRY = "--device-retry-infrastructure=1"
INFRASTRUCTURE_ONLY = 10
"""The exit status of a run in which only infrastructure failed."""


def creates(service: FaultyService) -> int:
    return sum(operation == "create" for operation, _ in service.requests())


def in_devices_section(result: pytest.RunResult, pattern: str) -> list[str]:
    return [line for line in result.outlines if re.search(pattern, line)]


@pytest.mark.parametrize("options", ON_WORKERS)
def test_a_suite_with_a_few_infrastructure_faults_is_green_and_shows_each_retry(
    pytester: pytest.Pytester, service: FaultyService, options: list[str]
) -> None:
    for number in (2, 7):
        service.add_fault("boot", "fail", skip=number, times=1)
    pytester.makepyfile(SUITE.replace("COUNT", "8"))

    result = pytester.runpytest(RETRY, "--junitxml=junit.xml", *options)

    assert result.ret == 0
    assert result.parseoutcomes() == {"passed": 8, "rerun": 2}
    assert creates(service) == 10
    suite = ET.parse(pytester.path / "junit.xml").getroot()[0]
    assert suite.attrib["failures"] == suite.attrib["errors"] == "0"
    attempts = suite.findall(".//skipped")
    assert len(attempts) == 2
    assert all("infrastructure: " in str(one.get("message")) for one in attempts)
    verdicts = suite.findall(".//property[@name='device_verdict']")
    assert [one.get("value") for one in verdicts] == ["infrastructure"] * 2


@pytest.mark.parametrize("options", ON_A_WORKER)
def test_failures_of_tests_are_not_retried_beside_faults_that_are(
    pytester: pytest.Pytester, service: FaultyService, options: list[str]
) -> None:
    pytester.makepyfile(SUITE.replace("COUNT", "5") + FAILS)
    for number in (2, 6):
        service.add_fault("boot", "fail", skip=number, times=1)

    result = pytester.runpytest(RETRY, *options)

    assert result.ret == 1
    assert result.parseoutcomes() == {"passed": 5, "failed": 3, "rerun": 2}


LOSES = """
import pytest
pytestmark = pytest.mark.device(platform="android")

@pytest.fixture
def cleaned(device_session, service):
    yield
    if not service.is_running(str(device_session.id)):
        raise ConnectionError("nothing could be removed from the device")

def test_loses_its_device(device_session, attempts, service, cleaned):
    attempts.append(device_session.id)
    if len(attempts) == 1:
        service.expire(device_session.id)
        service.wait_for_end(str(device_session.id))
        raise ConnectionError("the device is gone")
    assert len(set(attempts)) == 2
"""
CONFTEST = """
import os, time
import pytest
from pytest_device.local import LocalService
import httpx

class Service:
    def __init__(self):
        self._http = httpx.Client(
            base_url=os.environ["DEVICE_URL"] + "/testing",
            headers={"Authorization": "Bearer " + os.environ["DEVICE_TOKEN"]},
        )

    def close(self):
        self._http.close()

    def expire(self, session_id):
        self._http.post(f"/sessions/{session_id}/expire").raise_for_status()

    def is_running(self, session_id):
        sessions = self._http.get("/sessions").json()["data"]
        (status,) = [each["status"] for each in sessions if each["id"] == session_id]
        return status == "in-progress"

    def wait_for_end(self, session_id):
        for _ in range(200):
            if not self.is_running(session_id):
                return
            time.sleep(0.05)
        raise AssertionError("the session did not end")

ATTEMPTS = []

@pytest.fixture
def attempts():
    return ATTEMPTS

@pytest.fixture
def service():
    service = Service()
    yield service
    service.close()
"""


@pytest.mark.parametrize("options", ON_A_WORKER)
def test_a_test_that_loses_its_device_runs_again_on_another_session(
    pytester: pytest.Pytester, service: FaultyService, options: list[str]
) -> None:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(LOSES)

    result = pytester.runpytest(RETRY, "--junitxml=junit.xml", *options)

    assert result.parseoutcomes() == {"passed": 1, "rerun": 1}
    assert result.ret == 0
    assert creates(service) == 2
    cases = ET.parse(pytester.path / "junit.xml").getroot().findall(".//testcase")
    attempts = [
        one.get("value")
        for case in cases
        for one in case.findall(".//property[@name='device_attempt']")
    ]
    assert attempts == ["1", "2"]
    sessions = [
        [
            one.get("value")
            for one in case.findall(".//property[@name='device_session']")
        ]
        for case in cases
    ]
    assert sorted(map(len, sessions)) == [1, 1]
    assert sorted(str(session_id) for (session_id,) in sessions) == sorted(
        str(one["id"]) for one in service.sessions()
    )


@pytest.mark.nightly
def test_without_the_option_nothing_runs_again(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(LOSES)

    result = pytester.runpytest()

    assert result.parseoutcomes() == {"errors": 2}
    assert result.ret == INFRASTRUCTURE_ONLY
    assert creates(service) == 1


LOSES_IN_TEARDOWN = """
import pytest
pytestmark = pytest.mark.device(platform="android")

@pytest.fixture
def signed_out(device_agent_device, device_session, service):
    yield
    service.expire(device_session.id)
    service.wait_for_end(str(device_session.id))
    try:
        device_agent_device.snapshot()
    except Exception as error:
        raise ConnectionError("could not sign out") from error

def test_passes(signed_out): pass
"""


def test_a_teardown_that_fails_because_the_device_is_gone_has_a_verdict(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(LOSES_IN_TEARDOWN)

    result = pytester.runpytest(RETRY)

    assert result.parseoutcomes() == {"passed": 1, "errors": 1}
    assert result.ret == INFRASTRUCTURE_ONLY
    assert creates(service) == 1
    result.stdout.fnmatch_lines(
        ["infrastructure: the session is gone: *", "*Error in the test*"]
    )


@pytest.mark.parametrize("options", ON_WORKERS)
def test_the_quota_limits_the_retries_of_all_workers(
    pytester: pytest.Pytester, service: FaultyService, options: list[str]
) -> None:
    for number in range(0, 48, 4):
        service.add_fault("boot", "fail", skip=number, times=1)
    pytester.makeconftest(RECORDS_QUESTIONS)
    pytester.makepyfile(SUITE.replace("COUNT", "48"))

    result = pytester.runpytest(RETRY, *options)

    assert result.parseoutcomes() == {"passed": 46, "errors": 2, "rerun": 10}
    result.stdout.fnmatch_lines(["*the run's 10 retries are used up*"])
    assert result.ret == INFRASTRUCTURE_ONLY
    for recorded in pytester.path.glob("*.questions"):
        questions = set(map(tuple, map(json.loads, recorded.read_text().splitlines())))
        numbers = [number for number, _key in questions]
        # The answers are told apart by it.
        assert len(numbers) == len(set(numbers))


def test_a_retry_is_never_made_beyond_the_breaker(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    service.add_fault("boot", "fail", times=20)
    pytester.makepyfile(SUITE.replace("COUNT", "5"))

    result = pytester.runpytest("--device-retry-infrastructure=3")

    outcomes = result.parseoutcomes()
    assert creates(service) == 2
    assert outcomes["rerun"] == outcomes["errors"] == 1
    result.stdout.fnmatch_lines(["*identical sessions keep failing*"])
    assert result.ret == INFRASTRUCTURE_ONLY


SHARED = """
import pytest
pytestmark = pytest.mark.device(platform="android")

@pytest.fixture(scope="module")
def account():
    return {}

def test_shares(account, device_session): pass
"""
SET_UP = """
import pytest
pytestmark = pytest.mark.device(platform="android")

def setup_module(): pass

def test_shares(device_session, tmp_path): pass
"""
FUNCTION_SCOPED = """
import pytest
pytestmark = pytest.mark.device(platform="android")

@pytest.fixture
def account():
    return {}

def test_shares(account, device_session, tmp_path, record_testsuite_property): pass
"""


@pytest.mark.parametrize(
    ("suite", "reason"),
    [(SHARED, "it uses account"), (SET_UP, "it uses the setup of its class or module")],
)
def test_a_test_with_a_shared_fixture_is_not_run_again(
    pytester: pytest.Pytester, service: FaultyService, suite: str, reason: str
) -> None:
    service.add_fault("boot", "fail", times=1)
    pytester.makepyfile(suite)

    result = pytester.runpytest(RETRY)

    assert result.parseoutcomes() == {"errors": 1}
    result.stdout.fnmatch_lines(["*not retried*", f"{reason}*"])


def test_fixtures_of_plugins_do_not_prevent_a_retry(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    service.add_fault("boot", "fail", times=1)
    pytester.makepyfile(FUNCTION_SCOPED)

    result = pytester.runpytest(RETRY)

    assert result.parseoutcomes() == {"passed": 1, "rerun": 1}


FAILS_IN_TEARDOWN = """
import pytest
pytestmark = pytest.mark.device(platform="android")

@pytest.fixture
def cleanup():
    yield
    assert False, "the cleanup failed"

def test_fails_twice(cleanup, device_session): pass
"""


def test_an_attempt_in_which_the_test_itself_failed_is_not_repeated(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    service.add_fault("boot", "fail", times=1)
    pytester.makepyfile(FAILS_IN_TEARDOWN)

    result = pytester.runpytest("--device-retry-infrastructure=3")

    assert creates(service) == 1
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*the cleanup failed*"])


def test_each_attempt_has_artifacts_of_its_own(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(LOSES.replace("len(attempts) == 1", "attempts"))

    result = pytester.runpytest(RETRY)

    assert result.parseoutcomes() == {"errors": 2, "rerun": 1}
    assert result.ret == INFRASTRUCTURE_ONLY
    first, second = sorted(pytester.path.rglob("session.json"))
    assert second.parent.name == f"{first.parent.name}-retry-1"
    failures = [
        json.loads((path.parent / "failure.json").read_text())
        for path in (first, second)
    ]
    assert [failure["attempt"] for failure in failures] == [1, 2]
    assert len(service.sessions()) == 2


REPEATS = """
import pytest
from _pytest import runner

TIMES = 3

def announced(item):
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)

"""
DISCARDS = """
def pytest_runtest_protocol(item, nextitem):
    announced(item)
    for _ in range(TIMES - 1):
        runner.runtestprotocol(item, nextitem=nextitem, log=False)
    runner.runtestprotocol(item, nextitem=nextitem)
    return True
"""
DISCARDS_ANNOUNCED = DISCARDS.replace(
    "item, nextitem=nextitem, log=False)",
    "item, nextitem=nextitem, log=False); announced(item)",
)
DISCARDS_FAILURES = """
def pytest_runtest_protocol(item, nextitem):
    for _ in range(TIMES):
        announced(item)
        item._initrequest()
        for when in ("setup", "call", "teardown"):
            more = {"nextitem": nextitem} if when == "teardown" else {}
            report = runner.call_and_report(item, when, log=False, **more)
            if not report.failed or _ == TIMES - 1:
                item.ihook.pytest_runtest_logreport(report=report)
    return True
"""
WITHIN_THE_REPORT = """
@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if call.when != "call":
        return

    hook = item.ihook
    report.outcome = "again"
    hook.pytest_runtest_logreport(report=report)
    for _ in range(TIMES - 1):
        hook.pytest_runtest_teardown(item=item, nextitem=pytest.Class.from_parent(item.session, name="none"))
        item._initrequest()
        hook.pytest_runtest_setup(item=item)
        call = pytest.CallInfo.from_call(lambda: hook.pytest_runtest_call(item=item), "call")
    last = pytest.TestReport.from_item_and_call(item, call)
    report.outcome, report.longrepr = last.outcome, last.longrepr
"""
FLAKY = """
import pytest
seen = []

@pytest.mark.device(platform="android")
def test_flaky(device_session):
    seen.append(device_session.id)
    assert len(seen) == {passing}, f"attempt {{len(seen)}}"
"""


@pytest.mark.usefixtures("service")
@pytest.mark.parametrize("options", ON_A_WORKER)
@pytest.mark.parametrize("passing", [3, 4])
@pytest.mark.parametrize(
    "loop",
    [
        pytest.param(DISCARDS, id="discards reports"),
        pytest.param(DISCARDS_ANNOUNCED, id="announces each attempt"),
        pytest.param(DISCARDS_FAILURES, id="discards failures"),
    ],
)
def test_a_suite_that_repeats_tests_itself_has_each_attempt_as_it_was(
    pytester: pytest.Pytester,
    loop: str,
    passing: int,
    options: list[str],
) -> None:
    pytester.makeconftest(REPEATS + loop)
    pytester.makepyfile(test_it=FLAKY.format(passing=passing))

    result = pytester.runpytest(
        "--device-trace=on",
        "--device-artifacts-dir=left",
        *options,
    )

    is_passed = passing == 3
    result.assert_outcomes(passed=int(is_passed), failed=int(not is_passed))
    last: tuple[str, str, str | None] = ("passed", "passed", None)
    if not is_passed:
        last = ("failed", "failed", "AssertionError: attempt 3")
    assert attempts_of(pytester.path) == [
        ("rerun", "failed", "AssertionError: attempt 1"),
        ("rerun", "failed", "AssertionError: attempt 2"),
        last,
    ]
    result.stdout.fnmatch_lines(["devices: 3 created, 3 stopped (confirmed)*"])
    traces = sorted(path.parent for path in pytester.path.glob("left/*/trace.zip"))
    names = [path.name for path in traces]
    assert names == [names[0], f"{names[0]}-rerun-1", f"{names[0]}-rerun-2"]
    for number, directory in enumerate(traces[:2], 1):
        failure = json.loads((directory / "failure.json").read_text())
        assert (failure["attempt"], failure["error"]["message"][:9]) == (
            number,
            f"attempt {number}",
        )


def _trace_in(directory: Path) -> str:
    with ZipFile(directory / "trace.zip") as trace:
        (name,) = [name for name in trace.namelist() if name.endswith(".trace")]
        return trace.read(name).decode()


@pytest.mark.usefixtures("service")
def test_a_plugin_that_repeats_a_test_before_its_report_has_the_first_and_the_last(
    pytester: pytest.Pytester,
) -> None:
    pytester.makeconftest(REPEATS.replace("3", "2") + WITHIN_THE_REPORT)
    pytester.makepyfile(test_it=FLAKY.format(passing=2))

    result = pytester.runpytest("--device-trace=on")

    result.assert_outcomes(passed=1)
    assert attempts_of(pytester.path) == [
        ("rerun", "failed", "AssertionError: attempt 1"),
        ("passed", "passed", None),
    ]
    traces = sorted(
        path.parent.name for path in pytester.path.glob("device-artifacts/*/trace.zip")
    )
    assert traces == [traces[0], f"{traces[0]}-rerun-1"]
    lines = [_trace_in(pytester.path / "device-artifacts" / name) for name in traces]
    assert [text.count('"type":"error"') for text in lines] == [1, 0]
    assert [text.count("Collect evidence") for text in lines] == [1, 0]
    result.stdout.fnmatch_lines(["devices: 2 created, 2 stopped (confirmed)*"])
