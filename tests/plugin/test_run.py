"""Tests with sessions of the local service and simulated devices."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from pytest_device.plugin.markers import CI_RUN_VARIABLES
from pytest_device.testing import FaultyService
from tests.plugin.runs import ON_A_WORKER
from tests.plugin.test_device_report import blobs, of_method
from tests.waiting import eventually

ONE = """
import pytest

@pytest.mark.device(platform="android")
def test_driven(device_session):
    assert device_session.status == "in-progress"
"""


def all_stopped(service: FaultyService, count: int) -> bool:
    return service.statuses() == ["stopped"] * count


@pytest.mark.skipif(sys.platform == "win32", reason="directories have no such mode")
@pytest.mark.parametrize("options", ON_A_WORKER)
def test_a_state_directory_that_others_can_write_to_is_a_usage_error(
    pytester: pytest.Pytester, service: FaultyService, options: list[str]
) -> None:
    (state := pytester.mkdir("to all")).chmod(0o777)
    pytester.makepyfile(
        "import pytest\n@pytest.mark.device(platform='ios')\ndef test_one(device_session): pass"
    )

    result = pytester.runpytest(f"--device-state-dir={state}", *options)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [
            f"ERROR: the state directory {state} can be * (mode 777): run `chmod go-w '{state}'`*"
        ]
    )
    assert service.sessions() == []


def test_each_test_gets_its_own_session_which_junit_names_and_is_stopped_afterwards(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(
        """
        import pytest
        pytestmark = pytest.mark.device(platform="ios", type="agent-device")
        seen = set()

        def test_one(device_session): seen.add(device_session.id)
        def test_two(device_session): seen.add(device_session.id); assert len(seen) == 2
        """
    )

    result = pytester.runpytest("--junitxml=report.xml", "-o", "junit_family=xunit1")

    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["devices: 2 created, 2 stopped (confirmed); *"])
    assert all_stopped(service, 2)
    report = Path("report.xml").read_text()
    for session in service.sessions():
        assert f'<property name="device_session" value="{session["id"]}"' in report


@pytest.mark.usefixtures("service")
def test_events_are_shown_as_they_happen(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(ONE)

    shown = pytester.runpytest("-v").stdout

    shown.fnmatch_lines(
        [
            "  device android agent-device: session page:",
            "    http://127.0.0.1:*/sessions/*",
            "  device android agent-device: ready after * s",
            "  device android agent-device: stopped",
        ]
    )


@pytest.mark.usefixtures("service")
def test_a_session_without_trouble_needs_no_line(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(ONE)

    pytester.runpytest().stdout.no_fnmatch_line("  device *")


def test_an_unchanged_wait_is_not_reported_at_first(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    service.add_fault("boot", "delay", seconds=0.5)
    pytester.makepyfile(ONE)

    pytester.runpytest().stdout.no_fnmatch_line("*: after * s: *")


@pytest.mark.usefixtures("service")
def test_with_q_only_the_receipt_is_shown(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(ONE)

    shown = pytester.runpytest("-q").stdout

    shown.no_fnmatch_line("  device *")
    shown.fnmatch_lines(["devices: 1 created, 1 stopped (confirmed); *"])


ENDINGS = {
    "fails": "assert False",
    "exits": "raise SystemExit(3)",
    "skips": "pytest.skip('not today')",
    "calls_fail": "pytest.fail('no')",
    "breaks": "request.getfixturevalue('broken')",
}


@pytest.fixture(scope="module")
def ended() -> list[tuple[str, str]]:
    return []


@pytest.fixture
def endings(
    pytester: pytest.Pytester, service: FaultyService, ended: list[tuple[str, str]]
) -> dict[str, str]:
    """Return the status of each test's session after one run of tests that end in different ways."""
    if not ended:
        tests = [
            f'@pytest.mark.device(platform="android", name="{name}")\n'
            f"def test_{name}(device_session, request):\n    {body}\n"
            for name, body in ENDINGS.items()
        ]
        broken = "@pytest.fixture\ndef broken(): raise ValueError('a fixture')\n"
        pytester.makepyfile("\n".join(["import pytest", broken, *tests]))
        pytester.runpytest().assert_outcomes(failed=4, skipped=1)
        ended.extend(
            (session["name"], session["status"]) for session in service.sessions()
        )
    assert len(ended) == len(ENDINGS)
    return dict(ended)


@pytest.mark.parametrize("name", ENDINGS)
def test_the_session_is_stopped_however_its_test_ends(
    endings: dict[str, str], name: str
) -> None:
    assert endings[name] == "stopped"


@pytest.mark.nightly
@pytest.mark.parametrize("where", ["before", "after"])
def test_the_session_is_stopped_when_another_fixture_fails(
    pytester: pytest.Pytester, service: FaultyService, where: str
) -> None:
    pytester.makepyfile(
        f"""
        import pytest

        @pytest.fixture
        def broken(device_session):
            if "{where}" == "before": raise ValueError("set-up")
            yield
            raise ValueError("teardown")

        @pytest.mark.device(platform="android")
        def test_driven(broken): pass
        """
    )

    pytester.runpytest().assert_outcomes(errors=1, passed=1 if where == "after" else 0)

    assert all_stopped(service, 1)


def test_a_test_and_a_parameter_with_only_the_marker_get_a_session_too(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(
        """
        import unittest
        import pytest

        @pytest.mark.device(platform="android")
        @pytest.mark.parametrize("n", [1, 2])
        def test_bare(n): pass

        @pytest.mark.device(platform="android")
        class Old(unittest.TestCase):
            def test_old(self): pass

        @pytest.mark.parametrize("n", [pytest.param(1, marks=pytest.mark.device(platform="ios")), 2])
        def test_some(n): pass

        def test_plain(): pass
        """
    )

    pytester.runpytest().assert_outcomes(passed=6)

    assert all_stopped(service, 4)


@pytest.mark.usefixtures("service")
def test_a_session_has_name_and_limits(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_it="""
        import pytest

        @pytest.mark.device(platform="android")
        def test_default(device_session):
            assert device_session.name.startswith("test_default · test_it.py · ")
            assert device_session.max_duration_minutes == 30
            assert device_session.max_idle_time_minutes == 10

        @pytest.mark.device(platform="android", max_duration_minutes=5, name="mine")
        def test_short(device_session):
            assert device_session.name == "mine"
            assert device_session.max_idle_time_minutes == 4

        @pytest.mark.device(platform="android", max_duration_minutes=1)
        def test_shortest(device_session):
            assert device_session.max_idle_time_minutes is None

        @pytest.mark.device(platform="android", type="web-preview-only")
        def test_preview(device_session):
            assert device_session.max_idle_time_minutes is None
            assert device_session.remote_config.web_preview_url
        """
    )

    pytester.runpytest().assert_outcomes(passed=4)


def test_without_a_ci_service_all_sessions_share_the_runs_generated_name(
    pytester: pytest.Pytester, service: FaultyService, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in CI_RUN_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    pytester.makepyfile(ONE, test_other=ONE)

    for _ in range(2):
        pytester.runpytest().assert_outcomes(passed=2)

    runs = [session["name"].rpartition(" · ")[2] for session in service.sessions()]
    assert runs[0] == runs[1] != runs[2] == runs[3]


class OnWorkers(NamedTuple):
    """A finished run on two workers."""

    result: pytest.RunResult
    names: list[str]
    statuses: list[str]


@pytest.fixture(scope="module")
def on_workers() -> list[OnWorkers]:
    return []


@pytest.fixture
def two_workers(
    pytester: pytest.Pytester,
    service: FaultyService,
    monkeypatch: pytest.MonkeyPatch,
    on_workers: list[OnWorkers],
) -> OnWorkers:
    """The run of a CI service on two workers, made for the first test that needs it."""
    if not on_workers:
        monkeypatch.setenv("CI_PIPELINE_ID", "4711")
        pytester.makepyfile(
            """
            import pytest

            @pytest.mark.parametrize("n", range(6))
            @pytest.mark.device(platform="android")
            def test_driven(device_session, n): pass
            """
        )
        result = pytester.runpytest("-n2")
        names = [session["name"] for session in service.sessions()]
        on_workers.append(OnWorkers(result, names, service.statuses()))
    return on_workers[0]


def test_the_name_contains_ci_run_and_worker(two_workers: OnWorkers) -> None:
    endings = {" · ".join(name.split(" · ")[-2:]) for name in two_workers.names}
    assert endings <= {"gw0 · 4711", "gw1 · 4711"}
    assert endings


def test_workers_share_the_service_and_the_receipt_counts_all_their_sessions(
    two_workers: OnWorkers,
) -> None:
    two_workers.result.assert_outcomes(passed=6)
    two_workers.result.stdout.fnmatch_lines(
        ["devices: 6 created, 6 stopped (confirmed); *"]
    )
    assert two_workers.statuses == ["stopped"] * 6


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({}, id="the last update"),
        pytest.param({"updatedAt": None}, id="our clock", marks=pytest.mark.nightly),
    ],
)
def test_the_device_time_of_an_errored_session_is_given_as_an_upper_bound(
    pytester: pytest.Pytester, service: FaultyService, fields: dict[str, None]
) -> None:
    service.add_fault(
        "stop", "change", fields={"status": "errored", "finishedAt": None, **fields}
    )
    pytester.makepyfile(ONE)

    result = pytester.runpytest("--device-report=artifacts")

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        ["devices: 1 created, 1 stopped (confirmed); at most * s of device time, *"]
    )
    path = pytester.path / "artifacts" / "device-run.json"
    receipt = json.loads(path.read_text())["receipt"]
    assert receipt["device_seconds"] > 0
    assert receipt["device_seconds_bound"] == "at most"


def test_each_session_that_fails_to_start_is_counted(
    pytester: pytest.Pytester, service: FaultyService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEVICE_START_ATTEMPTS", "2")
    service.add_fault("boot", "fail", reason="no booted device", times=2)
    pytester.makepyfile(ONE)

    result = pytester.runpytest()

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["devices: 2 created, 2 stopped (confirmed), 2 failed to start; *"]
    )
    # Without pytest's own summary, which CI shows in full: once while it runs.
    shown = [line for line in result.outlines if not line.startswith("ERROR")]
    assert len([line for line in shown if "failed to start" in line]) == 3


@pytest.mark.nightly
def test_a_session_that_is_not_ready_in_time_counts_as_failed_to_start(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    service.add_fault("boot", "delay", seconds=3600)
    pytester.makepyfile(ONE)

    result = pytester.runpytest("--device-wait-timeout-seconds=0.2", "-n1")

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["devices: 1 created, 1 stopped (confirmed), 1 failed to start; *"]
    )


@pytest.mark.parametrize("distributed", ON_A_WORKER)
def test_an_errored_session_is_an_infrastructure_error_with_its_page(
    pytester: pytest.Pytester, service: FaultyService, distributed: list[str]
) -> None:
    service.add_fault("boot", "fail", reason="no booted device")
    pytester.makepyfile(test_it=ONE)

    result = pytester.runpytest(*distributed)

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        [
            "infrastructure: the session failed to start, see the session page for the reason",
            "-* device -*",
            "android agent-device, session page:",
            "    http://127.0.0.1:*/sessions/*",
            "devices: 1 created, 1 stopped (confirmed), 1 failed to start; *",
            "1 infrastructure error (not a test failure)",
            "ERROR *::test_driven - infrastructure: *",
        ]
    )
    assert service.statuses() == ["errored"]


@pytest.mark.nightly
def test_an_endless_boot_times_out_and_is_stopped(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    service.add_fault("boot", "delay", seconds=3600)
    pytester.makepyfile(ONE)

    result = pytester.runpytest("--device-wait-timeout-seconds=0.3")

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        [
            "infrastructure: the session was not ready after * s, it is starting. It may *"
        ]
    )
    assert all_stopped(service, 1)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (
            {"status": 200, "body": "<html><body>Welcome"},
            "infrastructure: create: the response is not JSON*Welcome*",
        ),
        # Rows of tests/faults, and refusals of ``test_causes``.
        *(
            pytest.param(*case, marks=pytest.mark.nightly)
            for case in (
                (
                    {"status": 200, "body": '{"data": 1}'},
                    "infrastructure: *returned an invalid session*",
                ),
                (
                    {"status": 400, "body": '{"x": ["simulator access is off"]}'},
                    "config: create: *simulator access is off*",
                ),
                ({"status": 403}, "config: create: the access token lacks permission*"),
                (
                    {"status": 503, "body": "busy"},
                    "infrastructure: create: the service failed (status 503): busy",
                ),
                (
                    {"status": 302, "headers": {"location": "/"}},
                    "infrastructure: create: the service redirects*",
                ),
            )
        ),
    ],
)
def test_a_reply_without_a_session_is_reported_with_its_cause(
    pytester: pytest.Pytester,
    service: FaultyService,
    fault: dict[str, object],
    message: str,
) -> None:
    service.add_fault("create", "reply", **fault)
    pytester.makepyfile(ONE)

    result = pytester.runpytest()

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([message])
    assert service.statuses() == []


@pytest.mark.usefixtures("service")
def test_a_wrong_token_is_reported_without_being_shown(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEVICE_TOKEN", "a-wrong-token-0815")
    pytester.makepyfile(ONE)

    result = pytester.runpytest()

    result.stdout.fnmatch_lines(
        [
            "config: create: the access token is not valid: check DEVICE_TOKEN (status 401)*"
        ]
    )
    result.stdout.no_fnmatch_line("*a-wrong-token-0815*")


@pytest.mark.nightly
def test_a_refused_token_is_not_retried(
    pytester: pytest.Pytester, service: FaultyService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEVICE_TOKEN", "a-wrong-token-0815")
    pytester.makepyfile(test_a=ONE, test_b=ONE)

    result = pytester.runpytest()

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        [
            "config: create: the access token is not valid*",
            "config: 2 tests affected, first test_a.py::*",
            "*1 not attempted*",
        ]
    )
    assert [operation for operation, _ in service.requests()] == ["create"]


@pytest.mark.parametrize(
    "order",
    [
        "pytest_device.plugin,xdist.plugin",
        # The order in ``test_terminal``.
        pytest.param("xdist.plugin,pytest_device.plugin", marks=pytest.mark.nightly),
    ],
)
def test_workers_are_counted_whichever_plugin_is_loaded_first(
    pytester: pytest.Pytester,
    service: FaultyService,
    monkeypatch: pytest.MonkeyPatch,
    order: str,
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_PLUGINS", order)
    pytester.makepyfile(ONE)

    result = pytester.runpytest("-n1")

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["devices: 1 created, 1 stopped (confirmed); *"])
    assert all_stopped(service, 1)


@pytest.mark.nightly
@pytest.mark.usefixtures("service")
def test_an_unknown_project_is_reported(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(ONE)

    result = pytester.runpytest("--device-app-id=7d7a1f0e-0f4c-4f2e-9b0a-0c9d6a1f2b3c")

    result.stdout.fnmatch_lines(["config: create: unknown project: check the app ID*"])


@pytest.mark.parametrize(
    "effect",
    ["lose-answer", pytest.param("reset-answer", marks=pytest.mark.nightly)],
)
def test_a_lost_create_response_is_reported_as_unknown_and_not_repeated(
    pytester: pytest.Pytester, service: FaultyService, effect: str
) -> None:
    service.add_fault("create", effect)
    pytester.makepyfile(ONE)

    result = pytester.runpytest()

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        [
            "infrastructure: create: no complete response from *",
            "The service may have created a session named 'test_driven · *. It can't be found, *",
            "devices: 0 created, 0 stopped (confirmed), 1 unknown; *",
            "device minutes: at least 0.0 paid, *",
        ]
    )
    assert [operation for operation, _ in service.requests()] == ["create"]


@pytest.mark.nightly
def test_a_truncated_create_response_still_identifies_the_session_to_stop(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    service.add_fault("create", "truncate")
    pytester.makepyfile(ONE)

    result = pytester.runpytest()

    result.stdout.fnmatch_lines(
        [
            "infrastructure: create: no complete response from * (the response was cut off, * bytes are missing)",
            "devices: 1 created, 1 stopped (confirmed); *",
        ]
    )
    assert service.statuses() == ["stopped"]


@pytest.mark.nightly
def test_a_temporarily_failing_stop_is_retried_until_it_succeeds(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    service.add_fault("stop", "reply", status=500, body="on fire", times=3)
    pytester.makepyfile(ONE)

    result = pytester.runpytest()

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["devices: 1 created, 1 stopped (confirmed); *"])
    assert result.ret == pytest.ExitCode.OK
    assert service.statuses() == ["stopped"]


def test_a_permanently_failing_stop_is_reported_and_fails_the_run(
    pytester: pytest.Pytester, service: FaultyService, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.add_fault("stop", "reply", status=500, body="on fire", times=1000)
    monkeypatch.setenv("DEVICE_STOP_TIMEOUT_SECONDS", "0.2")
    pytester.makepyfile(ONE)

    result = pytester.runpytest()

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        [
            "devices: 1 created, 0 stopped (confirmed); *",
            "*: NOT CONFIRMED AS STOPPED: stop: *on fire; * 35 more minutes",
            "    http://127.0.0.1:*/sessions/*",
            "    pytest-device stop *",
        ]
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    (session,) = service.sessions()
    service.reset()
    # The reaper goes on after the run.
    assert eventually(lambda: ("stop", 200) in service.requests(session["id"]))


def test_the_session_of_a_failed_test_is_kept_if_requested(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(ONE + "    assert 0\n", test_good=ONE)

    result = pytester.runpytest("--device-keep-on-failure")

    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "devices: 2 created, 1 stopped (confirmed), 1 kept; *",
            "android agent-device: kept for up to 35 minutes",
            "    http://127.0.0.1:*/sessions/*",
            "    pytest-device stop *",
        ]
    )
    assert sorted(service.statuses()) == ["in-progress", "stopped"]


def test_a_refused_stop_does_not_fail_the_test_and_is_retried_in_the_background(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    service.add_fault("stop", "reply", status=403, body="not yours")
    pytester.makepyfile(ONE)

    result = pytester.runpytest()

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        [
            "*android agent-device: not stopped yet, still trying: stop: *not yours",
            "devices: 1 created, 1 stopped (confirmed); *",
        ]
    )
    assert result.ret == pytest.ExitCode.OK
    assert service.statuses() == ["stopped"]


@pytest.mark.nightly
@pytest.mark.parametrize("status", [408, 504])
def test_a_create_call_that_failed_at_a_gateway_is_reported_as_unknown(
    pytester: pytest.Pytester, service: FaultyService, status: int
) -> None:
    service.add_fault("create", "reply", status=status, carried_out=True)
    pytester.makepyfile(ONE)

    pytester.runpytest().stdout.fnmatch_lines(
        ["devices: 0 created, 0 stopped (confirmed), 1 unknown; *"]
    )


@pytest.mark.nightly
def test_the_coordinator_stops_the_session_of_a_dead_worker(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(ONE + "    import os\n    os._exit(3)\n")

    result = pytester.runpytest("-n1", "--max-worker-restart=0")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["devices: 1 created, 1 stopped (confirmed); *"])
    assert all_stopped(service, 1)


def test_a_fixture_that_skips_the_test_runs_before_its_device(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.fixture(autouse=True)
        def not_today(): pytest.skip("not today")

        @pytest.mark.device(platform="android")
        def test_driven(): pass
        """
    )

    pytester.runpytest().assert_outcomes(skipped=1)

    assert service.sessions() == []


@pytest.mark.nightly
def test_transport_errors_during_waits_and_stops_are_tolerated(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    service.add_fault("get", "lose-answer", times=2)
    service.add_fault("stop", "reset-request", times=2)
    pytester.makepyfile(ONE)

    pytester.runpytest().assert_outcomes(passed=1)

    assert all_stopped(service, 1)


def test_unknown_fields_are_kept(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    service.add_fault("get", "change", fields={"region": "eu-1"}, times=None)
    pytester.makepyfile(
        ONE + "    assert device_session.model_extra == {'region': 'eu-1'}\n"
    )

    pytester.runpytest().assert_outcomes(passed=1)


def test_a_device_with_a_type_and_platform_that_the_document_lacks_can_be_used(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    words = {"type": "hologram", "platform": "hologram"}
    for operation in ("create", "get"):
        service.add_fault(operation, "change", fields=words, times=None)
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.device(platform="android")
        def test_it(device_agent_device, device_environment):
            assert device_environment["AGENT_DEVICE_PLATFORM"] == "android"
        """
    )

    pytester.runpytest().assert_outcomes(passed=1)


@pytest.mark.nightly
def test_a_session_that_expires_during_its_test_stops_without_an_error(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    service.add_fault("stop", "expire")
    pytester.makepyfile(ONE)

    pytester.runpytest().assert_outcomes(passed=1)

    assert all_stopped(service, 1)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("number", "distributed"),
    [
        (signal.SIGINT, []),
        (signal.SIGTERM, []),
        (signal.SIGHUP, []),
        (signal.SIGINT, ["-n1"]),
        (signal.SIGTERM, ["-n1"]),
    ],
)
def test_a_signal_ends_the_run_gracefully(
    pytester: pytest.Pytester,
    service: FaultyService,
    number: signal.Signals,
    distributed: list[str],
) -> None:
    started = pytester.path / "started"
    # Not one long sleep: Python handles a signal that arrives just before the system call only after it.
    sleeps = "    import time\n    for _ in range(600): time.sleep(0.1)\n"
    pytester.makepyfile(f"{ONE}    open({str(started)!r}, 'w').close()\n{sleeps}")
    command = [sys.executable, "-m", "pytest", *distributed]
    run = subprocess.Popen(
        command, cwd=pytester.path, stdout=subprocess.PIPE, text=True
    )

    assert eventually(started.exists)
    run.send_signal(number)
    output, _ = run.communicate(timeout=60)

    assert run.returncode == (
        pytest.ExitCode.INTERRUPTED if number is signal.SIGINT else 128 + number
    )
    assert eventually(lambda: all_stopped(service, 1))
    assert "1 created, 1 stopped (confirmed)" in output


@pytest.mark.parametrize(
    "number",
    [pytest.param(signal.SIGINT, marks=pytest.mark.nightly), signal.SIGTERM],
)
def test_a_signal_after_the_last_test_loses_no_report(
    pytester: pytest.Pytester,
    service: FaultyService,
    monkeypatch: pytest.MonkeyPatch,
    number: signal.Signals,
) -> None:
    monkeypatch.setenv("DEVICE_SHARE", "run")
    service.add_fault("stop", "delay", seconds=3600)
    failing = f"{ONE}    assert False\n"
    # The second test needs the device that the first one leaves.
    pytester.makepyfile(failing, test_zeta=failing)
    run = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-x"],
        cwd=pytester.path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )

    assert eventually(lambda: ("stop", None) in service.requests())
    run.send_signal(number)
    service.remove_faults()
    output, _ = run.communicate(timeout=60)

    assert run.returncode == (
        pytest.ExitCode.TESTS_FAILED if number is signal.SIGINT else 128 + number
    )
    assert "KeyboardInterrupt" not in output
    assert "1 created, 1 stopped (confirmed)" in output
    assert "= 1 failed in " in output


def _run_with_a_session_that_is_not_stopped(
    pytester: pytest.Pytester,
    service: FaultyService,
    monkeypatch: pytest.MonkeyPatch,
    *options: str,
) -> subprocess.Popen[str]:
    """Start a run that at its end waits for a stop that the service refuses, for five minutes at the most."""
    monkeypatch.setenv("DEVICE_STOP_TIMEOUT_SECONDS", "300")
    service.add_fault("stop", "reply", status=400, body="{}", times=None)
    pytester.makepyfile(ONE)
    return subprocess.Popen(
        [sys.executable, "-m", "pytest", *options],
        cwd=pytester.path,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_a_signal_skips_the_wait_for_unfinished_stops(
    pytester: pytest.Pytester,
    service: FaultyService,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = _run_with_a_session_that_is_not_stopped(pytester, service, monkeypatch)
    assert run.stdout

    assert any("waiting up to 300 s for 1 session" in line for line in run.stdout)
    run.send_signal(signal.SIGINT)
    output, _ = run.communicate(timeout=60)

    assert run.returncode == pytest.ExitCode.TESTS_FAILED
    assert "1 created, 0 stopped" in output
    (session,) = service.sessions()
    service.reset()
    assert eventually(lambda: ("stop", 200) in service.requests(session["id"]))


def test_without_a_reaper_a_signal_skips_no_stop(
    pytester: pytest.Pytester,
    service: FaultyService,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = _run_with_a_session_that_is_not_stopped(
        pytester, service, monkeypatch, "--device-no-reaper"
    )
    assert run.stdout

    assert any(line.endswith("1 session to stop\n") for line in run.stdout)
    run.send_signal(signal.SIGINT)
    refused = service.requests().count(("stop", 400))
    assert eventually(lambda: service.requests().count(("stop", 400)) > refused)
    service.reset()
    output, _ = run.communicate(timeout=120)

    assert run.returncode == pytest.ExitCode.OK
    assert "1 created, 1 stopped (confirmed)" in output


def test_the_receipt_counts_the_sessions_of_attempts_whose_reports_a_suite_discards(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makeconftest(
        """
        from _pytest.runner import runtestprotocol

        def pytest_runtest_protocol(item, nextitem):
            runtestprotocol(item, nextitem=nextitem, log=False)
            runtestprotocol(item, nextitem=nextitem)
            if nextitem is None:
                runtestprotocol(item, nextitem=None, log=False)
            return True
        """
    )
    pytester.makepyfile(ONE)

    result = pytester.runpytest()

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["devices: 3 created, 3 stopped (confirmed)*"])
    assert all_stopped(service, 3)


@pytest.mark.parametrize(
    ("number", "distributed"),
    [
        (signal.SIGINT, []),
        pytest.param(signal.SIGTERM, [], marks=pytest.mark.nightly),
        (signal.SIGTERM, ["-n1"]),
    ],
)
def test_a_signal_while_pytest_finishes_the_run_loses_no_summary(
    pytester: pytest.Pytester,
    service: FaultyService,
    number: signal.Signals,
    distributed: list[str],
) -> None:
    pytester.makeconftest(
        f"""
        import os

        def pytest_sessionfinish(session):
            if not hasattr(session.config, "workerinput"):
                os.kill(os.getpid(), {int(number)})
        """
    )
    pytester.makepyfile(ONE)

    result = pytester.runpytest_subprocess(*distributed)

    assert result.ret == (
        pytest.ExitCode.INTERRUPTED if number is signal.SIGINT else 128 + number
    )
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["devices: 1 created, 1 stopped (confirmed)*"])
    assert all_stopped(service, 1)


def test_a_signal_swallowed_by_a_test_ends_the_run_after_it(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(
        ONE
        + "    import os, signal\n    try: os.kill(os.getpid(), signal.SIGTERM)\n    except BaseException: pass\n",
        test_zeta=ONE,
    )

    result = pytester.runpytest_subprocess()

    assert result.ret == 128 + signal.SIGTERM
    assert [operation for operation, _ in service.requests()].count("create") == 1
    (blob,) = blobs(pytester.path / "device-report")
    (end,) = of_method(blob, "onEnd")
    assert end["result"]["status"] == "interrupted"


@pytest.mark.nightly
@pytest.mark.usefixtures("service")
def test_runs_with_the_same_name_do_not_collide(
    pytester: pytest.Pytester, tmp_path: Path
) -> None:
    pytester.makepyfile(
        ONE
        + f"    from pathlib import Path\n    print(*Path({str(tmp_path)!r}).glob('state/runs/*'))\n"
    )

    results = [
        pytester.runpytest("-n1", "-rA", "--testrunuid=a/build") for _ in range(2)
    ]

    first, second = (
        {line for line in result.outlines if "/state/runs/" in line}
        for result in results
    )
    # One directory for the whole run.
    assert [len(line.split()) for line in (*first, *second)] == [
        1,
        1,
    ]
    assert first != second


@pytest.mark.nightly
def test_a_test_that_swallows_every_exception_does_not_swallow_the_signal(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(
        ONE
        + "    import os, signal, time\n    try: os.kill(os.getpid(), signal.SIGTERM)\n    except Exception: pass\n"
    )

    result = pytester.runpytest_subprocess()

    assert result.ret == 128 + signal.SIGTERM
    assert all_stopped(service, 1)


@pytest.mark.nightly
def test_an_ignored_signal_stays_ignored(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makeconftest(
        "import signal\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
    )
    pytester.makepyfile(
        ONE + "    import os, signal\n    os.kill(os.getpid(), signal.SIGHUP)\n"
    )

    pytester.runpytest_subprocess().assert_outcomes(passed=1)

    assert all_stopped(service, 1)


@pytest.mark.nightly
def test_an_interrupt_while_waiting_stops_the_session(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    service.add_fault("boot", "delay", seconds=3600)
    pytester.makepyfile(ONE)
    run = subprocess.Popen(
        [sys.executable, "-m", "pytest"],
        cwd=pytester.path,
        stdout=subprocess.PIPE,
        text=True,
    )

    assert eventually(lambda: service.statuses() == ["new"])
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=60)

    assert all_stopped(service, 1)


@pytest.mark.skipif(sys.platform == "win32", reason="a signal to a thread")
def test_a_worker_is_interrupted_in_its_main_thread(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    # A signal to its process could go to another thread, and a sleeping main thread would sleep on.
    started, noticed = pytester.path / "started", pytester.path / "noticed"
    pytester.makepyfile(
        f"""
        import signal, pathlib, pytest, time

        @pytest.mark.device(platform="android")
        def test_it(device_session):
            signal.pthread_sigmask(signal.SIG_BLOCK, {{signal.SIGTERM}})
            pathlib.Path({str(started)!r}).touch()
            for _ in range(300):
                if signal.SIGTERM in signal.sigpending():  # else another thread has received it
                    pathlib.Path({str(noticed)!r}).touch()
                    break
                time.sleep(0.1)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {{signal.SIGTERM}})
        """
    )
    run = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-n1"],
        cwd=pytester.path,
        stdout=subprocess.PIPE,
        text=True,
    )

    assert eventually(started.exists)
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=60)

    assert noticed.exists()
    assert all_stopped(service, 1)


@pytest.mark.skipif(
    sys.platform == "win32", reason="signals don't interrupt such a wait on Windows"
)
@pytest.mark.parametrize(
    ("operation", "is_waiting"),
    [
        pytest.param(
            "create", lambda requests: ("create", None) in requests, id="create"
        ),
        pytest.param(
            "boot",
            lambda requests: any(
                operation == "create" and status for operation, status in requests
            ),
            id="boot",
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_a_signal_that_another_thread_received_interrupts_the_wait_for_a_device(
    pytester: pytest.Pytester,
    service: FaultyService,
    monkeypatch: pytest.MonkeyPatch,
    operation: str,
    is_waiting: Callable[[list[tuple[str, int | None]]], bool],
) -> None:
    monkeypatch.setenv("DEVICE_POLL_INTERVAL_SECONDS", "150")
    service.add_fault(operation, "delay", seconds=3600)
    pytester.makeconftest(
        """
        import signal, threading

        threading.Thread(target=threading.Event().wait, daemon=True).start()  # receives what the main thread blocks
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        """
    )
    pytester.makepyfile(ONE)
    run = subprocess.Popen(
        [sys.executable, "-m", "pytest"],
        cwd=pytester.path,
        stdout=subprocess.PIPE,
        text=True,
    )

    assert eventually(lambda: is_waiting(service.requests()))
    run.send_signal(signal.SIGINT)
    # Long before the next poll, and the response.
    assert eventually(
        lambda: (
            run.poll() is not None
            or "stop" in [asked for asked, _ in service.requests()]
        )
    )
    service.remove_faults()
    run.communicate(timeout=60)

    assert eventually(lambda: all_stopped(service, 1))


SECRETIVE = """
import logging, os, pytest

@pytest.mark.device(platform="android", type="agent-device")
def test_secretive(device_session):
    config = device_session.remote_config
    token = config.agent_device_remote_session_token.get_secret_value()
    access = os.environ["DEVICE_TOKEN"]
    print(token, access, config.agent_device_remote_session_url)
    logging.getLogger().error("Authorization: Bearer %s", access)
    details = {"token": token, "url": config.agent_device_remote_session_url, "Authorization": f"Bearer {access}"}
    assert details == {}, f"{token} {access}"
"""


@pytest.mark.nightly
@pytest.mark.parametrize("distributed", [[], ["-n1"]])
def test_no_output_of_a_failing_run_contains_a_secret(
    pytester: pytest.Pytester, service: FaultyService, distributed: list[str]
) -> None:
    pytester.makepyfile(SECRETIVE)

    result = pytester.runpytest_subprocess(
        "-vv",
        "--showlocals",
        "--full-trace",
        "--junitxml=report.xml",
        "-o",
        "junit_logging=all",
        *distributed,
    )

    result.assert_outcomes(failed=1)
    (session,) = service.sessions()
    outputs = [result.stdout.str(), result.stderr.str(), Path("report.xml").read_text()]
    assert "***" in outputs[0]
    for secret in (
        service.token,
        f"simulated-agent-device-{session['id']}",
        f"/simulated/{session['id']}",
    ):
        assert [secret in output for output in outputs] == [False] * 3


def test_report_sections_of_other_plugins_and_tests_contain_no_secret(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makeconftest(
        """
        import pathlib, pytest

        @pytest.hookimpl(wrapper=True)
        def pytest_runtest_makereport(item, call):
            report = yield
            with open("theirs.txt", "a") as file:
                file.write(report.longreprtext)
            return report
        """
    )
    pytester.makepyfile(
        """
        import pytest
        pytestmark = pytest.mark.device(platform="android")

        def secret(session): return session.remote_config.agent_device_remote_session_token.get_secret_value()

        def test_compares(device_session): assert secret(device_session) == "x"
        def test_records(device_session, record_property): record_property("controller", secret(device_session))
        def test_expects(device_session): pytest.xfail(secret(device_session))
        """
    )

    result = pytester.runpytest(
        "-rx", "--showlocals", "--junitxml=report.xml", "-o", "junit_family=xunit1"
    )

    result.assert_outcomes(failed=1, passed=1, xfailed=1)
    outputs = [
        result.stdout.str(),
        Path("report.xml").read_text(),
        Path("theirs.txt").read_text(),
    ]
    assert all_stopped(service, 3)
    # How the simulated tokens begin: not even so much of one may be left where pytest shortens values.
    assert ["simulated-agent" in output for output in outputs] == [False] * 3


def test_secrets_in_a_repr_are_masked() -> None:
    from pytest_device.sessions.client import DeviceClient

    with DeviceClient("http://127.0.0.1:9", "open-sesame-open") as client:
        assert "open-sesame" not in repr(vars(client))


@pytest.mark.nightly
def test_a_test_fails_normally_without_the_terminal_plugin(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(
        "import pytest\n@pytest.mark.device(platform='ios')\ndef test_fails(device_session): assert False\n"
    )

    result = pytester.runpytest("-p", "no:terminal")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert service.statuses() == ["stopped"]
