"""The options, each declared once. Every pytest run imports this module, so the parsers are imported on first use."""

from __future__ import annotations  # evaluating them would slow down every run

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypeVar, cast, overload

if TYPE_CHECKING:
    from pytest_device.spec import Platform

T = TypeVar("T")

TOKEN_VARIABLE: Final = "DEVICE_TOKEN"  # noqa: S105  # the name of the variable, not a token


class Group(StrEnum):
    """Where an option stands in ``pytest --help`` and in the tables of the settings: the most used come first."""

    COMMON = "Common"
    REQUEST = "The requested session"
    TESTS = "Sharing and order"
    SESSIONS = "Starting and stopping sessions"
    CLEANUP = "Cleanup"
    APP = "The app and its services"
    LOCAL = "The local service"
    VERDICTS = "Verdicts and retries"
    BUDGET = "Budget and cost"
    REPORTS = "Reports"
    TRACES = "Traces and videos"
    VENDOR = "Vendor profile"


class Option(Generic[T]):
    """One option: ``--device-WORD``, ``DEVICE_WORD`` in the environment, ``device_word`` in the ini file.

    ``kind`` names the function in ``parsers`` that parses its texts, ``limits`` are that function's other arguments. A
    switch that is on by default is turned off by ``--device-no-WORD``, or by ``false`` in the environment or ini file.
    An option whose default is a tuple can be repeated, and accepts commas everywhere.
    """

    def __init__(
        self,
        default: T,
        help: str,  # noqa: A002  # argparse's name
        kind: str,
        *limits: int | str,
        group: Group,
        metavar: str = "",
    ) -> None:
        self.default = default
        self.help = help
        self.group = group
        self.metavar = metavar
        self._kind = kind
        self._limits = limits

    def __set_name__(self, owner: type[Options], word: str) -> None:
        self.word = word
        self.metavar = self.metavar or word.rpartition("_")[2].upper()
        self.flag = (
            f"--device-{'no-' if self.default is True else ''}{word.replace('_', '-')}"
        )
        self.ini = f"device_{word}"
        self.variable = self.ini.upper()

    @overload
    def __get__(self, settings: None, owner: type[Options]) -> Self: ...
    @overload
    def __get__(self, settings: Options, owner: type[Options]) -> T: ...
    def __get__(self, settings: Options | None, owner: type[Options]) -> Self | T:
        return self  # on an instance, the attribute with the value comes first: this is no data descriptor

    def parse(self, text: str) -> T:
        """Parse a text; raises ValueError with the rule that it breaks, or ConfigError."""
        from pytest_device import parsers

        return cast("T", getattr(parsers, self._kind)(text, *self._limits))

    @property
    def spellings(self) -> str:
        """The option's names on the command line, in the environment and in the ini file, for messages."""
        return f"{self.flag}, {self.variable} or {self.ini} in the ini file"


class Options:
    """All options, group by group: on the class, an attribute is its declaration; on an instance, it is the value."""

    values: Mapping[str, Any]
    """The values that differ from the defaults, by option."""

    url: Option[str | None] = Option(
        None,
        "URL of the device service, without /v2",
        "address",
        group=Group.COMMON,
    )
    app_id: Option[str | None] = Option(
        None,
        "project to create sessions in (a UUID)",
        "uuid",
        "the project's UUID",
        group=Group.COMMON,
    )
    local = Option(
        False,
        "start a local service for the duration of this run",
        "switch",
        group=Group.COMMON,
    )
    platform: Option[tuple[Platform, ...]] = Option(
        (),
        "platform of tests whose marker names none: android, ios or android,ios; on the command line or in the "
        "environment, it also deselects tests marked for other platforms only",
        "platforms",
        group=Group.COMMON,
    )
    type = Option(
        "agent-device",
        "session type, unless the marker sets one",
        "session_type",
        group=Group.COMMON,
    )
    build_id: Option[str | None] = Option(
        None,
        "build to install (a UUID), unless the marker names an application source",
        "uuid",
        "the UUID of a build",
        group=Group.COMMON,
    )
    max_sessions: Option[int | None] = Option(
        None,
        "maximum number of concurrent sessions across all of this user's runs",
        "number",
        1,
        1_000,
        group=Group.COMMON,
    )
    attach: Option[str | None] = Option(
        None,
        "existing session to run the tests on, one at a time; it is not stopped",
        "session_id",
        metavar="ID",
        group=Group.COMMON,
    )
    keep_on_failure = Option(
        False,
        "keep the session of a failed test until Enter is pressed, or without a terminal until it expires",
        "switch",
        group=Group.COMMON,
    )
    preview = Option(
        False,
        "print the URL of each device's live preview when it is ready, masked unless on a terminal",
        "switch",
        group=Group.COMMON,
    )
    trace = Option(
        "retain-on-failure",
        "when to keep the trace of a test's devices: off, on or retain-on-failure",
        "choice",
        "off",
        "on",
        "retain-on-failure",
        group=Group.COMMON,
    )
    artifacts_dir = Option(
        "device-artifacts",
        "directory for artifacts of failed tests",
        "text",
        group=Group.COMMON,
    )
    plan = Option(
        False,
        "show how long the run would take with how many devices; run nothing",
        "switch",
        group=Group.COMMON,
    )

    application_archive_url: Option[str | None] = Option(
        None,
        "URL of the archive to install, unless the marker names an application source",
        "archive_url",
        group=Group.REQUEST,
    )
    identifier: Option[str | None] = Option(
        None,
        "simulator name, UDID or hardware profile, unless the marker sets it",
        "text",
        group=Group.REQUEST,
    )
    max_duration_minutes: Option[int | str] = Option(
        30,
        "maximum duration of a session, unless the marker sets it; 'account' uses the account's default",
        "duration",
        group=Group.REQUEST,
    )
    max_idle_time_minutes: Option[int | str] = Option(
        10,
        "idle limit of a session, unless the marker sets it or its type has none; 'none' or 'account' sends none",
        "idle_time",
        group=Group.REQUEST,
    )
    share = Option(
        "run",
        "scope in which tests with identical requests share a session: run, module, class or test",
        "share",
        group=Group.TESTS,
    )
    reorder = Option(
        True,
        "group tests that share a session",
        "switch",
        group=Group.TESTS,
    )
    spread = Option(
        False,
        "run each test marked for several platforms or identifiers on only one",
        "switch",
        group=Group.TESTS,
    )
    shard: Option[str | None] = Option(
        None,
        "run one part of the suite, balanced by devices and durations",
        "shard",
        metavar="INDEX/TOTAL",
        group=Group.TESTS,
    )
    durations: Option[str | None] = Option(
        None,
        "durations of earlier runs, for planning: a .test_durations or device-run.json, or a directory of them",
        "path",
        metavar="FILE|DIR",
        group=Group.TESTS,
    )
    prefetch = Option(
        0,
        "number of upcoming tests to boot devices for, with --device-share=test",
        "number",
        0,
        20,
        "tests",
        group=Group.TESTS,
    )
    keep_warm = Option(
        0,
        "minutes to keep sessions running for the next run with identical requests",
        "minutes",
        0,
        metavar="MINUTES",
        group=Group.TESTS,
    )

    start_attempts = Option(
        2,
        "maximum number of sessions that a test tries to start",
        "number",
        1,
        10,
        group=Group.SESSIONS,
    )
    wait_timeout_seconds = Option(
        900.0,
        "timeout for a session to become ready, including queueing",
        "seconds",
        group=Group.SESSIONS,
    )
    controller_timeout_seconds = Option(
        30.0,
        "timeout for the controller of a session in progress to become reachable",
        "seconds",
        group=Group.SESSIONS,
    )
    stop_timeout_seconds = Option(
        75.0,
        "timeout for stopping sessions at the end of the run",
        "seconds",
        group=Group.SESSIONS,
    )
    poll_interval_seconds = Option(
        5.0,
        "pause between polls of a starting session (local service: 0.2)",
        "seconds",
        group=Group.SESSIONS,
    )
    slots_url: Option[str | None] = Option(
        None,
        "Redis server to share max_sessions between machines; credentials only in DEVICE_SLOTS_URL",
        "slots_address",
        group=Group.SESSIONS,
    )

    reaper = Option(
        True,
        "run a background process that stops leftover sessions if the run dies",
        "switch",
        group=Group.CLEANUP,
    )
    state_dir: Option[str | None] = Option(
        None,
        "directory where sessions are recorded for cleanup "
        "(default: $XDG_STATE_HOME/pytest-device, else ~/.local/state/pytest-device)",
        "absolute_path",
        group=Group.CLEANUP,
    )
    require_ledger = Option(
        False,
        "create no session if the ledger cannot be written or no reaper can be started",
        "switch",
        group=Group.CLEANUP,
    )

    app_root: Option[str | None] = Option(
        None,
        "directory of the project of the app under test, to check links and complete requests",
        "path",
        group=Group.APP,
    )
    app_dynamic = Option(
        "auto",
        "whether to evaluate app.config.js and .ts, which run with your rights: auto, or never, for an untrusted project",
        "choice",
        "auto",
        "never",
        group=Group.APP,
    )
    public_url: Option[str | None] = Option(
        None,
        "URL at which devices on other machines reach a port of this one: {port} stands for the port, {worker} for the "
        "pytest-xdist worker",
        "public_url",
        group=Group.APP,
    )

    local_real = Option(
        False,
        "with the local service, use real emulators and simulators only, never a browser",
        "switch",
        group=Group.LOCAL,
    )
    local_require_isolation = Option(
        False,
        "with the local service, refuse sessions if other users of this machine could reach ports of their programs",
        "switch",
        group=Group.LOCAL,
    )
    local_selenium_manager = Option(
        False,
        "with the local service, let Selenium Manager download the browser or the chromedriver that this machine lacks; "
        "no hash is checked",
        "switch",
        group=Group.LOCAL,
    )
    avd: Option[str | None] = Option(
        None,
        "Android Virtual Device that the local service uses, and starts if it is not running",
        "text",
        metavar="NAME",
        group=Group.LOCAL,
    )
    simulator: Option[str | None] = Option(
        None,
        "iOS Simulator that the local service uses, and boots if it is not running",
        "text",
        metavar="NAME",
        group=Group.LOCAL,
    )
    appium_allow_insecure: Option[tuple[str, ...]] = Option(
        (),
        "features for --allow-insecure of the local service's Appium",
        "words",
        metavar="FEATURES",
        group=Group.LOCAL,
    )
    builds_dir: Option[str | None] = Option(
        None,
        "directory of builds for the local service, looked up by build ID",
        "path",
        group=Group.LOCAL,
    )

    retry_infrastructure = Option(
        0,
        "maximum number of retries of a test whose device failed, each on another session",
        "number",
        0,
        10,
        metavar="N",
        group=Group.VERDICTS,
    )
    exit_status = Option(
        "verdict",
        "exit status after failures: by verdict (10, 11 or 1), or pytest's",
        "choice",
        "verdict",
        "pytest",
        group=Group.VERDICTS,
    )

    budget_minutes: Option[float | None] = Option(
        None,
        "device minutes that a run may use; then it creates no more sessions",
        "budget",
        metavar="MINUTES",
        group=Group.BUDGET,
    )
    minute_price: Option[str | None] = Option(
        None,
        "price of a device minute, to show the cost",
        "text",
        metavar="PRICE",
        group=Group.BUDGET,
    )

    report = Option(
        "device-report",
        "directory for the report of a run with devices, or off",
        "text",
        metavar="DIR",
        group=Group.REPORTS,
    )
    ci = Option(
        "auto",
        "report to GitHub Actions in its own format: auto (if it is detected), off or github",
        "choice",
        "auto",
        "off",
        "github",
        group=Group.REPORTS,
    )

    trace_mask_typing = Option(
        False,
        "mask all typed text in traces, not only that of password fields",
        "switch",
        group=Group.TRACES,
    )
    video = Option(
        "off",
        "when to keep a video of a test, if its controller can record: off, on or retain-on-failure",
        "choice",
        "off",
        "on",
        "retain-on-failure",
        group=Group.TRACES,
    )

    vendor = Option(
        "vendor",
        "the vendor's word: prefix of API fields (vendorGo), from which the other names follow",
        "word",
        group=Group.VENDOR,
    )
    vendor_names: Option[tuple[str, ...]] = Option(
        (),
        "a name that does not follow from the word, such as project_id_path=extra.hub.projectId; repeat for more",
        "vendor_names",
        group=Group.VENDOR,
        metavar="NAME=VALUE",
    )


OPTIONS: Final[tuple[Option[Any], ...]] = tuple(
    option for name, option in vars(Options).items() if not name.startswith("_")
)
