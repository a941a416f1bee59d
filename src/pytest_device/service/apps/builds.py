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

from pytest_device.errors import ControllerError
from pytest_device.redact import is_http_url
from pytest_device.service.rules import is_uuid
from pytest_device.spec import Platform

METADATA: Final = "build.json"
CLIENTS: Final = "development-clients.json"
CURRENT: Final = "current"

_KEYS: Final = ("archive", "webUrl", "platform", "applicationId", "scheme")
_MAX_LISTED: Final = 5
"""Maximum number of builds in a message."""


@dataclass(frozen=True, slots=True)
class App:
    """An app on this machine, or a web app that is hosted elsewhere: either ``path`` or ``url`` is set.

    Attributes:
        path: An .apk, an .app directory, or the directory of a web build with its ``index.html``.
        url: The URL of a web app.
        application_id: The package name or bundle identifier, None if only the device knows it.
        scheme: The scheme of its deep links, None if it is unknown.
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
        directory = self._directory(f"buildId {build_id}") / build_id.lower()
        if not directory.is_dir():
            raise ControllerError(
                f"buildId {build_id}: no such build in {self.directory}; {self._existing()}"
            )

        return _build(directory / METADATA, platform)

    def client(self, platform: Platform, sdk_version: str | None) -> str:
        """Return the development client for an SDK version, or the current one: a build's UUID or a URL."""
        path = self._directory("vendorGo") / CLIENTS
        if not path.is_file():
            of_platform = {
                CURRENT: "55",
                "55": "UUID of a build, or the URL of an archive",
            }
            example = json.dumps({platform: of_platform})
            raise ControllerError(
                f"vendorGo: no development clients are listed: write {path}, for example {example}"
            )

        versions = _texts(_object(path).get(platform, {}), f"{path}: {platform}")
        return _client(path, versions, platform, sdk_version)

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

    def _directory(self, option: str) -> Path:
        """Return the directory of builds; errors begin with the option of the request that needs it."""
        if self.directory is None:
            raise ControllerError(
                f"{option}: the local service has no directory of builds. Set one with pytest --device-builds-dir, "
                "pytest-device serve --builds-dir, or DEVICE_BUILDS_DIR for both"
            )
        if not self.directory.is_dir():
            raise ControllerError(
                f"{option}: the directory of builds, {self.directory}, does not exist"
            )

        return self.directory

    def _existing(self) -> str:
        names: list[str] = []
        if self.directory:
            metadata = self.directory.glob(f"*/{METADATA}")
            names = sorted(path.parent.name for path in metadata)
        if not names:
            return f"it has no build with a {METADATA}"
        return f"its builds are {_listed(names)}"


def _build(path: Path, platform: Platform) -> App:
    fields = _texts(_object(path), str(path))
    unknown = fields.keys() - set(_KEYS)
    if unknown:
        raise ControllerError(
            f"{path}: unknown key {min(unknown)!r}: the keys are {', '.join(_KEYS)}"
        )

    if fields.get("platform", platform) != platform:
        platforms = " or ".join(Platform)
        raise ControllerError(
            f"{path}: this build is for {fields['platform']!r}, not {platform} (platform is {platforms})"
        )

    if ("archive" in fields) == ("webUrl" in fields):
        raise ControllerError(
            f"{path}: set either archive, the name of a file next to it, or webUrl"
        )

    archive, url = fields.get("archive"), fields.get("webUrl")
    if url and not is_http_url(url):
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

    archive_path = path.parent / name
    if not archive_path.exists():
        raise ControllerError(
            f"{path}: archive {archive!r} does not exist: put it next to {METADATA}"
        )

    return archive_path


def _client(
    path: Path, versions: Mapping[str, str], platform: Platform, sdk_version: str | None
) -> str:
    clients = {name: client for name, client in versions.items() if name != CURRENT}
    existing = _listed(sorted(clients))

    version = sdk_version or versions.get(CURRENT)
    if version is None:
        raise ControllerError(
            f"vendorGo: {path} has no {CURRENT!r} version for {platform}; it has {existing}"
        )

    client = clients.get(version)
    if client is None:
        raise ControllerError(
            f"sdkVersion {version}: {path} has no such version for {platform}; it has {existing}"
        )
    if not is_uuid(client) and not is_http_url(client):
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


def _listed(names: Collection[str]) -> str:
    listed = ", ".join(list(names)[:_MAX_LISTED]) or "none"
    others = len(names) - _MAX_LISTED
    return f"{listed} and {others} more" if others > 0 else listed
