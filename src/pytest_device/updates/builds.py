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
from pytest_device.app.document import Document, Json, Object, at, text_at
from pytest_device.app.runtime import POLICIES, version_by_policy
from pytest_device.app.vendor import VendorProfile, profile_of
from pytest_device.errors import ConfigError, ProjectError, hides_frames
from pytest_device.regular_files import open_regular
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
_BEGIN: Final = "-----BEGIN CERTIFICATE-----"
_END: Final = "-----END CERTIFICATE-----"
_PEM: Final = re.compile(
    rf"{_BEGIN}((?:[A-Za-z0-9+/=\s]|&#x?[0-9A-Fa-f]{{1,3}};)+){_END}".encode()
)
"""A certificate in native configuration, where line ends may be blanks or character references."""
_LINE_LENGTH: Final = 64
"""Characters in a line of PEM (RFC 7468 section 2)."""


def read_build(path: Path, *, vendor: VendorProfile | str = VENDOR) -> Build:
    """Read what is known of a build.

    Args:
        path: An .apk, .app or .ipa, as a directory or an archive, or a JSON file. JSON may contain ``platform``,
            ``runtimeVersion``, ``updates``, ``sdkVersion``, ``running`` (``id``, ``createdAt``), ``scope`` and
            ``certificate`` (the path of a PEM file, relative to the JSON file).
        vendor: The vendor's profile, or only its word; it has the runtime versions of the policies.

    Raises:
        ProjectError: The build does not exist, cannot be read, or contains an invalid value.
    """
    if not path.exists():
        raise ProjectError("does not exist", path=path)

    if path.suffix == ".json":
        return _read_json(path)

    return _read_archive(path, profile_of(vendor))


def _read_json(path: Path) -> Build:
    facts = Document.read(path).object
    unknown_keys = [name for name in facts if name not in _KEYS]
    if unknown_keys:
        raise ProjectError(
            f"has unknown keys: {', '.join(unknown_keys)}; a build has {', '.join(_KEYS)}",
            path=path,
        )

    settings = _settings(facts, path) if "updates" in facts else None
    scope = _text(facts, "scope", path)
    if not scope and settings is not None:
        scope = settings.url

    return Build(
        platform=_text(facts, "platform", path),
        runtime_version=_text(facts, "runtimeVersion", path),
        settings=settings,
        running=_running_update(facts, path),
        scope=scope,
        certificate=_certificate_file(path, _text(facts, "certificate", path)),
    )


def _settings(config: Object, path: Path) -> UpdateSettings:
    """Return the settings in an app config. Raises ProjectError, which names the build: there may be several."""
    try:
        return UpdateSettings.from_config(config)
    except ConfigError as error:
        raise ProjectError(*error.problems, path=path) from None


def _running_update(facts: Object, path: Path) -> Update | None:
    """Return the update that a JSON file says is running. Raises ProjectError."""
    running = facts.get("running")
    if running is None:
        return None

    if not isinstance(running, dict):
        raise ProjectError("running must be an object with id and createdAt", path=path)

    return Update(
        _text(running, "id", path, within="running.") or "",
        created_at=_date(running.get("createdAt"), path),
    )


def _certificate_file(path: Path, name: str | None) -> str | None:
    """Return the certificate in a file that a JSON file names. Raises ProjectError."""
    if name is None:
        return None

    try:
        with open_regular(path.parent / name) as content:
            certificates = _certificates(content.read(MAX_BYTES))
    except OSError as error:
        raise ProjectError(
            f"certificate {name!r} cannot be read: {error.strerror or error}", path=path
        ) from None

    # Of several, one cannot tell which is that of the build.
    if len(certificates) != 1:
        raise ProjectError(
            f"certificate {name!r} must be a file with one certificate in PEM",
            path=path,
        )

    return certificates.pop()


def _text(facts: Object, name: str, path: Path, *, within: str = "") -> str | None:
    value = facts.get(name)
    if value is not None and not isinstance(value, str):
        raise ProjectError(f"{within}{name} must be a string", path=path)

    return value


def _read_archive(path: Path, vendor: VendorProfile) -> Build:
    try:
        contents = _read_contents(path)
    except BROKEN_ARCHIVE as error:
        raise ProjectError(f"cannot be read: {_reason(error)}", path=path) from None

    config = _object(contents.files, CONFIG, path)
    settings = _settings(config, path) if config else None

    return Build(
        platform=contents.platform,
        runtime_version=_runtime_version(config, contents, vendor),
        settings=settings,
        running=_embedded_update(contents, path),
        scope=settings.url if settings else None,
        certificate=contents.certificate,
    )


def _reason(error: Exception) -> str:
    """Return why an archive can't be read."""
    # Its text lists all compressions that were tried.
    if isinstance(error, tarfile.ReadError):
        return "it is no zip or tar archive, or is damaged"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror

    return str(error) or type(error).__name__


@dataclass(slots=True)
class _Contents:
    """What the files of a build say about it."""

    platform: str | None = None
    """Detected from the names of other files."""
    files: dict[str, bytes] = field(default_factory=dict[str, bytes])
    """Content of the files that describe the build, by name."""
    certificates: set[str] = field(default_factory=set[str])

    @property
    def certificate(self) -> str | None:
        """The certificate of code signing: with several in the build, it is unknown which one that is."""
        if len(self.certificates) != 1:
            return None

        return next(iter(self.certificates))

    @property
    def fingerprint(self) -> str | None:
        """The fingerprint of the project's native code, or None if the build has none."""
        content = self.files.get(FINGERPRINT, b"")

        return content.decode("utf-8", "replace").strip() or None


def _embedded_update(contents: _Contents, path: Path) -> Update | None:
    manifest = _object(contents.files, MANIFEST, path)
    if not manifest:
        return None

    return Update(
        text_at(manifest, "id") or "",
        created_at=_date(manifest.get("commitTime"), path),
    )


def _runtime_version(
    config: Object, contents: _Contents, vendor: VendorProfile
) -> str | None:
    """Return the runtime version that the config in a build states, or None if it is unknown."""
    platform = contents.platform
    if platform is None:
        return None

    version = at(config, platform, "runtimeVersion") or config.get("runtimeVersion")
    if version is None or isinstance(version, str):
        return version

    policy = text_at(version, "policy")
    # A hash that was computed when the app was built: the build has it, if anything does.
    if policy == "fingerprint":
        return contents.fingerprint
    if policy in POLICIES:
        return version_by_policy(config, platform, policy, vendor)

    return None


def _read_contents(path: Path) -> _Contents:
    contents = _Contents()

    for name, content in _entries(path):
        parts = PurePosixPath(name).parts
        if not parts:
            continue

        if parts == (_ANDROID_MANIFEST,):
            contents.platform = "android"
        elif _is_in_ios_app(parts, path):
            contents.platform = "ios"

        # A link, whose target is a file of its own.
        if content is None:
            continue

        file_name = parts[-1]
        describes_build = file_name in (CONFIG, MANIFEST, FINGERPRINT)
        if describes_build and file_name not in contents.files:
            contents.files[file_name] = content.read(MAX_BYTES)
        elif _is_native_configuration(parts, path):
            contents.certificates |= _certificates(content.read(MAX_BYTES))

    return contents


def _is_in_ios_app(parts: tuple[str, ...], path: Path) -> bool:
    """Return whether a file is in an .ipa (below ``Payload``) or in an .app, which may be the build itself."""
    if parts[0] == "Payload" or path.name.endswith(".app"):
        return True

    return any(part.endswith(".app") for part in parts)


def _is_native_configuration(parts: tuple[str, ...], path: Path) -> bool:
    """Return whether a file is the app's own manifest or property list, not that of a library within the app."""
    if parts == (_ANDROID_MANIFEST,):
        return True

    *directories, name = parts
    directory = directories[-1] if directories else path.name

    return name.endswith(".plist") and directory.endswith(".app")


def _certificates(content: bytes) -> set[str]:
    """Return the certificates in native configuration or a PEM file, as PEM with equal line ends.

    Android's binary manifests have strings in UTF-8 or UTF-16: without the zero bytes, ASCII is the same in both.
    """
    certificates: set[str] = set()

    for match in _PEM.finditer(content.replace(b"\0", b"")):
        body = re.sub(rb"&#[^;&]*;|\s", b"", match[1])
        if _is_base64(body):
            certificates.add(_pem(body.decode("ascii")))

    return certificates


def _is_base64(body: bytes) -> bool:
    try:
        return bool(base64.b64decode(body, validate=True))
    except ValueError:
        return False


def _pem(body: str) -> str:
    starts = range(0, len(body), _LINE_LENGTH)
    lines = [body[start : start + _LINE_LENGTH] for start in starts]

    return "\n".join([_BEGIN, *lines, _END, ""])


def _entries(path: Path) -> Iterator[tuple[str, IO[bytes] | None]]:
    """Yield the names and contents of a build's files; links have no content, their targets are files of their own."""
    if path.is_dir():
        yield from _in_directory(path)
        return

    with open_regular(path) as content:
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
        # The same order on each machine.
        names.sort()
        for name in sorted(files):
            file = Path(directory, name)
            if file.is_file() and not file.is_symlink():
                with open_regular(file) as content:
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


def _object(files: dict[str, bytes], name: str, path: Path) -> Object:
    if name not in files:
        return {}

    try:
        value = cast("Json", json.loads(files[name]))
    except (ValueError, RecursionError):
        raise ProjectError(
            f"contains an {name} that is not valid JSON", path=path
        ) from None

    return value if isinstance(value, dict) else {}


def _date(value: Json, path: Path) -> datetime | None:
    try:
        return moment_of(value)
    except ValueError:
        raise ProjectError("has an invalid creation time", path=path) from None
