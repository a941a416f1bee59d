"""Checks that fail without ending the test: what they leave is of their own moment, not of the test's end."""

import base64
import json
from collections.abc import Generator, Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

# Loaded before the first run inside this process, which would load it anew each time.
from appium import webdriver as webdriver  # noqa: PLC0414

from pytest_device.plugin.output.evidence import MAX_CHECKS
from pytest_device.testing import FaultyService
from tests.controllers.appium_servers import appium, refuses
from tests.fakes.http_server import Answer, ScriptedServer, says, scripted_server

PNG = b"\x89PNG\r\n\x1a\n"
SUITE = """
import pytest
from pytest_check import check as checking
pytestmark = pytest.mark.device(
    platform="android", type="appium", application_archive_url="https://builds.example/app.zip"
)

{more}

def test_it(device_driver{fixtures}):
    device_driver.back()
    {first}
    device_driver.back()
    {second}
    device_driver.back()
    {end}
"""


@pytest.fixture(autouse=True)
def _controller(service: FaultyService) -> Generator[None]:
    """Let each device show how often the suite went back."""
    with scripted_server() as server:

        def answer(call: str) -> Answer:
            shown = count_of(server, "back")
            node = f'<node class="a.Text" content-desc="screen {shown}"/>'
            picture = base64.b64encode(PNG + str(shown).encode()).decode()
            return appium(
                element=refuses("no such element", "nothing there", 404),
                source=says({"value": f"<hierarchy>{node}</hierarchy>"}),
                screenshot=says({"value": picture}),
            )(call)

        server.answer = answer
        config = {"appiumUrl": server.url, "capabilities": {}}
        service.add_fault("get", "change", fields={"remoteConfig": config}, times=None)
        yield


def count_of(server: ScriptedServer, name: str) -> int:
    """Return how often the driver that was started last was sent a command."""
    latest_first = [path.rpartition("/")[2] for path, _ in reversed(server.asked)]
    return list(takewhile(lambda asked: asked != "session", latest_first)).count(name)


def moment(folder: Path) -> tuple[str, str]:
    """Return the line that failed, and the screen that is shown of it, which the picture and the actions have, too."""
    failure: Mapping[str, Any] = json.loads((folder / "failure.json").read_text())
    (tree,) = failure["tree"]
    (element,) = tree["elements"]
    screen = element["accessibility_id"]

    count = sum(action["title"] == "Go back" for action in failure["actions"])
    assert screen == f"screen {count}"
    assert (folder / "screenshot.png").read_bytes() == PNG + str(count).encode()
    source = failure["source"]
    return source["lines"][source["line"] - source["first"]].strip(), screen


@pytest.mark.parametrize(
    ("fixtures", "first", "second"),
    [
        ("", "checking.equal(1, 2)", "with checking: assert 3 == 4"),
        ("", "pytest.assume(1 == 2)", "with pytest.assume: assert 3 == 4"),
        (
            ", subtests",
            "with subtests.test(): assert 1 == 2",
            "with subtests.test(): assert 3 == 4",
        ),
    ],
)
def test_each_check_is_shown_at_its_own_moment(
    pytester: pytest.Pytester, fixtures: str, first: str, second: str
) -> None:
    text = SUITE.format(more="", fixtures=fixtures, first=first, second=second, end="")
    pytester.makepyfile(test_it=text)

    result = pytester.runpytest("--device-artifacts-dir=left")

    (directory,) = Path("left").glob("*")
    assert moment(directory) == (first, "screen 1")
    assert moment(directory / "failure-2") == (second, "screen 2")
    shown = "artifacts: */failure-2" if fixtures else "check at *: failure-2/failure.md"
    result.stdout.fnmatch_lines([shown])

    # Those of a run with one failure replace them.
    pytester.makepyfile(test_it=text.replace(second, "pass"))
    pytester.runpytest("--device-artifacts-dir=left")

    assert moment(directory) == (first, "screen 1")
    assert not list(directory.glob("failure-2/*"))


@pytest.mark.parametrize("check", ["checking", "pytest.assume"])
def test_an_error_after_a_check_is_shown_at_its_moment(
    pytester: pytest.Pytester, check: str
) -> None:
    first = f"with {check}: assert 1 == 2"
    end = "raise ValueError"
    pytester.makepyfile(
        SUITE.format(more="", fixtures="", first=first, second="pass", end=end)
    )

    result = pytester.runpytest("--device-artifacts-dir=left")

    result.stdout.fnmatch_lines(
        ["check at *:11: ../failure.md", "artifacts: */failure-2"]
    )
    (directory,) = Path("left").glob("*")
    assert moment(directory) == (first, "screen 1")
    assert moment(directory / "failure-2") == (end, "screen 3")


def test_a_locator_that_fails_in_a_check_is_reported_as_in_a_test(
    pytester: pytest.Pytester,
) -> None:
    first = 'with checking: device_driver.find_element("accessibility id", "scren 1")'
    pytester.makepyfile(
        SUITE.format(more="", fixtures="", first=first, second="pass", end="")
    )

    result = pytester.runpytest()

    line = "accessibility id 'scren 1': no match; nearest 'screen 1'"
    result.stdout.fnmatch_lines([line])


def test_of_many_checks_the_first_few_are_read(pytester: pytest.Pytester) -> None:
    many = f"[checking.equal(number, -1) for number in range({MAX_CHECKS + 2})]"
    pytester.makepyfile(
        SUITE.format(more="", fixtures="", first=many, second="pass", end="")
    )

    result = pytester.runpytest("--device-artifacts-dir=left")

    result.stdout.fnmatch_lines(["2 more checks failed: *"])
    assert len(list(Path("left").rglob("failure.md"))) == MAX_CHECKS


@pytest.mark.parametrize(
    ("mark", "first"),
    [
        ("@pytest.mark.xfail", "checking.equal(1, 2)"),
        ("", 'checking.equal(1, 2, xfail="known")'),
    ],
)
def test_a_check_that_is_expected_to_fail_leaves_nothing(
    pytester: pytest.Pytester, mark: str, first: str
) -> None:
    pytester.makepyfile(
        SUITE.format(more=mark, fixtures="", first=first, second="pass", end="")
    )

    pytester.runpytest("--device-artifacts-dir=left").assert_outcomes(xfailed=1)

    assert not list(Path("left").glob("*"))


def test_the_function_that_a_suite_calls_for_failed_checks_stays(
    pytester: pytest.Pytester,
) -> None:
    first = "checking.equal(1, 2)"
    more = "checking.call_on_fail(lambda message: print('of the suite:', message))"
    pytester.makepyfile(
        SUITE.format(more=more, fixtures="", first=first, second="pass", end="")
    )

    result = pytester.runpytest()

    result.stdout.fnmatch_lines(["artifacts: *", "of the suite: FAILURE: check 1 == 2"])
