"""The directory of reports: several processes complete the runs that were killed."""

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from filelock import FileLock, Timeout

from pytest_device.report.directory import LOCK, complete_killed
from tests.waiting import eventually

pytestmark = pytest.mark.skipif(
    not hasattr(os, "mkfifo"), reason="Windows has no named pipes in directories"
)


def test_while_a_killed_run_is_completed_no_other_process_uses_its_files(
    tmp_path: Path,
) -> None:
    lines = tmp_path / "killed.jsonl"
    os.mkfifo(lines)
    lock = tmp_path / f"killed{LOCK}"
    with ThreadPoolExecutor(1) as pool, ExitStack() as writers:

        def is_read() -> bool:
            try:
                writer = os.open(lines, os.O_WRONLY | os.O_NONBLOCK)
            except OSError:  # nobody has opened it yet
                return False

            writers.callback(os.close, writer)
            return True

        completing = pool.submit(complete_killed, tmp_path)
        assert eventually(is_read)
        with pytest.raises(Timeout):
            FileLock(lock).acquire(timeout=0)
        assert complete_killed(tmp_path) == []

    (problem,) = completing.result()
    assert problem.endswith("killed.jsonl is empty")
    assert not lock.exists()
