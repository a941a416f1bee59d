"""The options as plain data: names, defaults and help. Every pytest run loads this, so it loads nothing itself."""

from typing import Final, Generic, TypeVar

T = TypeVar("T")

TOKEN_VARIABLE: Final = "DEVICE_TOKEN"  # noqa: S105  # the name of the variable, not a token


class Option(Generic[T]):
    """One option: ``--device-WORD``, ``DEVICE_WORD`` in the environment, ``device_word`` in the ini file.

    A switch that is on by default is switched off by ``--device-no-WORD``, or ``false`` in the other two. A default of
    several values makes it an option that may be repeated, and that takes commas everywhere.
    """

    def __init__(self, word: str, default: T, help: str, metavar: str = "") -> None:  # noqa: A002  # argparse's name
        self.default = default
        self.metavar = metavar or word.rpartition("_")[2].upper()
        self.help = help
        self.option = f"--device-{'no-' if default is True else ''}{word.replace('_', '-')}"
        self.ini = f"device_{word}"
        self.variable = self.ini.upper()


URL: Final = Option[str | None]("url", None, "address of the service, up to and without /v2")
LOCAL: Final = Option("local", False, "start a local service for this run and end it with the run")
APP_ID: Final = Option[str | None]("app_id", None, "the project that sessions are created in (a UUID)")
PLATFORM: Final = Option[tuple[str, ...]](
    "platform",
    (),
    "android, ios or both: for tests whose marker names none; from the command line or the environment it also "
    "deselects what is marked for others only",
)
TYPE: Final = Option("type", "agent-device", "type of session, where the marker does not say otherwise")
BUILD_ID: Final = Option[str | None](
    "build_id", None, "the build to install (a UUID), where the marker names no source"
)
APPLICATION_ARCHIVE_URL: Final = Option[str | None](
    "application_archive_url", None, "address of the archive to install, where the marker names no source"
)
IDENTIFIER: Final = Option[str | None](
    "identifier", None, "simulator name, UDID or hardware profile, where the marker does not say otherwise"
)
SHARE: Final = Option(
    "share",
    "run",
    "how far tests with an equal request share a session: run, module, class, or test for a fresh one each",
)
TEST_MINUTES: Final = Option(
    "test_minutes", 2, "how long a test may need its device: a shared session that has less left is replaced before it"
)
SPREAD: Final = Option(
    "spread", False, "run each test that is marked for several platforms on one of them, not on every one"
)
REORDER: Final = Option("reorder", True, "group tests that share a session, so that no device is held for later")
SHARD: Final = Option[str | None](
    "shard",
    None,
    "run one part of the suite: 2/4 is the second of four, balanced by what tests need and how long they take",
)
SIZE_DURATIONS: Final = Option(
    "size_durations", False, "ask for sessions only as long as the tests to come took in earlier runs, with a margin"
)
MAX_SESSIONS: Final = Option[int | None](
    "max_sessions", None, "at most so many sessions at once, of all runs of this user on this machine"
)
SLOTS_URL: Final = Option[str | None](
    "slots_url",
    None,
    "the Redis server that counts the sessions of several machines for max_sessions; credentials in the environment "
    "only",
)
PREFETCH: Final = Option(
    "prefetch", 0, "boot the devices of so many tests ahead, where each test has one of its own (share=test)"
)
START_ATTEMPTS: Final = Option(
    "start_attempts", 2, "how many sessions may be tried for a test when one turns errored before it is ready"
)
WAIT_TIMEOUT_SECONDS: Final = Option(
    "wait_timeout_seconds", 900.0, "how long to wait for a session to be in progress, queueing included"
)
POLL_INTERVAL_SECONDS: Final = Option(
    "poll_interval_seconds", 5.0, "pause between two looks at a session that is not ready (local service: 0.2)"
)
MAX_DURATION_MINUTES: Final = Option(
    "max_duration_minutes",
    30,
    "the service ends a session after so many minutes, where the marker does not say otherwise",
)
MAX_IDLE_TIME_MINUTES: Final = Option(
    "max_idle_time_minutes",
    10,
    "the service ends a session whose controller is unused for so many minutes, where its type allows it",
)
POLLING: Final = Option(
    "polling", "fixed", "when to look at a session that is not ready: fixed, or learned from how long past boots took"
)
STOP_TIMEOUT_SECONDS: Final = Option(
    "stop_timeout_seconds", 60.0, "how long the end of a run waits for sessions whose stop did not succeed at once"
)
KEEP_ON_FAILURE: Final = Option(
    "keep_on_failure",
    False,
    "keep the session of a failed test: until a key is pressed, or without a terminal until its own limits end it",
)
KEEP_WARM: Final = Option(
    "keep_warm",
    0,
    "leave the sessions of a run up for so many minutes, for the next run with an equal request to take over",
    "MINUTES",
)
ARTIFACTS_DIR: Final = Option[str | None](
    "artifacts_dir", None, "where what is left of failed tests is put: screenshot, page source, facts of the session"
)
BUILDS_DIR: Final = Option[str | None](
    "builds_dir", None, "where the builds lie that the local service installs by their build id"
)
DRY_RUN: Final = Option(
    "dry_run", False, "tell which sessions the run would create and what they may cost, send nothing, run nothing"
)
PLAN: Final = Option(
    "plan", False, "tell how long the run would take, with how many devices, by earlier runs; send nothing, run nothing"
)
REAPER: Final = Option(
    "reaper", True, "watch over the sessions from a process that outlives the run and stops what it left behind"
)
STATE_DIR: Final = Option[str | None](
    "state_dir",
    None,
    "where sessions are written down, for later runs to stop what is left "
    "(default: $XDG_STATE_HOME/pytest-device, else ~/.local/state/pytest-device)",
)
VENDOR_WORD: Final = Option(
    "vendor", "vendor", "the maker's word as the account's service spells it in requests (vendorGo)"
)
OPTIONS: Final = (
    URL,
    LOCAL,
    APP_ID,
    PLATFORM,
    TYPE,
    BUILD_ID,
    APPLICATION_ARCHIVE_URL,
    IDENTIFIER,
    MAX_DURATION_MINUTES,
    MAX_IDLE_TIME_MINUTES,
    SHARE,
    TEST_MINUTES,
    SPREAD,
    REORDER,
    SHARD,
    SIZE_DURATIONS,
    MAX_SESSIONS,
    SLOTS_URL,
    PREFETCH,
    START_ATTEMPTS,
    WAIT_TIMEOUT_SECONDS,
    POLL_INTERVAL_SECONDS,
    POLLING,
    STOP_TIMEOUT_SECONDS,
    KEEP_ON_FAILURE,
    KEEP_WARM,
    ARTIFACTS_DIR,
    BUILDS_DIR,
    DRY_RUN,
    PLAN,
    REAPER,
    STATE_DIR,
    VENDOR_WORD,
)
