"""The artifacts directory: names, no secrets, and a warning if writing fails."""

import json
import ntpath
import os
from pathlib import Path, PureWindowsPath
from xml.etree import ElementTree as ET

import pytest

from pytest_device.platforms.places import path_from
from pytest_device.plugin.output.artifacts import file_name
from pytest_device.testing import FaultyService
from tests.plugin.runs import NEEDS_SUBTESTS, ON_A_WORKER

FAILING = """
import pytest

@pytest.mark.device(platform="android")
def test_fails(): assert 1 == 2, "the test's own error"
"""
OF_AN_EARLIER_RUN = """
import json, pytest

@pytest.mark.device(platform="android")
def test_fails(device_session, device_artifacts_dir):
    for name in ("session.json", "video.webm", "notes.txt", "../other.txt"):
        (device_artifacts_dir / name).write_text("old")
    names = ["session.json", "video.webm", "../other.txt", "video.mp4"]
    (device_artifacts_dir / "failure.json").write_text(json.dumps({"files": names}))
    assert False
"""
ADDRESS = "https://user:pw123456@archives.example/app.zip"


@pytest.mark.parametrize("options", ON_A_WORKER)
def test_an_unwritable_artifacts_directory_is_noted_once_and_tests_keep_their_own_errors(
    pytester: pytest.Pytester, service: FaultyService, options: list[str]
) -> None:
    pytester.makepyfile(FAILING, test_other=FAILING)
    (pytester.path / "left").touch()

    result = pytester.runpytest("--device-artifacts-dir=left", *options)

    result.assert_outcomes(failed=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.no_fnmatch_line("*INTERNALERROR*")
    result.stdout.fnmatch_lines(["E*the test's own error*"])
    (note,) = [line for line in result.outlines if "cannot save artifacts" in line]
    assert note.startswith(f"cannot save artifacts in {pytester.path / 'left'} (")
    assert "--device-artifacts-dir" in note
    assert service.statuses() == ["stopped", "stopped"]


def test_an_unwritable_report_is_noted(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(FAILING.replace("assert", "pass #"))
    (pytester.path / "left").touch()

    result = pytester.runpytest("--device-report=left")

    assert (result.ret, service.statuses()) == (pytest.ExitCode.OK, ["stopped"])
    result.stdout.no_fnmatch_line("*INTERNALERROR*")
    result.stdout.fnmatch_lines(["cannot write the report in *--device-report"])


def test_the_receipt_of_all_workers_is_saved_where_pytest_was_started(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(FAILING, test_other=FAILING)

    pytester.runpytest("--device-report=left", "-n2")

    report = json.loads((pytester.path / "left" / "device-run.json").read_text())
    receipt = report["receipt"]
    assert (
        (receipt["created"], receipt["stopped"])
        == (2, 2)
        == (len(service.sessions()), 2)
    )


def test_the_receipt_is_next_to_the_tests_artifacts_even_if_the_directory_was_changed(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(FAILING)
    pytester.makeconftest("import os\nos.mkdir('elsewhere')\nos.chdir('elsewhere')")

    pytester.runpytest(
        "--device-artifacts-dir=left", "--device-report=left"
    ).assert_outcomes(failed=1)

    assert len(service.sessions()) == 1
    assert [path.name for path in (pytester.path / "left").glob("*.json")] == [
        "device-run.json"
    ]
    assert len(list((pytester.path / "left").glob("*/session.json"))) == 1
    assert list((pytester.path / "elsewhere").iterdir()) == []


def test_each_device_has_its_own_directory_below_the_tests_whatever_its_name(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    names = ["..", "a b", "a-b", "a/b", "x" * 300, "端" * 90]
    markers = "\n".join(
        f"@pytest.mark.device({name!r}, platform='android')" for name in names
    )
    pytester.makepyfile(f"import pytest\n\n{markers}\ndef test_fails(): assert False")

    pytester.runpytest("--device-artifacts-dir=left").assert_outcomes(failed=1)

    (test,) = [path for path in (pytester.path / "left").iterdir() if path.is_dir()]
    saved = {
        path.parent: json.loads(path.read_text())["id"]
        for path in pytester.path.rglob("session.json")
    }
    assert {place.parent for place in saved} == {test}
    assert sorted(saved.values()) == sorted(
        session["id"] for session in service.sessions()
    )
    assert "a-b" in {place.name for place in saved}


def test_the_session_details_contain_neither_url_queries_nor_launch_arguments(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    reported = {
        "applicationArchiveUrl": f"{ADDRESS}?sig=abcdefgh",
        "launchArgs": ["--key=sesame"],
        "openUrl": "app://open",
    }
    service.add_fault("get", "change", fields=reported, times=None)
    pytester.makepyfile(FAILING)

    pytester.runpytest("--device-artifacts-dir=left").assert_outcomes(failed=1)

    (path,) = Path("left").rglob("session.json")
    facts = json.loads(path.read_text())
    assert facts["applicationArchiveUrl"] == "https://***@archives.example/app.zip?…"
    assert facts.keys().isdisjoint({"launchArgs", "openUrl", "remoteConfig"})


def test_a_failed_test_reports_its_device_and_saves_artifacts_in_the_default_directory(
    pytester: pytest.Pytester, service: FaultyService, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makepyfile(test_it=FAILING)

    monkeypatch.delenv("PYTEST_ADDOPTS")  # which leaves pytest-html out
    result = pytester.runpytest("--junitxml=report.xml", "--html=report.html")

    (session,) = service.sessions()
    place = next(Path("device-artifacts").glob("*test_fails*"))
    section = [
        "android agent-device, session page:",
        f"    {service.url}/sessions/{session['id']}",
        f"artifacts: {place}",
    ]
    result.stdout.fnmatch_lines(["-* device -*", *section], consecutive=True)
    (failure,) = ET.parse("report.xml").iter("failure")
    assert "\n".join(section) in str(failure.text)
    assert all(line.strip() in Path("report.html").read_text() for line in section)
    assert (place / "session.json").exists()
    assert Path("device-artifacts/.gitignore").read_text() == "*\n"


def test_a_teardown_error_reports_the_tests_device(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.fixture
        def login(device_session):
            yield
            assert False

        @pytest.mark.device(platform="android")
        def test_it(login): pass
        """
    )

    result = pytester.runpytest()

    (session,) = service.sessions()
    section = [
        "android agent-device, session page:",
        f"    {service.url}/sessions/{session['id']}",
    ]
    result.stdout.fnmatch_lines(["-* device -*", *section], consecutive=True)


@pytest.mark.usefixtures("service")
def test_a_run_without_failures_saves_nothing(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(FAILING.replace("assert", "pass #"))

    pytester.runpytest().assert_outcomes(passed=1)

    assert not Path("device-artifacts").exists()


@pytest.mark.usefixtures("service")
def test_each_of_several_devices_is_reported_by_name(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.device("alice", platform="android")
        @pytest.mark.device("bob", platform="ios")
        def test_chats(device_sessions): assert False
        """
    )

    result = pytester.runpytest()

    for name in ("alice: android", "bob: ios"):
        result.stdout.fnmatch_lines(
            [f"{name} agent-device, session page:", "    http://127.0.0.1:*/sessions/*"]
        )


@pytest.mark.usefixtures("service")
def test_no_session_id_is_broken_in_80_columns(
    pytester: pytest.Pytester, service: FaultyService, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.add_fault("stop", "reply", status=500, times=1000)
    monkeypatch.setenv("DEVICE_STOP_TIMEOUT_SECONDS", "0.2")
    monkeypatch.setenv("COLUMNS", "80")
    pytester.makepyfile(FAILING)

    for options in ([], ["-v"], ["-n1"]):
        lines = pytester.runpytest(*options).outlines
        found = [
            line for line in lines if "/sessions/" in line or "device stop" in line
        ]
        assert len(found) >= 2
        assert [line for line in found if len(line) > 80] == []


FULL = """
import pytest, resource

@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(call):
    # As on a full disk: every write fails, but files can be created.
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    if call.when == "call":
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        return (yield)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
"""


def test_a_disk_that_is_full_when_a_test_fails_is_noted_and_the_test_keeps_its_error(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makeconftest(FULL)
    pytester.makepyfile(FAILING)

    result = pytester.runpytest("--device-artifacts-dir=left")

    result.assert_outcomes(failed=1)
    result.stdout.no_fnmatch_line("*INTERNALERROR*")
    result.stdout.fnmatch_lines(["E*the test's own error*"])
    assert [line for line in result.outlines if "cannot save artifacts" in line]
    assert service.statuses() == ["stopped"]


NO_DESCRIPTORS = """
import pytest, resource

@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        return (yield)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
"""


def test_a_suite_that_leaves_no_file_descriptor_loses_artifacts_but_not_the_run(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makeconftest(NO_DESCRIPTORS)
    pytester.makepyfile(
        """
        import pytest, resource

        @pytest.mark.device(platform="android")
        def test_leaks(device_session):
            _, limit = resource.getrlimit(resource.RLIMIT_NOFILE)
            resource.setrlimit(resource.RLIMIT_NOFILE, (3, limit))
            assert False, "the test's own error"

        @pytest.mark.device(platform="android")
        def test_next(device_session):
            pass
        """
    )

    result = pytester.runpytest("--device-artifacts-dir=left")

    result.assert_outcomes(passed=1, failed=1)
    result.stdout.no_fnmatch_line("*INTERNALERROR*")
    result.stdout.fnmatch_lines(["E*the test's own error*", "cannot save artifacts *"])
    assert service.statuses() == ["stopped", "stopped"]


def test_a_failure_is_written_for_a_device_that_cannot_be_read(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(
        FAILING.replace("test_fails()", "test_fails(device_agent_device)")
    )

    pytester.runpytest("--device-artifacts-dir=left").assert_outcomes(failed=1)

    (path,) = Path("left").rglob("failure.json")
    failure = json.loads(path.read_text())
    assert failure["error"]["message"].startswith("the test's own error")
    assert failure["source"]["file"].endswith(".py")
    assert failure["missing"][0].startswith("no screenshot.png of the device: ")
    assert failure["verdict"] in {"test", "infrastructure"}
    assert [device["session"] for device in failure["device"]] == [
        session["id"] for session in service.sessions()
    ]


SUBTESTS = """
import pytest

@pytest.mark.device(platform="android")
def test_fails(device_session, subtests):
    for number in range(COUNT):
        with subtests.test(number=number):
            assert number < 0
"""


@NEEDS_SUBTESTS
@pytest.mark.usefixtures("service")
def test_each_failed_subtest_has_files_of_its_own(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it=SUBTESTS.replace("COUNT", "2"))
    result = pytester.runpytest()

    result.stdout.fnmatch_lines(["artifacts: *-????????", "artifacts: */failure-2"])
    (directory,) = Path("device-artifacts").glob("test_it*")
    first, second = (
        json.loads((folder / "failure.json").read_text())
        for folder in (directory, directory / "failure-2")
    )
    assert "assert 0 < 0" in first["error"]["message"]
    assert "assert 1 < 0" in second["error"]["message"]
    assert second["files"] == ["../trace.zip", "session.json"]

    # Of another length: pytest takes a module of the same second and length for the compiled one.
    pytester.makepyfile(test_it=SUBTESTS.replace("COUNT", "0 + 1"))
    pytester.runpytest()

    assert (directory / "session.json").exists()
    assert not list(directory.glob("failure-2/*"))


def test_a_failure_replaces_the_files_of_one_in_an_earlier_run_and_no_others(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makepyfile(test_it=OF_AN_EARLIER_RUN)

    pytester.runpytest("--device-artifacts-dir=left").assert_outcomes(failed=1)

    assert service.statuses() == ["stopped"]
    (failure,) = Path("left").rglob("failure.json")
    assert sorted(path.name for path in failure.parent.iterdir()) == [
        "failure.json",
        "failure.md",
        "notes.txt",
        "session.json",
        "trace.zip",
    ]
    assert (failure.parent / "session.json").read_text() != "old"
    assert Path("left/other.txt").read_text() == "old"

    # A failure of another kind, of which nothing but the trace is saved.
    service.add_fault("boot", "fail")
    pytester.runpytest("--device-artifacts-dir=left").assert_outcomes(errors=1)

    assert sorted(path.name for path in failure.parent.iterdir()) == [
        "notes.txt",
        "trace.zip",
    ]


def test_files_that_an_earlier_run_left_are_not_those_of_a_test_that_passes(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    pytester.makeconftest(
        """
        def pytest_device_artifacts_saved(item, directory):
            (directory / "uploaded").touch()
        """
    )
    pytester.makepyfile(
        test_it="""
        import pytest

        @pytest.mark.device(platform="android")
        def test_passes(device_session): pass
        """
    )
    directory = Path("device-artifacts") / file_name("test_it.py::test_passes")
    directory.mkdir(parents=True)
    (directory / "failure.md").touch()
    os.utime(directory / "failure.md", (0, 0))

    pytester.runpytest().assert_outcomes(passed=1)

    assert service.statuses() == ["stopped"]
    assert [path.name for path in directory.iterdir()] == ["failure.md"]


@pytest.mark.parametrize(
    ("path", "seen"),
    [
        ("C:/suite/device-artifacts/trace.zip", "device-artifacts/trace.zip"),
        ("D:/device-artifacts/trace.zip", "D:/device-artifacts/trace.zip"),
    ],
)
def test_a_path_on_another_drive_of_windows_is_not_relative(
    monkeypatch: pytest.MonkeyPatch, path: str, seen: str
) -> None:
    monkeypatch.setattr(os.path, "relpath", ntpath.relpath)

    from_suite = path_from(PureWindowsPath("C:/suite"), PureWindowsPath(path))

    assert from_suite == PureWindowsPath(seen)


@pytest.mark.usefixtures("service")
def test_artifacts_are_not_collected_but_other_tests_beside_them_are(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(FAILING)
    pytester.runpytest("--device-artifacts-dir=./left").assert_outcomes(failed=1)
    (artifacts,) = {path.parent for path in Path("left").rglob("failure.json")}

    suites = {
        artifacts: "raise AssertionError",
        Path("left", f"{artifacts.name}-retry-1-rerun-2"): "raise AssertionError",
        Path("left", "own"): "def test_own(): pass",
        Path("of-0123abcd"): "def test_elsewhere(): pass",
    }
    for number, (directory, text) in enumerate(suites.items()):
        directory.mkdir(exist_ok=True)
        directory.joinpath(f"test_{number}.py").write_text(text)

    result = pytester.runpytest("--collect-only", "-q", "--device-artifacts-dir=./left")

    assert result.ret == pytest.ExitCode.OK
    names = {line.partition("::")[2] for line in result.outlines if "::" in line}
    assert names == {"test_fails", "test_own", "test_elsewhere"}


@pytest.mark.parametrize(
    ("options", "collected"),
    [((), ["chosen"]), (("--device-artifacts-dir=chosen",), ["chosen", "default"])],
)
def test_only_a_directory_that_was_chosen_may_have_tests(
    pytester: pytest.Pytester, options: tuple[str, ...], collected: list[str]
) -> None:
    # A worker that collects while another one removes the directory would report an error.
    for directory, name in (("chosen", "chosen"), ("device-artifacts", "default")):
        pytester.mkdir(directory)
        Path(directory, f"test_{name}.py").write_text(f"def test_{name}(): pass")

    result = pytester.runpytest("--collect-only", "-q", *options)

    names = [line.rpartition("::test_")[2] for line in result.outlines if "::" in line]
    assert names == collected


MADE_TO_FAIL = """
import pytest

@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if report.when == call_to_fail(item):
        report.outcome = "failed"
        report.longrepr = "the log of the app has an error"

def call_to_fail(item):
    return item.name.rpartition("_")[2]
"""
VERDICTS = """
def pytest_device_verdict(item, when, verdict):
    with open("verdicts.txt", "a") as file:
        print(when, verdict, file=file)
"""
FAILED_BY_A_HOOK = """
import pytest
pytestmark = pytest.mark.device(platform="android")

def test_setup(device_session): assert False, "never called"
def test_call(device_session): pass
def test_skipped_in_call(device_session): pytest.skip("not today")
@pytest.mark.xfail(reason="known")
def test_xfailed_in_call(device_session): assert False, "known"
@pytest.mark.device_quarantine(until="2999-01-31", reason="known")
def test_quarantined_in_call(device_session): pass
def test_teardown(device_session): pass
"""


@pytest.mark.parametrize("options", ON_A_WORKER)
def test_a_failure_that_a_hook_of_the_suite_reports_last_is_like_any_other(
    pytester: pytest.Pytester, service: FaultyService, options: list[str]
) -> None:
    suite = pytester.mkpydir("suite")  # its hooks are registered during collection
    (suite / "conftest.py").write_text(MADE_TO_FAIL + VERDICTS)
    (suite / "test_it.py").write_text(FAILED_BY_A_HOOK)

    result = pytester.runpytest("--device-artifacts-dir=left", *options)

    counts = {"passed": 1, "failed": 3, "errors": 2, "quarantined": 1}
    assert result.parseoutcomes() == counts
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert result.outlines.count("android agent-device, session page:") == 5
    verdicts = (pytester.path / "verdicts.txt").read_text().splitlines()
    assert verdicts == ["setup None", *["call None"] * 4, "teardown None"]
    left = pytester.path / "left"
    failures = {
        path.parent.name: json.loads(path.read_text())
        for path in left.glob("*/failure.json")
    }
    # The last one had no device any more.
    assert len(failures) == 5
    for name, failure in failures.items():
        assert failure["verdict"] == "test"
        assert {"session.json", "trace.zip"} <= set(failure["files"])
        assert (left / name / "failure.md").exists()
        assert (left / name / "trace.zip").exists()

    errors = [failure["error"] for failure in failures.values()]
    by_hook = {"type": "Failed", "message": "the log of the app has an error"}
    assert errors.count(by_hook) >= 2
    assert service.statuses() == ["stopped"] * 6


def test_an_error_that_a_hook_of_the_suite_forgives_is_no_failure(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    service.add_fault("boot", "fail", times=1)
    pytester.makeconftest(MADE_TO_FAIL.replace('"failed"', '"passed"') + VERDICTS)
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.device(platform="android")
        def test_setup(): pass
        """
    )

    result = pytester.runpytest("--device-artifacts-dir=left")

    assert result.ret == pytest.ExitCode.OK
    (test,) = json.loads((pytester.path / "device-report/device-run.json").read_text())[
        "tests"
    ]
    assert (test["outcome"], test["verdict"]) == ("passed", None)
    assert not (pytester.path / "verdicts.txt").exists()
