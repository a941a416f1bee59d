"""What a test requires of a device."""

from dataclasses import dataclass, field

from pytest_device.sessions.request import SessionRequest


@dataclass(frozen=True, slots=True)
class DeviceRequirement:
    """What a test requires of a device: one session may meet equal requirements, one after the other.

    ``sharing_key`` names those who may share it. ``minutes`` must be left of a session that was used before.
    """

    request: SessionRequest
    sharing_key: str
    minutes: int = field(default=0, compare=False)
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Hash once: each of many tests is looked up by its requirements."""
        object.__setattr__(self, "_hash", hash((self.request, self.sharing_key)))

    def __hash__(self) -> int:
        return self._hash
