"""What happens in the model of an app's launches: its network, its events, and what has no source."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final, Literal, TypeAlias, cast

from pytest_device.errors import ConfigError
from pytest_device.updates.values import Reason, Update

Operation: TypeAlias = Literal["launch", "check", "fetch", "override"]

NOT_SPECIFIED: Final = (
    "the automatic check of checkAutomatically ON_ERROR_RECOVERY and WIFI_ONLY",
    "a launch with useEmbeddedUpdate false and no downloaded update in time: the model uses the embedded one",
    "a failure of the embedded update: nothing is left to fall back to",
)
"""What the document leaves open: the model reports it as `NotSpecified`."""


class Mode(StrEnum):
    """What kind of build runs."""

    RELEASE = "release"
    DEVELOPMENT = "development"
    DEVELOPMENT_CLIENT = "development_client"


@dataclass(frozen=True, slots=True)
class Offer:
    """What the update service has when the app asks: nothing, an update, or that the embedded one be used again.

    ``seconds`` is how long check and download take. ``complete`` is False where a part of the download is missing,
    ``error`` a time-out or another failure.
    """

    update: Update | None = None
    roll_back_at: datetime | None = None
    seconds: float = 0.0
    complete: bool = True
    error: str = ""

    def __post_init__(self) -> None:
        if not isinstance(cast("object", self.update), Update | None):
            raise ConfigError(f"an Offer has an Update, not a value of type {type(self.update).__name__}")


@dataclass(frozen=True, slots=True)
class Launched:
    update_id: str
    is_embedded: bool


@dataclass(frozen=True, slots=True)
class Checked:
    is_available: bool
    reasons: tuple[Reason, ...] = ()
    """Why an update that the service offers is not available."""


@dataclass(frozen=True, slots=True)
class Downloaded:
    """A complete update is stored, or a roll-back to the embedded one if there is no ID."""

    update_id: str | None


@dataclass(frozen=True, slots=True)
class Rejected:
    """An operation rejects; a launch only goes on without the update."""

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


Event: TypeAlias = Launched | Checked | Downloaded | Rejected | EmergencyFallback | Cleaned | NotSpecified
Events: TypeAlias = tuple[Event, ...]
