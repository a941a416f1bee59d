"""The options, each declared once. Every pytest run loads this: what parses their texts is loaded with the first."""

from __future__ import annotations  # they would be computed in every run

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypeVar, cast, overload

if TYPE_CHECKING:
    from pytest_device.spec import Platform

T = TypeVar("T")

TOKEN_VARIABLE: Final = "DEVICE_TOKEN"  # noqa: S105  # the name of the variable, not a token


class Option(Generic[T]):
    """One option: ``--device-WORD``, ``DEVICE_WORD`` in the environment, ``device_word`` in the ini file.

    ``kind`` names the function of ``parsers`` for its texts, ``limits`` are the other arguments of that. A switch that
    is on by default is switched off by ``--device-no-WORD``, or ``false`` in the other two. A default of several values
    makes it an option that may be repeated, and that takes commas everywhere.
    """

    def __init__(self, default: T, help: str, kind: str, *limits: int | str, metavar: str = "") -> None:  # noqa: A002  # argparse's name
        self.default = default
        self.help = help
        self.metavar = metavar
        self._kind = kind
        self._limits = limits

    def __set_name__(self, owner: type[Options], word: str) -> None:
        self.word = word
        self.metavar = self.metavar or word.rpartition("_")[2].upper()
        self.flag = f"--device-{'no-' if self.default is True else ''}{word.replace('_', '-')}"
        self.ini = f"device_{word}"
        self.variable = self.ini.upper()

    @overload
    def __get__(self, settings: None, owner: type[Options]) -> Self: ...
    @overload
    def __get__(self, settings: Options, owner: type[Options]) -> T: ...
    def __get__(self, settings: Options | None, owner: type[Options]) -> Self | T:
        return self if settings is None else settings.values.get(self.word, self.default)

    def parse(self, text: str) -> T:
        """Return the value that a text means; raises ValueError with the rule that it breaks, or ConfigError."""
        from pytest_device import parsers

        return cast("T", getattr(parsers, self._kind)(text, *self._limits))

    @property
    def spellings(self) -> str:
        """The ways to give it, in words."""
        return f"{self.flag}, {self.variable} or {self.ini} in the ini file"


class Options:
    """What can be set: an attribute is the option itself on this class, and its value on settings."""

    values: Mapping[str, Any]
    """The values of settings that are not the default, by the option's word."""

    url: Option[str | None] = Option(None, "address of the service, up to and without /v2", "address")
    local = Option(False, "start a local service for this run and end it with the run", "switch")
    app_id: Option[str | None] = Option(
        None, "the project that sessions are created in (a UUID)", "uuid", "the project's UUID"
    )
    platform: Option[tuple[Platform, ...]] = Option(
        (),
        "android, ios or both: for tests whose marker names none; from the command line or the environment it also "
        "deselects what is marked for others only",
        "platforms",
    )
    type = Option("agent-device", "type of session, where the marker does not say otherwise", "session_type")
    build_id: Option[str | None] = Option(
        None, "the build to install (a UUID), where the marker names no source", "uuid", "the UUID of a build"
    )
    application_archive_url: Option[str | None] = Option(
        None, "address of the archive to install, where the marker names no source", "archive_address"
    )
    identifier: Option[str | None] = Option(
        None, "simulator name, UDID or hardware profile, where the marker does not say otherwise", "text"
    )
    max_duration_minutes = Option(
        30, "the service ends a session after so many minutes, where the marker does not say otherwise", "minutes"
    )
    max_idle_time_minutes = Option(
        10,
        "the service ends a session whose controller is unused for so many minutes, where its type allows it",
        "idle_minutes",
    )
    share = Option(
        "run",
        "how far tests with an equal request share a session: run, module, class, or test for a fresh one each",
        "share",
    )
    test_minutes = Option(
        2, "how long a test may need its device: a shared session that has less left is replaced before it", "minutes"
    )
    spread = Option(
        False, "run each test that is marked for several platforms on one of them, not on every one", "switch"
    )
    reorder = Option(True, "group tests that share a session, so that no device is held for later", "switch")
    shard: Option[str | None] = Option(
        None,
        "run one part of the suite: 2/4 is the second of four, balanced by what tests need and how long they take",
        "shard",
    )
    size_durations = Option(
        False, "ask for sessions only as long as the tests to come took in earlier runs, with a margin", "switch"
    )
    max_sessions: Option[int | None] = Option(
        None, "at most so many sessions at once, of all runs of this user on this machine", "number", 1, 1000
    )
    slots_url: Option[str | None] = Option(
        None,
        "the Redis server that counts the sessions of several machines for max_sessions; credentials in the "
        "environment only",
        "slots_address",
    )
    prefetch = Option(
        0,
        "boot the devices of so many tests ahead, where each test has one of its own (share=test)",
        "number",
        0,
        20,
        " of tests",
    )
    start_attempts = Option(
        2, "how many sessions may be tried for a test when one turns errored before it is ready", "number", 1, 10
    )
    wait_timeout_seconds = Option(
        900.0, "how long to wait for a session to be in progress, queueing included", "seconds"
    )
    poll_interval_seconds = Option(
        5.0, "pause between two looks at a session that is not ready (local service: 0.2)", "seconds"
    )
    polling = Option(
        "fixed",
        "when to look at a session that is not ready: fixed, or learned from how long past boots took",
        "choice",
        "fixed",
        "learned",
    )
    stop_timeout_seconds = Option(
        60.0, "how long the end of a run waits for sessions whose stop did not succeed at once", "seconds"
    )
    keep_on_failure = Option(
        False,
        "keep the session of a failed test: until a key is pressed, or without a terminal until its own limits end it",
        "switch",
    )
    keep_warm = Option(
        0,
        "leave the sessions of a run up for so many minutes, for the next run with an equal request to take over",
        "minutes",
        0,
        metavar="MINUTES",
    )
    artifacts_dir: Option[str | None] = Option(
        None, "where what is left of failed tests is put: screenshot, page source, facts of the session", "text"
    )
    builds_dir: Option[str | None] = Option(
        None, "where the builds lie that the local service installs by their build id", "path"
    )
    dry_run = Option(
        False, "tell which sessions the run would create and what they may cost, send nothing, run nothing", "switch"
    )
    plan = Option(
        False,
        "tell how long the run would take, with how many devices, by earlier runs; send nothing, run nothing",
        "switch",
    )
    reaper = Option(
        True, "watch over the sessions from a process that outlives the run and stops what it left behind", "switch"
    )
    state_dir: Option[str | None] = Option(
        None,
        "where sessions are written down, for later runs to stop what is left "
        "(default: $XDG_STATE_HOME/pytest-device, else ~/.local/state/pytest-device)",
        "absolute_path",
    )
    vendor = Option("vendor", "the maker's word as the account's service spells it in requests (vendorGo)", "word")


OPTIONS: Final[tuple[Option[Any], ...]] = tuple(
    option for name, option in vars(Options).items() if not name.startswith("_")
)
