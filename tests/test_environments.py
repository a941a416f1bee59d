"""The environments of tox together run every test."""

import re
from configparser import RawConfigParser
from typing import Final

import pytest

from tests.conftest import HERE, PROGRAMS

ROOT: Final = HERE.parent
COMMANDS = [
    line
    for line in (ROOT / "tox.ini").read_text().splitlines()
    if "pytest " in line or "[testenv]run" in line
]
SUITE: Final = """
import pytest

@pytest.mark.nightly
def test_long(): pass

def test_short(): pass

@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.nightly)])
def test_both(step): pass
"""


@pytest.fixture(scope="module")
def tox() -> RawConfigParser:
    parser = RawConfigParser()
    parser.read(ROOT / "tox.ini")
    return parser


def test_each_test_left_out_of_the_main_environment_has_its_own() -> None:
    (ignored,) = {
        tuple(found)
        for line in COMMANDS
        if (found := re.findall(r"--ignore (\S+)", line))
    }

    assert ignored
    assert [
        path
        for path in ignored
        if not any(line.endswith(f" {path}") for line in COMMANDS)
    ] == []
    assert any("-m programs" in line for line in COMMANDS)


def test_every_listed_directory_with_real_programs_exists() -> None:
    assert [name for name in PROGRAMS if not (HERE / name).exists()] == []


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ([], ["test_short", "test_both[7]"]),
        (["-m", "not programs and not timing"], ["test_short", "test_both[7]"]),
        (["-m", "nightly"], ["test_long", "test_both[1]"]),
        (
            ["-m", "nightly or not nightly"],
            ["test_long", "test_short", "test_both[7]", "test_both[1]"],
        ),
    ],
    ids=" ".join,
)
def test_nightly_tests_run_only_where_they_are_asked_for(
    pytester: pytest.Pytester, options: list[str], names: list[str]
) -> None:
    pytester.makeconftest("from tests.conftest import pytest_collection_modifyitems")
    pytester.makeini("[pytest]\nmarkers =\n    nightly\n    programs\n    timing")
    pytester.makepyfile(SUITE)

    result = pytester.runpytest("--collect-only", "-q", *options)

    assert [
        line.partition("::")[2] for line in result.outlines if "::" in line
    ] == names


def test_the_gate_has_no_nightly_environment(tox: RawConfigParser) -> None:
    assert "nightly" not in re.split(r"[\s,]+", tox["tox"]["env_list"])
    assert tox["testenv:nightly"]["commands"].startswith("pytest -m nightly ")


def test_every_environment_is_explained_to_contributors(tox: RawConfigParser) -> None:
    explained = (ROOT / "CONTRIBUTING.md").read_text()
    names = [
        section.removeprefix("testenv:")
        for section in tox.sections()
        if section.startswith("testenv:")
    ]

    assert "nightly" in names
    assert [name for name in names if f"`{name}`" not in explained] == []
