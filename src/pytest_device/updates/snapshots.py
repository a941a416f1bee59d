"""Constants and state of the updates library, as reported by an app or predicted by the model."""

import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final, Self, cast

from pytest_device.errors import hides_frames
from pytest_device.updates.model import LaunchModel
from pytest_device.updates.values import Mode, UpdateError, moment_of

__tracebackhide__ = hides_frames

_TEXT: Final = (str, type(None))
_KINDS: Final[Mapping[str, tuple[type, ...]]] = {
    "channel": _TEXT, "check_automatically": _TEXT, "emergency_launch_reason": _TEXT, "runtime_version": _TEXT,
    "update_id": _TEXT, "created_at": (str, int, float, datetime, type(None)),
    "launch_duration": (int, float, type(None)),
    "manifest": (Mapping,), "currently_running": (Mapping,),
    **dict.fromkeys(("is_embedded_launch", "is_emergency_launch", "is_enabled"), (bool,)),
    **dict.fromkeys(("is_update_available", "is_update_pending"), (bool,)),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """Values reported by an app; ``extra`` holds those that the reference doesn't define."""

    @classmethod
    def read(cls, reported: Mapping[str, object]) -> Self:
        """Read the values that an app reports. Raises UpdateError with the code ``malformed``."""
        if not isinstance(cast("object", reported), Mapping):
            raise UpdateError(
                f"an app reports an object, not {type(reported).__name__}",
                code="malformed",
            )
        names = {
            _reported(one.name): one.name for one in fields(cls) if one.name != "extra"
        }
        values: dict[str, Any] = {ours: _checked(name, ours, reported[name]) for name, ours in names.items()
                                  if name in reported}  # fmt: skip
        extra = {name: value for name, value in reported.items() if name not in names}
        return cls(**values | {"extra": MappingProxyType(extra)})


@dataclass(frozen=True, slots=True)
class Constants(_Snapshot):
    """Constants of the library during a launch; ``launch_duration`` is in milliseconds."""

    channel: str | None = None
    check_automatically: str | None = None
    created_at: datetime | None = None
    emergency_launch_reason: str | None = None
    is_embedded_launch: bool = False
    is_emergency_launch: bool = False
    is_enabled: bool = False
    latest_context: object = None
    launch_duration: float | None = None
    manifest: Mapping[str, object] = field(default_factory=dict[str, object])
    runtime_version: str | None = None
    update_id: str | None = None
    extra: Mapping[str, object] = field(default_factory=dict[str, object])


@dataclass(frozen=True, slots=True)
class UpdatesState(_Snapshot):
    """Return value of ``useUpdates``."""

    currently_running: Mapping[str, object] = field(default_factory=dict[str, object])
    is_update_available: bool = False
    is_update_pending: bool = False
    extra: Mapping[str, object] = field(default_factory=dict[str, object])

    @property
    def is_embedded_launch(self) -> bool:
        return self.currently_running.get("isEmbeddedLaunch") is True


def constants_of(model: LaunchModel, *, channel: str | None = None) -> Constants:
    """Return the constants that an app in this state reports; machine-dependent ones are None."""
    running = model.running or model.embedded
    known = running if model.is_enabled else None
    in_development = model.mode is not Mode.RELEASE
    return Constants(
        channel=None if in_development else channel,
        check_automatically=model.settings.check_automatically,
        created_at=known.created_at if known and not in_development else None,
        emergency_launch_reason=model.emergency_reason,
        is_embedded_launch=running.id == model.embedded.id,
        is_emergency_launch=model.emergency_reason is not None,
        is_enabled=model.is_enabled,
        manifest=known.manifest if known else {},
        runtime_version=model.build.runtime_version,
        update_id=known.id if known else None,
    )


def state_of(model: LaunchModel) -> UpdatesState:
    """Return the value of ``useUpdates`` in this state."""
    running = {
        "isEmbeddedLaunch": (model.running or model.embedded).id == model.embedded.id
    }
    return UpdatesState(running, model.is_update_available, model.pending is not None)


NULL_RULES: Final[Mapping[str, Callable[[Constants, Mode], bool]]] = {
    "channel is null in the development client and in development builds": lambda one, mode: (
        mode is Mode.RELEASE or one.channel is None
    ),
    "createdAt is null when updates are disabled": lambda one, _: (
        one.is_enabled or one.created_at is None
    ),
    "createdAt is null in development mode": lambda one, mode: (
        mode is Mode.RELEASE or one.created_at is None
    ),
    "emergencyLaunchReason is null unless isEmergencyLaunch is true": lambda one, _: (
        one.is_emergency_launch or one.emergency_launch_reason is None
    ),
    "manifest is empty when updates are disabled": lambda one, _: (
        one.is_enabled or not one.manifest
    ),
    "updateId is null when updates are disabled": lambda one, _: (
        one.is_enabled or one.update_id is None
    ),
    "updateId is a lowercase canonical UUID": lambda one, _: (
        one.update_id is None or _is_canonical(one.update_id)
    ),
    "isEmbeddedLaunch is true when updates are disabled": lambda one, _: (
        one.is_enabled or one.is_embedded_launch
    ),
    "isEmergencyLaunch runs the embedded update": lambda one, _: (
        one.is_embedded_launch or not one.is_emergency_launch
    ),
}
"""Rules of the reference about the constants, each with its check."""


def broken_rules(constants: Constants, mode: Mode = Mode.RELEASE) -> list[str]:
    """Return the rules that an app's constants violate."""
    return [rule for rule, holds in NULL_RULES.items() if not holds(constants, mode)]


_COMPARED: Final = (
    "check_automatically", "created_at", "is_embedded_launch", "is_emergency_launch", "is_enabled", "runtime_version",
    "update_id",
)  # fmt: skip


def differences(expected: Constants, observed: Constants) -> list[str]:
    """Compare an app's constants with the model's; return strings such as ``update_id: 'a', expected 'b'``.

    The channel is compared if one is expected.
    """
    names = _COMPARED if expected.channel is None else (*_COMPARED, "channel")
    pairs = ((name, getattr(expected, name), getattr(observed, name)) for name in names)
    return [
        f"{name}: {found!r}, expected {wanted!r}"
        for name, wanted, found in pairs
        if wanted != found
    ]


def _reported(name: str) -> str:
    return re.sub(r"_(\w)", lambda found: found[1].upper(), name)


def _checked(name: str, ours: str, value: object) -> object:
    kinds = _KINDS.get(ours)
    if kinds and (
        not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds)
    ):
        raise UpdateError(
            f"{name} must not be of type {type(value).__name__}", code="malformed"
        )
    if ours == "created_at":
        try:
            return moment_of(value)
        except ValueError:
            raise UpdateError("createdAt must be a date", code="malformed") from None
    return (
        MappingProxyType(dict(cast("Mapping[str, object]", value)))
        if isinstance(value, Mapping)
        else value
    )


def _is_canonical(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text
    except ValueError:
        return False
