"""Inputs and events of the launch model, and the behavior that the reference doesn't specify."""

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
            raise ConfigError(f"an Offer has an Update, not a value of type {type(self.update).__name__}")


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


Event: TypeAlias = Launched | Checked | Downloaded | Rejected | EmergencyFallback | Cleaned | NotSpecified
Events: TypeAlias = tuple[Event, ...]
