"""Reader for builds: the app config and embedded update in them, or facts in a JSON file.

The document does not say the names of native keys, so no native configuration is read.
"""

import json
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


def read_build(path: Path, *, vendor: VendorProfile | str = VENDOR) -> Build:
    """Read what is known of a build.

    Args:
        path: An .apk, .app or .ipa, as a directory or a zip archive, or a JSON file. JSON may contain ``platform``,
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
            return content.read(MAX_BYTES).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise ProjectError(
            f"certificate {name!r} cannot be read: {_reason(error)}", path=path
        ) from None


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
    )


def _reason(error: Exception) -> str:
    if isinstance(error, zipfile.BadZipFile):
        return "it is no zip archive, or is damaged"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror

    return str(error)


@dataclass(slots=True)
class _Contents:
    """What the files of a build say about it."""

    platform: str | None = None
    """Detected from the names of other files."""
    files: dict[str, bytes] = field(default_factory=dict[str, bytes])
    """Content of the files that describe the build, by name."""

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

        file_name = parts[-1]
        describes_build = file_name in (CONFIG, MANIFEST, FINGERPRINT)
        if describes_build and file_name not in contents.files:
            contents.files[file_name] = content.read(MAX_BYTES)

    return contents


def _is_in_ios_app(parts: tuple[str, ...], path: Path) -> bool:
    """Return whether a file is in an .ipa (below ``Payload``) or in an .app, which may be the build itself."""
    if parts[0] == "Payload" or path.name.endswith(".app"):
        return True

    return any(part.endswith(".app") for part in parts)


def _entries(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield the names and contents of a build's files."""
    if not path.is_dir():
        with open_regular(path) as content, zipfile.ZipFile(content) as packed:
            for entry in packed.infolist():
                with packed.open(entry) as inner:
                    yield entry.filename, inner
        return

    # The same order on each machine.
    for file in sorted(path.rglob("*")):
        if file.is_file() and not file.is_symlink():
            with open_regular(file) as content:
                yield file.relative_to(path).as_posix(), content


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
