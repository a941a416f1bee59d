"""The directory of reports: several processes complete the runs that were killed."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from zipfile import ZipFile

from filelock import FileLock

from pytest_device.report.attempts import (
    AttemptStarted,
    Location,
    RunStarted,
    write,
)
from pytest_device.report.directory import LOCK, complete_killed

PROCESSES = 8
TESTS = 300


def write_killed(directory: Path) -> None:
    with (directory / "killed.jsonl").open("w") as file:
        write(RunStarted("killed", "", "/suite", 1.0, "pytest-device/0"), file)
        for number in range(TESTS):
            began = AttemptStarted(
                f"t::{number}", 0, 0, 1.0, Location("t.py", 1), f"test_{number}"
            )
            write(began, file)


def test_a_killed_run_is_completed_once_whoever_begins_with_it(tmp_path: Path) -> None:
    write_killed(tmp_path)
    at_once = Barrier(PROCESSES)

    def complete() -> list[str]:
        at_once.wait()
        return complete_killed(tmp_path)

    with ThreadPoolExecutor(PROCESSES) as pool:
        completing = [pool.submit(complete) for _ in range(PROCESSES)]

    assert [problem for one in completing for problem in one.result()] == []
    assert [path.name for path in tmp_path.iterdir()] == ["killed.zip"]
    with ZipFile(tmp_path / "killed.zip") as blob:
        assert blob.read("report.jsonl").count(b"onTestEnd") == TESTS


def test_a_run_that_holds_its_lock_is_not_completed(tmp_path: Path) -> None:
    write_killed(tmp_path)

    with FileLock(tmp_path / f"killed{LOCK}"):
        assert complete_killed(tmp_path) == []

        assert (tmp_path / "killed.jsonl").exists()
        assert not (tmp_path / "killed.zip").exists()
