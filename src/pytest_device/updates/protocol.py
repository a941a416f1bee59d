"""Messages between an update service and an app, independent of the wire format."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

from pytest_device.errors import hides_frames

__tracebackhide__ = hides_frames


@dataclass(frozen=True, slots=True)
class UpdateRequest:
    """An app's request for an update; ``keyid`` is the key ID expected in signatures, or None if none are expected."""

    platform: str
    runtime_version: str
    channel: str | None = None
    current_update_id: str | None = None
    embedded_update_id: str | None = None
    keyid: str | None = None
    takes_parts: bool = True
    """Whether the app accepts multipart replies, which rollbacks require."""
    fatal_error: str = ""
    """The error that ended the app's last launch; empty if none did."""
    failed_update_ids: tuple[str, ...] = ()
    """The updates that recently failed to launch on the device, the newest first."""


@dataclass(frozen=True, slots=True)
class ServedAsset:
    """A file of a served update; ``hash`` is its SHA-256 as base64url without padding."""

    key: str
    hash: str
    content_type: str
    extension: str
    url: str


@dataclass(frozen=True, slots=True)
class ServedUpdate:
    """An update that the service serves."""

    id: str
    created_at: datetime
    runtime_version: str
    launch_asset: ServedAsset
    assets: tuple[ServedAsset, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict[str, str])
    extra: Mapping[str, object] = field(default_factory=dict[str, object])


@dataclass(frozen=True, slots=True)
class ServedRollBack:
    """A rollback to the embedded update."""

    at: datetime


Answer: TypeAlias = ServedUpdate | ServedRollBack | None
"""Answer of the service, or None if there is nothing new."""
Sign: TypeAlias = Callable[[bytes], str | None]
"""Function that returns the base64 signature of a body, or None to leave it unsigned."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP reply; header names are lowercase."""

    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)
