"""Finds or downloads the app of a create request."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pytest_device.errors import ControllerError
from pytest_device.service.apps.archive import Limits
from pytest_device.service.apps.builds import App, Builds
from pytest_device.service.apps.contents import NEEDS, Form, Need, app_of
from pytest_device.service.apps.download import Bounds, PageError, download, shown
from pytest_device.service.logs import Log, no_log
from pytest_device.service.rules import is_uuid
from pytest_device.spec import Platform, SessionType


@dataclass(frozen=True, slots=True)
class Sources:
    """The sources of apps for one session.

    Every method raises ControllerError, with the reason for the session page but without secrets in URLs.

    Attributes:
        directory: The directory of the session that apps are downloaded and unpacked to.
        kind: The kind of the session's device.
        builds: The builds that the session may name.
        note: Called with a line for each download.
        bounds: The limits of a download.
        limits: The limits of an archive.
    """

    directory: Path
    kind: str
    builds: Builds
    note: Log = no_log
    bounds: Bounds = field(default_factory=Bounds)
    limits: Limits = field(default_factory=Limits)

    async def requested(self, request: Mapping[str, Any]) -> App | None:
        """Return the app of a valid create request, None if it has none or the client installs it."""
        platform = Platform(request["platform"])
        match request:
            case {"type": SessionType.APPIUM}:
                return None
            case {"buildId": str(build_id)}:
                return await self._built(build_id, platform)
            case {"applicationArchiveUrl": str(url)}:
                return await self._downloaded(url)
            case {"vendorGo": True}:
                client = self.builds.client(platform, request.get("sdkVersion"))
                if is_uuid(client):
                    return await self._built(client, platform)
                return await self._downloaded(client)
            case _:
                return None

    async def at(self, path_or_url: str) -> App:
        """Return the app at a path or URL; the URL may also be that of a running web app."""
        if not path_or_url.lower().startswith(("http://", "https://")):
            return await self._read(Path(path_or_url), path_or_url)

        try:
            return await self._downloaded(path_or_url)
        except PageError:
            return self._served(path_or_url)

    async def _built(self, build_id: str, platform: Platform) -> App:
        build = self.builds.build(build_id, platform)
        if build.url:
            app = self._served(build.url)
        else:
            app = await self._read(build.path or Path(), f"build {build_id}")

        # What its metadata say takes precedence over what the app itself says.
        return replace(
            app,
            application_id=build.application_id or app.application_id,
            scheme=build.scheme or app.scheme,
        )

    async def _downloaded(self, url: str) -> App:
        path = await download(url, self.directory, bounds=self.bounds, note=self.note)
        return await self._read(path, shown(url))

    async def _read(self, path: Path, title: str) -> App:
        try:
            async with asyncio.timeout(self.limits.seconds):
                return await app_of(
                    path,
                    title=title,
                    need=self._need(),
                    directory=self.directory,
                    limits=self.limits,
                )
        except TimeoutError as error:
            raise ControllerError(
                f"{title} could not be unpacked within {self.limits.seconds:g} s"
            ) from error

    def _served(self, url: str) -> App:
        need = self._need()
        if need.form is not Form.WEB_BUILD:
            raise ControllerError(
                f"{shown(url)} is a web app, but the local device is {need.what}"
            )
        return App(url=url, application_id=urlsplit(url).netloc.rpartition("@")[2])

    def _need(self) -> Need:
        if self.kind not in NEEDS:
            raise ControllerError(
                f"no app can be installed on the local device: its kind is {self.kind}"
            )
        return NEEDS[self.kind]
