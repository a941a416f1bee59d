"""``pytest-device init``: which files it writes, with which content, all or nothing."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

import pytest_device
from pytest_device.plugin.output.exit_status import INFRASTRUCTURE_ONLY
from tests.cli.running import CODE, call, run

TEMPLATES = Path(pytest_device.__file__).parent / "cli" / "suite"
FILES = {
    *("test_sign_in.py", "conftest.py", "pytest.ini", "app/index.html"),
    *(".github/workflows/device-tests.yml", ".gitlab-ci.yml", ".gitignore"),
}
SMALL_FILES_ONLY = (
    f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (700, 700)); {CODE}"
)


def files_in(directory: Path) -> dict[str, bytes]:
    found = (
        path
        for path in directory.rglob("*")
        if path.is_file() and path.parent.name != "__pycache__"
    )
    return {str(path.relative_to(directory)): path.read_bytes() for path in found}


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    assert call("init", str(tmp_path / "suite")).returncode == 0
    return tmp_path / "suite"


def loaded(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def test_it_writes_a_suite_and_prints_each_file_and_the_command_to_run(
    tmp_path: Path,
) -> None:
    directory = tmp_path / "my suite"

    result = call("init", str(directory))

    assert result.returncode == 0
    written = files_in(directory)
    written["gitignore"] = written.pop(".gitignore")
    assert written == files_in(TEMPLATES)
    assert (
        set(
            re.findall(
                rf"^wrote {re.escape(str(directory))}/(.+)$",
                result.stdout,
                flags=re.MULTILINE,
            )
        )
        == FILES
    )
    assert result.stdout.endswith(f"\nRun the tests: cd '{directory}' && pytest\n")


def test_without_a_directory_it_writes_into_the_current_one(tmp_path: Path) -> None:
    result = run("init", cwd=tmp_path)

    assert set(files_in(tmp_path)) == FILES
    assert result.stdout.endswith("\nRun the tests: pytest\n")


def test_a_directory_with_other_files_is_accepted(tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "README.md").touch()

    assert call("init", str(tmp_path)).returncode == 0
    assert set(files_in(tmp_path)) == {*FILES, "README.md"}


def test_it_names_every_existing_file_and_writes_nothing(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("mine")
    (tmp_path / ".gitlab-ci.yml").symlink_to(tmp_path / "nowhere")

    result = call("init", str(tmp_path))

    assert (result.returncode, result.stdout) == (2, "")
    existing = f"{tmp_path} already has conftest.py, .gitlab-ci.yml"
    assert (
        result.stderr
        == f"pytest-device: nothing was written: {existing}; name another directory\n"
    )
    assert files_in(tmp_path) == {"conftest.py": b"mine"}


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("file", "File exists"),
        ("file/suite", "File exists"),
        ("x" * 300, "File name too long"),
        (
            "/sys/suite",
            "Operation not permitted|Permission denied|Read-only file system|No such file",
        ),
    ],
)
def test_an_unwritable_directory_is_a_one_line_error(
    tmp_path: Path, place: str, reason: str
) -> None:
    (tmp_path / "file").touch()

    result = call("init", str(tmp_path / place))

    assert (result.returncode, result.stdout) == (2, "")
    assert re.fullmatch(
        rf"pytest-device: nothing was written: \S+: ({reason}); name another directory\n",
        result.stderr,
    )
    assert files_in(tmp_path) == {"file": b""}


def test_a_file_in_place_of_a_directory_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "app").touch()

    result = call("init", str(tmp_path))

    assert result.returncode == 2
    assert f"{tmp_path / 'app'}: File exists" in result.stderr
    assert list(tmp_path.rglob("*")) == [tmp_path / "app"]


def test_a_disk_that_fills_up_halfway_leaves_nothing_behind(tmp_path: Path) -> None:
    result = run("init", str(tmp_path / "deep" / "suite"), code=SMALL_FILES_ONLY)

    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert "File too large" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_three_lines_are_marked_for_an_account_and_a_native_app(suite: Path) -> None:
    ini, conftest = (
        (suite / "pytest.ini").read_text(),
        (suite / "conftest.py").read_text(),
    )

    assert re.search(
        r"With an account, replace these two lines.*\ndevice_local = \S+\ndevice_\w+ = \S+\n$",
        ini,
        re.DOTALL,
    )
    assert re.search(r"^APP = .* # .*for a native app", conftest, re.MULTILINE)


def test_the_job_for_github_has_the_token_from_a_secret_a_cache_and_artifacts(
    suite: Path,
) -> None:
    job = loaded(suite / ".github/workflows/device-tests.yml")["jobs"]["device-tests"]
    steps = {
        step.get("uses", step.get("run", "")).split("@")[0].split()[0]: step
        for step in job["steps"]
    }

    assert steps["exec"]["run"].startswith("exec pytest ")
    assert steps["exec"]["env"] == {"DEVICE_TOKEN": "${{ secrets.DEVICE_TOKEN }}"}
    assert steps["actions/cache"]["with"]["path"] == "~/.cache/pytest-device"
    assert (
        f"--device-artifacts-dir={steps['actions/upload-artifact']['with']['path']} "
        in steps["exec"]["run"]
    )
    assert steps["actions/upload-artifact"]["if"] == "always()"
    assert " --device-report=artifacts/report " in steps["exec"]["run"]


def test_the_job_for_gitlab_has_no_token_a_cache_and_artifacts(suite: Path) -> None:
    job = loaded(suite / ".gitlab-ci.yml")["device-tests"]

    assert job["script"][-1].startswith("exec pytest ")
    assert "DEVICE_TOKEN" not in job["variables"]
    assert job["variables"]["XDG_CACHE_HOME"] == "$CI_PROJECT_DIR/.cache"
    assert job["cache"]["paths"] == [".cache/pytest-device"]
    assert (
        f"--device-artifacts-dir={job['artifacts']['paths'][0]} " in job["script"][-1]
    )
    assert job["artifacts"]["when"] == "always"
    assert " --device-report=artifacts/report " in job["script"][-1]
    assert job["retry"] == {"max": 1, "exit_codes": INFRASTRUCTURE_ONLY}


def test_an_existing_gitignore_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("mine\n")

    result = call("init", str(tmp_path))

    assert result.returncode == 0
    assert f"left {tmp_path / '.gitignore'} as it is\n" in result.stdout
    assert set(files_in(tmp_path)) == FILES
    assert files_in(tmp_path)[".gitignore"] == b"mine\n"


def test_a_suite_for_agent_device_has_its_build(tmp_path: Path) -> None:
    result = call("init", "--type", "agent-device", str(tmp_path))

    assert result.returncode == 0
    written = files_in(tmp_path)
    ini = written["pytest.ini"].decode()
    (build,) = re.findall(r"^device_build_id = (\S+)$", ini, re.MULTILINE)
    assert set(written) == {
        *("test_sign_in.py", "pytest.ini", ".gitignore", ".gitlab-ci.yml"),
        ".github/workflows/device-tests.yml",
        f"builds/{build}/build.json",
        f"builds/{build}/app/index.html",
    }


def test_a_type_that_has_no_suite_is_a_usage_error(tmp_path: Path) -> None:
    result = call("init", "--type", "argent", str(tmp_path))

    assert result.returncode == 2
    assert "invalid choice: 'argent'" in result.stderr
    assert list(tmp_path.iterdir()) == []
