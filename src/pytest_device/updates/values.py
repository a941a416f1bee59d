"""Updates, builds, verdicts, and the events of launches, independent of any file or wire format."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final, Literal, TypeAlias, cast

from pytest_device.errors import ConfigError, DeviceError
from pytest_device.updates.settings import UpdateSettings

VALID: Final = "valid"
INVALID: Final = "invalid"
MISSING: Final = "missing"
"""States of a signature, with `VALID` and `INVALID`; any other string is an unverified signature."""


class UpdateError(DeviceError):
    """An update, or a protocol message, that can't be read or must not be used.

    ``code`` is ``malformed``, ``too_large``, ``not_specified``, ``signature_missing`` or ``signature_invalid``.
    """

    def __init__(self, message: str, *, code: str) -> None:
        super().__init__(message)
        self.code = code


class CertificateError(UpdateError, ConfigError, ValueError):
    """A certificate or key that must not be used for signing.

    ``code`` is ``expired``, ``not_yet_valid``, ``wrong_usage``, ``key_mismatch`` or ``malformed``.
    """


class Code(StrEnum):
    """Reason why an update doesn't load; ``UNKNOWN`` stands for a missing fact."""

    DISABLED = "disabled"
    URL_MISSING = "url_missing"
    URL_INVALID = "url_invalid"
    PLATFORM = "platform"
    RUNTIME_VERSION = "runtime_version"
    SCOPE = "scope"
    SIGNATURE_MISSING = "signature_missing"
    SIGNATURE_INVALID = "signature_invalid"
    ASSET_MISSING = "asset_missing"
    ASSET_HASH = "asset_hash"
    NOT_NEWER = "not_newer"
    FAILED_BEFORE = "failed_before"
    ROLLED_BACK = "rolled_back"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Asset:
    """A file of an update; ``hash`` is from the manifest, ``actual_hash`` and ``present`` are from the file."""

    key: str
    hash: str | None = None
    actual_hash: str | None = None
    present: bool | None = None


@dataclass(frozen=True, slots=True)
class Update:
    """An update of an app's code; None stands for an unknown fact, an empty sequence for no assets.

    ``created_at`` also accepts an ISO 8601 string. Raises ConfigError for any other string.

    ``signature`` is ``valid``, ``invalid`` or ``missing``; ``manifest`` is the source, including unknown fields.
    """

    id: str
    runtime_version: str | None = None
    platform: str | None = None
    created_at: datetime | None = None
    scope: str | None = None
    assets: Sequence[Asset] | None = None
    signature: str | None = None
    manifest: Mapping[str, object] = field(
        default_factory=dict[str, object], repr=False, compare=False
    )

    def __post_init__(self) -> None:
        if not isinstance(
            cast("object", self.created_at), datetime | None
        ):  # a text, as manifests have it
            object.__setattr__(self, "created_at", in_utc(cast("str", self.created_at)))
        for asset in cast("Sequence[object]", self.assets or ()):
            if not isinstance(asset, Asset):
                raise ConfigError(f"assets must be Asset values: {asset!r} is not one")


NOTHING: Final = Update("", created_at=datetime.min.replace(tzinfo=UTC))
"""Placeholder for a build that has neither an embedded nor a downloaded update."""


@dataclass(frozen=True, slots=True)
class Build:
    """An installed build of an app: ``running`` is the update that it runs, at first the embedded one.

    Raises ConfigError for settings or a running update of another type.
    """

    platform: str | None = None
    runtime_version: str | None = None
    settings: UpdateSettings | None = None
    running: Update | None = None
    scope: str | None = None

    def __post_init__(self) -> None:
        for name, kind in (("settings", UpdateSettings), ("running", Update)):
            if not isinstance(getattr(self, name), kind | None):
                raise ConfigError(
                    f"{name} must be of type {kind.__name__}, not {type(getattr(self, name)).__name__}"
                )


@dataclass(frozen=True, slots=True)
class Reason:
    """A reason why an update doesn't load."""

    code: Code
    detail: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether an update loads; ``ok`` is None if no check fails but facts are unknown."""

    ok: bool | None
    reasons: list[Reason]


def moment_of(value: object) -> datetime | None:
    """Return a time that an app or a file states, as ISO 8601 or in milliseconds as in JavaScript, or None for none.

    Raises ValueError for a text or number that is not a time.
    """
    try:
        if isinstance(value, str | datetime):
            return in_utc(value)
        return (
            datetime.fromtimestamp(value / 1000, UTC)
            if isinstance(value, int | float)
            else None
        )
    except (ConfigError, OverflowError, OSError):
        raise ValueError(f"{value!r} is not a time") from None


def in_utc(time: datetime | str) -> datetime:
    """Return a time that compares with all others: one without a zone is in UTC. Raises ConfigError for no time."""
    try:
        known = datetime.fromisoformat(time) if isinstance(time, str) else time
        return known if known.tzinfo else known.replace(tzinfo=UTC)
    except (ValueError, TypeError, AttributeError):
        raise ConfigError(
            f"{time!r} must be a datetime or an ISO 8601 string"
        ) from None


Operation: TypeAlias = Literal["launch", "check", "fetch", "override"]

NOT_SPECIFIED: Final = (
    "the automatic check of checkAutomatically ON_ERROR_RECOVERY and WIFI_ONLY",
    "a launch with useEmbeddedUpdate false and no downloaded update in time: the model uses the embedded one",
    "a failure of the embedded update: nothing is left to fall back to",
)
"""Behavior that the reference doesn't specify; the model reports it as `NotSpecified`."""


class Mode(StrEnum):
    """Kind of build that runs."""

    RELEASE = "release"
    DEVELOPMENT = "development"
    DEVELOPMENT_CLIENT = "development_client"


@dataclass(frozen=True, slots=True)
class Offer:
    """Answer of the update service: nothing, an update, or a rollback to the embedded one.

    ``seconds`` is the duration of the check and the download. ``complete`` is False if part of the download is missing;
    ``error`` describes a timeout or another failure.
    """

    update: Update | None = None
    roll_back_at: datetime | None = None
    seconds: float = 0.0
    complete: bool = True
    error: str = ""

    def __post_init__(self) -> None:
        if not isinstance(cast("object", self.update), Update | None):
            raise ConfigError(
                f"an Offer has an Update, not a value of type {type(self.update).__name__}"
            )


@dataclass(frozen=True, slots=True)
class Launched:
    update_id: str
    is_embedded: bool


@dataclass(frozen=True, slots=True)
class Checked:
    is_available: bool
    reasons: tuple[Reason, ...] = ()
    """Reasons why an offered update is not available."""


@dataclass(frozen=True, slots=True)
class Downloaded:
    """A complete update was stored, or, with the ID None, a rollback to the embedded one."""

    update_id: str | None


@dataclass(frozen=True, slots=True)
class Rejected:
    """An operation was rejected; a launch continues without the update."""

    operation: Operation
    reason: str


@dataclass(frozen=True, slots=True)
class EmergencyFallback:
    update_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Cleaned:
    update_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NotSpecified:
    what: str


Event: TypeAlias = (
    Launched
    | Checked
    | Downloaded
    | Rejected
    | EmergencyFallback
    | Cleaned
    | NotSpecified
)
Events: TypeAlias = tuple[Event, ...]
