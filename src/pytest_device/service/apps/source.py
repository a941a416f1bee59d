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

    Apps are downloaded and unpacked to ``directory``, which belongs to the session. ``kind`` is the kind of its device.
    ``note`` reports downloads. Every method raises ControllerError, with the reason for the session page but without
    secrets in URLs.
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
                return await self._fetched(url)
            case {"vendorGo": True}:
                client = self.builds.client(platform, request.get("sdkVersion"))
                return await (
                    self._built(client, platform)
                    if is_uuid(client)
                    else self._fetched(client)
                )
            case _:
                return None

    async def at(self, where: str) -> App:
        """Return the app at a path or URL; the URL may also be a running web app."""
        if not where.lower().startswith(("http://", "https://")):
            return await self._read(Path(where), where)

        try:
            return await self._fetched(where)
        except PageError:
            return self._served(where)

    async def _built(self, build_id: str, platform: Platform) -> App:
        build = self.builds.build(build_id, platform)
        title = f"build {build_id}"
        app = (
            self._served(build.url)
            if build.url
            else await self._read(build.path or Path(), title)
        )
        # The build's metadata take precedence.
        named, scheme = (
            build.application_id or app.application_id,
            build.scheme or app.scheme,
        )

        return replace(app, application_id=named, scheme=scheme)

    async def _fetched(self, url: str) -> App:
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
        if self._need().form is not Form.WEB_BUILD:
            raise ControllerError(
                f"{shown(url)} is a web app, but the local device is {self._need().what}"
            )
        return App(url=url, application_id=urlsplit(url).netloc.rpartition("@")[2])

    def _need(self) -> Need:
        if self.kind not in NEEDS:
            raise ControllerError(
                f"no app can be installed on the local device: its kind is {self.kind}"
            )
        return NEEDS[self.kind]
