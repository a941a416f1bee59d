"""Tests assigned to pytest-xdist's workers by the devices that they need."""

import json
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import NamedTuple

import pytest

from pytest_device.testing import FaultyService

WITH_DEVICE = """
@pytest.mark.device(platform="{name}", share="run")
@pytest.mark.parametrize("n", range({number}))
def test_{name}(device_session, n, note):
    note(device_session)
"""
PLAIN = """
@pytest.mark.parametrize("n", range({number}))
def test_plain(n, note):
    note(None)
"""
CONFTEST = """
import json, os, pytest, time

@pytest.fixture
def note(request, worker_id):
    def written(session):
        line = [worker_id, request.node.name, session and str(session.id), time.time()]
        with open({path!r}, "a") as file:
            file.write(json.dumps(line) + chr(10))
        if "MEET" in os.environ:  # so that no worker takes all tests before another one is there
            deadline = time.monotonic() + 30
            while time.monotonic() < deadline:
                lines = [json.loads(one)[0] for one in open({path!r})]
                if len(set(lines)) >= int(os.environ["MEET"]):
                    return
                time.sleep(0.02)
    return written
"""


class Line(NamedTuple):
    """What a test recorded."""

    worker: str
    test: str
    session: str | None


class Ran(NamedTuple):
    """A finished run that several tests check."""

    result: pytest.RunResult
    notes: list[Line]

    def sessions(self) -> dict[str, set[str]]:
        """Return the workers of each session."""
        found: dict[str, set[str]] = defaultdict(set)
        for worker, _, session in self.notes:
            if session:
                found[session].add(worker)
        return found


class Suite:
    """A suite that records which worker ran which test on which session."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self._path = pytester.path / "notes"
        self.pytester = pytester
        pytester.makeconftest(CONFTEST.format(path=str(self._path)))

    @property
    def module(self) -> str:
        """The file of the tests, as their node ids have it."""
        (path,) = self.pytester.path.glob("test_*.py")
        return path.name

    def make(self, android: int = 0, ios: int = 0, plain: int = 0) -> None:
        parts = [
            (WITH_DEVICE, "android", android),
            (WITH_DEVICE, "ios", ios),
            (PLAIN, "plain", plain),
        ]
        functions = [
            part.format(name=name, number=number)
            for part, name, number in parts
            if number
        ]
        self.pytester.makepyfile("import pytest\n" + "".join(functions))

    def run(self, *options: str) -> pytest.RunResult:
        self._path.unlink(missing_ok=True)
        return self.pytester.runpytest_inprocess(*options)

    def remember(self, seconds: Mapping[str, float]) -> None:
        """Write the durations of an earlier run, by node ID."""
        directory = self.pytester.path / ".pytest_cache/v/device"
        directory.mkdir(parents=True)
        (directory / "test_seconds").write_text(json.dumps(seconds))

    def remember_failure(self, nodeid: str) -> None:
        """Record that only this test failed in an earlier run."""
        directory = self.pytester.path / ".pytest_cache/v/cache"
        directory.mkdir(parents=True)
        (directory / "lastfailed").write_text(json.dumps({nodeid: True}))

    def notes(self) -> list[Line]:
        lines = self._path.read_text().splitlines() if self._path.exists() else []
        return [
            Line(worker, test, session)
            for worker, test, session, _ in map(json.loads, lines)
        ]


@pytest.fixture
def suite(
    pytester: pytest.Pytester, service: FaultyService, monkeypatch: pytest.MonkeyPatch
) -> Suite:
    del service
    monkeypatch.setenv("DEVICE_POLL_INTERVAL_SECONDS", "0.02")
    return Suite(pytester)


Once = Callable[[str, Callable[[], pytest.RunResult]], Ran]


@pytest.fixture(scope="module")
def done() -> dict[str, Ran]:
    return {}


@pytest.fixture
def once(suite: Suite, done: dict[str, Ran]) -> Once:
    """Return a function that runs once and returns the same run to all tests of this module."""

    def ran(name: str, run: Callable[[], pytest.RunResult]) -> Ran:
        if name not in done:
            done[name] = Ran(run(), suite.notes())
        return done[name]

    return ran


def receipt(result: pytest.RunResult) -> str:
    return next(line for line in result.outlines if line.startswith("devices: "))


def assert_all_are_stopped(result: pytest.RunResult) -> None:
    created = int(receipt(result).removeprefix("devices: ").split(" created")[0])
    assert f"{created} stopped (confirmed);" in receipt(result)


@pytest.fixture
def all_kinds(suite: Suite, once: Once) -> Ran:
    """Tests of two platforms and without a device, on two workers."""

    def run() -> pytest.RunResult:
        suite.make(android=6, ios=6, plain=6)
        return suite.run("-n2")

    return once("all kinds", run)


def test_a_worker_stays_with_its_device(all_kinds: Ran) -> None:
    all_kinds.result.assert_outcomes(passed=18)
    assert all(len(workers) == 1 for workers in all_kinds.sessions().values())
    # For who is done first may take over a part of the other.
    assert len(all_kinds.sessions()) <= 3


def test_tests_without_a_device_run_while_one_boots(all_kinds: Ran) -> None:
    first = {
        worker: test.partition("[")[0] for worker, test, _ in reversed(all_kinds.notes)
    }

    assert first == {"gw0": "test_plain", "gw1": "test_plain"}


@pytest.fixture
def one_kind(suite: Suite, once: Once, monkeypatch: pytest.MonkeyPatch) -> Ran:
    """Tests of one platform, on two workers, of which one test has taken longer than the others."""

    def run() -> pytest.RunResult:
        monkeypatch.setenv("MEET", "2")
        suite.make(android=12)
        nodeid = f"{suite.module}::test_android[{{}}]"
        # So long that a second device is worth its boot: else its worker has no test yet, and the first waits for it.
        suite.remember({nodeid.format(n): 20.0 + 200 * (n == 4) for n in range(12)})
        return suite.run("-n2")

    return once("one kind", run)


def test_tests_of_one_kind_are_spread_over_the_workers(one_kind: Ran) -> None:
    one_kind.result.assert_outcomes(passed=12)
    assert sorted(map(len, one_kind.sessions().values())) == [1, 1]


def test_the_longest_tests_are_assigned_first_when_their_times_are_known(
    one_kind: Ran,
) -> None:
    first = {worker: test for worker, test, _ in reversed(one_kind.notes)}
    assert "test_android[4]" in first.values()


@pytest.fixture
def without_devices(suite: Suite, once: Once) -> Ran:
    """A part of a suite without devices, on two workers."""

    def run() -> pytest.RunResult:
        suite.make(plain=12)
        return suite.run("-n2", "-q", "--device-shard=1/2")

    return once("without devices", run)


def test_a_run_without_devices_is_distributed_by_xdist_itself(
    without_devices: Ran,
) -> None:
    without_devices.result.assert_outcomes(passed=6)
    assert {line.worker for line in without_devices.notes} == {"gw0", "gw1"}


def test_the_shard_is_reported_once(without_devices: Ran) -> None:
    reported = [
        line
        for line in without_devices.result.outlines
        if line.startswith("device shard 1/2: 6 of 12 tests, ")
    ]
    assert len(reported) == 1


@pytest.mark.nightly
def test_no_worker_waits_for_a_device_that_the_limit_does_not_allow(
    suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEVICE_WAIT_TIMEOUT_SECONDS", "20")
    suite.make(android=5, ios=5, plain=5)

    result = suite.run("-n2", "-v", "--device-max-sessions=1")

    result.assert_outcomes(passed=15)
    result.stdout.no_fnmatch_line("*queued for * s*")


@pytest.mark.nightly
def test_a_test_with_two_devices_gets_both_or_none(suite: Suite) -> None:
    suite.pytester.makepyfile(
        """
        import pytest

        @pytest.mark.device("alice", platform="android", share="run")
        @pytest.mark.device("bob", platform="ios", share="run")
        @pytest.mark.parametrize("n", range(4))
        def test_both(device_sessions, n):
            assert set(device_sessions) == {"alice", "bob"}

        @pytest.mark.device(platform="android", share="run")
        @pytest.mark.parametrize("n", range(4))
        def test_one(device_session, n): pass
        """
    )

    result = suite.run("-n2", "--device-max-sessions=2")

    result.assert_outcomes(passed=8)
    assert "stopped (confirmed)" in receipt(result)


@pytest.mark.nightly
def test_the_tests_of_a_dead_worker_run_on_another(suite: Suite) -> None:
    suite.pytester.makepyfile(
        """
        import os, pathlib, pytest, signal

        @pytest.mark.device(platform="android", share="run")
        @pytest.mark.parametrize("n", range(6))
        def test_it(device_session, n):
            died = pathlib.Path(__file__).with_name("died")
            if n == 1 and not died.exists():
                died.touch()
                os.kill(os.getpid(), signal.SIGKILL)
        """
    )

    result = suite.run("-n2")

    result.assert_outcomes(passed=5, failed=1)
    result.stdout.fnmatch_lines(["*replacing crashed worker*"])
    assert_all_are_stopped(result)


@pytest.fixture
def ended_early(suite: Suite, once: Once) -> Ran:
    """A run that ends at its first failure, while the other worker runs a test and has another one."""

    def run() -> pytest.RunResult:
        suite.pytester.makepyfile(
            """
            import time
            import pytest

            @pytest.mark.device(platform="android", share="test")
            @pytest.mark.parametrize("n", range(8))
            def test_it(device_session, n):
                time.sleep(0.3)  # the length of a test of which a worker is assigned one beside the next
                assert n != 0
            """
        )
        return suite.run("-n2", "--maxfail=1")

    return once("ended early", run)


@pytest.mark.nightly
def test_maxfail_ends_the_run_and_stops_all(ended_early: Ran) -> None:
    outcomes = ended_early.result.parseoutcomes()

    assert outcomes["failed"] == 1
    assert outcomes.get("passed", 0) < 7
    assert_all_are_stopped(ended_early.result)


@pytest.mark.nightly
def test_a_worker_that_ends_after_anothers_failure_gets_no_more_tests(
    ended_early: Ran,
) -> None:
    assert ended_early.result.ret == pytest.ExitCode.INTERRUPTED
    ended_early.result.stdout.no_fnmatch_line("*INTERNALERROR*")
    ended_early.result.stdout.fnmatch_lines(["*stopping after 1 failures*"])


def test_tests_that_cannot_be_sent_to_a_worker_run_on_another(suite: Suite) -> None:
    suite.make(android=6)
    suite.pytester.makepyfile(
        deadly="""
        from xdist.workermanage import WorkerController

        send = WorkerController.send_runtest_some
        died = []

        def send_to_the_dead(self, indices):
            if not died:
                died.append(self)
                self.gateway._io.popen.kill()
                self.gateway._io.popen.wait()
            send(self, indices)

        WorkerController.send_runtest_some = send_to_the_dead
        """
    )

    # Which changes pytest-xdist.
    result = suite.pytester.runpytest_subprocess("-n2", "-p", "deadly")

    result.stdout.no_fnmatch_line("*INTERNALERROR*")
    result.assert_outcomes(passed=6)


def test_the_last_failures_run_on_one_device(suite: Suite) -> None:
    suite.pytester.makepyfile(
        """
        import pytest

        @pytest.mark.device(platform="android", share="run")
        @pytest.mark.parametrize("n", range(6))
        def test_it(device_session, n):
            assert n != 3
        """
    )
    suite.remember_failure(f"{suite.module}::test_it[3]")

    result = suite.run("-n2", "--lf")

    result.assert_outcomes(failed=1)
    assert "1 created, 1 stopped (confirmed)" in receipt(result)


@pytest.mark.nightly
def test_the_users_dist_option_is_respected(suite: Suite) -> None:
    suite.make(android=4, ios=4)

    result = suite.run("-n2", "--dist=load", "-v")

    result.assert_outcomes(passed=8)
    result.stdout.no_fnmatch_line("*DeviceScheduling*")


def test_the_suites_own_scheduler_is_used(suite: Suite) -> None:
    suite.make(android=2)
    suite.pytester.makepyfile(
        own="""
        from xdist.scheduler import LoadScheduling

        class Own(LoadScheduling): pass

        def pytest_xdist_make_scheduler(config, log): return Own(config, log)
        """
    )

    # Which workers find in their directory.
    result = suite.pytester.runpytest_subprocess("-n1", "-v", "-p", "own")

    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*scheduling tests via Own*"])


def test_a_replacement_worker_with_other_tests_ends_the_run_with_a_message(
    suite: Suite,
) -> None:
    suite.pytester.makepyfile(
        """
        import os, pathlib, pytest, signal

        died = pathlib.Path(__file__).with_name("died")

        @pytest.mark.device(platform="android", share="run")
        @pytest.mark.parametrize("n", range(4))
        def test_it(device_session, n):
            if not died.exists():
                died.touch()
                os.kill(os.getpid(), signal.SIGKILL)

        if died.exists():
            def test_more(): pass
        """
    )

    result = suite.run("-n1")

    assert result.ret == pytest.ExitCode.INTERRUPTED
    reported = [
        "Different tests were collected*",
        "ERROR gw1*",
        "*gw1 replaced a worker, but collected different *",
    ]
    result.stdout.fnmatch_lines(reported)
    assert "1 stopped (confirmed)" in receipt(result)


def test_tests_that_pytest_reordered_are_assigned_in_that_order(suite: Suite) -> None:
    suite.make(android=4)
    suite.remember(
        {f"{suite.module}::test_android[{n}]": 1.0 + 10 * (n == 3) for n in range(4)}
    )

    suite.run("-n1", "--device-no-reorder")

    assert [test for _, test, _ in suite.notes()] == [
        f"test_android[{n}]" for n in range(4)
    ]


def test_failures_of_the_last_run_come_first_if_requested(suite: Suite) -> None:
    suite.pytester.makepyfile(
        """
        import pytest

        @pytest.mark.device(platform="android", share="run")
        @pytest.mark.parametrize("n", range(6))
        def test_it(device_session, n, note):
            note(device_session)
            assert n != 5
        """
    )
    suite.remember_failure(f"{suite.module}::test_it[5]")

    suite.run("-n1", "--ff")

    assert next(test for _, test, _ in suite.notes()) == "test_it[5]"


def test_a_session_scoped_parameter_is_set_up_once_per_worker(suite: Suite) -> None:
    suite.pytester.makepyfile(
        """
        import pathlib, pytest

        @pytest.fixture(scope="session", params=["a", "b"])
        def theirs(request):
            with open(pathlib.Path(__file__).with_name("setups"), "a") as file:
                file.write(request.param)

        @pytest.mark.device(platform="android", share="run")
        @pytest.mark.parametrize("n", range(4))
        def test_it(theirs, device_session, n): pass
        """
    )
    names = [
        f"{suite.module}::test_it[{letter}-{n}]" for letter in "ab" for n in range(4)
    ]
    suite.remember({name: 1.0 + place % 3 for place, name in enumerate(names)})

    suite.run("-n1").assert_outcomes(passed=8)

    assert sorted((suite.pytester.path / "setups").read_text()) == ["a", "b"]


def test_different_collections_are_reported_once(suite: Suite) -> None:
    suite.pytester.makepyfile(
        """
        import os, pytest

        @pytest.mark.device(platform="android", share="run")
        @pytest.mark.parametrize("n", range(2 if os.environ["PYTEST_XDIST_WORKER"] == "gw0" else 3))
        def test_it(device_session, n): pass
        """
    )

    result = suite.run("-n2")

    assert (
        len(
            [
                line
                for line in result.outlines
                if line.startswith("Different tests were collected")
            ]
        )
        == 1
    )


def test_a_worker_reports_an_invalid_shard_even_without_device_tests(
    suite: Suite,
) -> None:
    suite.make(plain=2)
    (suite.pytester.path / ".test_durations").write_text("{bad")

    result = suite.run("-n1", "--device-shard=1/2")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stdout.fnmatch_lines(
        ["ERROR: cannot read the durations for balancing shards in .test_durations: *"]
    )
