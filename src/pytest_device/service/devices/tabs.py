"""The pages of one browser, each made a phone's as soon as it opens."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Final
from urllib.parse import urlsplit

from pytest_device.errors import ControllerError
from pytest_device.service.devices.base import Orientation
from pytest_device.service.devices.cdp import LIMIT_SECONDS, Connection, Event, connected
from pytest_device.service.devices.console import Console
from pytest_device.service.devices.links import WEB_SCHEMES
from pytest_device.service.devices.page import Page, Screen, origin_of
from pytest_device.service.devices.profiles import Profile

_PAGES: Final = [{"type": "page"}]


class Tabs:
    """Knows which pages are open. The first is the device's own, the last opened is in front."""

    def __init__(self, screen: Screen) -> None:
        self.screen = screen
        self.console = Console()
        self.visited: set[str] = set()
        """The origins that were shown, of pages and of frames in them."""
        self._pages: dict[str, Page] = {}
        self._crash: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._opened = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._connection: Connection | None = None
        self._version = ""

    async def main(self) -> Page:
        """Return the page that apps are shown on. Raises ControllerError when there is none."""
        return (await self._open())[0]

    async def front(self) -> Page:
        """Return the page that is seen. Raises ControllerError when there is none."""
        return (await self._open())[-1]

    async def attach(self, connection: Connection) -> None:
        """Take over the pages of a browser, those that open later too; return when the first is ready."""
        self._connection = connection
        product: str = (await connection.call("Browser.getVersion"))["product"]
        self._version = product.rpartition("/")[2]
        await connection.call("Target.setDiscoverTargets", {"discover": True, "filter": _PAGES})
        how = {"autoAttach": True, "waitForDebuggerOnStart": True, "flatten": True, "filter": _PAGES}
        await connection.call("Target.setAutoAttach", how)
        await self._open()
        await asyncio.gather(*self._tasks)
        if self._crash.done():
            raise ControllerError(self._crash.result())

    def hear(self, event: Event) -> None:
        """Take an event of the browser."""
        match event.method:
            case "Target.attachedToTarget":
                self._add(event.params["sessionId"], event.params["targetInfo"]["targetId"])
            case "Target.detachedFromTarget":
                self._lose(event.params["sessionId"])
            case "Target.targetCrashed":
                self._fail(f"the page has crashed ({event.params['status']})")
            case method if page := self._pages.get(event.session or ""):
                page.hear(method, event.params)
                self.console.hear(method, event.params)
                self._note(method, event.params)
            case _:
                pass

    async def crashed(self) -> str:
        """Wait for the crash of a page; return what is known of it."""
        return await asyncio.shield(self._crash)

    async def hold(self, orientation: Orientation) -> None:
        """Turn the screen of every page, also of those to come."""
        self.screen = replace(self.screen, orientation=orientation)
        for page in await self._open():
            await page.hold(self.screen)

    async def close_others(self) -> None:
        """Close what the first page, or a test, has opened beside it."""
        for session, page in list(self._pages.items())[1:]:
            await self._browser().call("Target.closeTarget", {"targetId": page.target})
            self._pages.pop(session, None)

    async def detach(self) -> None:
        """Leave what is under way."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _note(self, method: str, params: Mapping[str, Any]) -> None:
        if method != "Page.frameNavigated":
            return
        address: str = params["frame"]["url"]
        if urlsplit(address).scheme in WEB_SCHEMES:
            self.visited.add(origin_of(address))

    def _add(self, session: str, target: str) -> None:
        page = self._pages[session] = Page(self._browser(), session, target)
        self._begin(self._prepare(page))
        self._opened.set()

    def _lose(self, session: str) -> None:
        self._pages.pop(session, None)
        if not self._pages:  # a phone whose last app is closed shows something too
            self._opened.clear()
            self._begin(self._reopen())

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _prepare(self, page: Page) -> None:
        try:
            await page.prepare(self.screen, self._version)
        except ControllerError as error:
            if page in self._pages.values():  # one that was closed before it was ready is no loss
                self._fail(f"a page cannot be made a phone's: {error}")

    async def _reopen(self) -> None:
        try:
            await self._browser().call("Target.createTarget", {"url": "about:blank"})
        except ControllerError as error:
            self._fail(f"its last page was closed, and no other can be opened: {error}")

    def _fail(self, how: str) -> None:
        if not self._crash.done():
            self._crash.set_result(how)

    async def _open(self) -> list[Page]:
        """Return the pages; where the last one was closed, wait for the next one."""
        try:
            async with asyncio.timeout(LIMIT_SECONDS):
                await self._opened.wait()
        except TimeoutError as error:
            raise ControllerError(f"the browser had no page within {LIMIT_SECONDS:g} s") from error
        return list(self._pages.values())

    def _browser(self) -> Connection:
        if self._connection is None:  # never: it is set before anything is heard
            raise RuntimeError("attach() comes first")
        return self._connection


@asynccontextmanager
async def tabs_of(url: str, profile: Profile) -> AsyncGenerator[Tabs, None]:
    """Connect to a browser and make its pages a phone's; ``url`` is its ``ws://`` address. Raises ControllerError."""
    tabs = Tabs(Screen(profile))
    async with connected(url, tabs.hear) as connection:
        try:
            await tabs.attach(connection)
            yield tabs
        finally:
            await tabs.detach()
