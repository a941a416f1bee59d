"""Shards together with pytest-split, which splits suites by duration only."""

import json
from pathlib import Path

import pytest

from pytest_device.testing import FaultyService

pytest.importorskip("pytest_split")

SUITE = """
import pytest

@pytest.mark.parametrize("device", [
    pytest.param(name, marks=pytest.mark.device(platform="android", device_identifier=name)) for name in ("a", "b", "c")
])
@pytest.mark.parametrize("n", range(3))
def test_driven(device_session, device, n): pass
"""


def passed(result: pytest.RunResult) -> set[str]:
    assert result.ret == pytest.ExitCode.OK
    return {line.split()[0] for line in result.outlines if " PASSED" in line}


def test_its_groups_work_but_need_more_boots_than_shards(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(test_it=SUITE)

    groups = [
        passed(pytester.runpytest("-v", "--splits=3", f"--group={number}"))
        for number in (1, 2, 3)
    ]
    boots = len(service.sessions())
    shards = [
        passed(pytester.runpytest("-v", f"--device-shard={number}/3"))
        for number in (1, 2, 3)
    ]

    assert (
        sum(map(len, groups)) == sum(map(len, shards)) == len(set().union(*groups)) == 9
    )
    assert set().union(*shards) == set().union(*groups)
    assert (boots, len(service.sessions()) - boots) == (9, 3)


@pytest.mark.usefixtures("service")
def test_its_stored_durations_balance_the_shards(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it=SUITE)
    pytester.runpytest("--store-durations")
    stored: dict[str, float] = json.loads(Path(".test_durations").read_text())
    Path(".test_durations").write_text(
        json.dumps({name: 100.0 if "-a]" in name else 1.0 for name in stored})
    )

    shards = [
        passed(pytester.runpytest("-v", f"--device-shard={number}/2"))
        for number in (1, 2)
    ]

    assert len(stored) == 9
    assert all(any(name.endswith("-a]") for name in shard) for shard in shards)


@pytest.mark.usefixtures("service")
def test_its_options_conflict_with_shards(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it=SUITE)

    result = pytester.runpytest("--splits=2", "--group=1", "--device-shard=1/2")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: --device-shard=1/2 can't be used with --splits, *"]
    )
