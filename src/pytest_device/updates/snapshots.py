"""Constants and state of the updates library, as reported by an app or predicted by the model."""

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from types import MappingProxyType, NoneType
from typing import Any, Final, Self, cast

from pytest_device.errors import hides_frames
from pytest_device.spelling import in_camel_case
from pytest_device.updates.model import LaunchModel
from pytest_device.updates.values import Mode, UpdateError, moment_of

__tracebackhide__ = hides_frames

_TEXT: Final = (str, NoneType)
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "channel": _TEXT,
    "check_automatically": _TEXT,
    "created_at": (str, int, float, datetime, NoneType),
    "currently_running": (Mapping,),
    "emergency_launch_reason": _TEXT,
    "is_embedded_launch": (bool,),
    "is_emergency_launch": (bool,),
    "is_enabled": (bool,),
    "is_update_available": (bool,),
    "is_update_pending": (bool,),
    "launch_duration": (int, float, NoneType),
    "manifest": (Mapping,),
    "runtime_version": _TEXT,
    "update_id": _TEXT,
}
"""Types of the values that an app may report; other names may have any."""


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

        attributes = {
            in_camel_case(field.name): field.name
            for field in fields(cls)
            if field.name != "extra"
        }
        values: dict[str, Any] = {}
        extra: dict[str, object] = {}
        for name, value in reported.items():
            if name in attributes:
                values[attributes[name]] = _checked(name, attributes[name], value)
            else:
                extra[name] = value

        return cls(**values, extra=MappingProxyType(extra))  # type: ignore[call-arg]


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
    is_release = model.mode is Mode.RELEASE
    constants = Constants(
        channel=channel if is_release else None,
        check_automatically=model.settings.check_automatically,
        emergency_launch_reason=model.emergency_reason,
        is_embedded_launch=running.id == model.embedded.id,
        is_emergency_launch=model.emergency_reason is not None,
        is_enabled=model.is_enabled,
        runtime_version=model.build.runtime_version,
    )
    if not model.is_enabled:
        # The reference says that an app then reports nothing of the update that it runs.
        return constants

    return replace(
        constants,
        created_at=running.created_at if is_release else None,
        manifest=running.manifest,
        update_id=running.id,
    )


def state_of(model: LaunchModel) -> UpdatesState:
    """Return the value of ``useUpdates`` in this state."""
    running = model.running or model.embedded
    currently_running = {"isEmbeddedLaunch": running.id == model.embedded.id}

    return UpdatesState(
        currently_running,
        is_update_available=model.is_update_available,
        is_update_pending=model.pending is not None,
    )


def broken_rules(constants: Constants, mode: Mode = Mode.RELEASE) -> list[str]:
    """Return the rules of the reference that an app's constants violate ("Updates library", read-only constants).

    >>> broken_rules(Constants(channel="main", is_enabled=True), Mode.DEVELOPMENT)
    ['channel is null in the development client and in development builds']
    """
    rules: list[str] = []

    if mode is not Mode.RELEASE:
        rules += _broken_in_development(constants)
    if not constants.is_enabled:
        rules += _broken_when_disabled(constants)
    rules += _broken_after_emergency(constants)
    if constants.update_id is not None and not _is_canonical(constants.update_id):
        rules.append("updateId is a lowercase canonical UUID")

    return rules


def _broken_in_development(constants: Constants) -> Iterator[str]:
    if constants.channel is not None:
        yield "channel is null in the development client and in development builds"
    if constants.created_at is not None:
        yield "createdAt is null in development mode"


def _broken_after_emergency(constants: Constants) -> Iterator[str]:
    if constants.is_emergency_launch:
        if not constants.is_embedded_launch:
            yield "isEmergencyLaunch runs the embedded update"
    elif constants.emergency_launch_reason is not None:
        yield "emergencyLaunchReason is null unless isEmergencyLaunch is true"


def _broken_when_disabled(constants: Constants) -> Iterator[str]:
    if constants.created_at is not None:
        yield "createdAt is null when updates are disabled"
    if constants.manifest:
        yield "manifest is empty when updates are disabled"
    if constants.update_id is not None:
        yield "updateId is null when updates are disabled"
    if not constants.is_embedded_launch:
        yield "isEmbeddedLaunch is true when updates are disabled"


_COMPARED: Final = (
    "check_automatically",
    "created_at",
    "is_embedded_launch",
    "is_emergency_launch",
    "is_enabled",
    "runtime_version",
    "update_id",
)
"""The constants that depend on the state of the app only, not on the machine or on how the app was built."""


def differences(expected: Constants, observed: Constants) -> list[str]:
    """Compare an app's constants with the model's; return strings such as ``update_id: 'a', expected 'b'``.

    The channel is compared if one is expected.
    """
    names = _COMPARED if expected.channel is None else (*_COMPARED, "channel")
    texts: list[str] = []

    for name in names:
        expected_value = getattr(expected, name)
        observed_value = getattr(observed, name)
        if observed_value != expected_value:
            texts.append(f"{name}: {observed_value!r}, expected {expected_value!r}")

    return texts


def _checked(name: str, attribute: str, value: object) -> object:
    """Return the value for an attribute, from the one that an app reports by a name."""
    types = _TYPES.get(attribute)
    if types is not None:
        # A bool is an int in Python, but not a number in what apps report.
        is_bool_by_mistake = isinstance(value, bool) and bool not in types
        if is_bool_by_mistake or not isinstance(value, types):
            raise UpdateError(
                f"{name} must not be of type {type(value).__name__}", code="malformed"
            )

    if attribute == "created_at":
        try:
            return moment_of(cast("Any", value))
        except ValueError:
            raise UpdateError("createdAt must be a date", code="malformed") from None

    if isinstance(value, Mapping):
        return MappingProxyType(dict(cast("Mapping[str, object]", value)))

    return value


def _is_canonical(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text
    except ValueError:
        return False
