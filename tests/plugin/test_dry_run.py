"""What a run would create and cost, with nothing sent."""

import pytest

SUITE = """
import pytest

@pytest.mark.device(platform=["android", "ios"], device_identifier="Pixel 9")
class TestBoth:
    def test_one(self): pass
    def test_two(self): pass

@pytest.mark.device(platform="android", share="test", max_duration_minutes=10)
def test_alone(): assert False

def test_plain(): assert False

@pytest.mark.skipif(True, reason="later")
@pytest.mark.device(platform="ios")
def test_skipped(): pass

@pytest.mark.xfail(run=False)
@pytest.mark.device(platform="ios")
def test_not_run(): pass
"""


@pytest.mark.parametrize("options", [[], ["-n2"]])
def test_it_reports_sessions_and_minutes_runs_nothing_and_needs_no_service(
    pytester: pytest.Pytester, options: list[str]
) -> None:
    pytester.makepyfile(SUITE)

    result = pytester.runpytest("--device-dry-run", *options)

    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        [
            "*= device dry run =*",
            "android agent-device (run): 2 tests, device_identifier='Pixel 9', max_duration_minutes=30, *",
            "ios agent-device (run): 2 tests, *",
            "android agent-device (test test_*.py::test_alone): 1 test, max_duration_minutes=10, *",
            "3 sessions, up to 85 minutes (including 5 for cleanup each); nothing was sent",
            "this is for a run in one process: with pytest-xdist, each worker creates *",
        ]
    )


def test_it_shows_no_credentials_signatures_or_launch_arguments(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.device(
            platform="android",
            application_archive_url="https://user:pw123456@archives.example/a.zip?X-Amz-Signature=abcdefgh&x=hidden",
            launch_args=["--key", "sesame"],
            open_url="app://open/sesame",
        )
        def test_one(): pass
        """
    )

    result = pytester.runpytest("--device-dry-run")

    result.stdout.fnmatch_lines(
        [
            "*application_archive_url='https://[*][*][*]@archives.example/a.zip?…', launch_args=…, open_url=…"
        ]
    )
    for secret in ("pw123456", "abcdefgh", "hidden", "sesame"):
        result.stdout.no_fnmatch_line(f"*{secret}*")


def test_mistakes_are_still_reported(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(SUITE.replace("=10", "=1000"))

    assert pytester.runpytest("--device-dry-run").ret == pytest.ExitCode.USAGE_ERROR


@pytest.mark.parametrize("options", [[], ["-n2"], ["-k", "plain"]])
def test_nothing_runs_even_if_no_test_needs_a_device(
    pytester: pytest.Pytester, options: list[str]
) -> None:
    pytester.makepyfile(SUITE if "-k" in options else "def test_plain(): assert False")

    result = pytester.runpytest("--device-dry-run", *options)

    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        ["*= device dry run =*", "no test needs a device *; nothing was sent"]
    )
