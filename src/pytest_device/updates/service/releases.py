"""Published updates and rollbacks, selected by channel, runtime version and share of devices."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

from pytest_device.app.runtime import is_valid_runtime_version
from pytest_device.errors import ConfigError, hides_frames
from pytest_device.updates.export import Export, ExportedFile, read_export
from pytest_device.updates.protocol import UpdateRequest
from pytest_device.updates.values import Update, in_utc

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
        if self.channel != (request.channel or ""):
            return False
        if self.runtime_version != request.runtime_version:
            return False
        # A rollback has neither a platform nor a share.
        if self.update is None:
            return True
        if self.update.platform != request.platform:
            return False

        return _position(self.update.id, device) < self.share

    def runs_on(self, request: UpdateRequest) -> bool:
        """Return whether the requesting app runs what the release would give it."""
        if request.current_update_id is None:
            return False

        # Platforms write UUIDs in different cases.
        current = request.current_update_id.lower()
        if self.update is None:
            return current == (request.embedded_update_id or "").lower()

        return current == self.update.id


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
        """Publish an export for each of its platforms, and return the updates by platform.

        Publishes for all platforms or, if it raises, for none.
        """
        _check_version(runtime_version)
        _check_channel(channel)
        _check_share(share)
        exports = read_export(directory)
        # Before anything is published: a file of the last platform may be missing.
        for export in exports.values():
            for file in export.files:
                self._keep(file)

        at = self._later(now)
        updates: dict[str, Update] = {}
        for platform, export in exports.items():
            update = export.update(runtime_version, created_at=at)
            self._add(Release(channel, runtime_version, at, share, update, export))
            updates[platform] = update

        return updates

    def roll_back(self, channel: str, runtime_version: str, now: datetime) -> datetime:
        """Publish a rollback to the embedded update, and return its time."""
        _check_version(runtime_version)
        _check_channel(channel)
        at = self._later(now)
        self._add(Release(channel, runtime_version, at))

        return at

    def roll_out(self, update_id: str, share: float) -> None:
        """Change the share of devices that get an update. Raises ConfigError if the update is unknown."""
        _check_share(share)
        releases = list(self._releases)

        for index, release in enumerate(releases):
            if release.update is not None and release.update.id == update_id:
                releases[index] = replace(release, share=share)
                self._releases = tuple(releases)
                return

        raise ConfigError(f"update {update_id!r} is not published")

    def release_for(self, request: UpdateRequest, device: str) -> Release | None:
        """Return the newest release for an app, or None if the app already runs it."""
        # The newest decides even if the app runs it: an older one would take the app back.
        for release in self._releases:
            if release.is_for(request, device):
                return None if release.runs_on(request) else release

        return None

    def _add(self, release: Release) -> None:
        self._releases = (release, *self._releases)

    def _later(self, now: datetime) -> datetime:
        """Return a time later than the last release, since devices only accept newer ones, in whole milliseconds."""
        # Here rather than for each reply: a clock of the suite may be near the end of the years.
        now = in_utc(now)
        now = now.replace(microsecond=now.microsecond // 1000 * 1000)
        if not self._releases:
            return now

        return max(now, self._releases[0].at + timedelta(milliseconds=1))

    def _keep(self, file: ExportedFile) -> None:
        """Keep the content of a file: tests change the directory of an export after they publish it."""
        if file.hash is None:
            raise ConfigError(f"{file.path} is missing: export again")

        self.files[file.hash] = (file, file.path.read_bytes())


def _check_version(runtime_version: str) -> None:
    if not is_valid_runtime_version(runtime_version):
        raise ConfigError(
            f"runtime_version {runtime_version!r} is invalid: use a string, for example '1.0.0'"
        )


def _check_channel(channel: str) -> None:
    """Raise ConfigError for a channel that no app can send in a header: its update would reach no device."""
    if not (channel.isascii() and channel.isprintable()):
        raise ConfigError(
            f"channel {channel!r} is invalid: use a string of printable ASCII, or '' for apps without a channel"
        )


def _check_share(share: float) -> None:
    if not 0 <= share <= 1:
        raise ConfigError(f"share={share!r} must be 0 to 1")


def _position(update_id: str, device: str) -> float:
    """Return a device's position in a rollout, from 0 to 1.

    A hash, not a random number: a device that has an update keeps it when the share grows, and each update starts
    with other devices.
    """
    digest = hashlib.sha256(f"{update_id} {device}".encode()).digest()

    return int.from_bytes(digest[:8]) / 2**64
