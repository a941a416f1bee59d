"""The pages of one browser, each emulating the phone as soon as it opens."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any, Final
from urllib.parse import urlsplit

from pytest_device.errors import ControllerError
from pytest_device.service.devices.base import Orientation
from pytest_device.service.devices.cdp import LIMIT_SECONDS, Connection, Event
from pytest_device.service.devices.console import Console
from pytest_device.service.devices.links import WEB_SCHEMES
from pytest_device.service.devices.page import Page, Screen, origin_of
from pytest_device.service.devices.profiles import Profile

_PAGES: Final = [{"type": "page"}]
_HOME_SCHEMES: Final = frozenset(("about", "data"))
"""Schemes of pages that belong to the device itself."""


class Tabs:
    """The open pages. The first is the device's own, the last opened one is in front."""

    def __init__(self, connection: Connection, screen: Screen) -> None:
        self.screen = screen
        self.console = Console()
        self.on_call: Callable[[Event], None] = lambda _event: None
        """Receives the calls of pages to the device."""
        self.visited: set[str] = set()
        """Origins of all pages and frames that were shown."""
        self.crash: str | None = None
        """How an app's page crashed, until an app is shown again."""
        self._pages: dict[str, Page] = {}
        """The open pages by debugging session, in the order in which they opened."""
        self._cover: Page | None = None
        """The page that hides all others while the app is in the background."""
        self._covered: list[Page] = []
        self._overlay: Page | None = None
        self._contexts: set[str] = set()
        """Browser contexts of the device: that of the apps, and its own."""
        self._own_context: str | None = None
        self._crash: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._opened = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._connection = connection
        self._version = ""

    async def main(self) -> Page:
        """Return the page that shows the apps. Raises ControllerError if there is none."""
        pages = await self._open()
        return pages[0]

    async def front(self) -> Page:
        """Return the page in front. Raises ControllerError if there is none."""
        pages = await self._open()
        return pages[-1]

    async def app_page(self) -> Page:
        """Return the page in front that is the app's own. Raises ControllerError if there is none."""
        pages = [page for page in await self._open() if page is not self._overlay]
        return pages[-1]

    async def attach(self) -> None:
        """Control the browser's pages, including later ones; return once the first is ready."""
        version = await self._connection.call("Browser.getVersion")
        product: str = version["product"]  # such as Chrome/156.0.8078.79
        self._version = product.rpartition("/")[2]

        await self._connection.call(
            "Target.setDiscoverTargets", {"discover": True, "filter": _PAGES}
        )
        # A page waits for the debugger, so that its first script already sees the phone.
        await self._connection.call(
            "Target.setAutoAttach",
            {
                "autoAttach": True,
                "waitForDebuggerOnStart": True,
                "flatten": True,
                "filter": _PAGES,
            },
        )
        await self._open()
        await asyncio.gather(*self._tasks)

        if self._crash.done():
            raise ControllerError(self._crash.result())

    def on_event(self, event: Event) -> None:
        match event.method:
            case "Target.attachedToTarget" if (
                event.params["targetInfo"]["type"] == "page"
            ):
                self._on_attached(event.params["sessionId"], event.params["targetInfo"])
            case "Target.detachedFromTarget":
                self._remove(event.params["sessionId"])
            case "Target.targetCrashed":
                crash = f"the page has crashed ({event.params['status']})"
                self._begin(self._replace(event.params["targetId"], crash))
            case "Runtime.bindingCalled":
                self.on_call(event)
            case _:
                page = self._pages.get(event.session or "")
                if page:
                    self._on_page_event(page, event)

    def _on_page_event(self, page: Page, event: Event) -> None:
        page.on_event(event.method, event.params)
        self.console.on_event(event.method, event.params)
        self._note_origin(event)

        if event.method == "Page.javascriptDialogClosed":
            self._begin(self._catch_up(page))

    async def crashed(self) -> str:
        """Wait until a page that shows no app crashes; return the reason."""
        return await asyncio.shield(self._crash)

    def targets(self) -> list[str]:
        """Return the targets of the open pages, the one in front first."""
        return [page.target for page in reversed(self._pages.values())]

    async def rotate(self, orientation: Orientation) -> None:
        """Rotate the screen of all pages, including later ones."""
        self.screen = replace(self.screen, orientation=orientation)
        for page in await self._open():
            # It would not answer; it is rotated when its dialog is closed.
            if page.dialog_type is None:
                await page.rotate(self.screen)

    async def close_others(self) -> None:
        """Close all pages except the first."""
        await self.uncover()
        for page in list(self._pages.values())[1:]:
            await self._close(page)

        # A program that attaches to a page with an open dialog can't see or close it.
        await (await self.main()).leave_dialog()

    async def replace_main(self) -> Page:
        """Close the first page, which does not answer any more, and return the one that opens instead."""
        await self._close(await self.main())
        page = await self.main()
        await asyncio.gather(*self._tasks)

        return page

    async def cover(self, url: str) -> None:
        """Hide all pages, and open another one in front of them, unless it is already open."""
        if self._covered:
            return

        try:
            for page in await self._open():
                # A dialog stops the page, too.
                if page.dialog_type is None:
                    await page.hide()

                self._covered.append(page)

            self._cover = await self._open_page()
            await self._cover.go(url)
        except ControllerError:
            await self.uncover()
            raise

    async def uncover(self) -> None:
        """Close the page that `cover` opened, and show those behind it."""
        # Reset first: an error below must not leave a cover that no longer exists.
        covered, self._covered = self._covered, []
        cover, self._cover = self._cover, None
        if cover is not None:
            await self._close(cover)

        for page in covered:
            # One with a dialog was not hidden, see `cover`.
            if page in self._pages.values() and page.dialog_type is None:
                await page.reveal()

    async def open_overlay(self) -> None:
        """Open an empty page over all others, unless it is already open: the app below remains in front."""
        if self._overlay is None:
            self._overlay = await self._open_page()

    async def remove_overlay(self) -> None:
        overlay, self._overlay = self._overlay, None
        if overlay is not None:
            await self._close(overlay)

    def behind(self) -> Page | None:
        """Return the page that was in front before it was covered, None without a cover."""
        pages = [
            page
            for page in self._covered
            if page in self._pages.values() and page is not self._overlay
        ]
        return pages[-1] if pages else None

    async def detach(self) -> None:
        """Cancel the tasks in progress."""
        for task in self._tasks:
            task.cancel()

        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _catch_up(self, page: Page) -> None:
        """Rotate a page whose dialog was open while the screen was rotated."""
        if page.screen != self.screen:
            with suppress(ControllerError):  # another dialog, or it was closed
                await page.rotate(self.screen)

    def _note_origin(self, event: Event) -> None:
        if event.method != "Page.frameNavigated":
            return

        address: str = event.params["frame"]["url"]
        if urlsplit(address).scheme in WEB_SCHEMES:
            self.visited.add(origin_of(address))

    def _on_attached(self, session: str, info: Mapping[str, Any]) -> None:
        """Add a page that has opened, unless a controller opened it in a browser context of its own."""
        context = str(info.get("browserContextId", ""))
        if not self._contexts:
            self._contexts.add(context)  # of the page that the browser starts with

        if context in self._contexts:
            self._add(session, info["targetId"])
        else:
            self._begin(self._release(session))

    async def _release(self, session: str) -> None:
        """Let a page continue that is none of the device's, and receive no more of its events."""
        with suppress(ControllerError):  # it was closed early
            await self._connection.call(
                "Runtime.runIfWaitingForDebugger", session=session
            )
            await self._connection.call(
                "Target.detachFromTarget", {"sessionId": session}
            )

    def _add(self, session: str, target: str) -> None:
        page = Page(self._connection, session, target)
        self._pages[session] = page
        self._begin(self._prepare(page))
        self._opened.set()

    def _remove(self, session: str) -> None:
        page = self._pages.pop(session, None)
        if page is None:
            return

        if page is self._overlay:
            self._overlay = None
        # The device needs a page for its home screen.
        if not self._pages:
            self._opened.clear()
            self._begin(self._reopen())

    async def _open_page(self) -> Page:
        """Open an empty page of the device. Raises ControllerError, also if it is closed at once."""
        created = await self._connection.call(
            "Target.createTarget",
            {"url": "about:blank", "browserContextId": await self._context()},
        )
        await asyncio.gather(*self._tasks)

        page = self._page_of(created["targetId"])
        if page is None:
            raise ControllerError("a page of the device was closed as it opened")
        return page

    def _page_of(self, target: str) -> Page | None:
        for page in self._pages.values():
            if page.target == target:
                return page
        return None

    async def _context(self) -> str:
        """Return the browser context of the device's own pages.

        Its pages have a process of their own: an open dialog stops all pages of the app's process.
        """
        if self._own_context is None:
            reply = await self._connection.call("Target.createBrowserContext")
            self._own_context = str(reply["browserContextId"])
            self._contexts.add(self._own_context)

        return self._own_context

    async def _close(self, page: Page) -> None:
        sessions = [session for session, other in self._pages.items() if other is page]
        for session in sessions:
            await self._connection.call("Target.closeTarget", {"targetId": page.target})
            self._remove(session)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _prepare(self, page: Page) -> None:
        try:
            await page.prepare(self.screen, self._version)
        except ControllerError as error:
            if page in self._pages.values():  # a page that was closed early is harmless
                self._fail(f"a page cannot emulate the phone: {error}")

    async def _replace(self, target: str, crash: str) -> None:
        """Close the crashed page of an app, or its cover; if it is neither, the browser is broken."""
        page = self._page_of(target)
        if page is None:
            return

        if urlsplit(await page.address()).scheme not in _HOME_SCHEMES:
            self.crash = crash
        elif page is not self._cover:
            self._fail(crash)

        self.console.add_crash(crash)
        page.on_crash(crash)
        await self._close(page)

    async def _reopen(self) -> None:
        try:
            await self._connection.call("Target.createTarget", {"url": "about:blank"})
        except ControllerError as error:
            self._fail(f"the last page was closed, and no other can be opened: {error}")

    def _fail(self, how: str) -> None:
        if not self._crash.done():
            self._crash.set_result(how)

    async def _open(self) -> list[Page]:
        """Return the pages; if the last one was closed, wait for the next one."""
        try:
            async with asyncio.timeout(LIMIT_SECONDS):
                await self._opened.wait()
        except TimeoutError as error:
            raise ControllerError(
                f"the browser had no page within {LIMIT_SECONDS:g} s"
            ) from error

        return list(self._pages.values())


@asynccontextmanager
async def tabs_of(
    connection: Connection, profile: Profile
) -> AsyncGenerator[Tabs, None]:
    """Emulate the phone on the pages of a browser. Raises ControllerError."""
    tabs = Tabs(connection, Screen(profile))
    connection.on_event = tabs.on_event

    try:
        await tabs.attach()
        yield tabs
    finally:
        await tabs.detach()
