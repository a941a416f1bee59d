"""``--device-local`` with emulators, simulated by recorded adb output."""

import os
from pathlib import Path

import pytest

from tests.fakes.programs import FakeProgram

UP = "List of devices attached\nemulator-5554          device product:sdk model:sdk device:emu64x\n"
TWO = """
import pathlib, time, pytest

@pytest.mark.device(platform="android", type="web-preview-only")
@pytest.mark.parametrize("number", range(2))
def test_one(device_session, number, record_property):
    record_property("service", device_session.url.rpartition("/sessions/")[0])
    held = pathlib.Path("held")
    held.touch(exist_ok=False)
    time.sleep(0.5)
    held.unlink()
"""


@pytest.fixture
def adb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeProgram:
    """A machine with one emulator."""
    adb = FakeProgram.made(tmp_path / "bin/adb")
    adb.answers({"devices*": UP})
    monkeypatch.setenv("PATH", f"{adb.path.parent}{os.pathsep}{os.environ['PATH']}")
    return adb


@pytest.mark.usefixtures("adb")
def test_workers_share_one_local_service_and_the_second_queues_for_its_one_device(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(TWO)

    result = pytester.runpytest(
        "--device-local-real", "-n2", "--dist=each", "--junitxml=report.xml"
    )

    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["devices: 2 created, 2 stopped *"])
    reported = [
        line
        for line in (pytester.path / "report.xml").read_text().split("<")
        if 'name="service"' in line
    ]
    assert len(reported) == 4
    assert len(set(reported)) == 1


@pytest.mark.usefixtures("adb")
def test_an_unused_session_makes_room_for_one_of_another_kind_and_one_in_use_does_not(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        """
        import pytest
        from pytest_device import NoCapacityError, SessionRequest

        @pytest.mark.device(platform="android", type="web-preview-only")
        def test_first(device_session, device_client):
            request = SessionRequest(app_id=device_session.app_id, platform="android", type="web-preview-only")
            with pytest.raises(NoCapacityError, match="in use by another session: emulator-5554"):
                device_client.create(request)

        @pytest.mark.device(platform="android", type="web-preview-only", max_duration_minutes=10)
        def test_second(device_session): pass

        @pytest.mark.device(platform="android", type="web-preview-only")
        def test_third(device_session): pass
        """
    )

    pytester.runpytest("--device-local-real", "--device-no-reorder").assert_outcomes(
        passed=3
    )


@pytest.mark.nightly
@pytest.mark.parametrize("options", [(), ("-n1",)])
def test_an_emulator_reaches_the_services_of_a_test_in_a_session_without_appium(
    pytester: pytest.Pytester, adb: FakeProgram, options: tuple[str, ...]
) -> None:
    pytester.makepyfile("""
        import pathlib, pytest

        @pytest.mark.device(platform="android", type="web-preview-only")
        def test_it(device_session, device_push_endpoint):
            pathlib.Path("url").write_text(device_push_endpoint.local_url)
    """)

    pytester.runpytest("--device-local-real", *options).assert_outcomes(passed=1)

    port = pytester.path.joinpath("url").read_text().rpartition(":")[2]
    assert [call for call in adb.asked if " reverse " in call] == [
        f"-s emulator-5554 reverse tcp:{port} tcp:{port}",
        f"-s emulator-5554 reverse --remove tcp:{port}",
    ]


def test_without_a_device_the_run_ends_before_its_first_test(
    pytester: pytest.Pytester, adb: FakeProgram
) -> None:
    adb.answers({"devices*": "List of devices attached\n"})
    pytester.makepyfile(TWO)

    result = pytester.runpytest("--device-local-real")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [
            (
                "ERROR: the local service failed to start: this machine has no android device for the session "
                "(emulator: adb devices -l lists no ready device): start an emulator"
            )
        ]
    )


def test_without_a_device_a_worker_creates_nothing_and_reports_a_configuration_error(
    pytester: pytest.Pytester, adb: FakeProgram
) -> None:
    adb.answers({"devices*": "List of devices attached\n"})
    pytester.makepyfile(TWO)

    result = pytester.runpytest("--device-local-real", "-n1")

    result.assert_outcomes(errors=1)  # the other test was not attempted
    result.stdout.fnmatch_lines(
        ["*config: *this machine has no android device for the session *"]
    )
    assert "devices: " not in result.stdout.str()


@pytest.mark.nightly
def test_an_unknown_device_is_a_configuration_error_and_requested_once(
    pytester: pytest.Pytester, adb: FakeProgram
) -> None:
    assert adb.path.exists()
    pytester.makepyfile(TWO)

    result = pytester.runpytest("--device-local-real", "--device-identifier=pixel_9")

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["config: create: *'pixel_9' is not a running android device: emulator-*"]
    )


def test_a_remote_service_cannot_start_an_emulator(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(TWO)

    result = pytester.runpytest("--device-url=http://127.0.0.1:9", "--device-avd=Phone")

    result.stderr.fnmatch_lines(
        [
            "ERROR: --device-avd only applies to the local service: add --device-local or remove it"
        ]
    )
