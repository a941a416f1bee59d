"""Reader for builds: the app config and embedded update that ship in them, or facts in a JSON file.

The reference omits the names of native keys, so native configuration is not read.
"""

import json
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import IO, Final, cast

from pytest_device.app.document import Document, Json, Object, at, object_at, text_at
from pytest_device.app.runtime import POLICIES, version_by_policy
from pytest_device.app.vendor import Vendor
from pytest_device.errors import ProjectError
from pytest_device.spec import VENDOR
from pytest_device.updates.settings import UpdateSettings
from pytest_device.updates.values import Build, Update, moment_of

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
)
_UNREADABLE: Final = (
    OSError, EOFError, LookupError, RuntimeError, ValueError, NotImplementedError, zipfile.BadZipFile, tarfile.TarError,
    zlib.error,
)  # fmt: skip


def read_build(path: Path, *, vendor: str = VENDOR) -> Build:
    """Read a build: an .apk, .app or .ipa, as a directory or archive, or a JSON file.

    JSON may contain ``platform``, ``runtimeVersion``, ``updates``, ``sdkVersion``, ``running`` (``id``, ``createdAt``)
    and ``scope``; from a build, only what ships in it is known. Raises ProjectError.
    """
    if not path.exists():
        raise ProjectError("does not exist", path=path)
    return (
        _of_json(path) if path.suffix == ".json" else _of_archive(path, Vendor(vendor))
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
    )


def _text(facts: Object, name: str, path: Path) -> str | None:
    value = facts.get(name)
    if value is not None and not isinstance(value, str):
        raise ProjectError(f"{name} must be a string", path=path)
    return value


def _of_archive(path: Path, vendor: Vendor) -> Build:
    try:
        found = _found(path)
    except _UNREADABLE as error:
        raise ProjectError(
            f"cannot be read: {type(error).__name__}", path=path
        ) from None
    platform = found.pop("platform", b"").decode() or None
    config = _object(found, CONFIG, path)
    manifest = _object(found, MANIFEST, path)
    settings = UpdateSettings.from_config(config) if config else None
    running = None
    if manifest:
        running = Update(
            text_at(manifest, "id") or "",
            created_at=_date(manifest.get("commitTime"), path),
        )
    fingerprint = found.get(FINGERPRINT, b"").decode("utf-8", "replace").strip() or None
    version = (
        _runtime_version(config, platform, vendor, fingerprint)
        if config and platform
        else None
    )
    return Build(
        platform, version, settings, running, settings.url if settings else None
    )


def _runtime_version(
    config: Object, platform: str, vendor: Vendor, fingerprint: str | None
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


def _found(path: Path) -> dict[str, bytes]:
    """Return the files that describe the build, and its platform, detected from other file names."""
    found: dict[str, bytes] = {}
    for name, content in _entries(path):
        parts = PurePosixPath(name).parts
        if parts == ("AndroidManifest.xml",):
            found["platform"] = b"android"
        elif parts and (
            parts[0] == "Payload"
            or any(one.endswith(".app") for one in (*parts, path.name))
        ):
            found["platform"] = b"ios"
        if (
            content
            and parts
            and parts[-1] in (CONFIG, MANIFEST, FINGERPRINT)
            and parts[-1] not in found
        ):
            found[parts[-1]] = content.read(MAX_BYTES)
    return found


def _entries(path: Path) -> Iterator[tuple[str, IO[bytes] | None]]:
    if path.is_dir():
        for one in sorted(path.rglob("*")):
            if one.is_file() and not one.is_symlink():
                with one.open("rb") as content:
                    yield one.relative_to(path).as_posix(), content
    elif zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as packed:
            for entry in packed.infolist():
                with packed.open(entry) as inner:
                    yield entry.filename, inner
    else:
        size = 0
        with tarfile.open(path) as archive:
            for member in archive:
                size += member.size
                if size > MAX_UNPACKED_BYTES:
                    raise ProjectError(
                        f"has more than {MAX_UNPACKED_BYTES // 1024**3} GB of content",
                        path=path,
                    )
                yield member.name, archive.extractfile(member)


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
