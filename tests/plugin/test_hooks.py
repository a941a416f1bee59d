"""Hooks that a suite implements in its conftest files."""

import pytest

from pytest_device.testing import FaultyService
from tests.plugin.runs import ON_A_WORKER

pytestmark = pytest.mark.every_python

TWO = """
import pytest
pytestmark = pytest.mark.device(platform="android", share="run")

def test_one(device_session): pass
def test_two(device_session): pass
"""
TOLD = """
import pytest

def tell(*words):
    with open("reported.txt", "a") as file: print(*words, file=file)

def pytest_device_ready(item, device_session):
    tell("ready", item.name, device_session.status)

def pytest_device_stopping(item, device_session):
    tell("stopping", item.name, device_session.remote_config is not None)
"""


def reported(pytester: pytest.Pytester) -> list[str]:
    return (pytester.path / "reported.txt").read_text().splitlines()


@pytest.fixture(autouse=True)
def hooks(service: FaultyService, pytester: pytest.Pytester) -> FaultyService:
    pytester.makeconftest(TOLD)
    return service


def test_a_session_is_reported_when_it_is_ready_and_before_it_is_stopped(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(TWO)

    pytester.runpytest().assert_outcomes(passed=2)

    assert reported(pytester) == [
        "ready test_one in-progress",
        "stopping test_two True",
    ]


def test_a_worker_calls_the_hook_for_a_session_that_it_stops_at_its_end(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(TWO)

    pytester.runpytest("-n1").assert_outcomes(passed=2)

    assert reported(pytester) == [
        "ready test_one in-progress",
        "stopping test_two True",
    ]


def test_an_exception_in_a_hook_is_the_tests_error_and_the_session_is_stopped(
    pytester: pytest.Pytester, hooks: FaultyService
) -> None:
    pytester.makeconftest(
        """
        def pytest_device_ready(item): raise ValueError("not ready at all")
        def pytest_device_stopping(): raise ValueError("nothing saved")
        """
    )
    pytester.makepyfile(TWO)

    result = pytester.runpytest()

    result.assert_outcomes(errors=2, passed=1)
    result.stdout.fnmatch_lines(
        ["*ValueError: not ready at all", "*ValueError: nothing saved"]
    )
    assert hooks.statuses() == ["stopped"]


def test_a_request_can_be_changed_at_collection_for_a_directory(
    pytester: pytest.Pytester, hooks: FaultyService
) -> None:
    pytester.makeconftest(
        """
        def pytest_device_request(item, name, arguments):
            arguments.setdefault("device_identifier", "Pixel 9")
            arguments["name"] = f"{item.name} {name} {arguments['platform']}"
        """
    )
    pytester.mkdir("inner")
    (pytester.path / "inner" / "conftest.py").write_text(
        "def pytest_device_request(arguments): arguments['max_duration_minutes'] = 3\n"
    )
    (pytester.path / "inner" / "test_inner.py").write_text(TWO)
    pytester.makepyfile(
        test_outer="""
        import pytest

        @pytest.mark.device("alice", platform="ios")
        def test_named(device_sessions): assert device_sessions["alice"].max_duration_minutes == 30
        """
    )

    pytester.runpytest().assert_outcomes(passed=3)

    names = sorted(session["name"] for session in hooks.sessions())
    assert names == ["test_named alice ios", "test_one  android", "test_two  android"]


def test_a_hooks_invalid_change_is_reported_as_the_tests_mistake(
    pytester: pytest.Pytester,
) -> None:
    pytester.makeconftest(
        """
        def pytest_device_request(item, arguments):
            name = "max_duration_minutes" if item.name == "test_one" else None
            arguments[name] = 500
        """
    )
    pytester.makepyfile(test_it=TWO)

    result = pytester.runpytest()

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [
            "ERROR: test_it.py:4: test_one: max_duration_minutes=500 must be*",
            "ERROR: test_it.py:*: test_two: None is not an argument of the marker",
        ]
    )


REACTIONS = """
import pytest

def report(*words):
    with open("reported.txt", "a") as file: print(*words, file=file)

def pytest_device_verdict(item, when, verdict, error):
    report("verdict", item.name, when, verdict, type(error).__name__)

def pytest_device_artifacts_saved(item, directory):
    report("saved", item.name, "failure.md" in [path.name for path in directory.iterdir()])
"""


@pytest.mark.parametrize("workers", ON_A_WORKER)
def test_a_suite_learns_of_verdicts_and_of_the_files_of_each_failed_test(
    pytester: pytest.Pytester, workers: list[str]
) -> None:
    pytester.makeconftest(REACTIONS)
    pytester.makepyfile(
        """
        import pytest
        pytestmark = pytest.mark.device(platform="android", share="test")

        def test_lost(device_session, device_client):
            device_client.stop(device_session.id)
            assert False

        def test_wrong(device_session): assert False

        def test_right(device_session): pass

        def test_plain(): assert True
        """
    )

    pytester.runpytest(*workers).assert_outcomes(errors=1, failed=1, passed=2)

    assert reported(pytester) == [
        "verdict test_lost call infrastructure SessionStoppedError",
        "saved test_lost True",
        "verdict test_wrong call None AssertionError",
        "saved test_wrong True",
    ]


@pytest.mark.parametrize(
    ("hook", "raised"),
    [
        ("pytest_device_verdict", "ValueError('broken')"),
        ("pytest_device_artifacts_saved", "pytest.fail.Exception('broken')"),
    ],
)
def test_an_exception_in_a_hook_that_only_watches_is_a_line_in_the_summary(
    pytester: pytest.Pytester, hooks: FaultyService, hook: str, raised: str
) -> None:
    pytester.makeconftest(f"import pytest\ndef {hook}(): raise {raised}\n")
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.device(platform="android")
        def test_wrong(device_session): assert 1 == 2
        """
    )

    result = pytester.runpytest()

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"*{hook} failed: *: broken"])
    assert hooks.statuses() == ["stopped"]
