"""Updates, builds, verdicts, and the events of launches, independent of any file or wire format."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final, Literal, Self, TypeAlias, cast

from pytest_device.errors import ConfigError, DeviceError, hides_frames
from pytest_device.updates.settings import UpdateSettings

__tracebackhide__ = hides_frames


class UpdateError(DeviceError):
    """An update, or a protocol message, that can't be read or must not be used.

    ``code`` is ``malformed`` or ``signature_invalid``.
    """

    def __init__(self, message: str, *, code: str) -> None:
        super().__init__(message)
        self.code = code


class CertificateError(UpdateError, ConfigError, ValueError):
    """A certificate or key that must not be used for signing.

    ``code`` is ``expired``, ``not_yet_valid``, ``wrong_usage``, ``weak_key``, ``key_mismatch`` or ``malformed``.
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


class SignatureState(StrEnum):
    """What is known of an update's signature."""

    MISSING = "missing"
    INVALID = "invalid"
    VALID = "valid"


@dataclass(frozen=True, slots=True)
class Signature:
    """State of an update's signature, with the certificate (PEM) that it was verified with, if there is one."""

    state: SignatureState
    certificate: str | None = field(default=None, repr=False)

    @classmethod
    def missing(cls) -> Self:
        """Return the state of an update without a signature."""
        return cls(SignatureState.MISSING)

    @classmethod
    def invalid(cls, certificate: str) -> Self:
        """Return the state of a signature that was not made with the key of a certificate (PEM)."""
        return cls(SignatureState.INVALID, certificate)

    @classmethod
    def valid(cls, certificate: str) -> Self:
        """Return the state of a signature that was made with the key of a certificate (PEM)."""
        return cls(SignatureState.VALID, certificate)


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

    ``created_at`` also accepts an ISO 8601 string. ``manifest`` is the source, including unknown fields.

    Raises ConfigError for any other text as a time.
    """

    id: str
    runtime_version: str | None = None
    platform: str | None = None
    created_at: datetime | None = None
    scope: str | None = None
    assets: Sequence[Asset] | None = None
    signature: Signature | None = None
    manifest: Mapping[str, object] = field(
        default_factory=dict[str, object], repr=False, compare=False
    )

    def __post_init__(self) -> None:
        # A text, as manifests have it.
        if not isinstance(cast("object", self.created_at), datetime | None):
            object.__setattr__(self, "created_at", in_utc(cast("str", self.created_at)))


NOTHING: Final = Update("", created_at=datetime.min.replace(tzinfo=UTC))
"""Placeholder for a build that has neither an embedded nor a downloaded update."""


@dataclass(frozen=True, slots=True)
class Build:
    """An installed build of an app: ``running`` is the update that it runs, at first the embedded one.

    ``certificate`` is the one (PEM) that is embedded in the build, which verifies the updates that it loads; its
    ``settings`` only have the path from which the certificate was read when the app was built.
    """

    platform: str | None = None
    runtime_version: str | None = None
    settings: UpdateSettings | None = None
    running: Update | None = None
    scope: str | None = None
    certificate: str | None = field(default=None, repr=False)

    @property
    def requires_signature(self) -> bool:
        """Whether the build only loads signed updates, because it was built with a certificate."""
        if self.certificate is not None:
            return True

        # The build may have one that was not found in it.
        return (
            self.settings is not None
            and self.settings.code_signing_certificate is not None
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

    Raises ValueError for anything else.
    """
    if value is None:
        return None

    try:
        if isinstance(value, str | datetime):
            return in_utc(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value / 1000, UTC)
    except (ConfigError, ValueError, OverflowError, OSError):
        pass

    raise ValueError(f"{value!r} is not a time")


def in_utc(time: datetime | str) -> datetime:
    """Return a time in UTC, so that it compares with all others; one without a zone is in UTC already.

    Raises ConfigError for anything else, and for a time that is in the year 0 or 10,000 in UTC.
    """
    try:
        if isinstance(time, str):
            time = datetime.fromisoformat(time)

        return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
    except (ValueError, TypeError, AttributeError):
        raise ConfigError(
            f"{time!r} must be a datetime or an ISO 8601 string"
        ) from None
    except OverflowError:
        raise ConfigError(
            f"{time!r} must be in the years 1 to 9999, also in UTC"
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


@dataclass(frozen=True, slots=True)
class Launched:
    """The app was launched, or reloaded, with an update."""

    update_id: str
    is_embedded: bool


@dataclass(frozen=True, slots=True)
class Checked:
    """The app checked for an update."""

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
    """The app fell back to its embedded update, because another one failed to start."""

    update_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Cleaned:
    """Stored updates were deleted, beyond those to keep."""

    update_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NotSpecified:
    """The launch reached behavior that the reference leaves open."""

    what: str
    """One of `NOT_SPECIFIED`."""


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
