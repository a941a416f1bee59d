"""One file per session: written atomically, readable by its user only, never silently skipped."""

import errno
import json
import os
import shutil
import stat
import subprocess
import sys
import threading
from pathlib import Path
from uuid import uuid4

import pytest

from pytest_device.sessions.ledger import DamagedEntryError, Entry, Ledger
from pytest_device.sessions.states import RECORDED, WITHOUT_ID, Phase

pytestmark = pytest.mark.every_python

ENTRY = Entry(
    "0" * 32,
    "main",
    "https://devices.example",
    "ios argent",
    "a test",
    "2026-01-01T00:00:00+00:00",
    35,
)

WRITES_TO_A_FULL_DISK = """
import resource, sys
from pytest_device.sessions.ledger import Entry, Ledger
ledger = Ledger(sys.argv[1])
entry = ledger.read()[0][0]
resource.setrlimit(resource.RLIMIT_FSIZE, (20, 20))
try:
    ledger.write(entry._replace(url="https://devices.example/1"))
except OSError as error:
    print(type(error).__name__)
"""


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(str(tmp_path))


def test_an_entry_is_read_as_it_was_written(ledger: Ledger) -> None:
    entry = ENTRY._replace(
        name='tést "one"\n',
        session_id="7d7a1f0e-0f4c-4f2e-9b0a-0c9d6a1f2b3c",
        url="https://devices.example/1",
        state=Phase.LIVE,
    )

    ledger.write(entry)

    assert ledger.read() == ([entry], {})


def test_a_written_entry_replaces_its_previous_version(
    ledger: Ledger, tmp_path: Path
) -> None:
    ledger.write(ENTRY)

    ledger.write(
        ENTRY._replace(
            state=Phase.LIVE, session_id="7d7a1f0e-0f4c-4f2e-9b0a-0c9d6a1f2b3c"
        )
    )

    assert [entry.state for entry in ledger.read()[0]] == [Phase.LIVE]
    assert [path.name for path in tmp_path.iterdir()] == [f"{ENTRY.intent}.json"]


def test_a_new_entry_never_replaces_another_one(ledger: Ledger, tmp_path: Path) -> None:
    ledger.add(ENTRY)

    with pytest.raises(FileExistsError):
        ledger.add(ENTRY._replace(label="android appium"))

    assert ledger.read() == ([ENTRY], {})
    assert [path.name for path in tmp_path.iterdir()] == [f"{ENTRY.intent}.json"]


def test_nor_does_it_on_a_file_system_without_hard_links(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def link(_source: str, _target: str) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", link)
    ledger.add(ENTRY)

    with pytest.raises(FileExistsError):
        ledger.add(ENTRY._replace(label="android appium"))

    assert ledger.read() == ([ENTRY], {})
    assert [path.name for path in tmp_path.iterdir()] == [f"{ENTRY.intent}.json"]


def _fail_on_directories(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Let the system refuse to make changes of directories durable, with this error."""
    fsync = os.fsync

    def refusing(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(number, os.strerror(number))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", refusing)


@pytest.mark.skipif(sys.platform == "win32", reason="directories are not synchronized")
def test_an_entry_is_written_where_directories_cannot_be_synchronized(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fail_on_directories(monkeypatch, errno.EINVAL)

    ledger.add(ENTRY)

    assert ledger.read() == ([ENTRY], {})


@pytest.mark.skipif(sys.platform == "win32", reason="directories are not synchronized")
def test_an_entry_that_is_not_durable_is_not_left(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fail_on_directories(monkeypatch, errno.EIO)

    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        ledger.add(ENTRY)

    assert list(tmp_path.iterdir()) == []


def test_a_file_system_without_hard_links_that_is_full_leaves_no_entry(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_source: str, _target: str) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "link", refuse)
    monkeypatch.setattr(os, "replace", refuse)

    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        ledger.add(ENTRY)

    assert list(tmp_path.iterdir()) == []


def test_a_claimed_entry_never_replaces_another_one(tmp_path: Path) -> None:
    theirs, ours = Ledger(str(tmp_path / "theirs")), Ledger(str(tmp_path / "ours"))
    for ledger in (theirs, ours):
        Path(ledger.directory).mkdir()
    live = ENTRY._replace(
        state=Phase.LIVE, session_id="7d7a1f0e-0f4c-4f2e-9b0a-0c9d6a1f2b3c"
    )
    theirs.keep_warm(live)
    ours.write(
        other := live._replace(session_id="00000000-0f4c-4f2e-9b0a-0c9d6a1f2b3c")
    )

    assert not theirs.claim(ENTRY.intent, ours)

    assert ours.read() == ([other], {})
    assert theirs.keeps_warm(ENTRY.intent)


def test_only_one_of_many_claims_on_an_entry_succeeds(tmp_path: Path) -> None:
    directories = [tmp_path / str(number) for number in range(9)]
    for directory in directories:
        directory.mkdir()
    warm, *others = (Ledger(str(directory)) for directory in directories)
    warm.keep_warm(ENTRY._replace(session_id=str(uuid4())))
    start, had = threading.Barrier(8), list[bool]()

    def claim(other: Ledger) -> None:
        start.wait()
        had.append(warm.claim(ENTRY.intent, other))

    threads = [threading.Thread(target=claim, args=(other,)) for other in others]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert sorted(had) == [False] * 7 + [True]
    assert [
        entry.state for ledger in [warm, *others] for entry in ledger.read()[0]
    ] == [Phase.LIVE]


def test_only_its_user_can_read_an_entry(ledger: Ledger, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        ledger.write(ENTRY)
    finally:
        os.umask(before)

    assert stat.S_IMODE((tmp_path / f"{ENTRY.intent}.json").stat().st_mode) == 0o600


@pytest.mark.skipif(sys.platform == "win32", reason="no limit on the size of files")
def test_a_full_disk_leaves_only_the_previous_version(
    ledger: Ledger, tmp_path: Path
) -> None:
    ledger.write(ENTRY)

    command = [sys.executable, "-c", WRITES_TO_A_FULL_DISK, str(tmp_path)]
    reported = subprocess.run(
        command, capture_output=True, text=True, check=True
    ).stdout

    assert reported == "OSError\n"
    assert ledger.read() == ([ENTRY], {})
    assert [path.suffix for path in tmp_path.iterdir()] == [".json"]


def test_writing_to_a_missing_directory_is_an_error(
    ledger: Ledger, tmp_path: Path
) -> None:
    shutil.rmtree(tmp_path)

    with pytest.raises(FileNotFoundError):
        ledger.write(ENTRY)


def test_removing_a_missing_entry_is_not_an_error(ledger: Ledger) -> None:
    ledger.write(ENTRY)
    assert ledger.holds(ENTRY.intent)

    ledger.remove(ENTRY.intent)
    ledger.remove(ENTRY.intent)

    assert not ledger.holds(ENTRY.intent)


def test_an_unreadable_entry_counts_as_warm_and_a_missing_one_does_not(
    tmp_path: Path,
) -> None:
    (tmp_path / "no-directory").touch()

    assert Ledger(str(tmp_path / "no-directory")).keeps_warm(ENTRY.intent)
    assert not Ledger(str(tmp_path / "none")).keeps_warm(ENTRY.intent)


def test_a_run_without_a_directory_has_no_entries(tmp_path: Path) -> None:
    assert Ledger(str(tmp_path / "none")).read() == ([], {})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not an entry"),
        (ENTRY.to_json()[:-1], "not an entry"),
        ("[" * 100_000, "not an entry"),
        ("[]", "not an entry"),
        ("{}", "not an entry"),
        (json.dumps({**json.loads(ENTRY.to_json()), "more": 1}), "not an entry"),
        (
            json.dumps({"version": 3, "session": ENTRY.session_id}),
            "its version 3 is not supported",
        ),
        (
            json.dumps({**json.loads(ENTRY.to_json()), "minutes": "35"}),
            "the wrong type",
        ),
        (
            json.dumps({**json.loads(ENTRY.to_json()), "state": "odd"}),
            "'odd' is unknown",
        ),
        (
            json.dumps({**json.loads(ENTRY.to_json()), "state": "live"}),
            "'live' contradicts the session ID ''",
        ),
        (
            json.dumps(
                {**json.loads(ENTRY.to_json()), "state": "kept", "session_id": "../1"}
            ),
            "the session ID '../1'",
        ),
    ],
)
def test_a_damaged_file_is_named_next_to_the_intact_ones(
    ledger: Ledger, tmp_path: Path, text: str, reason: str
) -> None:
    ledger.write(ENTRY)
    broken = tmp_path / "broken.json"
    broken.write_text(text)

    entries, damaged = ledger.read()

    assert entries == [ENTRY]
    assert list(damaged) == [str(broken)]
    assert reason in damaged[str(broken)]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("intent", "../../etc/passwd"),
        ("intent", "a.b"),
        ("owner", "../main"),
        ("owner", ""),
    ],
)
def test_values_used_in_paths_are_validated(field: str, value: str) -> None:
    with pytest.raises(DamagedEntryError, match="not a valid name"):
        Entry.from_json(json.dumps({**json.loads(ENTRY.to_json()), field: value}))


def test_an_entry_under_another_entrys_file_name_is_damaged(
    ledger: Ledger, tmp_path: Path
) -> None:
    (tmp_path / f"{'1' * 32}.json").write_text(ENTRY.to_json())

    entries, damaged = ledger.read()

    assert (entries, list(damaged.values())) == (
        [],
        [f"it is the entry {ENTRY.intent!r}"],
    )


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes and no symbolic links")
def test_only_regular_files_are_read_without_waiting(
    ledger: Ledger, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / f"{'1' * 32}.json")
    (tmp_path / "entry").write_text(ENTRY.to_json())
    (tmp_path / f"{ENTRY.intent}.json").symlink_to(tmp_path / "entry")

    entries, damaged = ledger.read()

    assert entries == []
    assert "symbolic links" in damaged[str(tmp_path / f"{ENTRY.intent}.json")]
    assert damaged[str(tmp_path / f"{'1' * 32}.json")] == "it is not a regular file"


def test_an_unreadable_file_is_damaged(ledger: Ledger, tmp_path: Path) -> None:
    (tmp_path / "a-directory.json").mkdir()

    entries, damaged = ledger.read()

    assert (entries, list(damaged)) == ([], [str(tmp_path / "a-directory.json")])


def test_undecodable_bytes_are_not_an_entry() -> None:
    with pytest.raises(DamagedEntryError):
        Entry.from_json(b"\xff\xfe\x00")


def test_a_new_entry_has_no_session_id() -> None:
    assert (ENTRY.state, ENTRY.session_id) == (Phase.CREATING, "")


@pytest.mark.parametrize(
    ("word", "phase"),
    [
        ("asked", Phase.CREATING),
        ("lost", Phase.LOST),
        ("live", Phase.LIVE),
        ("kept", Phase.KEPT),
        ("warm", Phase.WARM),
        ("stopped", Phase.STOPPED),
        ("gone", Phase.GONE),
    ],
)
def test_the_entries_of_earlier_versions_are_read_and_written_in_their_words(
    word: str, phase: Phase
) -> None:
    session_id = "" if phase in WITHOUT_ID else "7d7a1f0e-0f4c-4f2e-9b0a-0c9d6a1f2b3c"
    values = json.loads(ENTRY.to_json()) | {"state": word, "session_id": session_id}

    entry = Entry.from_json(json.dumps(values))

    assert entry.state is phase
    assert json.loads(entry.to_json()) == values
    assert values["version"] == 2


@pytest.mark.parametrize("phase", sorted(set(Phase) - RECORDED))
def test_a_phase_that_only_a_reaper_knows_is_not_read(phase: Phase) -> None:
    values = json.loads(ENTRY.to_json()) | {"state": str(phase)}

    with pytest.raises(DamagedEntryError, match="is unknown"):
        Entry.from_json(json.dumps(values))
