"""Reader for exported updates: directories written by the project's export command, with ``metadata.json``."""

import base64
import hashlib
import mimetypes
import re
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from pytest_device.app.document import Document, Json, at, object_at, text_at
from pytest_device.errors import ProjectError, hides_frames
from pytest_device.regular_files import open_regular
from pytest_device.updates.values import Asset, Signature, Update

__tracebackhide__ = hides_frames

METADATA: Final = "metadata.json"
PLATFORMS: Final = ("ios", "android")
MAX_FILES: Final = 20_000
_MD5: Final = re.compile(r"[0-9a-f]{32}")
_CODE_TYPES: Final = {
    "hbc": "application/javascript",
    "bundle": "application/javascript",
    "js": "application/javascript",
}
"""Content types by extension, where those of the platform differ or are missing."""


@dataclass(frozen=True, slots=True)
class ExportedFile:
    """A file of an export; ``sha256`` and ``md5`` are None if the file is missing."""

    path: Path
    key: str
    extension: str
    sha256: bytes | None
    md5: str | None

    @property
    def hash(self) -> str | None:
        """SHA-256 in the form used by manifests: base64url without padding."""
        if self.sha256 is None:
            return None

        return base64.urlsafe_b64encode(self.sha256).rstrip(b"=").decode("ascii")

    @property
    def content_type(self) -> str:
        if self.extension in _CODE_TYPES:
            return _CODE_TYPES[self.extension]

        guessed_type, _ = mimetypes.guess_type(f"x.{self.extension}")

        return guessed_type or "application/octet-stream"

    def asset(self) -> Asset:
        """Return the file as an asset; an asset is named by its MD5, so a mismatch reveals a changed file."""
        if self.sha256 is None:
            return Asset(self.key, present=False)

        if _MD5.fullmatch(self.path.name) and self.md5 != self.path.name:
            return Asset(self.key, f"md5 {self.path.name}", f"md5 {self.md5}", True)

        return Asset(self.key, self.hash, self.hash, True)


@dataclass(frozen=True, slots=True)
class Export:
    """The bundle and assets of an export for one platform."""

    platform: str
    created_at: datetime
    bundle: ExportedFile
    assets: tuple[ExportedFile, ...]

    @property
    def files(self) -> tuple[ExportedFile, ...]:
        return (self.bundle, *self.assets)

    def update(
        self,
        runtime_version: str | None,
        *,
        scope: str | None = None,
        signature: Signature | None = None,
        created_at: datetime | None = None,
    ) -> Update:
        """Return the update that publishing this export creates.

        Its ID is derived from what is published and when, so that a test that publishes again gets another update.
        """
        created_at = created_at or self.created_at
        hashes = " ".join(file.hash or "" for file in self.files)
        identifier = uuid.uuid5(
            uuid.NAMESPACE_OID,
            f"{self.platform} {runtime_version} {created_at} {hashes}",
        )

        return Update(
            str(identifier),
            runtime_version,
            self.platform,
            created_at,
            scope,
            assets=tuple(file.asset() for file in self.files),
            signature=signature,
        )


def read_export(directory: Path) -> dict[str, Export]:
    """Read an export, by platform. Raises ProjectError if the directory isn't an export."""
    path = directory / METADATA
    try:
        document = Document.read(path)
        modified = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    except FileNotFoundError:
        raise ProjectError(
            f"has no {METADATA}: give the directory that an export wrote",
            path=directory,
        ) from None

    file_metadata = object_at(document.object, "fileMetadata")
    exports: dict[str, Export] = {}
    for platform in PLATFORMS:
        if platform in file_metadata:
            metadata = file_metadata[platform]
            exports[platform] = _read_platform(directory, platform, metadata, modified)
    if not exports:
        raise ProjectError("has no fileMetadata for ios or android", path=path)

    return exports


def _read_platform(
    directory: Path, platform: str, metadata: Json, created_at: datetime
) -> Export:
    assets = at(metadata, "assets")
    if not isinstance(assets, list) or len(assets) > MAX_FILES:
        raise ProjectError(
            f"fileMetadata.{platform}.assets must be an array of at most {MAX_FILES}",
            path=directory / METADATA,
        )

    bundle = _file(directory, text_at(metadata, "bundle"), None)
    # By path, as several modules may use the same file.
    extensions = {text_at(asset, "path"): text_at(asset, "ext") for asset in assets}
    files = [_file(directory, name, ext) for name, ext in extensions.items()]

    return Export(platform, created_at, bundle, tuple(files))


def _file(directory: Path, name: str | None, extension: str | None) -> ExportedFile:
    if not name:
        raise ProjectError("names a file without a path", path=directory / METADATA)

    path = directory / name
    suffix = (extension or path.suffix).lstrip(".")

    try:
        if "\0" in name or not path.resolve().is_relative_to(directory.resolve()):
            raise ProjectError(
                f"names a file outside of the export: {name!r}",
                path=directory / METADATA,
            )
        if not path.is_file():
            return ExportedFile(path, path.name, suffix, None, None)

        with open_regular(path) as content:
            sha256 = hashlib.file_digest(content, "sha256")
            content.seek(0)
            md5 = hashlib.file_digest(content, _new_md5)
    except OSError as error:
        reason = error.strerror or error
        raise ProjectError(f"cannot be read: {reason}", path=path) from None
    except UnicodeEncodeError:
        raise ProjectError(
            f"names a file that cannot exist: {name!r}", path=directory / METADATA
        ) from None
    except RuntimeError as error:
        # A loop of links, before Python 3.13.
        raise ProjectError(f"cannot be read: {error}", path=path) from None

    return ExportedFile(path, path.name, suffix, sha256.digest(), md5.hexdigest())


def _new_md5() -> Any:
    """Return a new MD5, also on systems that forbid it for security: here it is only a name."""
    return hashlib.md5(usedforsecurity=False)
