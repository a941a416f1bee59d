"""Tests marked for several devices of a platform, by their identifiers."""

import pytest

from pytest_device.testing import FaultyService
from tests.plugin.test_platforms import ran

MATRIX = """
import pytest

@pytest.mark.device(platform="android", device_identifier=["Pixel 8", "Pixel 6"])
def test_phones(device_session):
    assert device_session is not None

@pytest.mark.device(
    platform=["android", "ios"],
    device_identifier={"android": ["Pixel 8", "Pixel 6"], "ios": "iPhone 16"},
)
def test_both(device_session, device_platform):
    assert device_session.platform == device_platform
"""


@pytest.fixture(autouse=True)
def matrix(service: FaultyService, pytester: pytest.Pytester) -> FaultyService:
    pytester.makeconftest(
        """
        import os

        def pytest_device_request(item, arguments):
            if "PYTEST_XDIST_WORKER" not in os.environ or os.environ["PYTEST_XDIST_WORKER"] == "gw0":
                with open("requested.txt", "a") as file:
                    print(arguments.get("platform"), arguments.get("device_identifier"), file=file)
        """
    )
    return service


def identifiers(pytester: pytest.Pytester) -> list[str]:
    """Return the platform and the identifier that each collected test requests."""
    return sorted((pytester.path / "requested.txt").read_text().splitlines())


def test_a_list_of_identifiers_runs_the_test_on_each_of_them(
    pytester: pytest.Pytester, matrix: FaultyService
) -> None:
    pytester.makepyfile(MATRIX)

    result = pytester.runpytest("-v", "--device-share=run")

    assert ran(result) == [
        "test_both[android-Pixel",
        "test_both[android-Pixel",
        "test_both[ios-iPhone",
        "test_phones[Pixel",
        "test_phones[Pixel",
    ]
    assert identifiers(pytester) == [
        *(2 * ["android Pixel 6"]),
        *(2 * ["android Pixel 8"]),
        "ios iPhone 16",
    ]
    # Tests with the same identifier share its device.
    assert matrix.statuses() == 3 * ["stopped"]


@pytest.mark.nightly
def test_workers_collect_the_same_tests(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(MATRIX)

    pytester.runpytest("-n2").assert_outcomes(passed=5)

    assert set(identifiers(pytester)) == {
        "android Pixel 6",
        "android Pixel 8",
        "ios iPhone 16",
    }


def test_a_platform_that_the_mapping_lacks_leaves_the_choice_to_the_service(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.device(platform=["android", "ios"], device_identifier={"ios": "iPhone 16"})
        def test_both(device_session): pass
        """
    )

    result = pytester.runpytest("-v")

    assert ran(result) == ["test_both[android]", "test_both[ios]"]
    assert identifiers(pytester) == ["android None", "ios iPhone 16"]


def test_a_run_for_one_platform_has_its_devices_only(
    pytester: pytest.Pytester, matrix: FaultyService
) -> None:
    pytester.makepyfile(MATRIX)

    pytester.runpytest("--device-platform=ios").assert_outcomes(passed=1, deselected=4)

    assert matrix.statuses() == ["stopped"]


def test_a_spread_run_has_each_test_once(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(MATRIX)

    pytester.runpytest("--device-spread").assert_outcomes(passed=2)


def test_a_closer_marker_chooses_one_device(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        """
        import pytest
        pytestmark = pytest.mark.device(platform="android", device_identifier=["Pixel 8", "Pixel 6"])

        @pytest.mark.device(device_identifier="Pixel 9")
        def test_newest(device_session): pass
        """
    )

    pytester.runpytest().assert_outcomes(passed=1)

    assert identifiers(pytester) == ["android Pixel 9"]


MISTAKES = [
    (
        "platform=['android', 'ios'], device_identifier=['Pixel 8', 'iPhone 16']",
        "a list is for one platform; for several, map each to its own, for example device_identifier={'android': ",
    ),
    (
        "platform='android', device_identifier=[]",
        "device_identifier=[]: the list must not be empty",
    ),
    (
        "platform='android', device_identifier=['Pixel 8', 6]",
        "6 must be a simulator name, a UDID or a hardware profile",
    ),
    (
        "platform='android', device_identifier={'Pixel 8', 'Pixel 6'}",
        "must be a string or a list of strings",
    ),
    (
        "platform='android', device_identifier={'adroid': ['Pixel 8']}",
        "'adroid' must be android or ios",
    ),
    (
        "'alice', platform='android', device_identifier=['Pixel 8', 'Pixel 6']",
        "a device of several ('alice') can't be parametrized by identifier; choose one",
    ),
    (
        "device_identifier=['Pixel 8', 'Pixel 6']",
        "device_identifier=['Pixel 8', 'Pixel 6']: no platform is set: add platform=... to the marker",
    ),
]


def test_mistakes_are_reported_at_collection(
    pytester: pytest.Pytester, matrix: FaultyService
) -> None:
    tests = (
        f"@pytest.mark.device({arguments})\ndef test_{number}(): pass\n"
        for number, (arguments, _) in enumerate(MISTAKES)
    )
    pytester.makepyfile("\n".join(["import pytest", *tests]))

    result = pytester.runpytest()

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    for number, (_, problem) in enumerate(MISTAKES):
        (line,) = [line for line in result.errlines if f": test_{number}: " in line]
        assert problem in line
    assert matrix.requests() == []


def test_a_parameter_set_cannot_contradict_the_list_of_its_test(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.device(platform="android", device_identifier=["Pixel 8", "Pixel 6"])
        @pytest.mark.parametrize("n", [pytest.param(1, marks=pytest.mark.device(device_identifier="Pixel 9"))])
        def test_it(n): pass
        """
    )

    result = pytester.runpytest()

    result.stderr.fnmatch_lines(
        ["*device_identifier='Pixel 9' of a parameter set conflicts with *Pixel*"]
    )


def test_a_method_of_unittest_names_one_device(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import unittest
        import pytest

        @pytest.mark.device(platform="android", device_identifier=["Pixel 8", "Pixel 6"])
        class TestIt(unittest.TestCase):
            def test_it(self): pass
        """
    )

    result = pytester.runpytest()

    result.stderr.fnmatch_lines(["*can't be parametrized by identifier; choose one"])
