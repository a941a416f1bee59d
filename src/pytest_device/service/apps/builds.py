"""The builds and development clients that lie in a directory on this machine.

``<directory>/<UUID>/build.json`` tells what a build is: ``archive``, the name of a zip, tar.gz, .apk or directory that
lies beside it, or ``webUrl``, the address of a web app that is served elsewhere; and, where they are known,
``platform`` (android or ios; without it the build is for both), ``applicationId`` and ``scheme`` (of its deep links).
``<directory>/development-clients.json`` has for each platform the development clients by SDK version, each the UUID of
a build or the address of an archive, and ``current``, one of these versions.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final, cast
from urllib.parse import urlsplit

from pytest_device.errors import ControllerError
from pytest_device.service.apps.base import App
from pytest_device.service.rules import is_uuid
from pytest_device.spec import Platform

METADATA: Final = "build.json"
CLIENTS: Final = "development-clients.json"
CURRENT: Final = "current"

_KEYS: Final = ("archive", "webUrl", "platform", "applicationId", "scheme")
_NAMED: Final = 5
"""How many of the builds there are a message names."""


@dataclass(frozen=True, slots=True)
class Builds:
    """What is in the directory now: it is read anew each time. ``directory`` is None where the service was given none.

    Methods raise ControllerError naming the value, the rule and the fix.
    """

    directory: Path | None

    def build(self, build_id: str, platform: Platform) -> App:
        """Return a build that is for a platform."""
        found = self._directory(f"buildId {build_id}") / build_id.lower()
        if not found.is_dir():
            raise ControllerError(f"buildId {build_id}: there is no such build in {self.directory}; {self._known()}")
        return _build(found / METADATA, platform)

    def client(self, platform: Platform, sdk_version: str | None) -> str:
        """Return the development client for an SDK version, or the current one: a build's UUID or an address."""
        path = self._directory("vendorGo") / CLIENTS
        if not path.is_file():
            example = json.dumps({platform: {CURRENT: "55", "55": "UUID of a build, or the address of an archive"}})
            raise ControllerError(
                f"vendorGo: there is no table of development clients: write {path}, such as {example}"
            )
        return _client(path, _texts(_object(path).get(platform, {}), f"{path}: {platform}"), platform, sdk_version)

    def client_url(self, platform: Platform, sdk_version: str | None) -> str | None:
        """Return the address of a development client's archive, which is a file's for a build here.

        None where there is none: the boot of the session that asks for it tells why.
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
                f"{asked}: the local service was given no directory of builds. Give one: pytest --device-builds-dir, "
                "pytest-device serve --builds-dir, or DEVICE_BUILDS_DIR for both"
            )
        if not self.directory.is_dir():
            raise ControllerError(f"{asked}: the directory of builds, {self.directory}, does not exist")
        return self.directory

    def _known(self) -> str:
        names = sorted(path.parent.name for path in self.directory.glob(f"*/{METADATA}")) if self.directory else []
        return f"there are {_listed(names)}" if names else f"there is none with a {METADATA} yet"


def _build(path: Path, platform: Platform) -> App:
    told = _texts(_object(path), str(path))
    if unknown := told.keys() - set(_KEYS):
        raise ControllerError(f"{path}: there is no key {min(unknown)!r}: there are {', '.join(_KEYS)}")
    if told.get("platform", platform) != platform:
        wanted = " or ".join(Platform)
        raise ControllerError(f"{path}: this build is for {told['platform']!r}, not {platform} (platform is {wanted})")
    if ("archive" in told) == ("webUrl" in told):
        raise ControllerError(f"{path}: give either archive, the name of what lies beside it, or webUrl")
    archive, url = told.get("archive"), told.get("webUrl")
    if url and not _is_web_url(url):
        raise ControllerError(f"{path}: webUrl must be the http:// or https:// address of a web app")
    return App(
        _beside(path, archive) if archive is not None else None, url, told.get("applicationId"), told.get("scheme")
    )


def _beside(path: Path, archive: str) -> Path:
    name = PurePosixPath(archive)
    if name.is_absolute() or not name.parts or ".." in name.parts:
        raise ControllerError(f"{path}: archive {archive!r} must be the name of what lies beside {METADATA}")
    found = path.parent / name
    if not found.exists():
        raise ControllerError(f"{path}: archive {archive!r} does not exist: put it beside {METADATA}")
    return found


def _client(path: Path, versions: Mapping[str, str], platform: Platform, sdk_version: str | None) -> str:
    version = sdk_version or versions.get(CURRENT)
    known = sorted(versions.keys() - {CURRENT})
    if version is None:
        raise ControllerError(f"vendorGo: {path} tells no {CURRENT!r} version for {platform}; it has {_listed(known)}")
    client = versions.get(version) if version != CURRENT else None
    if client is None:
        raise ControllerError(
            f"sdkVersion {version}: {path} has no such version for {platform}; it has {_listed(known)}"
        )
    if not is_uuid(client) and not _is_web_url(client):
        raise ControllerError(f"{path}: {platform} {version} must be the UUID of a build or an http(s) address")
    return client


def _object(path: Path) -> Mapping[str, object]:
    try:
        fields: object = json.loads(path.read_bytes())
    except OSError as error:
        raise ControllerError(f"{path} cannot be read: {error.strerror or error}") from error
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
            raise ControllerError(f"{where}: {key} must be a text that is not blank")
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
