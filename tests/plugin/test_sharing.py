"""How far a session is shared, in which order tests run, and when a session is replaced."""

from collections import Counter
from datetime import UTC, datetime
from itertools import pairwise

import pytest

from pytest_device import DeviceClient, Session
from pytest_device.testing import FaultyService
from tests.plugin.runs import ON_A_WORKER

CONFTEST = """
import pytest

@pytest.hookimpl(trylast=True)
def pytest_runtest_logreport(report):
    if report.when == "teardown":
        with open("order.txt", "a") as file: file.write(report.nodeid.partition("::")[2] + "\\n")
"""


@pytest.fixture
def sharing(
    service: FaultyService, monkeypatch: pytest.MonkeyPatch, pytester: pytest.Pytester
) -> FaultyService:
    monkeypatch.delenv("DEVICE_SHARE")
    pytester.makeconftest(CONFTEST)
    return service


def order(pytester: pytest.Pytester) -> list[str]:
    return (pytester.path / "order.txt").read_text().splitlines()


def reported(service: FaultyService) -> list[Session]:
    """Return what the service reports of each session that was created."""
    with DeviceClient(service.url, service.token) as client:
        return [client.get(session["id"]) for session in service.sessions()]


def one_after_the_other(sessions: list[Session]) -> bool:
    spans = sorted(
        (session.created_at, session.finished_at)
        for session in sessions
        if session.created_at and session.finished_at
    )
    assert len(spans) == len(sessions)
    return all(later >= end for (_, end), (later, _) in pairwise(spans))


NEVER = datetime.max.replace(tzinfo=UTC)


def at_most_one_ahead(sessions: list[Session], *, stopping: int = 0) -> bool:
    """Return whether each session was created after the last but one ended, or while ``stopping`` more were ending."""
    spans = sorted(
        (session.created_at, session.finished_at)
        for session in sessions
        if session.created_at and session.finished_at
    )
    assert len(spans) == len(sessions)
    return all(
        later >= end
        for (_, end), (later, _) in zip(spans, spans[2 + stopping :], strict=False)
    )


def names(service: FaultyService) -> list[str]:
    return [session["name"] for session in service.sessions()]


TWO_PLATFORMS = """
import pytest

@pytest.mark.device(platform="android")
def test_one(device_session): pass

def test_plain_after_one(): pass

@pytest.mark.device(platform="ios")
def test_two(device_session): pass

@pytest.mark.device(platform="android")
def test_three(device_session): pass
"""


def test_equal_tests_of_a_run_share_a_session_named_after_the_run(
    pytester: pytest.Pytester, sharing: FaultyService
) -> None:
    pytester.makepyfile(test_a=TWO_PLATFORMS, test_b=TWO_PLATFORMS)

    result = pytester.runpytest()

    result.assert_outcomes(passed=8)
    result.stdout.fnmatch_lines(["devices: 2 created, 2 stopped (confirmed); *"])
    assert all(name.startswith(f"{pytester.path.name} · ") for name in names(sharing))


def test_tests_that_share_run_together_and_others_while_their_device_boots(
    pytester: pytest.Pytester, sharing: FaultyService
) -> None:
    pytester.makepyfile(test_a=TWO_PLATFORMS)

    pytester.runpytest().assert_outcomes(passed=4)

    assert order(pytester) == [
        "test_plain_after_one",
        "test_one",
        "test_three",
        "test_two",
    ]
    assert at_most_one_ahead(reported(sharing))


def test_reordering_can_be_disabled(
    pytester: pytest.Pytester, sharing: FaultyService
) -> None:
    pytester.makepyfile(test_a=TWO_PLATFORMS)

    pytester.runpytest("--device-no-reorder").assert_outcomes(passed=4)

    assert order(pytester) == [
        "test_one",
        "test_plain_after_one",
        "test_two",
        "test_three",
    ]
    assert len(names(sharing)) == 2


def test_an_order_set_by_another_plugin_is_kept(
    pytester: pytest.Pytester, sharing: FaultyService
) -> None:
    pytester.makeconftest(
        CONFTEST + "def pytest_collection_modifyitems(items): items.reverse()\n"
    )
    pytester.makepyfile(test_a=TWO_PLATFORMS)

    pytester.runpytest().assert_outcomes(passed=4)

    assert order(pytester) == [
        "test_three",
        "test_two",
        "test_plain_after_one",
        "test_one",
    ]
    assert len(names(sharing)) == 2


BREADTHS = """
import pytest
pytestmark = pytest.mark.device(platform="android", share={share!r})

def test_one(device_session): pass
def test_two(device_session): pass

class TestFirst:
    def test_three(self, device_session): pass
    def test_four(self, device_session): pass

class TestSecond:
    def test_five(self, device_session): pass
"""


SESSIONS = {"run": 1, "module": 2, "class": 8, "test": 10}


@pytest.mark.parametrize(
    ("share", "count"),
    [
        pytest.param(*case, marks=() if "class" in case else pytest.mark.nightly)
        for case in SESSIONS.items()
    ],
)
def test_a_session_is_shared_in_the_markers_scope(
    pytester: pytest.Pytester, sharing: FaultyService, share: str, count: int
) -> None:
    suite = BREADTHS.format(share=share)
    pytester.makepyfile(test_a=suite, test_b=suite)

    result = pytester.runpytest()

    result.assert_outcomes(passed=10)
    result.stdout.fnmatch_lines(
        [f"devices: {count} created, {count} stopped (confirmed); *"]
    )
    assert sharing.statuses() == ["stopped"] * count
    assert at_most_one_ahead(reported(sharing))


def test_a_worker_shares_a_session_in_the_markers_scope(
    pytester: pytest.Pytester, sharing: FaultyService
) -> None:
    suites = {
        share: BREADTHS.format(share=share).replace("share=", f"name={share!r}, share=")
        for share in SESSIONS
    }
    pytester.makepyfile(
        **{
            f"test_{share}_{file}": suite
            for share, suite in suites.items()
            for file in "ab"
        }
    )

    result = pytester.runpytest("-n1")

    result.assert_outcomes(passed=40)
    result.stdout.fnmatch_lines(["devices: 21 created, 21 stopped (confirmed); *"])
    assert Counter(name.partition(" · ")[0] for name in names(sharing)) == SESSIONS
    assert sharing.statuses() == ["stopped"] * 21
    for share, count in SESSIONS.items():
        sessions = [
            session
            for session in reported(sharing)
            if str(session.name).startswith(f"{share} · gw0")
        ]
        assert len(sessions) == count
        assert at_most_one_ahead(sessions, stopping=1)


def test_the_name_contains_the_sharing_scope(
    pytester: pytest.Pytester, sharing: FaultyService
) -> None:
    pytester.makepyfile(
        test_a=BREADTHS.format(share="module"), test_b=BREADTHS.format(share="class")
    )

    pytester.runpytest("--device-share=test").assert_outcomes(passed=10)

    parts = [name.split(" · ")[:2] for name in names(sharing)]
    assert parts[0] == ["test_a.py", pytester.path.name]
    assert ["TestFirst", "test_b.py"] in parts


@pytest.mark.parametrize(
    "options",
    [
        *(pytest.param(case, marks=pytest.mark.nightly) for case in ([], ["-n2"])),
        ["-n2", "--dist=each"],
    ],
)
def test_each_session_of_a_run_has_a_name_of_its_own(
    pytester: pytest.Pytester,
    sharing: FaultyService,
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
) -> None:
    monkeypatch.delenv("DEVICE_START_ATTEMPTS")
    sharing.add_fault("boot", "fail", reason="no booted device")
    pytester.makepyfile(
        f"""
        import pytest
        pytestmark = pytest.mark.device(platform="android", share="test")

        @pytest.mark.device(name="{"checkout " * 28}")
        @pytest.mark.parametrize("n", range(4))
        def test_it(device_session, n): pass
        """
    )

    pytester.runpytest(*options)

    created = names(sharing)
    assert len(created) == len(set(created)) == (9 if "--dist=each" in options else 5)
    assert max(map(len, created)) <= 255


@pytest.mark.nightly
def test_lost_creates_are_reported_with_different_names(
    pytester: pytest.Pytester, sharing: FaultyService
) -> None:
    sharing.add_fault("create", "lose-answer", times=2)
    pytester.makepyfile(TWO_PLATFORMS)

    result = pytester.runpytest("-rN")

    summary = result.outlines[result.outlines.index(f"{' devices ':=^80}") :]
    lost = [line for line in summary if "a session named" in line]
    assert [line.partition("a session named ")[2] for line in lost] == [
        f"{name!r} may be running for up to 35 minutes" for name in names(sharing)[:2]
    ]
    assert len(set(lost)) == 2


@pytest.mark.nightly
def test_a_setting_can_set_the_scope(
    pytester: pytest.Pytester, sharing: FaultyService
) -> None:
    pytester.makeini("[pytest]\ndevice_share = test\n")
    pytester.makepyfile(test_a=TWO_PLATFORMS)

    pytester.runpytest().assert_outcomes(passed=4)

    assert len(names(sharing)) == 3


def test_a_failing_test_leaves_the_device_to_the_next(
    pytester: pytest.Pytester, sharing: FaultyService
) -> None:
    pytester.makepyfile(
        TWO_PLATFORMS.replace(
            "def test_one(device_session): pass", "def test_one(device_session): 1/0"
        )
    )

    pytester.runpytest().assert_outcomes(passed=3, failed=1)

    assert len(names(sharing)) == 2


def test_each_test_reports_the_page_of_its_session(
    pytester: pytest.Pytester, sharing: FaultyService
) -> None:
    pytester.makepyfile(TWO_PLATFORMS)

    pytester.runpytest("--junitxml=report.xml")

    android, ios = reported(sharing)
    report = (pytester.path / "report.xml").read_text()
    assert report.count(f'name="device_session_url" value="{android.url}"') == 2
    assert report.count(f'name="device_session" value="{ios.id}"') == 1


STOPS_IT = """
import os, httpx, pytest
pytestmark = pytest.mark.device(platform="android")
seen = []

def test_one(device_session): seen.append(device_session.id)

def test_two(device_session):
    assert device_session.id in seen
    address = f"{os.environ['DEVICE_URL']}/v2/device-run-sessions/{device_session.id}/stop"
    httpx.post(address, headers={"Authorization": f"Bearer {os.environ['DEVICE_TOKEN']}"}).raise_for_status()
    BODY

def test_three(device_session): assert device_session.id not in seen
"""


def test_a_lost_session_is_replaced_for_the_next_test(
    pytester: pytest.Pytester, sharing: FaultyService
) -> None:
    pytester.makepyfile(STOPS_IT.replace("BODY", "pass"))

    pytester.runpytest().assert_outcomes(passed=3)

    assert sharing.statuses() == ["stopped", "stopped"]


@pytest.mark.parametrize("options", ON_A_WORKER)
def test_the_affected_test_is_an_infrastructure_error_and_not_a_failure(
    pytester: pytest.Pytester, sharing: FaultyService, options: list[str]
) -> None:
    pytester.makepyfile(test_it=STOPS_IT.replace("BODY", "assert 'the app' == 'there'"))

    result = pytester.runpytest("--junitxml=report.xml", *options)

    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(
        [
            "*ERROR at call of test_two*",
            "infrastructure: the session is gone: it was stopped after 0.0 of at most 30 minutes",
            "*Error in the test*",
            "*assert 'the app' == 'there'*",
            "ERROR test_it.py::test_two - infrastructure: the session is gone*",
        ]
    )
    assert len(names(sharing)) == 2


@pytest.mark.nightly
def test_a_test_that_fails_on_a_good_device_stays_a_failure(
    pytester: pytest.Pytester, sharing: FaultyService
) -> None:
    pytester.makepyfile(ONE_FAILS)

    result = pytester.runpytest()

    result.assert_outcomes(failed=1)
    result.stdout.no_fnmatch_line("*infrastructure*")
    assert sharing.statuses() == ["stopped"]


ONE_FAILS = """
import pytest

@pytest.mark.device(platform="android")
def test_driven(device_session): assert False
"""


def test_a_failed_boot_is_retried_by_default_and_reported(
    pytester: pytest.Pytester, sharing: FaultyService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DEVICE_START_ATTEMPTS")
    sharing.add_fault("boot", "fail", times=1, reason="no booted device")
    pytester.makepyfile(TWO_PLATFORMS)

    result = pytester.runpytest()

    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(
        ["  device android agent-device: *failed to start*", "devices: 3 created, *"]
    )
    assert sorted(sharing.statuses()) == ["errored", "stopped", "stopped"]


@pytest.mark.parametrize(
    "teardown",
    [
        "pytest.fail('teardown')",
        *(
            pytest.param(case, marks=pytest.mark.nightly)
            for case in ("pytest.skip('teardown')", "raise ValueError")
        ),
    ],
)
def test_a_session_is_released_however_a_teardown_ends(
    pytester: pytest.Pytester, sharing: FaultyService, teardown: str
) -> None:
    pytester.makepyfile(
        f"""
        import pytest
        pytestmark = pytest.mark.device(platform="android", share="test")

        @pytest.fixture
        def theirs():
            yield
            {teardown}

        def test_one(device_session, theirs): pass
        def test_two(device_session): pass
        """
    )

    pytester.runpytest()

    assert sharing.statuses() == ["stopped", "stopped"]
    assert one_after_the_other(reported(sharing))


@pytest.mark.parametrize("share", ["run", "test"])
def test_a_fixture_completes_the_requests_of_a_shared_device_in_one_way(
    pytester: pytest.Pytester, sharing: FaultyService, share: str
) -> None:
    pytester.makepyfile(
        f"""
        import pytest

        @pytest.fixture
        def device_request_defaults(request): return {{"name": request.node.name}}

        @pytest.mark.parametrize("n", range(3))
        @pytest.mark.device(platform="android", share="{share}")
        def test_it(device_session, n): pass
        """
    )

    result = pytester.runpytest()

    if share == "test":
        result.assert_outcomes(passed=3)
        assert names(sharing) == ["test_it[0]", "test_it[1]", "test_it[2]"]
    else:
        assert result.parseoutcomes()["passed"] == 1
        result.stdout.fnmatch_lines(
            [
                "config: device_request_defaults returned {'name': 'test_it[[]1[]]'}, but something else *"
            ]
        )
        assert names(sharing) == ["test_it[0]"]


def test_no_more_equal_sessions_are_held_than_a_later_test_needs_at_once(
    pytester: pytest.Pytester, sharing: FaultyService
) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.device("a", platform="ios")
        @pytest.mark.device("b", platform="ios")
        def test_two(device_sessions): pass

        @pytest.mark.device(platform="ios")
        def test_one(device_session, device_client):
            assert len(seen) == 0
            seen.append(device_session.id)

        @pytest.mark.device(platform="ios")
        def test_last(device_session): assert seen == [device_session.id]

        seen = []
        """
    )

    pytester.runpytest().assert_outcomes(passed=3)

    first, second = sorted(
        reported(sharing),
        key=lambda session: session.finished_at or session.created_at or NEVER,
    )
    assert first.finished_at
    assert second.finished_at
    assert (second.finished_at - first.finished_at).total_seconds() > 0
    assert len(names(sharing)) == 2


def test_a_session_ends_if_its_last_test_is_skipped(
    pytester: pytest.Pytester, sharing: FaultyService
) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.fixture
        def not_today(): pytest.skip("not today")

        @pytest.mark.device(platform="android", share="run")
        def test_one(device_session): pass

        @pytest.mark.device(platform="android", share="run")
        def test_two(not_today, device_session): pass

        def test_plain(): pass
        """
    )

    result = pytester.runpytest_subprocess("-v", "--device-no-reorder")

    result.assert_outcomes(passed=2, skipped=1)
    result.stdout.fnmatch_lines(
        ["*test_two*", "*android agent-device: stopped*", "*test_plain*"]
    )
    assert len(sharing.sessions()) == 1


def test_no_session_is_created_for_tests_that_certainly_do_not_run(
    pytester: pytest.Pytester, sharing: FaultyService
) -> None:
    pytester.makepyfile(
        """
        import unittest
        import pytest

        @pytest.mark.device(platform="android", share="run")
        def test_runs(device_session): pass

        @pytest.mark.xfail(run=False)
        @pytest.mark.device(platform="ios", share="run")
        def test_crashes(device_session): pass

        @unittest.skip("not today")
        @pytest.mark.device(platform="ios", share="run")
        def test_skipped(device_session): pass

        @pytest.mark.device(platform="ios", share="run")
        @pytest.mark.usefixtures("device_session")
        class TestMethod(unittest.TestCase):
            @unittest.skip("not today")
            def test_method(self): pass

        @unittest.skip("not today")
        @pytest.mark.device(platform="ios", share="run")
        @pytest.mark.usefixtures("device_session")
        class TestClass(unittest.TestCase):
            def test_class(self): pass
        """
    )

    result = pytester.runpytest("-rs")

    result.assert_outcomes(passed=1, xfailed=1, skipped=3)
    result.stdout.fnmatch_lines(["SKIPPED*not today"])
    assert len(sharing.sessions()) == 1


def test_pytests_own_reordering_elsewhere_does_not_separate_tests_that_share(
    pytester: pytest.Pytester, sharing: FaultyService
) -> None:
    pytester.makepyfile(
        test_a=TWO_PLATFORMS,
        test_z="""
        import pytest

        @pytest.fixture(scope="module", params=[1, 2])
        def theirs(request): return request.param

        def test_x(theirs): pass
        def test_y(theirs): pass
        """,
    )

    pytester.runpytest().assert_outcomes(passed=8)

    assert at_most_one_ahead(reported(sharing))


@pytest.mark.parametrize(
    "body",
    [
        "with device_lease(platform='ios'): pass",
        pytest.param(
            "request.getfixturevalue('device_session')", marks=pytest.mark.nightly
        ),
    ],
)
def test_a_failure_of_a_device_requested_at_run_time_is_not_the_tests_fault(
    pytester: pytest.Pytester, sharing: FaultyService, body: str
) -> None:
    sharing.add_fault("boot", "fail", times=1, reason="no booted device")
    pytester.makepyfile(f"def test_it(request, device_lease):\n    {body}\n")

    result = pytester.runpytest("--device-platform=android")

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["infrastructure: the session failed to start, *"])


def test_an_xfail_with_a_false_condition_is_handled_like_any_other_failure(
    pytester: pytest.Pytester, sharing: FaultyService
) -> None:
    marked = STOPS_IT.replace("BODY", "assert False").replace(
        "def test_two", "@pytest.mark.xfail(CONDITION)\ndef test_two"
    )
    pytester.makepyfile(marked.replace("CONDITION", "False, reason='elsewhere'"))
    pytester.runpytest().assert_outcomes(passed=2, errors=1)

    pytester.makepyfile(marked.replace("CONDITION", "reason='here'"))
    pytester.runpytest().assert_outcomes(passed=2, xfailed=1)
    assert set(sharing.statuses()) == {"stopped"}


def test_a_lost_session_is_not_kept(
    pytester: pytest.Pytester, sharing: FaultyService
) -> None:
    pytester.makepyfile(STOPS_IT.replace("BODY", "assert False"))

    result = pytester.runpytest("--device-keep-on-failure")

    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["devices: 2 created, 2 stopped (confirmed); *"])
    assert sharing.statuses() == ["stopped", "stopped"]


def test_a_test_does_not_wait_for_a_session_held_by_its_own_fixtures(
    pytester: pytest.Pytester, sharing: FaultyService
) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.fixture(scope="module")
        def phone(device_lease):
            with device_lease(platform="android") as session: yield session

        @pytest.mark.device(platform="ios")
        def test_it(phone, device_session): pass

        def test_wrong(device_lease):
            with device_lease(platform="ios", share="run"): pass
        """
    )

    result = pytester.runpytest("--device-max-sessions=1")

    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines(
        ["config: 2 sessions are needed at once, but --device-max-sessions allows 1: *"]
    )
    result.stdout.fnmatch_lines(
        ["config: device_lease() sessions are never shared: remove share"]
    )
    assert set(sharing.statuses()) == {"stopped"}


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("raise ValueError('nothing saved')", "ValueError"),
        pytest.param(
            "pytest.fail('nothing saved')", "Failed", marks=pytest.mark.nightly
        ),
    ],
)
def test_a_hooks_exception_at_the_end_of_the_run_hides_no_failure(
    pytester: pytest.Pytester, sharing: FaultyService, statement: str, error: str
) -> None:
    pytester.makeconftest(f"import pytest\ndef pytest_device_stopping(): {statement}\n")
    pytester.makepyfile(
        TWO_PLATFORMS.replace(
            "def test_one(device_session): pass", "def test_one(device_session): 1/0"
        )
    )

    result = pytester.runpytest("-x")

    result.stdout.fnmatch_lines(
        [
            "*ZeroDivisionError*",
            f"*at the end of the run: {error}: nothing saved*",
            "*= 1 failed, 1 passed in *",
        ]
    )
    assert sharing.statuses() == ["stopped"]
