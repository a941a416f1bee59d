"""One page of a browser that passes for a phone: its screen, its addresses, touches and pictures."""

import asyncio
import base64
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from pytest_device.errors import ControllerError
from pytest_device.redact import Redactor
from pytest_device.service.devices.base import Orientation
from pytest_device.service.devices.cdp import Connection, RefusedError
from pytest_device.service.devices.profiles import Profile

LOAD_SECONDS: Final = 30.0
"""For a page to be loaded with all it shows."""

_DRAWN_SECONDS: Final = 5.0
_PATIENCE_SECONDS: Final = 2.0
"""With a page that is asked to go."""

_PICTURE_TRIES: Final = 5
_DRAW_SECONDS: Final = 0.5
_JPEG_QUALITY: Final = 80
_TOUCHES: Final = 5
_EVERY_ORIGIN: Final = "*"
_ANGLES: Final[Mapping[Orientation, tuple[str, int]]] = {
    "PORTRAIT": ("portraitPrimary", 0),
    "LANDSCAPE": ("landscapePrimary", 90),
}


@dataclass(frozen=True, slots=True)
class Screen:
    """The screen of a phone as it is held."""

    profile: Profile
    orientation: Orientation = "PORTRAIT"

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in CSS pixels."""
        upright = (self.profile.width, self.profile.height)
        return upright if self.orientation == "PORTRAIT" else (upright[1], upright[0])

    def metrics(self) -> Mapping[str, Any]:
        """Return the parameters of ``Emulation.setDeviceMetricsOverride``."""
        (width, height), (kind, angle) = self.size, _ANGLES[self.orientation]
        return {
            "width": width,
            "height": height,
            "screenWidth": width,
            "screenHeight": height,
            "deviceScaleFactor": self.profile.scale,
            "mobile": True,
            "screenOrientation": {"type": kind, "angle": angle},
        }


class Page:
    """A tab, by the debugging session that this package has with it. ``hear`` must be given the session's events."""

    def __init__(self, connection: Connection, session: str, target: str) -> None:
        self.target = target
        self._connection = connection
        self._session = session
        self._script: str | None = None
        self._loader = ""
        self._is_settled = asyncio.Event()  # loaded, or waiting for the answer to a dialog
        self._holds_on = asyncio.Event()  # asks whether it may be left
        self._is_another = asyncio.Event()
        self._dialog: str | None = None
        self._going = asyncio.Lock()

    async def call(
        self, method: str, params: Mapping[str, Any] | None = None, *, limit_seconds: float = LOAD_SECONDS
    ) -> Mapping[str, Any]:
        """Carry out a command on this page, see ``Connection.call``."""
        return await self._connection.call(method, params, session=self._session, limit_seconds=limit_seconds)

    async def prepare(self, screen: Screen, browser_version: str) -> None:
        """Make the page a phone's, and let it go on when it was held for that."""
        calls: tuple[tuple[str, Mapping[str, Any]], ...] = (
            ("Page.enable", {}),
            ("Page.setLifecycleEventsEnabled", {"enabled": True}),
            ("Runtime.enable", {}),
            ("Log.enable", {}),
            ("Emulation.setDeviceMetricsOverride", screen.metrics()),
            ("Emulation.setTouchEmulationEnabled", {"enabled": True, "maxTouchPoints": _TOUCHES}),
            ("Emulation.setUserAgentOverride", screen.profile.user_agent(browser_version)),
            ("Emulation.setFocusEmulationEnabled", {"enabled": True}),
            ("Page.addScriptToEvaluateOnNewDocument", {"source": screen.profile.script}),
            ("Runtime.runIfWaitingForDebugger", {}),
        )
        await asyncio.gather(*(self.call(method, params) for method, params in calls))

    def hear(self, method: str, params: Mapping[str, Any]) -> None:
        """Take an event of this page."""
        match method:
            case "Page.lifecycleEvent" if params["frameId"] == self.target and params["name"] == "load":
                # Also of a page to which the one asked for has led on at once.
                if params["loaderId"] != self._loader:
                    self._loader = params["loaderId"]
                    self._is_settled.set()
            case "Page.frameNavigated" if "parentId" not in params["frame"]:
                self._is_another.set()
            case "Page.javascriptDialogOpening":
                self._dialog = params["message"]
                (self._holds_on if params["type"] == "beforeunload" else self._is_settled).set()
            case "Page.javascriptDialogClosed":
                self._dialog = None
                self._holds_on.clear()
            case _:
                pass

    async def address(self) -> str:
        """Return what the page shows now."""
        reply = await self._connection.call("Target.getTargetInfo", {"targetId": self.target})
        return str(reply["targetInfo"]["url"])

    async def go(self, url: str) -> None:
        """Show an address and wait until it is loaded. Raises ControllerError with the browser's reason."""
        async with self._going:
            await self._close_dialog()
            self._is_settled.clear()
            reply = await self._navigated(url)
            if reason := reply.get("errorText"):
                raise ControllerError(f"{_shown(url)} cannot be shown: {reason}")
            if "loaderId" in reply:  # else only the part behind the # is another one
                await self._loaded(url)

    async def start_with(self, script: str) -> None:
        """Run a script before every document from here on, in the place of the one before."""
        before, self._script = self._script, None
        if before:
            await self.call("Page.removeScriptToEvaluateOnNewDocument", {"identifier": before})
        reply = await self.call("Page.addScriptToEvaluateOnNewDocument", {"source": script})
        self._script = reply["identifier"]

    async def leave(self, url: str) -> None:
        """Show an address as `go` does, and forget the pages before and what they stored while open."""
        await self._close_dialog()
        try:
            await self._forget_visit(_PATIENCE_SECONDS)
        except ControllerError:  # a script goes on and on: such a page would not be left either
            await self.call("Runtime.terminateExecution")
            await self._forget_visit(LOAD_SECONDS)
        await self.go(url)
        await self.call("Page.resetNavigationHistory")

    async def forget(self, origins: Collection[str], *, keep_others: bool) -> None:
        """Take away what addresses have stored: their cookies, their databases, their workers."""
        # Before 156, Chromium takes the session storage of an address that is not shown only with that of every other.
        for origin in origins if keep_others else [_EVERY_ORIGIN]:
            await self.call("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "all"})
        cookies = await self.call("Network.getCookies", {"urls": list(origins)})
        for cookie in cookies["cookies"]:
            which = {name: cookie[name] for name in ("name", "domain", "path")}
            await self.call("Network.deleteCookies", which)

    async def picture(self) -> bytes:
        """Return what the page shows, as JPEG."""
        async with self._going:  # on the way to another page there is none to be had
            for _ in range(_PICTURE_TRIES):
                if picture := await self._captured():
                    return picture
        raise ControllerError("no picture came of the page: it was another one each time")

    async def hold(self, screen: Screen) -> None:
        """Turn the screen of the page."""
        await self._drawn("Emulation.setDeviceMetricsOverride", screen.metrics())

    async def tap(self, x: float, y: float) -> None:
        """Touch a point, in CSS pixels; where a dialog is open, wherever it is touched, that is accepted."""
        if self._dialog is not None:
            await self._close_dialog()
            return
        for kind, points in (("touchStart", [{"x": x, "y": y}]), ("touchEnd", [])):
            await self.call("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    async def _captured(self) -> bytes | None:
        """Return a picture, None when the page changed meanwhile: the browser may never answer then."""
        self._is_another.clear()
        how = {"format": "jpeg", "quality": _JPEG_QUALITY, "optimizeForSpeed": True}
        capturing = asyncio.create_task(self._drawn("Page.captureScreenshot", how))
        changing = asyncio.create_task(self._is_another.wait())
        try:
            await asyncio.wait({capturing, changing}, return_when=asyncio.FIRST_COMPLETED)
            return base64.b64decode((await capturing)["data"]) if capturing.done() else None
        except RefusedError:  # nothing is drawn yet
            await asyncio.wait({changing}, timeout=_DRAW_SECONDS)
            return None
        finally:
            capturing.cancel()
            changing.cancel()

    async def _loaded(self, url: str) -> None:
        try:
            async with asyncio.timeout(LOAD_SECONDS):
                await self._is_settled.wait()
        except TimeoutError as error:
            raise ControllerError(f"{_shown(url)} was not loaded within {LOAD_SECONDS:g} s") from error
        await self._shown_once()

    async def _shown_once(self) -> None:
        """Wait until a picture of the page is on the screen: by then the browser places touches as that page does.

        Before, it places them as the page before did, which may have been shown at another scale.
        """
        if self._dialog is not None:
            return
        self._is_settled.clear()
        expression = "new Promise(shown => requestAnimationFrame(() => requestAnimationFrame(shown)))"
        showing = asyncio.create_task(self.call("Runtime.evaluate", {"expression": expression, "awaitPromise": True}))
        settling = asyncio.create_task(self._is_settled.wait())  # with a dialog, or as another page
        await asyncio.wait({showing, settling}, return_when=asyncio.FIRST_COMPLETED, timeout=_PATIENCE_SECONDS)
        for waiting in (showing, settling):
            waiting.cancel()
        await asyncio.gather(showing, settling, return_exceptions=True)

    async def _navigated(self, url: str) -> Mapping[str, Any]:
        """Leave for an address, whatever the page says to that."""
        navigating = asyncio.create_task(self.call("Page.navigate", {"url": url}))
        holding = asyncio.create_task(self._holds_on.wait())
        try:
            await asyncio.wait({navigating, holding}, return_when=asyncio.FIRST_COMPLETED)
            if not navigating.done():
                await self._close_dialog()
            return await navigating
        finally:
            navigating.cancel()
            holding.cancel()

    async def _forget_visit(self, limit_seconds: float) -> None:
        # Where a page may have no storage this throws in the page, and there is nothing to forget.
        await self.call(
            "Runtime.evaluate", {"expression": "window.name = ''; sessionStorage.clear()"}, limit_seconds=limit_seconds
        )

    async def _drawn(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Carry out what a page that waits for the answer to a dialog does not."""
        try:
            self._refuse_in_dialog()
            return await self.call(method, params, limit_seconds=_DRAWN_SECONDS)
        except ControllerError:
            self._refuse_in_dialog()  # which has opened meanwhile
            raise

    def _refuse_in_dialog(self) -> None:
        if self._dialog is not None:
            raise ControllerError(f"the page waits for the answer to its dialog: {_shown(self._dialog)}")

    async def _close_dialog(self) -> None:
        if self._dialog is not None:
            await self.call("Page.handleJavaScriptDialog", {"accept": True})


def origin_of(address: str) -> str:
    """Return the part of an address that tells whose storage it uses."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}"


def _shown(text: str) -> str:
    return Redactor().text(text)
