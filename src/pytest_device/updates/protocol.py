"""What an update service and an app say to each other, free of the wire format: an adapter reads and writes that."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, TypeAlias

from pytest_device.updates.events import Offer


@dataclass(frozen=True, slots=True)
class UpdateRequest:
    """An app's question for an update; ``keyid`` names the key by which it expects signatures, None without any."""

    platform: str
    runtime_version: str
    channel: str | None = None
    current_update_id: str | None = None
    embedded_update_id: str | None = None
    keyid: str | None = None
    scope: str | None = None
    """Not sent: the app's own."""
    takes_parts: bool = True
    """Whether a reply may have several parts, which a roll-back needs."""


@dataclass(frozen=True, slots=True)
class ServedAsset:
    """A file of an update that is served; ``hash`` is its SHA-256 as base64url without padding."""

    key: str
    hash: str
    content_type: str
    extension: str
    url: str


@dataclass(frozen=True, slots=True)
class ServedUpdate:
    """An update that is served."""

    id: str
    created_at: datetime
    runtime_version: str
    launch_asset: ServedAsset
    assets: tuple[ServedAsset, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict[str, str])
    extra: Mapping[str, object] = field(default_factory=dict[str, object])


@dataclass(frozen=True, slots=True)
class ServedRollBack:
    """That the embedded update be used again, from a time on."""

    at: datetime


Answer: TypeAlias = ServedUpdate | ServedRollBack | None
"""None: nothing new."""
Sign: TypeAlias = Callable[[bytes], str | None]
"""Returns the base64 signature of a body, None for none."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply on the wire; the names of its headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)


class UpdateProtocol(Protocol):
    """A wire format. All that read raise UpdateError with the code ``malformed``, and never anything else."""

    def request_headers(self, request: UpdateRequest) -> dict[str, str]:
        """Return the headers that an app sends."""
        ...

    def read_request(self, headers: Mapping[str, str]) -> UpdateRequest:
        """Read the headers that an app sent, by names in lower case."""
        ...

    def write_reply(self, answer: Answer, request: UpdateRequest, sign: Sign) -> Reply:
        """Return the reply of a service."""
        ...

    def read_reply(self, reply: Reply, request: UpdateRequest, certificate: str | None = None) -> Offer:
        """Read the reply of a service; the signature is verified by a certificate."""
        ...
