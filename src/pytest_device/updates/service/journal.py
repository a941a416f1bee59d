"""Requests received and failures to inject, shared by the server's thread and the test's."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal, TypeAlias

from pytest_device import serving
from pytest_device.errors import ConfigError

Door: TypeAlias = Literal["manifest", "asset"]
FailureKind: TypeAlias = Literal[
    "slow", "server_error", "half_body", "corrupt_asset", "wrong_hash", "wrong_signature", "missing_signature"
]
_DOORS: Final[Mapping[FailureKind, tuple[Door, ...]]] = {
    "slow": ("manifest", "asset"),
    "server_error": ("manifest", "asset"),
    "half_body": ("manifest", "asset"),
    "corrupt_asset": ("asset",),
    "wrong_hash": ("manifest",),
    "wrong_signature": ("manifest",),
    "missing_signature": ("manifest",),
}

POLLS: Final = 10
POLLING_SECONDS: Final = 10.0
"""Time in which `POLLS` checks by one device count as polling, in seconds; hosted services don't state a limit."""


@dataclass(frozen=True, slots=True)
class SeenRequest:
    """A request that the service answered; ``answer`` is an update ID, an asset key, ``roll-back`` or ``nothing``."""

    kind: Door
    device: str
    at: datetime
    answer: str
    status: int
    platform: str = ""
    runtime_version: str = ""
    channel: str = ""
    current_update_id: str | None = None
    failure: str = ""
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)


class Journal(serving.Journal):
    """Received requests and pending failures."""

    def fail(self, kind: FailureKind, door: Door | None, times: int, seconds: float) -> None:
        """Make upcoming requests fail. Raises ConfigError for a failure that the endpoint doesn't support."""
        doors = _DOORS.get(kind)
        if doors is None:
            raise ConfigError(f"{kind!r} is not a failure of the update service: use one of {', '.join(_DOORS)}")
        if door is not None and door not in doors:
            raise ConfigError(f"{kind!r} does not apply to {door!r}: use on={doors[0]!r}")
        self.add_failure(serving.Failure(door or doors[0], kind, times, seconds))

    def take_failures(self, door: Door) -> dict[FailureKind, float]:
        """Return the failures for the current request, each with its delay in seconds, and count them down."""
        return {kind: failure.seconds for kind in _DOORS if (failure := self.take_failure(door, kind))}

    def polling(self) -> tuple[str, ...]:
        """Return the devices whose app polls for updates in a tight loop."""
        checks: dict[str, list[datetime]] = {}
        for one in self.of(SeenRequest):
            if one.kind == "manifest":
                checks.setdefault(one.device, []).append(one.at)
        return tuple(name for name, times in checks.items() if _is_tight(times))


def _is_tight(times: list[datetime]) -> bool:
    pairs = zip(times, times[POLLS - 1 :], strict=False)
    return any((last - first).total_seconds() < POLLING_SECONDS for first, last in pairs)
