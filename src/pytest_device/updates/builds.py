"""Reader for builds: the app config, embedded update and certificate in them, or facts in a JSON file.

The document does not say the names of native keys, so no other native configuration is read. The certificate of code
signing is found in it without its key: as the only certificate in PEM.
"""

import base64
import json
import os
import re
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import IO, Final, cast

from pytest_device.app.bundle import BROKEN_ARCHIVE
from pytest_device.app.document import Document, Json, Object, at, object_at, text_at
from pytest_device.app.files import open_file
from pytest_device.app.runtime import POLICIES, version_by_policy
from pytest_device.app.vendor import VendorProfile, profile_of
from pytest_device.errors import ProjectError, hides_frames
from pytest_device.spec import VENDOR
from pytest_device.updates.settings import UpdateSettings
from pytest_device.updates.values import Build, Update, moment_of

__tracebackhide__ = hides_frames

CONFIG: Final = "app.config"
MANIFEST: Final = "app.manifest"
FINGERPRINT: Final = "fingerprint"
MAX_BYTES: Final = 8 * 1024 * 1024
MAX_UNPACKED_BYTES: Final = 4 * 1024**3
"""Maximum unpacked size of a compressed tar, in bytes; it must be unpacked to the end, and may be a bomb."""
_KEYS: Final = (
    "platform",
    "runtimeVersion",
    "updates",
    "sdkVersion",
    "running",
    "scope",
    "certificate",
)
_ANDROID_MANIFEST: Final = "AndroidManifest.xml"
_PEM: Final = re.compile(
    rb"-----BEGIN CERTIFICATE-----((?:[A-Za-z0-9+/=\s]|&#x?[0-9A-Fa-f]{1,3};)+)-----END CERTIFICATE-----"
)
"""A certificate in native configuration, where line ends may be blanks or character references."""
_LINE: Final = 64
"""Characters in a line of PEM (RFC 7468 section 2)."""


def read_build(path: Path, *, vendor: VendorProfile | str = VENDOR) -> Build:
    """Read a build: an .apk, .app or .ipa, as a directory or archive, or a JSON file.

    JSON may contain ``platform``, ``runtimeVersion``, ``updates``, ``sdkVersion``, ``running`` (``id``, ``createdAt``),
    ``scope`` and ``certificate`` (the path of a PEM file, relative to the JSON file); from a build, only what ships in
    it is known. Raises ProjectError.
    """
    if not path.exists():
        raise ProjectError("does not exist", path=path)
    return (
        _of_json(path)
        if path.suffix == ".json"
        else _of_archive(path, profile_of(vendor))
    )


def _of_json(path: Path) -> Build:
    facts = Document.read(path).object
    if unknown := [name for name in facts if name not in _KEYS]:
        raise ProjectError(
            f"has unknown keys: {', '.join(unknown)}; a build has {', '.join(_KEYS)}",
            path=path,
        )
    settings = UpdateSettings.from_config(facts) if "updates" in facts else None
    running = facts.get("running")
    if running is not None and not isinstance(running, dict):
        raise ProjectError("running must be an object with id and createdAt", path=path)
    return Build(
        _text(facts, "platform", path),
        _text(facts, "runtimeVersion", path),
        settings,
        None
        if running is None
        else Update(
            text_at(running, "id") or "",
            created_at=_date(at(running, "createdAt"), path),
        ),
        _text(facts, "scope", path) or (settings.url if settings else None),
        _certificate_file(path, _text(facts, "certificate", path)),
    )


def _certificate_file(path: Path, name: str | None) -> str | None:
    """Return the certificate in a file that a JSON file names. Raises ProjectError."""
    if name is None:
        return None
    try:
        with open_file(path.parent / name) as content:
            certificates = _certificates(content.read(MAX_BYTES))
    except OSError as error:
        raise ProjectError(
            f"certificate {name!r} cannot be read: {error.strerror or error}", path=path
        ) from None
    if len(certificates) != 1:
        raise ProjectError(
            f"certificate {name!r} must be a file with one certificate in PEM",
            path=path,
        )
    return certificates.pop()


def _text(facts: Object, name: str, path: Path) -> str | None:
    value = facts.get(name)
    if value is not None and not isinstance(value, str):
        raise ProjectError(f"{name} must be a string", path=path)
    return value


def _of_archive(path: Path, vendor: VendorProfile) -> Build:
    try:
        found = _found(path)
    except BROKEN_ARCHIVE as error:
        raise ProjectError(
            f"cannot be read: {type(error).__name__}", path=path
        ) from None
    files, platform = found.files, found.platform
    config = _object(files, CONFIG, path)
    manifest = _object(files, MANIFEST, path)
    settings = UpdateSettings.from_config(config) if config else None
    running = None
    if manifest:
        running = Update(
            text_at(manifest, "id") or "",
            created_at=_date(manifest.get("commitTime"), path),
        )
    fingerprint = files.get(FINGERPRINT, b"").decode("utf-8", "replace").strip() or None
    version = (
        _runtime_version(config, platform, vendor, fingerprint)
        if config and platform
        else None
    )
    scope = settings.url if settings else None
    return Build(platform, version, settings, running, scope, found.certificate)


def _runtime_version(
    config: Object, platform: str, vendor: VendorProfile, fingerprint: str | None
) -> str | None:
    wanted = at(config, platform, "runtimeVersion") or config.get("runtimeVersion")
    if wanted is None or isinstance(wanted, str):
        return wanted
    policy = text_at(wanted, "policy")
    if policy == "fingerprint":
        return fingerprint
    return (
        version_by_policy(config, platform, policy, vendor)
        if policy in POLICIES
        else None
    )


@dataclass(slots=True)
class _Found:
    """What the files of a build say about it."""

    platform: str | None = None
    """Detected from the names of other files."""
    files: dict[str, bytes] = field(default_factory=dict[str, bytes])
    """Content of the files that describe the build, by name."""
    certificates: set[str] = field(default_factory=set[str])

    @property
    def certificate(self) -> str | None:
        """The certificate of code signing: with several in the build, it is unknown which one that is."""
        return next(iter(self.certificates)) if len(self.certificates) == 1 else None


def _found(path: Path) -> _Found:
    found = _Found()
    for name, content in _entries(path):
        parts = PurePosixPath(name).parts
        if parts == (_ANDROID_MANIFEST,):
            found.platform = "android"
        elif parts and (
            parts[0] == "Payload"
            or any(one.endswith(".app") for one in (*parts, path.name))
        ):
            found.platform = "ios"
        if content is None or not parts:
            continue
        if (
            parts[-1] in (CONFIG, MANIFEST, FINGERPRINT)
            and parts[-1] not in found.files
        ):
            found.files[parts[-1]] = content.read(MAX_BYTES)
        elif _is_native_configuration(parts, path):
            found.certificates |= _certificates(content.read(MAX_BYTES))
    return found


def _is_native_configuration(parts: tuple[str, ...], path: Path) -> bool:
    """Return whether a file is the app's own manifest or property list, not that of a library within the app."""
    if parts == (_ANDROID_MANIFEST,):
        return True
    *holders, name = parts
    holder = holders[-1] if holders else path.name
    return name.endswith(".plist") and holder.endswith(".app")


def _certificates(content: bytes) -> set[str]:
    """Return the certificates in native configuration or a PEM file, as PEM with equal line ends.

    Android's binary manifests have strings in UTF-8 or UTF-16: without the zero bytes, ASCII is the same in both.
    """
    bodies = (
        re.sub(rb"&#[^;]*;|\s", b"", match[1])
        for match in _PEM.finditer(content.replace(b"\0", b""))
    )
    return {_pem(body.decode("ascii")) for body in bodies if _is_base64(body)}


def _is_base64(body: bytes) -> bool:
    try:
        return bool(base64.b64decode(body, validate=True))
    except ValueError:
        return False


def _pem(body: str) -> str:
    lines = (body[start : start + _LINE] for start in range(0, len(body), _LINE))
    return "\n".join(
        ["-----BEGIN CERTIFICATE-----", *lines, "-----END CERTIFICATE-----", ""]
    )


def _entries(path: Path) -> Iterator[tuple[str, IO[bytes] | None]]:
    """Yield the names and contents of a build's files; links have no content, their targets are files of their own."""
    if path.is_dir():
        yield from _in_directory(path)
        return
    with open_file(path) as content:
        if zipfile.is_zipfile(content):
            yield from _in_zip(content)
        else:
            yield from _in_tar(content, path)


def _in_directory(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    def refuse(error: OSError) -> None:
        raise ProjectError(
            f"cannot be searched: {error.strerror}", path=Path(error.filename)
        )

    for directory, names, files in os.walk(path, onerror=refuse):
        names.sort()
        for file in (Path(directory, name) for name in sorted(files)):
            if file.is_file() and not file.is_symlink():
                with open_file(file) as content:
                    yield file.relative_to(path).as_posix(), content


def _in_zip(content: IO[bytes]) -> Iterator[tuple[str, IO[bytes]]]:
    with zipfile.ZipFile(content) as packed:
        for entry in packed.infolist():
            with packed.open(entry) as inner:
                yield entry.filename, inner


def _in_tar(content: IO[bytes], path: Path) -> Iterator[tuple[str, IO[bytes] | None]]:
    content.seek(0)
    size = 0
    with tarfile.open(fileobj=content) as archive:
        for member in archive:
            size += member.size
            if size > MAX_UNPACKED_BYTES:
                raise ProjectError(
                    f"has more than {MAX_UNPACKED_BYTES // 1024**3} GB of content",
                    path=path,
                )
            yield member.name, archive.extractfile(member) if member.isfile() else None


def _object(found: dict[str, bytes], name: str, path: Path) -> Object:
    if name not in found:
        return {}
    try:
        value = cast("Json", json.loads(found[name]))
    except (ValueError, RecursionError):
        raise ProjectError(
            f"contains an {name} that is not valid JSON", path=path
        ) from None
    return object_at({"": value}, "")


def _date(value: Json, path: Path) -> datetime | None:
    try:
        return moment_of(value)
    except ValueError:
        raise ProjectError("has an invalid creation time", path=path) from None
