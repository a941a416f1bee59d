"""Values of our options that pytest takes for paths of tests when it looks for its ini file."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

PASSES = (
    "def test_settings(request): assert request.config.getini('device_prefetch') == '7'"
)


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A suite with its own ini file next to the directories that its options name, which is the working directory."""
    for name in ("app", "suite/tests", "suite/artifacts"):
        (pytester.path / name).mkdir(parents=True)
    suite = pytester.path / "suite"
    (suite / "pytest.ini").write_text("[pytest]\ndevice_prefetch = 7\n")
    (suite / "tests" / "test_settings.py").write_text(PASSES)
    monkeypatch.chdir(suite)
    return suite


@pytest.mark.parametrize(
    "option",
    [
        "--device-app-root",
        "--device-artifacts-dir",
        "--device-state-dir",
        "--device-builds-dir",
        "--device-identifier",
    ],
)
def test_a_value_after_a_blank_that_hides_the_ini_file_is_refused(
    option: str, suite: Path, pytester: pytest.Pytester
) -> None:
    result = pytester.runpytest_inprocess(option, "../app")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    problem = f"pytest took '../app', the value of {option}, for a path of tests"
    outcome = (
        f"it reads no ini file instead of {suite}/pytest.ini: write {option}=../app"
    )
    result.stderr.fnmatch_lines([f"ERROR: {problem}, and so {outcome}"])


@pytest.mark.parametrize("name", ["pyproject.toml", "tox.ini", "setup.cfg"])
def test_a_value_that_leads_to_another_ini_file_is_refused(
    name: str, suite: Path, pytester: pytest.Pytester
) -> None:
    sections = {
        "pyproject.toml": "[tool.pytest.ini_options]",
        "tox.ini": "[pytest]",
        "setup.cfg": "[tool:pytest]",
    }
    (suite / "pytest.ini").unlink()
    (suite / name).write_text(f"{sections[name]}\n")
    (suite.parent / "app" / "pytest.ini").write_text("[pytest]\n")

    result = pytester.runpytest_inprocess("--device-app-root", "../app")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [
            f"*so it reads {suite.parent}/app/pytest.ini instead of {suite}/{name}: write *"
        ]
    )


def test_a_value_in_pytest_addopts_is_refused_too(
    suite: Path, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", "--device-app-root ../app")

    result = pytester.runpytest_inprocess()

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [f"*instead of {suite}/pytest.ini: write --device-app-root=../app"]
    )


def test_tests_on_two_drives_of_windows_run_with_the_ini_file_that_pytest_finds(
    suite: Path, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    def commonpath(paths: Sequence[str]) -> str:
        raise ValueError(f"Paths don't have the same drive: {paths}")

    (suite.parent / "test_more.py").touch()
    monkeypatch.setattr(os.path, "commonpath", commonpath)

    pytester.runpytest_inprocess(
        "--device-app-root", "../app", "tests/test_settings.py", "../test_more.py"
    ).assert_outcomes(passed=1)


@pytest.mark.usefixtures("suite")
@pytest.mark.parametrize(
    "arguments",
    [
        ["--device-app-root=../app"],
        # Below the ini file, which pytest finds all the same.
        pytest.param(
            ["--device-artifacts-dir", "artifacts"], marks=pytest.mark.nightly
        ),
        [
            "--device-artifacts-dir",
            "artifacts",
            "tests/test_settings.py::test_settings",
        ],
        ["--device-artifacts-dir", "../elsewhere"],  # does not exist
        ["--device-identifier", "x" * 300],
        ["-c", "pytest.ini", "--device-app-root", "../app"],
        pytest.param(
            ["-n", "1", "--device-artifacts-dir", "artifacts"],
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_a_value_that_hides_nothing_is_accepted(
    arguments: list[str], pytester: pytest.Pytester
) -> None:
    tests = (
        [] if any("test_settings" in argument for argument in arguments) else ["tests"]
    )

    pytester.runpytest_inprocess(*arguments, *tests).assert_outcomes(passed=1)


def test_a_suite_without_an_ini_file_runs(
    suite: Path, pytester: pytest.Pytester
) -> None:
    (suite / "pytest.ini").unlink()
    (suite / "tests" / "test_settings.py").write_text("def test_it(): pass")

    pytester.runpytest_inprocess(
        "--device-artifacts-dir", "../app", "tests"
    ).assert_outcomes(passed=1)
