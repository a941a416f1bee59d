"""The words and numbers of the device session document, each defined once."""

from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Final, NamedTuple

VENDOR: Final = "vendor"
"""Vendor prefix in the document's field names (``vendorGo``); accounts may have their own, which is a setting."""


class NameRule(NamedTuple):
    """What a name may look like: a pattern, and the same as a rule for messages."""

    pattern: str
    rule: str


_HEADER: Final = "letters, digits and hyphens"
VENDOR_FIELDS: Final[Mapping[str, NameRule]] = {
    "key": NameRule(r"[A-Za-z][\w-]*", "a key of letters, digits, _ and -"),
    "environment_prefix": NameRule(
        r"[A-Za-z_][A-Za-z0-9_]*_", "letters, digits and _, and end in _"
    ),
    "header_prefix": NameRule(r"[A-Za-z][A-Za-z0-9-]*-", f"{_HEADER}, and end in -"),
    "client_id_header": NameRule(r"[A-Za-z]([A-Za-z0-9-]*[A-Za-z0-9])?", _HEADER),
    "client_scheme": NameRule(
        r"[a-z][a-z0-9+.-]*",
        "a lowercase letter, then lowercase letters, digits, +, . and -",
    ),
    "project_id_path": NameRule(
        r"[\w$-]+(\.[\w$-]+)*",
        "keys with dots between them, such as extra.acme.projectId",
    ),
    "push_path": NameRule(
        r"[\w~-][\w.~-]*(/[\w~-][\w.~-]*)*", "a path without a slash at its ends"
    ),
    "push_reply_key": NameRule(r"[A-Za-z]\w*", "a key of letters, digits and _"),
    "token_type": NameRule(r"[a-z]\w*", "a word that begins with a lowercase letter"),
}
"""The names that contain the vendor's word, or another, in the documentation of the client libraries."""


class Platform(StrEnum):
    """The operating system of a device.

    >>> Platform("ios") is Platform.IOS
    True
    """

    ANDROID = "android"
    IOS = "ios"


class SessionType(StrEnum):
    """The controller of a device.

    >>> SessionType.AGENT_DEVICE == "agent-device"
    True
    """

    AGENT_DEVICE = "agent-device"
    APPIUM = "appium"
    ARGENT = "argent"
    WEB_PREVIEW_ONLY = "web-preview-only"
    SERVE_SIM = "serve-sim"
    """Removed: still reported for older sessions, refused in requests."""


class Status(StrEnum):
    """The status of a session.

    >>> Status.IN_PROGRESS == "in-progress"
    True
    """

    NEW = "new"
    IN_PROGRESS = "in-progress"
    STOPPED = "stopped"
    ERRORED = "errored"


STATES: Final[Mapping[str, str]] = {
    Status.NEW: "starting",
    Status.IN_PROGRESS: "ready",
    Status.STOPPED: "stopped",
    Status.ERRORED: "failed",
}
"""Words for statuses on pages and in messages, chosen by this package."""


class Share(StrEnum):
    """The scope in which tests share a session. Defined by this package: the service does not know it.

    >>> Share.RUN == "run"
    True
    """

    RUN = "run"
    MODULE = "module"
    CLASS = "class"
    TEST = "test"


TERMINAL: Final = frozenset({Status.STOPPED, Status.ERRORED})
"""Final statuses ("States and transitions")."""

DEFAULT_SESSION_TYPE: Final = SessionType.AGENT_DEVICE
REQUESTABLE_SESSION_TYPES: Final = (
    SessionType.AGENT_DEVICE,
    SessionType.APPIUM,
    SessionType.ARGENT,
    SessionType.WEB_PREVIEW_ONLY,
)

SESSIONS_PATH: Final = "/v2/device-run-sessions"
UNAUTHORIZED_ERROR: Final = "UNAUTHORIZED_ERROR"
"""Error code for a request without an ``Authorization`` header (status 400)."""

NAME_MAX_LENGTH: Final = 255
ARCHIVE_URL_MAX_LENGTH: Final = 2048
DURATION_MIN_MINUTES: Final = 0
DURATION_MAX_MINUTES: Final = 115
CLEANUP_MINUTES: Final = 5
"""Reserved after the maximum duration, not part of it."""
LONGEST_MINUTES: Final = DURATION_MAX_MINUTES + CLEANUP_MINUTES
"""Maximum lifetime of a session with unknown limits."""
IDLE_MIN_MINUTES: Final = 1
IDLE_MAX_MINUTES: Final = 114
OMITTED_VALUES: Final[Mapping[str, Collection[str]]] = {
    "max_duration_minutes": ("account",),
    "max_idle_time_minutes": ("account", "none"),
}
"""Words of this package for limits that are not sent: the service then uses the account's default duration, and no idle
timeout."""
POLL_INTERVAL_SECONDS: Final = 5.0
