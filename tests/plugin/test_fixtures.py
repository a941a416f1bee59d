"""What fixtures give, and what a suite overrides."""

import os

import pytest

from pytest_device.testing import FaultyService

pytestmark = pytest.mark.every_python

BUILD = "11111111-2222-4333-8444-555555555555"


@pytest.fixture(autouse=True)
def fixtures(service: FaultyService) -> FaultyService:
    return service


def test_the_environment_of_a_controller_is_a_mapping(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        """
        import os, subprocess, sys
        import pytest
        NAMES = ["AGENT_DEVICE_DAEMON_BASE_URL", "AGENT_DEVICE_DAEMON_AUTH_TOKEN"]
        OTHERS = ["NO_UPDATE_NOTIFIER", "PLATFORM", "SESSION", "STATE_DIR"]

        @pytest.mark.device(platform="android")
        def test_mapping(device_environment, device_session):
            token = device_session.remote_config.agent_device_remote_session_token.get_secret_value()
            assert device_environment[NAMES[1]] == token
            assert sorted(device_environment) == sorted([*NAMES, *[f"AGENT_DEVICE_{name}" for name in OTHERS]])
            assert os.stat(device_environment["AGENT_DEVICE_STATE_DIR"]).st_mode & 0o77 == 0
            assert NAMES[0] not in os.environ
            code = f"import os; assert os.environ[{NAMES[0]!r}]"
            subprocess.run([sys.executable, "-c", code], env={**os.environ, **device_environment}, check=True)

        @pytest.mark.device(platform="ios", type="argent")
        def test_argent(device_environment):
            assert sorted(device_environment) == ["ARGENT_AUTH_TOKEN", "ARGENT_TOOLS_URL"]
        """
    )

    pytester.runpytest().assert_outcomes(passed=2)


def test_a_preview_has_no_environment(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_it="""
        import pytest

        @pytest.mark.device(platform="android", type="web-preview-only")
        def test_preview(device_environment): pass
        """
    )

    result = pytester.runpytest()

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*device_environment needs a controller, but type='web-preview-only' has none"]
    )


def test_request_defaults_come_from_fixtures_at_any_level(
    pytester: pytest.Pytester, fixtures: FaultyService
) -> None:
    pytester.makeconftest(
        f"""
        import pytest

        @pytest.fixture(scope="session")
        def build(): return "{BUILD}"

        @pytest.fixture
        def device_request_defaults(build): return {{"build_id": build, "max_duration_minutes": 20}}
        """
    )
    pytester.makepyfile(
        f"""
        import pytest
        pytestmark = pytest.mark.device(platform="android", share="run")

        @pytest.fixture
        def device_request_defaults(device_request_defaults):
            return {{**device_request_defaults, "package_version": "3.1.0"}}

        def test_one(device_session):
            assert str(device_session.build_id) == "{BUILD}"
            assert device_session.package_version == "3.1.0"
            assert device_session.max_duration_minutes == 20

        def test_two(device_session): pass

        @pytest.mark.device(max_duration_minutes=5, application_archive_url="https://builds.example/app.apk")
        def test_three(device_session):
            assert device_session.max_duration_minutes == 5
            assert device_session.build_id is None
        """
    )

    pytester.runpytest().assert_outcomes(passed=3)

    assert fixtures.statuses() == ["stopped", "stopped"]


def test_a_default_that_collection_needs_is_refused(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.fixture
        def device_request_defaults(): return {"platform": "ios"}

        @pytest.mark.device(platform="android")
        def test_one(device_session): pass
        """
    )

    result = pytester.runpytest()

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        [
            "config: device_request_defaults can't set platform, which must be known at collection*"
        ]
    )


def test_an_invalid_default_is_reported_before_anything_is_sent(
    pytester: pytest.Pytester, fixtures: FaultyService
) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.fixture
        def device_request_defaults(): return {"build_id": "nonsense"}

        @pytest.mark.device(platform="android")
        def test_one(device_session): pass
        """
    )

    result = pytester.runpytest()

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["config: build_id='nonsense' must be the UUID of a build"]
    )
    assert fixtures.statuses() == []


def test_the_wait_policy_can_be_overridden(
    pytester: pytest.Pytester, fixtures: FaultyService
) -> None:
    fixtures.add_fault("boot", "delay", seconds=3600)
    pytester.makepyfile(
        """
        import dataclasses, pytest

        @pytest.fixture
        def device_wait_policy(device_wait_policy):
            return dataclasses.replace(device_wait_policy, timeout_seconds=0.2)

        @pytest.mark.device(platform="android")
        def test_one(device_session): pass
        """
    )

    result = pytester.runpytest()

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["infrastructure: the session was not ready after * s*"]
    )


def test_fixtures_of_any_scope_can_lease_a_session(
    pytester: pytest.Pytester, fixtures: FaultyService
) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.fixture(scope="module")
        def phone(device_lease):
            with device_lease(platform="ios", max_duration_minutes=7) as session:
                yield session

        def test_one(phone): assert phone.status == "in-progress"
        def test_two(phone, device_client): assert device_client.get(phone.id).max_duration_minutes == 7
        def test_wrong(device_lease):
            with device_lease(platform="windows"): pass
        """
    )

    result = pytester.runpytest()

    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["config: platform='windows' must be android or ios"])
    assert fixtures.statuses() == ["stopped"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks")
def test_a_forked_child_is_refused_a_device_and_leaves_its_parents_alone(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(
        """
        import os, pytest
        from pytest_device import ConfigError, SessionRequest

        @pytest.mark.device(platform="android")
        @pytest.mark.filterwarnings("ignore::DeprecationWarning")
        def test_forks(device_session, device_lease, device_client):
            if not (child := os.fork()):
                try:
                    app_id = os.environ["DEVICE_APP_ID"]
                    request = SessionRequest.from_arguments(app_id=app_id, platform="ios")
                    for act in (
                        device_lease(platform="ios").__enter__,
                        lambda: device_client.create(request),
                        lambda: device_client.get(device_session.id),
                        lambda: device_client.stop(device_session.id),
                    ):
                        with pytest.raises(ConfigError, match="a process that a test forked"):
                            act()
                    os._exit(0)
                finally:
                    os._exit(3)
            assert os.waitpid(child, 0)[1] == 0
            assert device_client.get(device_session.id).status == "in-progress"
        """
    )

    pytester.runpytest().assert_outcomes(passed=1)

    assert service.statuses() == ["stopped"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks")
def test_a_forked_child_that_ends_its_parents_test_leaves_the_session_to_the_parent(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(
        """
        import os, pytest

        @pytest.mark.device(platform="android")
        @pytest.mark.filterwarnings("ignore::DeprecationWarning")
        def test_forks(device_session, device_client):
            if child := os.fork():
                os.waitpid(child, 0)
                assert device_client.get(device_session.id).status == "in-progress"
        """
    )

    pytester.runpytest_subprocess().assert_outcomes(passed=1)

    assert service.statuses() == ["stopped"]


def test_the_clients_sessions_are_stopped_at_the_end_of_the_run(
    pytester: pytest.Pytester, fixtures: FaultyService
) -> None:
    pytester.makepyfile(
        """
        import os
        from pytest_device import SessionRequest

        def test_one(device_client):
            app_id = os.environ["DEVICE_APP_ID"]
            session = device_client.create(SessionRequest.from_arguments(app_id=app_id, platform="ios"))
            assert device_client.get(session.id).id == session.id
        """
    )

    pytester.runpytest().assert_outcomes(passed=1)

    assert fixtures.statuses() == ["stopped"]


def test_a_fixture_requested_at_run_time_works_in_marked_tests_and_explains_itself_in_others(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.device(platform="android")
        def test_marked(request): assert request.getfixturevalue("device_session").status == "in-progress"

        def test_unmarked(request): request.getfixturevalue("device_session")

        @pytest.mark.device(platform="android")
        def test_type(request): request.getfixturevalue("device_driver")
        """
    )

    result = pytester.runpytest()

    result.assert_outcomes(passed=1, errors=2)
    result.stdout.fnmatch_lines(
        [
            "config: requests a device but no platform is set: add @pytest.mark.device(platform=*"
        ]
    )
    result.stdout.fnmatch_lines(
        ["config: an Appium driver needs type='appium', but the marker has*"]
    )


def test_a_failed_tests_own_artifacts_go_to_the_artifacts_directory(
    pytester: pytest.Pytester, fixtures: FaultyService
) -> None:
    pytester.makepyfile(
        test_it="""
        import pytest

        @pytest.mark.device(platform="android")
        @pytest.mark.parametrize("path", ["a/b"])
        def test_fails(device_artifacts_dir, path):
            (device_artifacts_dir / "mine.txt").write_text("mine")
            assert False

        def test_plain(device_artifacts_dir, tmp_path): pass
        """
    )

    pytester.runpytest("--device-artifacts-dir=left").assert_outcomes(
        failed=1, passed=1
    )

    (place,) = (pytester.path / "left").glob("test_it.py-test_fails-a-b-*")
    assert {"mine.txt", "session.json"} <= {file.name for file in place.iterdir()}
    (session,) = fixtures.sessions()
    assert session["id"] in (place / "session.json").read_text()
    assert "remoteConfig" not in (place / "session.json").read_text()
    report = pytester.path / "device-report" / "device-run.json"
    assert '"created": 1' in report.read_text()


def test_fixtures_are_used_in_teardowns_without_a_warning(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makeini("[pytest]\nfilterwarnings = error\n")
    pytester.makepyfile("""
        import pytest
        from pytest_device import device_step

        @pytest.fixture(scope="class")
        def shared(request, device_identity_provider):
            yield device_identity_provider.sign_in
            assert device_identity_provider.sign_in("user").access_token

        @pytest.fixture
        def cleaned(device_session, device_sessions, device_lease, device_push):
            yield
            assert device_sessions[""] is device_session
            with device_step("Clean up"), device_lease(platform="ios") as other:
                assert other.id != device_session.id
            with pytest.raises(Exception, match="can't receive push messages"):
                device_push.send({"title": "News"})

        @pytest.mark.device(platform="android", type="web-preview-only")
        class TestIt:
            def test_one(self, shared, cleaned): pass
            def test_two(self, shared, cleaned): pass
    """)

    pytester.runpytest().assert_outcomes(passed=2)
    assert set(service.statuses()) == {"stopped"}


def test_what_pytest_deprecates_is_an_error_in_runs_within_tests(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile("""
        import warnings
        import pytest

        def test_warns():
            warnings.warn(pytest.PytestDeprecationWarning("old"))
    """)

    pytester.runpytest().assert_outcomes(failed=1)
