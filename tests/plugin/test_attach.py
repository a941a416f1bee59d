"""Tests on a session that exists: ``--device-attach``, and ``attach`` of the marker."""

from collections.abc import Generator
from pathlib import Path

import pytest

from pytest_device import DeviceClient, SessionRequest
from pytest_device.testing import FaultyService
from tests.waiting import eventually

TWO = """
import pytest

@pytest.mark.device(platform="android")
@pytest.mark.parametrize("number", range(2))
def test_one(device_session, number, record_property):
    record_property("id", str(device_session.id))
    print(f"on {device_session.id}")
"""


@pytest.fixture
def client(service: FaultyService) -> Generator[DeviceClient]:
    with DeviceClient(service.url, service.token) as client:
        yield client


@pytest.fixture
def session_id(service: FaultyService, client: DeviceClient) -> str:
    """A session created by someone else."""
    return create(service, client)


def create(service: FaultyService, client: DeviceClient, **arguments: str) -> str:
    request = SessionRequest.from_arguments(
        app_id=service.app_id, **{"platform": "android", **arguments}
    )
    session = str(client.create(request).id)
    assert eventually(lambda: client.get(session).remote_config is not None)
    return session


def calls(service: FaultyService, operation: str, session_id: str | None = None) -> int:
    return sum(asked == operation for asked, _ in service.requests(session_id))


def test_tests_run_on_an_attached_session_and_do_not_stop_it(
    pytester: pytest.Pytester,
    service: FaultyService,
    session_id: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytester.makepyfile(TWO)
    monkeypatch.delenv("DEVICE_APP_ID")

    result = pytester.runpytest(f"--device-attach={session_id}", "-rP", "-v")

    result.assert_outcomes(passed=2)
    assert result.stdout.str().count(f"on {session_id}") == 2
    result.stdout.fnmatch_lines(
        [
            "*android agent-device: attached to an existing session",
            "devices: 0 created, 1 attached, 0 stopped *",
        ]
    )
    assert service.statuses() == ["in-progress"]
    assert (calls(service, "create"), calls(service, "stop", session_id)) == (1, 0)


def test_an_attached_session_is_never_in_the_ledger(
    pytester: pytest.Pytester, service: FaultyService, session_id: str, tmp_path: Path
) -> None:
    pytester.makepyfile(
        """
        import os, pathlib, pytest

        @pytest.mark.device(platform="android")
        def test_one(device_session):
            assert not list(pathlib.Path(os.environ["DEVICE_STATE_DIR"]).rglob("runs/*/*.json"))
        """
    )

    pytester.runpytest(f"--device-attach={session_id}").assert_outcomes(passed=1)

    assert (tmp_path / "state").exists()
    assert service.statuses() == ["in-progress"]


def test_its_id_is_sent_as_it_is_spelled(
    pytester: pytest.Pytester, service: FaultyService, session_id: str
) -> None:
    pytester.makepyfile(TWO)

    pytester.runpytest(f"--device-attach={session_id.upper()}").assert_outcomes(
        passed=2
    )

    # From then on, it is spelled as the service spells it.
    assert calls(service, "get", session_id.upper()) == 1


def test_a_marker_attaches_one_test_and_others_create_sessions(
    pytester: pytest.Pytester, service: FaultyService, session_id: str
) -> None:
    pytester.makepyfile(
        f"""
        import pytest

        @pytest.mark.device(platform="android", attach="{session_id}")
        def test_there(device_session): assert str(device_session.id) == "{session_id}"

        @pytest.mark.device(platform="android")
        def test_here(device_session): assert str(device_session.id) != "{session_id}"
        """
    )

    pytester.runpytest("--device-max-sessions=1").assert_outcomes(passed=2)

    assert sorted(service.statuses()) == ["in-progress", "stopped"]


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (
            lambda _service, _client: "11111111-1111-4111-8111-111111111111",
            "cannot attach to session 11111111-*: get: *(status 404)*",
        ),
        (
            lambda service, client: create(service, client, platform="ios"),
            "cannot attach to session *: it is ios agent-device, but the test needs android agent-device*",
        ),
        (
            lambda service, client: create(service, client, type="appium"),
            "cannot attach to session *: it is android appium, but the test needs android agent-device*",
        ),
        (
            lambda service, client: str(client.stop(create(service, client)).id),
            "cannot attach to session *: it has ended, stopped*",
        ),
    ],
    ids=["unknown", "platform", "type", "ended"],
)
def test_an_unusable_session_is_looked_up_once_and_is_a_configuration_error(
    pytester: pytest.Pytester,
    service: FaultyService,
    client: DeviceClient,
    make: object,
    problem: str,
) -> None:
    assert callable(make)
    pytester.makepyfile(TWO)
    session_id = make(service, client)
    before = calls(service, "get")

    result = pytester.runpytest(f"--device-attach={session_id}")

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"config: {problem}", "*1 not attempted*"])
    assert calls(service, "get") == before + 1


def test_a_booting_session_is_waited_for(
    pytester: pytest.Pytester, service: FaultyService, client: DeviceClient
) -> None:
    service.add_fault("boot", "delay", seconds=0.5)
    request = SessionRequest.from_arguments(app_id=service.app_id, platform="android")
    session_id = client.create(request).id
    pytester.makepyfile(TWO)

    pytester.runpytest(f"--device-attach={session_id}").assert_outcomes(passed=2)


def test_one_of_several_workers_uses_it_at_a_time(
    pytester: pytest.Pytester, service: FaultyService, session_id: str
) -> None:
    pytester.makepyfile(
        """
        import os, pathlib, time, pytest

        @pytest.mark.device(platform="android")
        @pytest.mark.parametrize("number", range(4))
        def test_one(device_session, number):
            held = pathlib.Path("held")
            held.touch(exist_ok=False)
            time.sleep(0.2)
            held.unlink()
        """
    )

    result = pytester.runpytest(f"--device-attach={session_id}", "-n2")

    result.assert_outcomes(passed=4)
    assert service.statuses() == ["in-progress"]


@pytest.mark.nightly
def test_one_worker_uses_it_at_a_time_with_dist(
    pytester: pytest.Pytester, session_id: str
) -> None:
    pytester.makepyfile(
        f"""
        import pathlib, time, pytest

        @pytest.mark.device(platform="android", attach="{session_id}")
        @pytest.mark.parametrize("number", range(4))
        def test_one(device_session, number):
            held = pathlib.Path("held")
            held.touch(exist_ok=False)
            time.sleep(0.2)
            held.unlink()
        """
    )

    pytester.runpytest("-n2", "--dist=load").assert_outcomes(passed=4)


def test_a_run_that_waits_for_another_reports_the_session(
    pytester: pytest.Pytester, session_id: str
) -> None:
    pytester.makepyfile(
        test_holds=f"""
        import subprocess, sys, pytest

        @pytest.mark.device(platform="android", attach="{session_id}")
        def test_one(device_session):
            command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "test_waits.py"]
            found = subprocess.run([*command, "--device-wait-timeout-seconds=1"], capture_output=True, text=True)
            print(found.stdout)
            assert found.returncode == 10, found.stdout
        """,
        test_waits=f"""
        import pytest

        @pytest.mark.device(platform="android", attach="{session_id}")
        def test_other(device_session): pass
        """,
    )

    result = pytester.runpytest("-rP", "test_holds.py")

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        [
            f"*waited * s for session {session_id}; in use: 1 by *Increase --device-wait-timeout-seconds"
        ]
    )


def test_two_devices_of_a_test_cannot_share_a_session(
    pytester: pytest.Pytester, session_id: str
) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.device("a", platform="android")
        @pytest.mark.device("b", platform="android")
        def test_one(device_sessions): pass
        """
    )

    result = pytester.runpytest(f"--device-attach={session_id}")

    result.stderr.fnmatch_lines(
        ["*can't attach * and * to one session: give each its own, attach='ID'"]
    )


def test_a_lease_creates_its_own_session(
    pytester: pytest.Pytester, service: FaultyService, session_id: str
) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.device(platform="android")
        def test_one(device_session, device_lease):
            with device_lease(platform="ios") as other:
                assert other.id != device_session.id
        """
    )

    pytester.runpytest(f"--device-attach={session_id}").assert_outcomes(passed=1)

    assert sorted(service.statuses()) == ["in-progress", "stopped"]


@pytest.mark.parametrize("option", ["--device-keep-on-failure", "--device-keep-warm=5"])
def test_options_that_keep_sessions_do_not_affect_it(
    pytester: pytest.Pytester, service: FaultyService, session_id: str, option: str
) -> None:
    pytester.makepyfile(TWO + "    assert number\n")

    result = pytester.runpytest(f"--device-attach={session_id}", option)

    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["devices: 0 created, 1 attached, 0 stopped *"])
    assert (service.statuses(), calls(service, "stop", session_id)) == (
        ["in-progress"],
        0,
    )


@pytest.mark.parametrize(
    ("arguments", "options", "problem"),
    [
        (", attach='x'", [], "*test_one: attach='x' must be the UUID of a session"),
        (
            "",
            ["--device-attach=x"],
            "*--device-attach='x' must be the UUID of a session",
        ),
        (
            "",
            ["--device-local", "--device-attach=11111111-1111-4111-8111-111111111111"],
            "*--device-attach needs a remote service: the local one starts and ends with the run",
        ),
    ],
)
def test_an_invalid_session_id_is_refused_before_anything_is_sent(
    pytester: pytest.Pytester,
    service: FaultyService,
    arguments: str,
    options: list[str],
    problem: str,
) -> None:
    pytester.makepyfile(
        f"import pytest\n@pytest.mark.device(platform='ios'{arguments})\ndef test_one(): pass\n"
    )

    pytester.runpytest(*options).stderr.fnmatch_lines([problem])

    assert service.requests() == []


def test_an_attached_session_uses_no_budget(
    pytester: pytest.Pytester, session_id: str
) -> None:
    pytester.makepyfile(
        f"""
        import pytest

        @pytest.mark.device(platform="android", attach="{session_id}")
        def test_attaches(device_session): pass

        @pytest.mark.device(platform="android")
        def test_creates(device_session): pass
        """
    )

    budget = "--device-budget-minutes=0.0001"
    pytester.runpytest(budget).assert_outcomes(passed=2)

    result = pytester.runpytest(budget, "-k=attaches")

    result.assert_outcomes(passed=1, deselected=1)
    result.stdout.no_fnmatch_line("the plan needs *")
