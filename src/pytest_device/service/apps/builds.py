"""Apps that are ready for installation, and the builds and development clients in a local directory.

``<directory>/<UUID>/build.json`` describes a build: ``archive``, the name of a zip, tar.gz, .apk or directory next to
it, or ``webUrl``, the URL of a web app that is served elsewhere; and optionally ``platform`` (android or ios; without
it the build is for both), ``applicationId`` and ``scheme`` (of its deep links).
``<directory>/development-clients.json`` has for each platform the development clients by SDK version, each the UUID of
a build or the URL of an archive, and ``current``, one of these versions.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final, cast
from urllib.parse import urlsplit

from pytest_device.errors import ControllerError
from pytest_device.service.rules import is_uuid
from pytest_device.spec import Platform

METADATA: Final = "build.json"
CLIENTS: Final = "development-clients.json"
CURRENT: Final = "current"

_KEYS: Final = ("archive", "webUrl", "platform", "applicationId", "scheme")
_NAMED: Final = 5
"""Maximum number of builds in a message."""


@dataclass(frozen=True, slots=True)
class App:
    """An app on this machine, or a web app that is hosted elsewhere: either ``path`` or ``url`` is set.

    ``path`` is an .apk, an .app directory, or the directory of a web build with its ``index.html``.
    ``application_id`` is the package name or bundle identifier, None if only the device knows it.
    ``scheme`` is that of its deep links, None if it is unknown.
    """

    path: Path | None = None
    url: str | None = None
    application_id: str | None = None
    scheme: str | None = None


@dataclass(frozen=True, slots=True)
class Builds:
    """The builds in a directory, which is read on each call; None if the service was started without one.

    Methods raise ControllerError with the value, the rule and the fix.
    """

    directory: Path | None

    def build(self, build_id: str, platform: Platform) -> App:
        """Return a build for a platform: an archive or directory, or a web app that is hosted elsewhere."""
        found = self._directory(f"buildId {build_id}") / build_id.lower()
        if not found.is_dir():
            raise ControllerError(
                f"buildId {build_id}: no such build in {self.directory}; {self._known()}"
            )

        return _build(found / METADATA, platform)

    def client(self, platform: Platform, sdk_version: str | None) -> str:
        """Return the development client for an SDK version, or the current one: a build's UUID or a URL."""
        path = self._directory("vendorGo") / CLIENTS
        if not path.is_file():
            example = json.dumps(
                {
                    platform: {
                        CURRENT: "55",
                        "55": "UUID of a build, or the URL of an archive",
                    }
                }
            )
            raise ControllerError(
                f"vendorGo: no development clients are listed: write {path}, for example {example}"
            )

        return _client(
            path,
            _texts(_object(path).get(platform, {}), f"{path}: {platform}"),
            platform,
            sdk_version,
        )

    def client_url(self, platform: Platform, sdk_version: str | None) -> str | None:
        """Return the URL of a development client's archive, a ``file`` URL for a build in the directory.

        None if there is none: the session's boot then fails with the reason.
        """
        try:
            client = self.client(platform, sdk_version)
            build = self.build(client, platform) if is_uuid(client) else App(url=client)
        except ControllerError:
            return None

        return build.path.absolute().as_uri() if build.path else build.url

    def _directory(self, asked: str) -> Path:
        if self.directory is None:
            raise ControllerError(
                f"{asked}: the local service has no directory of builds. Set one with pytest --device-builds-dir, "
                "pytest-device serve --builds-dir, or DEVICE_BUILDS_DIR for both"
            )
        if not self.directory.is_dir():
            raise ControllerError(
                f"{asked}: the directory of builds, {self.directory}, does not exist"
            )

        return self.directory

    def _known(self) -> str:
        names = (
            sorted(path.parent.name for path in self.directory.glob(f"*/{METADATA}"))
            if self.directory
            else []
        )
        return (
            f"its builds are {_listed(names)}"
            if names
            else f"it has no build with a {METADATA}"
        )


def _build(path: Path, platform: Platform) -> App:
    fields = _texts(_object(path), str(path))
    if unknown := fields.keys() - set(_KEYS):
        raise ControllerError(
            f"{path}: unknown key {min(unknown)!r}: the keys are {', '.join(_KEYS)}"
        )

    if fields.get("platform", platform) != platform:
        wanted = " or ".join(Platform)
        raise ControllerError(
            f"{path}: this build is for {fields['platform']!r}, not {platform} (platform is {wanted})"
        )

    if ("archive" in fields) == ("webUrl" in fields):
        raise ControllerError(
            f"{path}: set either archive, the name of a file next to it, or webUrl"
        )

    archive, url = fields.get("archive"), fields.get("webUrl")
    if url and not _is_web_url(url):
        raise ControllerError(
            f"{path}: webUrl must be the http:// or https:// URL of a web app"
        )

    return App(
        _beside(path, archive) if archive is not None else None,
        url,
        fields.get("applicationId"),
        fields.get("scheme"),
    )


def _beside(path: Path, archive: str) -> Path:
    name = PurePosixPath(archive)
    if name.is_absolute() or not name.parts or ".." in name.parts:
        raise ControllerError(
            f"{path}: archive {archive!r} must be the name of a file or directory next to {METADATA}"
        )

    found = path.parent / name
    if not found.exists():
        raise ControllerError(
            f"{path}: archive {archive!r} does not exist: put it next to {METADATA}"
        )

    return found


def _client(
    path: Path, versions: Mapping[str, str], platform: Platform, sdk_version: str | None
) -> str:
    version = sdk_version or versions.get(CURRENT)
    known = sorted(versions.keys() - {CURRENT})

    if version is None:
        raise ControllerError(
            f"vendorGo: {path} has no {CURRENT!r} version for {platform}; it has {_listed(known)}"
        )

    client = versions.get(version) if version != CURRENT else None
    if client is None:
        raise ControllerError(
            f"sdkVersion {version}: {path} has no such version for {platform}; it has {_listed(known)}"
        )
    if not is_uuid(client) and not _is_web_url(client):
        raise ControllerError(
            f"{path}: {platform} {version} must be the UUID of a build or an http(s) URL"
        )

    return client


def _object(path: Path) -> Mapping[str, object]:
    try:
        fields: object = json.loads(path.read_bytes())
    except OSError as error:
        raise ControllerError(
            f"{path} cannot be read: {error.strerror or error}"
        ) from error
    except (ValueError, RecursionError) as error:
        raise ControllerError(f"{path} is not JSON: {error}") from error

    if not isinstance(fields, dict):
        raise ControllerError(f"{path} must hold a JSON object")

    return cast("dict[str, object]", fields)


def _texts(fields: object, where: str) -> Mapping[str, str]:
    if not isinstance(fields, dict):
        raise ControllerError(f"{where} must be a JSON object")

    for key, value in cast("dict[str, object]", fields).items():
        if not isinstance(value, str) or not value.strip():
            raise ControllerError(f"{where}: {key} must be a non-blank string")

    return cast("dict[str, str]", fields)


def _is_web_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False

    return parts.scheme in {"http", "https"} and bool(parts.hostname)


def _listed(names: Collection[str]) -> str:
    more = len(names) - _NAMED
    listed = ", ".join(list(names)[:_NAMED]) or "none"
    return f"{listed} and {more} more" if more > 0 else listed
