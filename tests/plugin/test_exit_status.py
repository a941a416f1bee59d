"""The exit status of a run, by the verdicts of its failures."""

from collections.abc import Sequence
from typing import Any, Final
from xml.etree import ElementTree as ET

import pytest

from pytest_device.testing import FaultyService
from tests.plugin.runs import NEEDS_SUBTESTS, ON_A_WORKER, SERVICE_OF_RUN

SUITE = """
import pytest

@pytest.mark.device(platform="android", name="first")
def test_first(device_session): pass

@pytest.mark.device(platform="ios", name="second")
def test_second(device_session): pass

def test_plain():
    assert PLAIN
"""
Fault = tuple[str, str, dict[str, Any]]
INFRASTRUCTURE: Final[Fault] = ("boot", "fail", {"times": 1})
CONFIG: Final[Fault] = (
    "create",
    "reply",
    {"status": 422, "body": '{"message": "no such build"}', "times": 1},
)


@pytest.mark.parametrize(
    ("faults", "plain", "status", "workers"),
    [
        ([INFRASTRUCTURE], "True", 10, 2),
        ([INFRASTRUCTURE], "False", 1, 0),
        ([CONFIG, INFRASTRUCTURE], "True", 11, 0),
        *(
            pytest.param(*case, 0, marks=pytest.mark.nightly)
            for case in (([CONFIG], "True", 11), ([], "False", 1), ([], "True", 0))
        ),
        pytest.param([INFRASTRUCTURE], "True", 10, 0, marks=pytest.mark.nightly),
        *(
            pytest.param(*case, 2, marks=pytest.mark.nightly)
            for case in (
                ([INFRASTRUCTURE], "False", 1),
                ([CONFIG], "True", 11),
                ([CONFIG, INFRASTRUCTURE], "True", 11),
                ([], "False", 1),
                ([], "True", 0),
            )
        ),
    ],
)
def test_the_status_says_what_broke(
    pytester: pytest.Pytester,
    service: FaultyService,
    faults: Sequence[Fault],
    plain: str,
    status: int,
    workers: int,
) -> None:
    for operation, effect, options in faults:
        service.add_fault(operation, effect, **options)
    pytester.makepyfile(SUITE.replace("PLAIN", plain))

    result = pytester.runpytest(f"-n{workers}")

    assert result.ret == status


SUBTESTS: Final = f"""
import contextlib, pytest
{SERVICE_OF_RUN}

@pytest.mark.device(platform="android")
def test_loses_its_device(device_session, subtests):
    with subtests.test("first"):
        with contextlib.closing(service_of_run()) as service:
            service.expire(str(device_session.id))
        raise ConnectionError("the device is gone")
    with subtests.test("second"):
        pass
"""


@NEEDS_SUBTESTS
@pytest.mark.usefixtures("service")
@pytest.mark.parametrize("options", ON_A_WORKER)
def test_a_test_has_the_verdict_of_its_subtests(
    pytester: pytest.Pytester, options: list[str]
) -> None:
    pytester.makepyfile(SUBTESTS)

    assert pytester.runpytest(*options).ret == 10


def test_the_setting_keeps_pytests_status(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    service.add_fault("boot", "fail", times=1)
    pytester.makepyfile(SUITE.replace("PLAIN", "True"))

    assert pytester.runpytest("--device-exit-status=pytest").ret == 1


@pytest.mark.usefixtures("service")
def test_other_statuses_of_pytest_stay(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(SUITE.replace("PLAIN", "True"), test_broken="import nothing")

    assert pytester.runpytest().ret == pytest.ExitCode.INTERRUPTED
    assert pytester.runpytest("--no-such-option").ret == pytest.ExitCode.USAGE_ERROR
    assert pytester.runpytest("-k", "nothing").ret == pytest.ExitCode.INTERRUPTED


@pytest.mark.usefixtures("service")
def test_a_file_that_cannot_be_collected_is_a_failure_without_a_verdict(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    service.add_fault("boot", "fail", times=1)
    pytester.makepyfile(
        test_broken="import nothing", test_devices=SUITE.replace("PLAIN", "True")
    )

    result = pytester.runpytest("--continue-on-collection-errors")

    assert result.ret == 1


@pytest.mark.parametrize("workers", [pytest.param(0, marks=pytest.mark.nightly), 1])
def test_the_verdict_is_a_property_in_junit_xml(
    pytester: pytest.Pytester, service: FaultyService, workers: int
) -> None:
    operation, effect, options = CONFIG
    service.add_fault(operation, effect, **options)
    pytester.makepyfile(SUITE.replace("PLAIN", "False"))

    pytester.runpytest("--junitxml=junit.xml", f"-n{workers}")

    cases = {
        case.get("name"): case
        for case in ET.parse(pytester.path / "junit.xml").getroot().iter("testcase")
    }
    verdicts = [
        one.get("value")
        for one in cases["test_first"].findall(".//property[@name='device_verdict']")
    ]
    assert verdicts == ["config"]
    assert cases["test_first"].find("error") is not None
    assert cases["test_plain"].find("failure") is not None
    assert cases["test_plain"].find(".//property[@name='device_verdict']") is None
