"""Shards of a suite, one per machine: together they are the suite."""

import json
from pathlib import Path
from typing import Final

import pytest

from pytest_device.testing import FaultyService

SUITE = """
import pytest

@pytest.mark.device(platform="android")
@pytest.mark.parametrize("n", range(9))
def test_android(device_session, n): pass

@pytest.mark.parametrize("n", range(7))
def test_plain(n): pass

@pytest.mark.device(platform="ios", share="test")
@pytest.mark.parametrize("n", range(2))
def test_ios(device_session, n): pass

@pytest.mark.device("alice", platform="android")
@pytest.mark.device("bob", platform="ios")
def test_two(device_sessions): pass
"""
PLAIN = """
import pytest

@pytest.mark.parametrize("n", range(9))
def test_plain(n): pass
"""


@pytest.fixture
def shared(service: FaultyService, monkeypatch: pytest.MonkeyPatch) -> FaultyService:
    monkeypatch.delenv("DEVICE_SHARE")
    return service


def collected(pytester: pytest.Pytester, *args: str) -> list[str]:
    """Return the node ids that a run would run, in order."""
    result = pytester.runpytest("--collect-only", "-q", *args)
    assert result.ret == pytest.ExitCode.OK
    return [line for line in result.outlines if "::" in line]


def of_shards(pytester: pytest.Pytester, count: int, *args: str) -> list[list[str]]:
    return [
        collected(pytester, f"--device-shard={number}/{count}", *args)
        for number in range(1, count + 1)
    ]


SOME: Final = ["-k", "test_android or test_plain"]
CELLS: Final = {
    "all-devices-5": ([], SUITE, 5),
    "some-no devices-2": (SOME, PLAIN, 2),
}
NIGHTLY_CELLS: Final = {
    "all-devices-1": ([], SUITE, 1),
    "all-devices-2": ([], SUITE, 2),
    "all-no devices-1": ([], PLAIN, 1),
    "all-no devices-2": ([], PLAIN, 2),
    "all-no devices-5": ([], PLAIN, 5),
    "some-devices-1": (SOME, SUITE, 1),
    "some-devices-2": (SOME, SUITE, 2),
    "some-devices-5": (SOME, SUITE, 5),
    "some-no devices-1": (SOME, PLAIN, 1),
    "some-no devices-5": (SOME, PLAIN, 5),
}
"""Options, suites and numbers of shards that ``scheduling/test_sharding`` covers in the gate."""


@pytest.mark.usefixtures("shared")
@pytest.mark.parametrize(
    ("args", "suite", "count"),
    [
        *(pytest.param(*cell, id=name) for name, cell in CELLS.items()),
        *(
            pytest.param(*cell, id=name, marks=pytest.mark.nightly)
            for name, cell in NIGHTLY_CELLS.items()
        ),
    ],
)
def test_the_shards_make_up_the_suite_without_overlap(
    pytester: pytest.Pytester, args: list[str], suite: str, count: int
) -> None:
    pytester.makepyfile(test_it=suite)

    shards = of_shards(pytester, count, *args)

    assert sorted(test for shard in shards for test in shard) == sorted(
        collected(pytester, *args)
    )
    assert all(shards)


@pytest.mark.usefixtures("shared")
def test_collection_order_cache_and_run_name_make_no_difference(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makepyfile(test_it=SUITE)
    found = of_shards(pytester, 2)
    cache = pytester.path / ".pytest_cache" / "v" / "device"
    cache.mkdir(parents=True, exist_ok=True)
    (cache / "test_seconds").write_text(
        json.dumps(dict.fromkeys(collected(pytester)[:5], 500.0))
    )
    monkeypatch.setenv("BUILD_ID", "another")
    pytester.makeconftest("def pytest_collection_modifyitems(items): items.reverse()")

    assert list(map(sorted, of_shards(pytester, 2))) == list(map(sorted, found))


def test_a_shard_runs_and_reports_its_part(
    pytester: pytest.Pytester, shared: FaultyService
) -> None:
    pytester.makepyfile(test_it=SUITE)

    first, second = (
        pytester.runpytest(f"--device-shard={number}/2") for number in (1, 2)
    )

    passed = [run.parseoutcomes()["passed"] for run in (first, second)]
    assert [run.parseoutcomes()["deselected"] for run in (first, second)] == passed[
        ::-1
    ]
    assert sum(passed) == 19
    reported = [
        line
        for run in (first, second)
        for line in run.outlines
        if line.startswith("device shard ")
    ]
    assert [line.rpartition(" ")[0] for line in reported] == [
        f"device shard {number}/2: {passed[number - 1]} of 19 tests, split"
        for number in (1, 2)
    ]
    assert reported[0].rpartition(" ")[2] == reported[1].rpartition(" ")[2]
    assert set(shared.statuses()) == {"stopped"}


@pytest.mark.usefixtures("shared")
def test_a_different_split_has_a_different_hash(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it=SUITE)

    def split() -> str:
        shown = pytester.runpytest("--collect-only", "--device-shard=1/2").outlines
        return next(
            line for line in shown if line.startswith("device shard")
        ).rpartition(" ")[2]

    before = split()
    Path(".test_durations").write_text(json.dumps({"test_it.py::test_two": 3000}))

    assert split() != before


@pytest.mark.usefixtures("shared")
def test_durations_in_the_repository_balance_the_shards(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(test_it=PLAIN)
    Path(".test_durations").write_text(
        json.dumps(
            {"test_it.py::test_plain[0]": 8.0}
            | {f"test_it.py::test_plain[{n}]": 1.0 for n in range(1, 8)}
        )
    )

    assert ["test_it.py::test_plain[0]"] in of_shards(pytester, 2)


@pytest.mark.usefixtures("shared")
@pytest.mark.parametrize(
    "durations",
    [
        pytest.param("[]", id="list", marks=pytest.mark.nightly),
        pytest.param("{", id="cut", marks=pytest.mark.nightly),
        pytest.param("[" * 9**5, id="brackets"),
        pytest.param('{"test_it.py::test_two": 90000}', id="milliseconds"),
    ],
)
def test_unreadable_durations_end_the_run_because_other_machines_may_read_them(
    pytester: pytest.Pytester, durations: str
) -> None:
    pytester.makepyfile(test_it=SUITE)
    Path(".test_durations").write_text(durations)

    result = pytester.runpytest("--device-shard=1/2")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: cannot read the durations for balancing shards in .test_durations: *"]
    )


@pytest.mark.usefixtures("shared")
@pytest.mark.parametrize("args", [["--lf"], ["--sw"]])
def test_options_that_depend_on_the_machine_conflict_with_shards(
    pytester: pytest.Pytester, args: list[str]
) -> None:
    pytester.makepyfile(test_it=SUITE)

    result = pytester.runpytest("--device-shard=1/2", *args)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [
            "ERROR: --device-shard=1/2 can't be used with --*, which selects different tests on each machine"
        ]
    )


@pytest.mark.usefixtures("shared")
def test_workers_share_the_tests_of_a_shard_which_the_environment_can_set(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makepyfile(test_it=SUITE)
    count = len(collected(pytester, "--device-shard=2/2"))
    monkeypatch.setenv("DEVICE_SHARD", "2/2")

    result = pytester.runpytest("-n2")

    result.assert_outcomes(passed=count)
    assert (
        len(
            [
                line
                for line in result.outlines
                if line.startswith(f"device shard 2/2: {count} of 19 tests, ")
            ]
        )
        == 1
    )


@pytest.mark.usefixtures("shared")
@pytest.mark.parametrize(
    "shard",
    [
        "3/2",
        "a/b",
        *(
            pytest.param(shard, marks=pytest.mark.nightly)
            for shard in ("0/2", "2", "1/2/3", "1/1001", "-1/2")
        ),
    ],
)
def test_an_impossible_shard_is_refused(pytester: pytest.Pytester, shard: str) -> None:
    pytester.makepyfile(test_it=PLAIN)

    result = pytester.runpytest(f"--device-shard={shard}")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [f"ERROR: --device-shard='{shard}' must be INDEX/TOTAL, for example 2/4, *"]
    )
