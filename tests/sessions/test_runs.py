"""An owner is alive as long as it holds its lock, whatever clocks and process IDs indicate."""

import errno
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest

from pytest_device.sessions.ledger import Entry
from pytest_device.sessions.runs import (
    OwnRun,
    PastRun,
    account_of,
    new_run,
    past_runs,
)

ENTRY = Entry(
    "0" * 32,
    "main",
    "https://devices.example",
    "ios argent",
    "a test",
    "2026-01-01T00:00:00+00:00",
    35,
)

JOINS = """
import sys
from pathlib import Path
from uuid import uuid4
from pytest_device.sessions.runs import OwnRun
run = OwnRun.join(Path(sys.argv[1]), "a-run", "gw0")
print(run.owner, flush=True)
sys.stdin.read()
"""


@contextmanager
def another_process(state_dir: Path) -> Generator[tuple[subprocess.Popen[str], str]]:
    """Provide a process that belongs to the run, and its owner's name."""
    command = [sys.executable, "-c", JOINS, str(state_dir)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


def is_over(run: PastRun) -> bool:
    with run.claimed() as over:
        return over


def only_run(state_dir: Path) -> PastRun:
    (run,) = past_runs(state_dir)
    return run


def test_a_run_with_a_live_owner_cannot_be_claimed(tmp_path: Path) -> None:
    with another_process(tmp_path):
        assert not is_over(only_run(tmp_path))


def test_the_run_of_a_killed_owner_can_be_claimed(tmp_path: Path) -> None:
    with another_process(tmp_path) as (process, _owner):
        process.kill()
        process.wait()

        assert is_over(only_run(tmp_path))


def test_a_claimed_run_cannot_be_claimed_again(tmp_path: Path) -> None:
    with another_process(tmp_path) as (process, _owner):
        process.kill()
        process.wait()

    with only_run(tmp_path).claimed() as first, only_run(tmp_path).claimed() as second:
        assert (first, second) == (True, False)


def test_one_live_owner_of_several_keeps_the_run_alive(tmp_path: Path) -> None:
    run = OwnRun.join(tmp_path, "a-run", "main")
    with another_process(tmp_path) as (process, _owner):
        process.kill()
        process.wait()

    assert not is_over(PastRun(run.directory))
    run.leave()


def test_checking_a_live_run_does_not_make_its_dead_owners_appear_alive(
    tmp_path: Path,
) -> None:
    with another_process(tmp_path) as (process, owner):
        process.kill()
        process.wait()
    run = OwnRun.join(tmp_path, "a-run", "main")

    with PastRun(run.directory).claimed() as over:
        assert not over
        assert not PastRun(run.directory).has_living(owner)
    run.leave()


def test_the_processes_of_a_run_see_that_another_one_lives(tmp_path: Path) -> None:
    run = OwnRun.join(tmp_path, "a-run", "main")
    with another_process(tmp_path) as (_process, owner):
        assert PastRun(run.directory).has_living(owner)
    run.leave()


def test_a_run_without_a_lock_does_not_count_as_finished(tmp_path: Path) -> None:
    (tmp_path / "runs" / "a-run").mkdir(parents=True)

    assert not is_over(only_run(tmp_path))


def test_a_run_without_sessions_leaves_nothing(tmp_path: Path) -> None:
    OwnRun.join(tmp_path, "a-run", "main").leave()

    assert past_runs(tmp_path) == []


def test_a_run_with_a_leftover_session_stays(tmp_path: Path) -> None:
    run = OwnRun.join(tmp_path, "a-run", "main")
    run.ledger.write(ENTRY)

    run.leave()

    assert only_run(tmp_path).ledger.read() == ([ENTRY], {})
    assert is_over(only_run(tmp_path))


def test_the_last_owner_to_leave_removes_the_run(tmp_path: Path) -> None:
    first, second = (OwnRun.join(tmp_path, "a-run", name) for name in ("main", "gw0"))

    first.leave()
    assert past_runs(tmp_path) != []
    second.leave()

    assert past_runs(tmp_path) == []


def test_a_cleared_run_keeps_its_other_entries(tmp_path: Path) -> None:
    run = OwnRun.join(tmp_path, "a-run", "main")
    other = ENTRY._replace(intent="1" * 32)
    run.ledger.write(ENTRY)
    run.ledger.write(other)
    run.leave()

    only_run(tmp_path).clear([ENTRY])

    assert only_run(tmp_path).ledger.read() == ([other], {})


@pytest.mark.skipif(sys.platform == "win32", reason="no such permissions")
def test_tokens_are_told_apart_on_a_file_system_without_hard_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def link(_source: object, _target: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", link)

    first = account_of(tmp_path, "a token")

    assert first
    assert account_of(tmp_path, "a token") == first
    assert account_of(tmp_path, "another token") != first
    assert len(list(tmp_path.iterdir())) == 1


def test_only_this_user_can_read_the_directory(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        run = OwnRun.join(tmp_path / "state", "a-run", "main")
    finally:
        os.umask(before)

    modes = {
        path.name: stat.S_IMODE(path.stat().st_mode)
        for path in (tmp_path / "state").rglob("*")
    }
    assert modes == {"runs": 0o700, "a-run": 0o700, f"{run.owner}.lock": 0o600}
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700
    run.leave()


def test_an_impossible_state_directory_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file")

    with pytest.raises(OSError, match="state"):
        OwnRun.join(tmp_path / "state", "a-run", "main")


def test_owners_that_join_during_a_sweep_keep_their_locks(tmp_path: Path) -> None:
    over = threading.Event()

    def sweep_again_and_again() -> None:
        while not over.is_set():
            for run in past_runs(tmp_path):
                with run.claimed() as claimed:
                    if claimed:
                        run.clear(())

    sweepers = [threading.Thread(target=sweep_again_and_again) for _ in range(2)]
    for sweeper in sweepers:
        sweeper.start()
    try:
        for _ in range(100):
            run = OwnRun.join(tmp_path, "a-run", "main")
            intent = uuid4().hex
            run.ledger.write(ENTRY._replace(intent=intent))
            assert not is_over(PastRun(run.directory))
            run.ledger.remove(intent)
            run.leave()
    finally:
        over.set()
        for sweeper in sweepers:
            sweeper.join(10)


def test_no_two_runs_have_the_same_name() -> None:
    assert new_run() != new_run()


def test_a_new_run_has_a_directory_of_its_own_even_if_its_name_is_taken(
    tmp_path: Path,
) -> None:
    first, second = (OwnRun.start(tmp_path, "a-name", "main") for _ in range(2))

    assert [first.name, second.name] == ["a-name", "a-name-1"]
    for run in (first, second):
        run.leave()
    assert past_runs(tmp_path) == []


def test_an_owner_never_has_the_name_of_a_dead_one_whose_sessions_are_left(
    tmp_path: Path,
) -> None:
    dead = OwnRun.join(tmp_path, "a-run", "main")
    dead.ledger.write(ENTRY)
    dead.leave()

    owner = OwnRun.join(tmp_path, "a-run", "main")

    assert owner.owner != dead.owner
    assert not owner.has_living(dead.owner)
    owner.leave()


@pytest.mark.skipif(sys.platform == "win32", reason="no flock")
@pytest.mark.parametrize("code", [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_an_error_and_keeps_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    import fcntl

    def flock(_file: int, _operation: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", flock)

    with pytest.raises(OSError, match=os.strerror(code)):
        OwnRun.start(tmp_path, "a-run", "main")

    assert past_runs(tmp_path) == []
