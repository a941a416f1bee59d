"""Beside a plugin that annotates failed tests in GitHub jobs, as this one does."""

import html
import re
from pathlib import Path

import pytest

SUITE = """
import pytest

@pytest.mark.device(platform="android")
def test_fails(device_session):
    assert 0, "its own error"
"""
PLUGIN = "pytest_github_actions_annotate_failures"


@pytest.mark.usefixtures("service")
@pytest.mark.parametrize("options", [[], ["-n1"]], ids=["alone", "distributed"])
@pytest.mark.parametrize("others", [1, 0], ids=["beside", "without"])
def test_a_failed_test_has_one_annotation(
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    options: list[str],
    others: int,
) -> None:
    summary = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    monkeypatch.setenv("GITHUB_WORKSPACE", str(pytester.path))
    pytester.makepyfile(SUITE)

    result = pytester.runpytest(*options, *([] if others else ["-p", f"no:{PLUGIN}"]))

    # The other one writes to standard error, this one to pytest's output.
    theirs, ours = (
        [line for line in output.lines if line.startswith("::error ")]
        for output in (result.stderr, result.stdout)
    )
    assert (len(theirs), len(ours)) == (others, 1 - others)
    assert "its own error" in (theirs + ours)[0]
    assert summary.read_text().startswith("### Device tests: 1 failed\n")


@pytest.mark.usefixtures("service")
def test_a_rerun_is_in_the_summary_and_not_annotated(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    summary = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    pytester.makepyfile(
        test_it="""
        import pytest
        seen = []

        @pytest.mark.device(platform="android")
        def test_flaky(device_session):
            seen.append(device_session.id)
            assert len(seen) == 2, "only the first time"
        """
    )

    result = pytester.runpytest("--reruns=1", "-p", f"no:{PLUGIN}")

    text = html.unescape(re.sub("<[^>]+>", "", summary.read_text()))
    assert text.startswith("### Device tests: 1 passed\n\n#### Retried\n")
    assert (
        "- test_it.py::test_flaky: AssertionError: only the first time "
        "(2 attempts, the last one: passed)\n"
    ) in text
    result.stdout.no_fnmatch_line("::error*")
