"""Published updates and rollbacks, selected by channel, runtime version and share of devices."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import cast

from pytest_device.app.runtime import is_valid_runtime_version
from pytest_device.errors import ConfigError, hides_frames
from pytest_device.updates.export import Export, ExportedFile, read_export
from pytest_device.updates.protocol import UpdateRequest
from pytest_device.updates.values import Update

__tracebackhide__ = hides_frames


@dataclass(frozen=True, slots=True)
class Release:
    """A published update or, if ``update`` is None, a rollback to the embedded one, with its target apps."""

    channel: str
    runtime_version: str
    at: datetime
    share: float = 1.0
    update: Update | None = None
    export: Export | None = field(default=None, repr=False)

    def is_for(self, request: UpdateRequest, device: str) -> bool:
        """Return whether the release targets the requesting app."""
        same = (self.channel, self.runtime_version) == (
            request.channel or "",
            request.runtime_version,
        )
        if self.update is None or not same:
            return same
        return (
            self.update.platform == request.platform
            and _position(self.update.id, device) < self.share
        )


class Releases:
    """Releases, newest first, and the content of their files by hash."""

    def __init__(self) -> None:
        self._releases: tuple[Release, ...] = ()
        self.files: dict[str, tuple[ExportedFile, bytes]] = {}

    def publish(
        self,
        directory: Path,
        channel: str,
        runtime_version: str,
        share: float,
        now: datetime,
    ) -> Mapping[str, Update]:
        """Publish an export for each of its platforms, and return the updates by platform."""
        _check_version(runtime_version)
        at, published = self._later(now), dict[str, Update]()
        for platform, export in read_export(directory).items():
            for file in export.files:
                self._keep(file)
            update = published[platform] = export.update(runtime_version, created_at=at)
            self._add(
                Release(channel, runtime_version, at, _checked(share), update, export)
            )
        return published

    def roll_back(self, channel: str, runtime_version: str, now: datetime) -> datetime:
        """Publish a rollback to the embedded update, and return its time."""
        _check_version(runtime_version)
        at = self._later(now)
        self._add(Release(channel, runtime_version, at))
        return at

    def roll_out(self, update_id: str, share: float) -> None:
        """Change the share of devices that get an update. Raises ConfigError if the update is unknown."""
        if not any(one.update and one.update.id == update_id for one in self._releases):
            raise ConfigError(f"update {update_id!r} is not published")
        self._releases = tuple(
            replace(one, share=_checked(share))
            if one.update and one.update.id == update_id
            else one
            for one in self._releases
        )

    def release_for(self, request: UpdateRequest, device: str) -> Release | None:
        """Return the newest release for an app, or None if the app already has it."""
        found = next(
            (one for one in self._releases if one.is_for(request, device)), None
        )
        if found is None:
            return None
        current = request.current_update_id
        has = (
            current == request.embedded_update_id
            if found.update is None
            else current == found.update.id
        )
        return None if current is not None and has else found

    def _add(self, release: Release) -> None:
        self._releases = (release, *self._releases)

    def _later(self, now: datetime) -> datetime:
        """Return a time later than the last release, since devices only accept newer ones, in whole milliseconds."""
        now = now.replace(microsecond=now.microsecond // 1000 * 1000)
        newest = self._releases[0].at if self._releases else None
        return max(now, newest + timedelta(milliseconds=1)) if newest else now

    def _keep(self, file: ExportedFile) -> None:
        if file.hash is None:
            raise ConfigError(f"{file.path} is missing: export again")
        self.files[file.hash] = (file, file.path.read_bytes())


def _check_version(runtime_version: object) -> None:
    if not (
        isinstance(runtime_version, str) and is_valid_runtime_version(runtime_version)
    ):
        raise ConfigError(
            f"runtime_version {runtime_version!r} is invalid: use a string, for example '1.0.0'"
        )


def _checked(share: float) -> float:
    if not isinstance(cast("object", share), int | float) or not 0 <= share <= 1:
        raise ConfigError(f"share={share!r} must be 0 to 1")
    return share


def _position(update_id: str, device: str) -> float:
    """Return a device's position in a rollout, from 0 to 1: stable per device and update."""
    digest = hashlib.sha256(f"{update_id} {device}".encode()).digest()
    return int.from_bytes(digest[:8]) / 2**64
