"""What a run with devices tells a CI service: job summary and annotations."""

import html
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from pytest_device.escape import escaped
from pytest_device.testing import FaultyService
from tests.plugin.runs import ON_A_WORKER, ON_WORKERS
from tests.plugin.test_device_report import blobs, of_method
from tests.plugin.test_device_run import report_in

SUITE = """
import pytest
from helpers import check

@pytest.mark.device(platform="android")
def test_gets_no_device(device_session): pass

def test_fails():
    check(1)

def test_passes(): pass
"""
HELPERS = """
import sys
sys.path.append(".venv/lib/python3/site-packages")
import client

def check(count):
    client.compare(count, 2)
"""
CLIENT = """
def compare(count, expected):
    assert count == expected, "the suite's own error"
"""
OUTCOMES = """
import pytest
pytestmark = pytest.mark.device(platform="android")

def test_fails(device_session):
    assert 0, "its own error"

def test_is_retried(device_session): pass

@pytest.mark.device_quarantine(until="2999-12-31", reason="no tablets yet")
def test_is_in_quarantine(device_session):
    assert 0, "a known error"
"""
ROW = re.compile(r"^\| (.+) \|$", re.MULTILINE)


@dataclass(frozen=True)
class Command:
    """A workflow command, as GitHub's runner reads a line."""

    name: str
    properties: dict[str, str]
    message: str


def commands(output: str) -> list[Command]:
    """Return the commands that the runner finds in a log."""
    found: list[Command] = []
    for line in re.split(r"\r\n|[\r\n]", output):
        text = line.lstrip()
        end = text.find("::", 2)
        if not text.startswith("::") or end < 0:
            assert not re.search(r"##\[|##vso\[", line)
            continue
        name, _, given = text[2:end].partition(" ")
        pairs = (pair.split("=", 1) for pair in given.split(",") if "=" in pair)
        properties = {
            key.strip(): decoded(value, {"%3A": ":", "%2C": ","})
            for key, value in pairs
        }
        found.append(Command(name, properties, decoded(text[end + 2 :], {})))
    return found


def decoded(text: str, more: dict[str, str]) -> str:
    signs = {"%0D": "\r", "%0A": "\n", **more}
    for code, sign in signs.items():
        text = text.replace(code, sign)
    return text.replace("%25", "%")


def rows(summary: str) -> list[list[str]]:
    """Return the cells of the table of failed tests, as GitHub shows their text."""
    _, _, *found = ROW.findall(summary)
    return [
        [html.unescape(re.sub(r"<[^>]+>", "", cell)) for cell in row.split(" | ")]
        for row in found
    ]


@pytest.fixture
def github(monkeypatch: pytest.MonkeyPatch, pytester: pytest.Pytester) -> Path:
    """The file of the job's summary."""
    path = pytester.path / "step" / "summary.md"
    path.parent.mkdir()
    path.touch()
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(path))
    monkeypatch.setenv("GITHUB_WORKSPACE", str(pytester.path))
    return path


@pytest.mark.parametrize("options", ON_WORKERS)
def test_a_github_job_gets_a_summary_and_annotations(
    pytester: pytest.Pytester,
    service: FaultyService,
    github: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
) -> None:
    service.add_fault("boot", "fail", times=1)
    suite = pytester.mkdir("e2e")
    (suite / "test_it.py").write_text(SUITE)
    (suite / "helpers.py").write_text(HELPERS)
    (suite / "pytest.ini").write_text("[pytest]\n")
    installed = suite / ".venv/lib/python3/site-packages"
    installed.mkdir(parents=True)
    (installed / "client.py").write_text(CLIENT)
    monkeypatch.chdir(suite)

    result = pytester.runpytest("--rootdir", str(suite), *options)

    text = github.read_text()
    assert result.ret == 1
    assert text.startswith("### Device tests: 1 failed, 1 error, 1 passed\n")
    found = {row[0]: row[1:3] for row in rows(text)}
    own, reason = found.pop("test_it.py::test_fails")
    assert (own, reason) == ("failed", "AssertionError: the suite's own error")
    ((verdict, cause),) = found.values()
    assert verdict == "error, infrastructure"
    assert cause.startswith("the session failed")
    assert "devices: 1 created" in html.unescape(text)
    lines = [line for line in html.unescape(text).splitlines() if line.startswith("- ")]
    assert [line.split(": ")[0] for line in lines] == [
        "- devices",
        "- device minutes",
        "- 1 infrastructure error (not a test failure)",
        "- infrastructure",
    ]

    error, warning = commands(result.stdout.str())
    assert error.name == "error"
    assert error.properties == {
        "file": "e2e/helpers.py",
        "line": "7",
        "title": "test_it.py::test_fails",
    }
    assert error.message == "AssertionError: the suite's own error"
    assert warning.name == "warning"
    assert warning.properties == {
        "file": "e2e/test_it.py",
        "line": "5",
        "title": "infrastructure: test_it.py::test_gets_no_device",
    }


def test_the_summary_names_devices_traces_retries_and_quarantines(
    pytester: pytest.Pytester, service: FaultyService, github: Path
) -> None:
    service.add_fault("boot", "fail", skip=1, times=1)
    pytester.makepyfile(test_it=OUTCOMES)

    result = pytester.runpytest(
        "--device-retry-infrastructure=1", "--device-minute-price=0.5"
    )

    text = github.read_text()
    assert text.startswith("### Device tests: 1 failed, 1 passed, 1 quarantined\n")
    ((test, outcome, _, device, minutes, files),) = rows(text)
    assert (test, outcome) == ("test_it.py::test_fails", "failed")
    assert (pytester.path / files).exists()
    assert device
    assert float(minutes) >= 0
    (session,) = [
        one["id"] for one in service.sessions() if "test_fails" in str(one["name"])
    ]
    assert session in html.unescape(text)
    plain = html.unescape(re.sub("<[^>]+>", "", text))
    assert re.search(
        r"\n- test_it.py::test_is_retried: infrastructure: .+ \(2 attempts, the last one: passed\)",
        plain,
    )
    assert re.search(
        r"\n- test_it.py::test_is_in_quarantine: .*no tablets yet.*a known error", plain
    )
    assert "- cost: " in plain
    assert [one.name for one in commands(result.stdout.str())] == ["error"]


@pytest.mark.usefixtures("service")
def test_no_text_of_a_test_becomes_a_command_a_row_or_markup(
    pytester: pytest.Pytester, github: Path
) -> None:
    first = "::error::x | `</code><img src=x>` [a](javascript:b) @all %0A::warning::x ##[error]y \x1b[31m"
    hostile = f"{first}\r\n::error file=x::forged\r\n| forged | row |\r\n\r\n# forged"
    pytester.makepyfile(
        f"""
        import pytest
        HOSTILE = {hostile!r}

        @pytest.mark.device(platform="android")
        @pytest.mark.parametrize("value", [1], ids=[HOSTILE])
        def test_it(device_session, value):
            pytest.fail(HOSTILE)
        """
    )

    result = pytester.runpytest("--tb=no", "--no-summary")

    text = github.read_text()
    (annotation,) = commands(result.stdout.str())
    assert annotation.name == "error"
    assert set(annotation.properties) == {"file", "line", "title"}
    assert "\n| forged | row |\n" in annotation.message
    assert "%0A::warning::x" in annotation.message
    ((test, _, reason, *_),) = rows(text)
    assert "test_it[" in test
    assert reason == escaped(f"Failed: {first}")
    allowed = r"(?:[\w ]|&#\d+;|</?code>|<a href=\"(?:\w|&#\d+;)+\">|</a>|…)*"
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert len(table) == 3
    for cell in table[2].removeprefix("| ").removesuffix(" |").split(" | "):
        assert re.fullmatch(f"{allowed}(?:, {allowed})?", cell), cell


@pytest.mark.usefixtures("service")
def test_annotations_are_limited_and_a_cause_is_annotated_once(
    pytester: pytest.Pytester, service: FaultyService, github: Path
) -> None:
    service.add_fault("boot", "fail", times=None)
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.device(platform="android")
        @pytest.mark.parametrize("number", range(3))
        def test_gets_no_device(device_session, number): pass

        @pytest.mark.parametrize("number", range(12))
        def test_fails(number):
            assert number < 0
        """
    )

    result = pytester.runpytest("--device-no-reorder")

    found = commands(result.stdout.str())
    errors = [one for one in found if one.name == "error"]
    assert len(errors) == 10
    assert "file" in errors[8].properties
    assert errors[9].properties == {"title": "3 more errors"}
    (warning,) = [one for one in found if one.name == "warning"]
    assert "3 tests affected" in warning.message
    text = github.read_text()
    assert text.startswith("### Device tests: 12 failed, 3 errors\n")
    assert [row[1].partition(",")[0] for row in rows(text)] == [
        *["failed"] * 12,
        *["error"] * 3,
    ]


@pytest.mark.usefixtures("service")
@pytest.mark.parametrize(
    ("used", "ending"),
    [
        (990_000, "more failed tests left out: no more room."),
        pytest.param(1_000_000, "", marks=pytest.mark.nightly),
    ],
)
def test_a_summary_stays_below_the_limit_of_its_step(
    pytester: pytest.Pytester, github: Path, used: int, ending: str
) -> None:
    github.write_text("x" * used)
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.device(platform="android")
        def test_has_a_device(device_session): pass

        @pytest.mark.parametrize("number", range(50))
        def test_fails(number):
            assert 0, "|" * 200
        """
    )

    result = pytester.runpytest()

    assert result.ret == 1
    added = github.read_text()[used:]
    assert github.stat().st_size <= 1_000_000
    assert ending in added
    assert (added == "") == (ending == "")
    has_note = "the job summary is left out" in result.stdout.str()
    assert has_note == (ending == "")
    assert not ending or "#### Devices" in added


@pytest.mark.usefixtures("service")
def test_a_summary_that_cannot_be_written_is_a_line_and_no_failure(
    pytester: pytest.Pytester, github: Path
) -> None:
    github.unlink()
    github.mkdir()
    pytester.makepyfile(OUTCOMES)

    result = pytester.runpytest("-k", "quarantine")

    assert result.ret == 0
    (line,) = [line for line in result.outlines if "job summary" in line]
    assert line == (
        f"cannot write the job summary to {github} (Is a directory): "
        "make it writable, or use --device-ci=off"
    )


LATE = "learned-after-its-report-7Q2f"


def test_secrets_are_masked_even_if_they_are_learned_later(
    pytester: pytest.Pytester, service: FaultyService, github: Path
) -> None:
    pytester.makepyfile(
        f"""
        import pytest
        from pytest_device.secret_registry import SECRETS

        @pytest.fixture
        def learned_at_the_end():
            yield
            SECRETS.learn({LATE!r})

        @pytest.mark.device(platform="android")
        def test_fails(device_session, learned_at_the_end):
            assert 0, {f"{service.token} and {LATE}"!r}
        """
    )

    result = pytester.runpytest("--tb=no", "--no-summary")

    (annotation,) = commands(result.stdout.str())
    ((_, _, reason, *_),) = rows(github.read_text())
    assert reason == "AssertionError: *** and ***"
    assert annotation.message.startswith("AssertionError: *** and ***")


@pytest.mark.usefixtures("service")
@pytest.mark.parametrize("options", ON_A_WORKER)
def test_a_file_that_cannot_be_collected_is_an_error(
    pytester: pytest.Pytester, github: Path, options: list[str]
) -> None:
    pytester.makepyfile(OUTCOMES, test_broken="import nothing")

    result = pytester.runpytest(
        "--continue-on-collection-errors", "-k", "quarantine", *options
    )

    text = github.read_text()
    assert text.startswith("### Device tests: 1 error, 1 quarantined\n")
    ((file, _, reason, *_),) = rows(text)
    assert (file, reason) == (
        "test_broken.py",
        "ModuleNotFoundError: No module named 'nothing'",
    )
    (annotation,) = commands(result.stdout.str())
    assert annotation.properties["file"] == "test_broken.py"


@pytest.mark.usefixtures("service")
def test_the_summary_and_the_report_of_an_interrupted_run_say_so(
    pytester: pytest.Pytester, github: Path
) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.device(platform="android")
        def test_passes(device_session): pass

        def test_is_interrupted():
            raise KeyboardInterrupt
        """
    )

    pytester.runpytest(no_reraise_ctrlc=True)

    heading, _, sentence, *_ = github.read_text().splitlines()
    assert heading == "### Device tests: 1 interrupted"
    assert sentence == "The run was interrupted."
    (blob,) = blobs(pytester.path / "device-report")
    (end,) = of_method(blob, "onEnd")
    assert end["result"]["status"] == "interrupted"
    (test,) = report_in(pytester.path / "device-report")["tests"]
    assert (test["test"].partition("::")[2], test["outcome"]) == (
        "test_is_interrupted",
        "interrupted",
    )


@pytest.mark.usefixtures("service")
def test_the_setting_overrides_what_is_detected(
    pytester: pytest.Pytester, github: Path
) -> None:
    pytester.makepyfile(OUTCOMES)

    result = pytester.runpytest("--device-ci=off")

    assert github.read_text() == ""
    assert commands(result.stdout.str()) == []


@pytest.mark.usefixtures("service", "github")
def test_a_run_without_devices_reports_nothing(
    pytester: pytest.Pytester, github: Path
) -> None:
    pytester.makepyfile("def test_fails(): assert 0")

    result = pytester.runpytest()

    assert github.read_text() == ""
    assert commands(result.stdout.str()) == []
