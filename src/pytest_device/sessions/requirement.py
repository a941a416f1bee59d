"""A test's requirement for a device, and its keyword arguments, typed for type checkers and editors."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal, Protocol, TypedDict, Unpack
from uuid import UUID

from pytest_device.sessions.models import Session
from pytest_device.sessions.request import SessionRequest
from pytest_device.spec import Platform, SessionType, Share


@dataclass(frozen=True, slots=True)
class DeviceRequirement:
    """A test's requirement for a device: tests with equal requirements can share a session, one after the other.

    ``sharing_key`` identifies the tests that may share it. A session that was used before must have ``minutes`` left.
    """

    request: SessionRequest
    sharing_key: str
    minutes: int = field(default=0, compare=False)
    defaults: Collection[str] = field(default=(), compare=False)
    """The limits in the request that are defaults."""
    attach: str = ""
    """ID of an existing session to use, which is not stopped; empty to create one."""
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Hash once: requirements are looked up for each of many tests."""
        object.__setattr__(self, "_hash", hash((self.request, self.sharing_key)))

    def __hash__(self) -> int:
        return self._hash

    @property
    def share(self) -> Share:
        """Return the scope in which its sessions are shared."""
        return Share(self.sharing_key.partition(" ")[0])

    @property
    def returns_to_start(self) -> bool:
        """Return whether its device is reset to its first page, as for a browser that argent drives."""
        return self.request.type == SessionType.ARGENT and self.share != Share.TEST


class DeviceArguments(TypedDict, total=False):
    """The keyword arguments of the marker, of ``device_lease`` and of ``device_request_defaults``."""

    app_id: UUID | str
    platform: Platform | Literal["android", "ios"]
    type: SessionType | Literal["agent-device", "appium", "argent", "web-preview-only"]
    name: str
    package_version: str
    device_identifier: str
    max_duration_minutes: int | timedelta | Literal["account"]
    max_idle_time_minutes: int | timedelta | Literal["account", "none"]
    build_id: UUID | str
    application_archive_url: str
    vendor_go: bool
    sdk_version: str
    launch_args: Sequence[str]
    open_url: str
    open_route: str
    route_params: Mapping[str, object]
    share: Share | Literal["run", "module", "class", "test"]
    test_minutes: int | timedelta
    attach: UUID | str


class DeviceLease(Protocol):
    """The type of the fixture ``device_lease``."""

    def __call__(
        self, **arguments: Unpack[DeviceArguments]
    ) -> AbstractContextManager[Session]:
        """Return a context manager that provides a session in progress for its block."""
        ...
