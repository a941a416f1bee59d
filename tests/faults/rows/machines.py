"""Rows: the machine of the run: disk, clock, home directory."""

import resource
import shutil
import subprocess
from typing import Final

from pytest_device.plugin.output.exit_status import INFRASTRUCTURE_ONLY, NO_TEST_FAILED
from tests.faults.acts import (
    KILL,
    at_once,
    boots_for_ever,
    in_test,
    sends,
    touches,
    while_booting,
)
from tests.faults.row import NOBODY, Promise, Row
from tests.faults.row_environment import RowEnvironment
from tests.faults.suites import HOLDS, PASSES, files, many, suite

_UNTIL_GO: Final = suite(
    "reached()\nwhile not (DIRECTORY / 'go').exists(): time.sleep(0.05)"
)
_NO_PLACE: Final = {"DEVICE_STATE_DIR": "{directory}/test_it.py/state"}
"""Below a file: even root can't create a directory there."""
_FULL: Final = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))"
_NO_LEDGER: Final = "device no ledger"
_UNWRITTEN: Final = "device the ledger cannot be written"
_REQUIRED: Final = {"DEVICE_REQUIRE_LEDGER": "true"}
_NO_LOCKS: Final = """
import errno, fcntl

def flock(file, operation):
    raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

fcntl.flock = flock
"""
"""The file system has no locks; filelock's substitute would outlive the run."""
_NO_INODES: Final = """
import errno
real_open = os.open

def no_inode(path, flags, *more, **options):
    if flags & os.O_CREAT and ".lock" in str(path):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
    return real_open(path, flags, *more, **options)

os.open = no_inode
"""
_JUMPING: Final = """
real = {{name: getattr(time, name) for name in {names}}}

def jumping(name):
    return lambda: real[name]() + ({seconds} if (DIRECTORY / "go").exists() else 0)

for name in real: setattr(time, name, jumping(name))
"""
_WALL: Final = ("time", "time_ns")
_ALL: Final = ("time", "monotonic", "perf_counter")


def _jumping(body: str, seconds: float, names: tuple[str, ...]) -> dict[str, str]:
    return dict(suite(body, conftest=_JUMPING.format(names=names, seconds=seconds)))


def _through_a_pipe(env: RowEnvironment) -> None:
    """Start the run with its output in a pipe, because no file can grow."""
    with (env.directory / "output-pipe").open("wb") as file:
        reader = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=file)
    env.readers.append(reader)
    assert reader.stdin
    with reader.stdin as pipe:
        env.start("-s", stdout=pipe)


def _fill_disk(env: RowEnvironment) -> None:
    """Let no file of the reapers grow any more."""
    env.strike()
    for reaper in env.wait_reapers():
        resource.prlimit(reaper.pid, resource.RLIMIT_FSIZE, (0, 0))


def _says_so_once(env: RowEnvironment) -> None:
    """Wait until a test has its session; by then the run has said once that it has no ledger."""
    env.wait_requests("create", 2)
    env.wait_for(
        lambda: env.output().count("later runs cannot stop") == 1,
        "exactly one warning",
        0,
    )


def _remove_state(env: RowEnvironment) -> None:
    env.strike()
    shutil.rmtree(env.state, ignore_errors=True)


def _state_becomes_a_file(env: RowEnvironment) -> None:
    _remove_state(env)
    env.state.write_text("in the way")


_FIRST_HOLDS: Final = """
    @pytest.mark.device(platform="android")
    def test_first(device_lease, device_session):
        reached()
        while not (DIRECTORY / "go").exists(): time.sleep(0.05)
        with device_lease(platform="ios"):
            hold()
    """
_TWICE: Final = ("android", "ios")
_SECOND: Final = """
    @pytest.mark.device(platform="android")
    def test_first(device_session):
        reached()
        while not (DIRECTORY / "go").exists(): time.sleep(0.05)

    @pytest.mark.device(platform="android")
    @pytest.mark.parametrize("n", range(3))
    def test_later(device_session, n): pass
    """

ROWS: Final = (
    Row(
        "the state directory can't be created",
        "Reported once, before the first device; the session is stopped. The next run could not sweep.",
        PASSES,
        settings=_NO_PLACE,
        reported=_NO_LEDGER,
        status=0,
    ),
    Row(
        "the state directory can't be created, with two workers",
        "The same, once for all processes.",
        many(2, "pass"),
        settings=_NO_PLACE,
        options=("-n2",),
        when=_says_so_once,
        reported=_NO_LEDGER,
        sessions=2,
        status=0,
    ),
    Row(
        "the state directory can't be created, with --device-require-ledger",
        "A usage error before anything is sent.",
        PASSES,
        settings={**_NO_PLACE, **_REQUIRED},
        promise=Promise.NONE,
        reported="ERROR: no ledger .*DEVICE_REQUIRE_LEDGER is set.*--device-state-dir",
        sessions=0,
        status=4,
    ),
    Row(
        "the file system has no locks",
        "As without a state directory: a lock that outlives its process would prevent every later sweep.",
        suite(conftest=_NO_LOCKS),
        reported=_NO_LEDGER,
        status=0,
    ),
    Row(
        "the file system has no inodes left",
        "The same.",
        suite(conftest=_NO_INODES),
        reported=_NO_LEDGER,
        status=0,
    ),
    Row(
        "the state directory can't be created, and SIGKILL",
        "Stopped: the reaper doesn't need the disk.",
        HOLDS,
        settings=_NO_PLACE,
        when=in_test,
        fault=sends(KILL),
        reported=NOBODY,
    ),
    Row(
        "the state directory's path is a file",
        "As above.",
        PASSES,
        arm=_state_becomes_a_file,
        reported=_NO_LEDGER,
        status=0,
    ),
    Row(
        "the disk is full",
        "Reported before the first device, as every other ledger that can't be used; the session is stopped.",
        suite(conftest=_FULL),
        start=_through_a_pipe,
        reported=_UNWRITTEN,
        status=0,
    ),
    Row(
        "the disk is full, with --device-require-ledger",
        "No session is created that no later run could find, and the error names the fix.",
        suite(conftest=_FULL),
        start=_through_a_pipe,
        settings=_REQUIRED,
        promise=Promise.NONE,
        reported="config: .*cannot be written.*--device-state-dir",
        sessions=0,
        status=NO_TEST_FAILED,
    ),
    Row(
        "the disk becomes full in a test",
        "The session is stopped.",
        _UNTIL_GO,
        when=in_test,
        fault=at_once(_fill_disk, touches("go")),
    ),
    Row(
        "the disk becomes full in a test, and SIGKILL",
        "Stopped: the reaper doesn't need the disk.",
        HOLDS,
        when=in_test,
        fault=at_once(_fill_disk, sends(KILL)),
        reported=NOBODY,
    ),
    Row(
        "the state directory is removed during the run",
        "Stopped.",
        _UNTIL_GO,
        when=in_test,
        fault=at_once(_remove_state, touches("go")),
    ),
    Row(
        "the state directory is removed during the run, and SIGKILL",
        "Stopped.",
        HOLDS,
        when=in_test,
        fault=at_once(_remove_state, sends(KILL)),
        reported=NOBODY,
    ),
    Row(
        "the state directory becomes a file during the run",
        "Stopped.",
        _UNTIL_GO,
        when=in_test,
        fault=at_once(_state_becomes_a_file, touches("go")),
    ),
    Row(
        "the state directory becomes a file before the second create call",
        "Reported before the second device; all sessions are stopped.",
        files(_SECOND),
        when=in_test,
        fault=at_once(_state_becomes_a_file, touches("go")),
        reported=_UNWRITTEN,
        sessions=4,
        status=0,
    ),
    Row(
        "the state directory becomes a file before the second create call, with --device-require-ledger",
        "No further session is created, and the errors name the fix.",
        files(_SECOND),
        settings=_REQUIRED,
        when=in_test,
        fault=at_once(_state_becomes_a_file, touches("go")),
        reported="config: .*cannot be written.*--device-state-dir",
        sessions=1,
        status=NO_TEST_FAILED,
    ),
    Row(
        "the machine's clock is set forward by a day in a test",
        "The plugin doesn't depend on it.",
        _jumping("(DIRECTORY / 'go').touch()", 86400, _WALL),
        status=0,
    ),
    Row(
        "the machine's clock is set back by a day in a test",
        "The plugin doesn't depend on it.",
        _jumping("(DIRECTORY / 'go').touch()", -86400, _WALL),
        status=0,
    ),
    Row(
        "the machine's clock is set back by a day while the device boots",
        "The wait does not get longer.",
        _jumping("pass", -86400, _WALL),
        arm=boots_for_ever,
        settings={"DEVICE_WAIT_TIMEOUT_SECONDS": "2"},
        when=while_booting,
        fault=touches("go"),
        status=INFRASTRUCTURE_ONLY,
    ),
    Row(
        "every clock jumps forward by an hour while the device boots",
        "As when a laptop wakes up: the wait ends and the session is stopped.",
        _jumping("pass", 3600, _ALL),
        arm=boots_for_ever,
        when=while_booting,
        fault=touches("go"),
        status=INFRASTRUCTURE_ONLY,
    ),
    Row(
        "every clock jumps back by an hour in a test",
        "The session is stopped.",
        _jumping("(DIRECTORY / 'go').touch()", -3600, _ALL),
        status=0,
    ),
    Row(
        "the test suite freezes every clock",
        "Waits end with their event, the stop with its response.",
        suite(
            conftest="now = time.monotonic()\ntime.monotonic = time.time = lambda: now"
        ),
        status=0,
    ),
    Row(
        "neither home directory nor state directory is known",
        "Stopped; the default directory is created where the home directory should be.",
        PASSES,
        settings={
            "DEVICE_STATE_DIR": "",
            "XDG_STATE_HOME": "",
            "HOME": "{directory}/nowhere",
        },
        status=0,
    ),
    Row(
        "sys.executable is not a Python (an embedded interpreter)",
        "No reaper can start: reported before the first device; the run itself stops the session.",
        suite(conftest="sys.executable = '/bin/false'"),
        reported="device no reaper process can be started|device the reaper process ended unexpectedly",
        status=0,
    ),
    Row(
        "sys.executable is not a Python, with --device-require-ledger",
        "No session is created that would run on if the run were killed.",
        suite(conftest="sys.executable = '/bin/false'"),
        settings=_REQUIRED,
        promise=Promise.NONE,
        reported="config: .*reaper process.*DEVICE_REQUIRE_LEDGER is set",
        sessions=0,
        status=NO_TEST_FAILED,
    ),
)
