"""The environments of tox together run every test."""

import re
from configparser import RawConfigParser
from typing import Final

import pytest

from tests.conftest import HERE, PROGRAMS, excludes_programs, requires_every_python

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
    ("expression", "files"),
    [
        ("every_python", ["test_every.py"]),
        ("every_python and not programs and not timing", ["test_every.py"]),
        ("not every_python", ["test_one.py"]),
        ("every_python or timing", ["test_every.py"]),
        ("not programs", ["test_every.py", "test_one.py"]),
    ],
)
def test_markers_of_modules_select_the_tests_of_a_python(
    pytester: pytest.Pytester, expression: str, files: list[str]
) -> None:
    _make_modules(pytester)

    result = pytester.runpytest("--collect-only", "-q", "-m", expression)

    assert [
        line.partition("::")[0] for line in result.outlines if "::" in line
    ] == files


def test_a_python_does_not_import_the_modules_that_it_leaves_out(
    pytester: pytest.Pytester,
) -> None:
    _make_modules(pytester)
    pytester.makepyfile(test_one="raise AssertionError")

    result = pytester.runpytest("-m", "every_python and not programs and not timing")

    result.assert_outcomes(passed=1)


def test_newer_pythons_select_by_the_marker_of_modules(tox: RawConfigParser) -> None:
    expressions = re.findall(r'-m "(.*every_python.*?)"', tox["testenv"]["commands"])

    assert list(map(requires_every_python, expressions)) == [True]


@pytest.mark.parametrize(
    ("expression", "is_excluded"),
    [
        ("not programs", True),
        ("every_python and not programs and not timing", True),
        ("(every_python or timing) and not programs", True),
        ("", False),
        ("programs", False),
        ("timing or not programs", False),
        ("timing or nightly and not programs", False),
        ("timing and (nightly or not programs)", False),
    ],
)
def test_tests_with_real_programs_are_not_imported_where_none_can_be_selected(
    expression: str, *, is_excluded: bool
) -> None:
    assert excludes_programs(expression) is is_excluded


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
    gate = re.split(r"[\s,]+", tox["tox"]["env_list"])

    assert [name for name in gate if re.search("nightly|systems", name)] == []
    assert tox["testenv:nightly"]["commands"].startswith("pytest -m nightly ")


def test_every_environment_is_explained_to_contributors(tox: RawConfigParser) -> None:
    explained = (ROOT / "CONTRIBUTING.md").read_text()
    sections = [
        section.removeprefix("testenv:")
        for section in tox.sections()
        if section.startswith("testenv:")
    ]
    names = [name for section in sections for name in section.strip("{}").split(",")]

    assert {"nightly", "windows"} <= set(names)
    assert [name for name in names if f"`{name}`" not in explained] == []


def _make_modules(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        "from tests.conftest import pytest_collection_modifyitems, pytest_ignore_collect"
    )
    pytester.makeini(
        "[pytest]\nmarkers =\n    every_python\n    nightly\n    programs\n    timing"
    )
    test = "def test_it(): pass"
    pytester.makepyfile(
        test_every=f"import pytest\npytestmark = pytest.mark.every_python\n{test}",
        test_one=test,
    )
