"""Durations of tests from files of earlier runs, which plan a run that has no cache."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from pytest_device.errors import ConfigError
from pytest_device.plugin.durations import read_durations

SUITE = """
import pytest

@pytest.mark.device(platform="android")
@pytest.mark.parametrize("n", range(2))
def test_it(device_session, n): pass

class TestIt:
    @pytest.mark.device(platform="android")
    def test_in_class(self, device_session): pass
"""
TESTS = ("test_it.py::test_it[0]", "test_it.py::test_it[1]")
IN_CLASS = "test_it.py::TestIt::test_in_class"


def _pytest_split(path: Path) -> None:
    seconds = dict.fromkeys((*TESTS, IN_CLASS, "test_gone.py::test_it"), 600.0)
    path.write_text(json.dumps(seconds))


def _directory(path: Path) -> None:
    """Write files that differ: their mean counts."""
    path.mkdir()
    (path / "device-run-2-of-2.json").write_text(json.dumps(device_run(600.0)))
    shorter = dict.fromkeys((*TESTS, IN_CLASS), 500.0)
    # As editors on Windows write it.
    (path / ".test_durations").write_text(json.dumps(shorter), encoding="utf-8-sig")
    (path / "device-run-1-of-2.json").write_text(json.dumps(device_run(700.0)))
    (path / "other.json").write_text("[]")


def device_run(seconds: float) -> dict[str, object]:
    keys: list[str] = ["run", "shard", "minutes", "budget_minutes", "cost", "receipt"]
    empty: dict[str, object] = {}
    empty.update(dict.fromkeys(keys))
    attempts = [
        {"outcome": "retried", "seconds": 1.0},
        {"outcome": "passed", "seconds": seconds},
    ]
    tests = [{"test": test, "attempts": attempts} for test in (*TESTS, IN_CLASS)]
    return empty | {"version": 1, "tests": tests, "sessions": [], "causes": []}


def _device_run(path: Path) -> None:
    path.write_text(json.dumps(device_run(600.0)))


@pytest.mark.usefixtures("service")
@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["one process", "workers"])
@pytest.mark.parametrize("write", [_pytest_split, _device_run, _directory])
def test_a_plan_uses_the_durations_of_a_file(
    pytester: pytest.Pytester,
    tmp_path: Path,
    workers: tuple[str, ...],
    write: Callable[[Path], None],
) -> None:
    pytester.makepyfile(test_it=SUITE)
    write(tmp_path / "durations")

    result = pytester.runpytest(
        "--device-plan", f"--device-durations={tmp_path / 'durations'}", *workers
    )

    result.stdout.fnmatch_lines(["*known from earlier runs: 3 of 3 tests*"])
    result.stdout.re_match_lines([rf".*about {22 if workers else 33} min .*"])


@pytest.mark.usefixtures("service")
def test_the_cache_takes_precedence_over_the_file_also_for_estimates(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(test_it=SUITE)
    pytester.makeini("[pytest]\ndevice_durations = times.json")
    pytester.path.joinpath("times.json").write_text(json.dumps({TESTS[0]: 600.0}))
    cache = pytester.path / ".pytest_cache/v/device"
    cache.mkdir(parents=True)
    (cache / "test_seconds").write_text(json.dumps({TESTS[0]: 1.0}))

    result = pytester.runpytest("--device-plan")

    result.stdout.fnmatch_lines(
        ["*about 3 min 3 s in total*", "*known from earlier runs: 1 of 3 tests*"]
    )


BY_SIZE = """
import functools
import os

import pytest

def decorated(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)
    return wrapper

def note(name):
    with open("started", "a") as started:
        started.write(f"{os.environ['PYTEST_XDIST_WORKER']} {name}\\n")

pytestmark = pytest.mark.device(platform="android", share="run")

@pytest.mark.parametrize("n", range(6))
def test_small(device_session, n):
    note("small")

@decorated
def test_large(device_session):
    note("large")
    assert [n for n in range(100) if n % 7 == 3][:2] == [3, 10]
    assert {str(n): n for n in range(100) if n % 5 == 4}["4"] == 4
    assert sorted("large", reverse=True) == ["r", "l", "g", "e", "a"]
"""


@pytest.mark.usefixtures("service")
def test_without_durations_the_test_with_the_largest_code_starts_first(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(test_it=BY_SIZE)

    result = pytester.runpytest("-n2")

    result.assert_outcomes(passed=7)
    lines = (pytester.path / "started").read_text().splitlines()
    worker = next(line.split()[0] for line in lines if line.endswith("large"))
    assert next(line for line in lines if line.startswith(worker)).endswith("large")


MALFORMED: Final = [
    ("a.json", "{", "it is not JSON: *"),
    ("a.json", "[1]", "it contains [[]1], not an object"),
    ("a.json", '{"test_a.py::test_b": -3}', "test_a.py::test_b has -3, which is not a number of seconds *"),
    ("a.json", '{"test_a.py::test_b": NaN}', "test_a.py::test_b has nan, *"),
    ("a.json", '{"test_a.py::test_b": true}', "test_a.py::test_b has True, *"),
    ("a.json", '{"test_a.py::test_b": "3"}', "test_a.py::test_b has '3', *"),
    ("a.json", '{"test_a.py::test_b": 100000}', "test_a.py::test_b has 100000, *"),
    ("a.json", '{"tests": [], "version": 9}', "its version is 9, *"),
    ("a.json", '{"tests": [], "version": 1}', "it has no run"),
    ("a.json", None, "No such file or directory"),
    ("directory/readme.txt", "", "there is no .test_durations or device-run[*].json in it"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "reason"), MALFORMED)
def test_a_malformed_file_is_an_error_with_its_name_the_value_and_the_fix(
    tmp_path: Path, name: str, content: str | None, reason: str
) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    if content is not None:
        path.write_text(content)
    asked = path.parent if path.suffix == ".txt" else path

    with pytest.raises(ConfigError) as raised:
        read_durations(asked, "device_durations")

    (problem,) = raised.value.problems
    pytest.LineMatcher([problem]).fnmatch_lines(
        [f"device_durations: cannot read durations from {asked}: {reason}. Fix: *"]
    )


@pytest.mark.usefixtures("service")
@pytest.mark.parametrize("workers", [(), ("-n1",)])
def test_a_malformed_file_is_one_usage_error(
    pytester: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    pytester.makepyfile(test_it=SUITE)

    result = pytester.runpytest("--device-durations=missing", *workers)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    lines = (*result.outlines, *result.errlines)
    assert sum("cannot read durations" in line for line in lines) == 1
