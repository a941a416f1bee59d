"""The options, each declared once. Every pytest run imports this module, so the parsers are imported on first use."""

from __future__ import annotations  # evaluating them would slow down every run

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypeVar, cast, overload

if TYPE_CHECKING:
    from pytest_device.spec import Platform

T = TypeVar("T")

TOKEN_VARIABLE: Final = "DEVICE_TOKEN"  # noqa: S105  # the name of the variable, not a token
PASSWORD_VARIABLE: Final = "DEVICE_IDENTITY_PASSWORD"  # noqa: S105  # also only a name


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
        metavar: str = "",
    ) -> None:
        self.default = default
        self.help = help
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
    """All options: on the class, an attribute is the option's declaration; on an instance, it is the value."""

    values: Mapping[str, Any]
    """The values that differ from the defaults, by option."""

    url: Option[str | None] = Option(
        None, "URL of the device service, without /v2", "address"
    )
    local = Option(
        False, "start a local service for the duration of this run", "switch"
    )
    local_real = Option(
        False,
        "with the local service, use real emulators and simulators only, never a browser",
        "switch",
    )
    local_require_isolation = Option(
        False,
        "with the local service, refuse sessions if other users of this machine could reach ports of their programs",
        "switch",
    )
    avd: Option[str | None] = Option(
        None,
        "Android Virtual Device that the local service uses, and starts if it is not running",
        "text",
        metavar="NAME",
    )
    simulator: Option[str | None] = Option(
        None,
        "iOS Simulator that the local service uses, and boots if it is not running",
        "text",
        metavar="NAME",
    )
    appium_allow_insecure: Option[tuple[str, ...]] = Option(
        (),
        "features for --allow-insecure of the local service's Appium",
        "words",
        metavar="FEATURES",
    )
    app_id: Option[str | None] = Option(
        None, "project to create sessions in (a UUID)", "uuid", "the project's UUID"
    )

    platform: Option[tuple[Platform, ...]] = Option(
        (),
        "platform of tests whose marker names none: android, ios or android,ios; on the command line or in the "
        "environment, it also deselects tests marked for other platforms only",
        "platforms",
    )
    type = Option(
        "agent-device", "session type, unless the marker sets one", "session_type"
    )
    build_id: Option[str | None] = Option(
        None,
        "build to install (a UUID), unless the marker names an application source",
        "uuid",
        "the UUID of a build",
    )
    application_archive_url: Option[str | None] = Option(
        None,
        "URL of the archive to install, unless the marker names an application source",
        "archive_url",
    )
    identifier: Option[str | None] = Option(
        None,
        "simulator name, UDID or hardware profile, unless the marker sets it",
        "text",
    )
    max_duration_minutes: Option[int | str] = Option(
        30,
        "maximum duration of a session, unless the marker sets it; 'account' uses the account's default",
        "duration",
    )
    max_idle_time_minutes: Option[int | str] = Option(
        10,
        "idle limit of a session, unless the marker sets it or its type has none; 'none' or 'account' sends none",
        "idle_time",
    )

    share = Option(
        "run",
        "scope in which tests with identical requests share a session: run, module, class or test",
        "share",
    )
    test_minutes = Option(
        2,
        "time a test may need: a shared session with less time left is replaced first",
        "minutes",
    )
    spread = Option(
        False,
        "run each test marked for several platforms on only one of them",
        "switch",
    )
    reorder = Option(True, "group tests that share a session", "switch")
    shard: Option[str | None] = Option(
        None,
        "run one part of the suite, balanced by devices and durations",
        "shard",
        metavar="INDEX/TOTAL",
    )
    durations: Option[str | None] = Option(
        None,
        "durations of earlier runs, for planning: a .test_durations, device-run.json or JUnit file, or a directory of them",
        "path",
        metavar="FILE|DIR",
    )
    size_durations = Option(
        False,
        "request sessions only as long as earlier runs needed them, plus a margin",
        "switch",
    )

    attach: Option[str | None] = Option(
        None,
        "existing session to run the tests on, one at a time; it is not stopped",
        "session_id",
        metavar="ID",
    )
    max_sessions: Option[int | None] = Option(
        None,
        "maximum number of concurrent sessions across all of this user's runs",
        "number",
        1,
        1_000,
    )
    slots_url: Option[str | None] = Option(
        None,
        "Redis server to share max_sessions between machines; credentials only in DEVICE_SLOTS_URL",
        "slots_address",
    )
    prefetch = Option(
        0,
        "number of upcoming tests to boot devices for, with --device-share=test",
        "number",
        0,
        20,
        " of tests",
    )
    start_attempts = Option(
        2, "maximum number of sessions to try if one fails to start", "number", 1, 10
    )
    wait_timeout_seconds = Option(
        900.0, "timeout for a session to become ready, including queueing", "seconds"
    )
    poll_interval_seconds = Option(
        5.0, "pause between polls of a starting session (local service: 0.2)", "seconds"
    )
    polling = Option(
        "learned",
        "when to poll a starting session: learned from past boots, or fixed",
        "choice",
        "learned",
        "fixed",
    )
    controller_timeout_seconds = Option(
        30.0,
        "timeout for the controller of a session in progress to become reachable",
        "seconds",
    )
    stop_timeout_seconds = Option(
        75.0, "timeout for stopping sessions at the end of the run", "seconds"
    )
    keep_on_failure = Option(
        False,
        "keep the session of a failed test until Enter is pressed, or without a terminal until it expires",
        "switch",
    )
    keep_warm = Option(
        0,
        "minutes to keep sessions running for the next run with identical requests",
        "minutes",
        0,
        metavar="MINUTES",
    )

    retry_infrastructure = Option(
        0,
        "retries of a test whose device failed, on another session",
        "number",
        0,
        10,
        metavar="N",
    )
    retry_quota = Option(
        10,
        "maximum number of such retries in a run",
        "number",
        0,
        10_000,
        metavar="N",
    )
    exit_status = Option(
        "verdict",
        "exit status after failures: by verdict (10, 11 or 1), or pytest's",
        "choice",
        "verdict",
        "pytest",
    )
    budget_minutes: Option[float | None] = Option(
        None,
        "device minutes that a run may use",
        "budget",
        metavar="MINUTES",
    )
    budget_action = Option(
        "stop",
        "if the budget is exceeded: warn, stop (create no more sessions) or refuse (also to start)",
        "choice",
        "warn",
        "stop",
        "refuse",
    )
    minute_price: Option[str | None] = Option(
        None,
        "price of a device minute, to show the cost",
        "text",
        metavar="PRICE",
    )
    minute_rounding = Option(
        "exact",
        "how the cost rounds minutes: exact, or up per session or run",
        "choice",
        "exact",
        "session",
        "run",
    )

    preview = Option(
        False,
        "show the live preview of each device when it is ready; its address on a terminal only",
        "switch",
    )
    preview_open = Option(False, "also open the live previews in the browser", "switch")
    artifacts_dir = Option(
        "device-artifacts", "directory for artifacts of failed tests", "text"
    )
    logs = Option(
        "failed",
        "tests whose device logs are saved: failed, or always for all tests",
        "choice",
        "failed",
        "always",
    )
    report = Option(
        "device-report",
        "directory for the report of a run with devices, or off",
        "text",
        metavar="DIR",
    )
    report_events = Option(
        False,
        "also write each event to the report, as JSON lines",
        "switch",
    )
    report_run: Option[str | None] = Option(
        None,
        "name of the run in its report, the same for all shards; by default the CI service's",
        "text",
        metavar="ID",
    )
    ci = Option(
        "auto",
        "report to the CI service in its own form: auto (if one is detected), off, github or gitlab",
        "choice",
        "auto",
        "off",
        "github",
        "gitlab",
    )
    trace = Option(
        "retain-on-failure",
        "when to keep the trace of a test's devices: off, on, retain-on-failure or on-first-retry",
        "choice",
        "off",
        "on",
        "retain-on-failure",
        "on-first-retry",
    )
    trace_pictures: Option[str | None] = Option(
        None,
        "actions that a trace has pictures of: failure, or actions for all that change the screen "
        "(default: failure, with --device-trace=on actions)",
        "choice",
        "failure",
        "actions",
    )
    trace_mask_typing = Option(
        False,
        "mask all typed text in traces, not only that of password fields",
        "switch",
    )
    video = Option(
        "off",
        "when to keep a video of a test, where the controller records: off, on or retain-on-failure",
        "choice",
        "off",
        "on",
        "retain-on-failure",
    )
    builds_dir: Option[str | None] = Option(
        None, "directory of builds for the local service, looked up by build ID", "path"
    )
    dry_run = Option(
        False,
        "show which sessions would be created and their maximum cost; run nothing",
        "switch",
    )
    plan = Option(
        False,
        "show how long the run would take with how many devices; run nothing",
        "switch",
    )
    reaper = Option(
        True,
        "run a background process that stops leftover sessions if the run dies",
        "switch",
    )
    state_dir: Option[str | None] = Option(
        None,
        "directory where sessions are recorded for cleanup "
        "(default: $XDG_STATE_HOME/pytest-device, else ~/.local/state/pytest-device)",
        "absolute_path",
    )
    require_ledger = Option(
        False,
        "create no session if the ledger cannot be written or no reaper can be started",
        "switch",
    )
    app_root: Option[str | None] = Option(
        None,
        "directory of the project of the app under test, to check links and complete requests",
        "path",
    )
    app_dynamic = Option(
        "auto",
        "how to evaluate app.config.js and .ts: auto (with Node's permission flags, no protection), node (without "
        "them), never",
        "app_dynamic",
    )
    project_id_path: Option[str | None] = Option(
        None,
        "where the app config has the project's UUID (default: extra.WORD.projectId)",
        "vendor_field",
        "project_id_path",
    )
    identity_scope = Option(
        "worker",
        "scope of the identity provider and its tokens: one per pytest-xdist worker, or one per run",
        "choice",
        "worker",
        "run",
    )
    identity_issuer: Option[str | None] = Option(
        None,
        "issuer URL of an identity provider, such as a staging one, to sign users in there, on its page",
        "issuer",
    )
    identity_client_id: Option[str | None] = Option(
        None, "client ID of the app at that identity provider", "text", metavar="ID"
    )
    identity_user: Option[str | None] = Option(
        None,
        f"user to sign in there (password: {PASSWORD_VARIABLE} in the environment)",
        "text",
        metavar="NAME",
    )
    tunnel: Option[str | None] = Option(
        None,
        "command of a tunnel to the services of the run, for devices on other machines: {port} stands for the port",
        "tunnel",
        metavar="COMMAND",
    )
    vendor = Option(
        "vendor",
        "the vendor's word: prefix of API fields (vendorGo), and default of the names below",
        "word",
    )
    vendor_key: Option[str | None] = Option(
        None,
        "top-level key of the app config, and of its section in package.json (default: WORD)",
        "vendor_field",
        "key",
    )
    vendor_environment_prefix: Option[str | None] = Option(
        None,
        "prefix of the vendor's environment variables (default: WORD_, in capitals)",
        "vendor_field",
        "environment_prefix",
    )
    vendor_header_prefix: Option[str | None] = Option(
        None,
        "prefix of the headers of update requests (default: WORD-)",
        "vendor_field",
        "header_prefix",
    )
    vendor_client_id_header: Option[str | None] = Option(
        None,
        "header in which the updates library sends the ID of its installation (default: WORD-client-id)",
        "vendor_field",
        "client_id_header",
    )
    vendor_client_scheme: Option[str | None] = Option(
        None,
        "URL scheme of the development client (default: WORDgo)",
        "vendor_field",
        "client_scheme",
    )
    vendor_push_path: Option[str | None] = Option(
        None,
        "path of the request for a push token (default: push/getWordPushToken)",
        "vendor_field",
        "push_path",
    )
    vendor_push_reply_key: Option[str | None] = Option(
        None,
        "key of the token in the reply to that request (default: WORDPushToken)",
        "vendor_field",
        "push_reply_key",
    )
    vendor_token_type: Option[str | None] = Option(
        None,
        "type of the push service's tokens (default: WORD)",
        "vendor_field",
        "token_type",
    )


OPTIONS: Final[tuple[Option[Any], ...]] = tuple(
    option for name, option in vars(Options).items() if not name.startswith("_")
)
