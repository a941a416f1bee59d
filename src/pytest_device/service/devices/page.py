"""One page of a browser that emulates a phone: its screen, navigation, taps and screenshots."""

import asyncio
import base64
from collections.abc import AsyncGenerator, Collection, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from pytest_device.errors import ControllerError
from pytest_device.redact import Redactor
from pytest_device.service.devices import notifications
from pytest_device.service.devices.base import Orientation
from pytest_device.service.devices.cdp import Connection, RefusedError
from pytest_device.service.devices.profiles import Profile

LOAD_SECONDS: Final = 30.0
"""Maximum seconds for loading a page completely."""

_DRAWN_SECONDS: Final = 5.0
"""Maximum seconds for commands that hang while a dialog is open: one may open after the check for it."""
_UNLOAD_SECONDS: Final = 2.0
"""Maximum seconds for unloading a page."""

_SCREENSHOT_TRIES: Final = 5
"""A page may navigate several times before it stays."""
_DRAW_SECONDS: Final = 0.5
"""Maximum seconds to wait for a page's first frame, which every screenshot needs."""
_JPEG_QUALITY: Final = 80
_TOUCHES: Final = 5
_EVERY_ORIGIN: Final = "*"
_ANGLES: Final[Mapping[Orientation, tuple[str, int]]] = {
    "PORTRAIT": ("portraitPrimary", 0),
    "LANDSCAPE": ("landscapePrimary", 90),
}

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Screen:
    """The screen of a phone in its orientation."""

    profile: Profile
    orientation: Orientation = "PORTRAIT"

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in CSS pixels."""
        if self.orientation == "PORTRAIT":
            return (self.profile.width, self.profile.height)
        return (self.profile.height, self.profile.width)

    def metrics(self) -> Mapping[str, Any]:
        """Return the parameters of ``Emulation.setDeviceMetricsOverride``."""
        width, height = self.size
        kind, angle = _ANGLES[self.orientation]
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
    """A tab, controlled through its debugging session. ``on_event`` must receive the session's events."""

    def __init__(self, connection: Connection, session: str, target: str) -> None:
        self.target = target
        self._connection = connection
        self._session = session
        self._script: str | None = None
        """The identifier of the script that runs before every document."""
        self._loader = ""
        """The identifier of the last document that was loaded."""
        self._is_settled = asyncio.Event()  # loaded, or a dialog is open
        self._asks_to_stay = asyncio.Event()  # a beforeunload dialog is open
        self._has_navigated = asyncio.Event()
        self.screen: Screen | None = None
        """The screen that the page emulates."""
        self.dialog_type: str | None = None
        """Type of the open dialog: alert, confirm, prompt or beforeunload."""
        self._dialog: str | None = None
        self._crash: str | None = None
        self._going = asyncio.Lock()

    async def call(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        limit_seconds: float = LOAD_SECONDS,
    ) -> Mapping[str, Any]:
        """Execute a command on this page, see ``Connection.call``."""
        return await self._connection.call(
            method, params, session=self._session, limit_seconds=limit_seconds
        )

    async def prepare(self, screen: Screen, browser_version: str) -> None:
        """Emulate the phone on this page, then let it continue to load."""
        self.screen = screen
        calls: tuple[tuple[str, Mapping[str, Any]], ...] = (
            ("Page.enable", {}),
            ("Page.setLifecycleEventsEnabled", {"enabled": True}),
            ("Runtime.enable", {}),
            ("Log.enable", {}),
            ("Emulation.setDeviceMetricsOverride", screen.metrics()),
            (
                "Emulation.setTouchEmulationEnabled",
                {"enabled": True, "maxTouchPoints": _TOUCHES},
            ),
            (
                "Emulation.setUserAgentOverride",
                screen.profile.user_agent(browser_version),
            ),
            ("Emulation.setFocusEmulationEnabled", {"enabled": True}),
            (
                "Page.addScriptToEvaluateOnNewDocument",
                {"source": screen.profile.script},
            ),
            ("Runtime.addBinding", {"name": notifications.BINDING}),
            ("Page.addScriptToEvaluateOnNewDocument", {"source": notifications.SCRIPT}),
            ("Runtime.runIfWaitingForDebugger", {}),
        )
        await asyncio.gather(*(self.call(method, params) for method, params in calls))

    def on_event(self, method: str, params: Mapping[str, Any]) -> None:
        match method:
            case "Page.lifecycleEvent" if (
                params["frameId"] == self.target and params["name"] == "load"
            ):
                # Includes a page that the requested one redirected to.
                if params["loaderId"] != self._loader:
                    self._loader = params["loaderId"]
                    self._is_settled.set()
            case "Page.frameNavigated" if "parentId" not in params["frame"]:
                self._has_navigated.set()
            case "Page.javascriptDialogOpening":
                self._dialog = params["message"]
                self.dialog_type = params["type"]
                self._connection.release_input()  # the screenshot waits for its end
                if params["type"] == "beforeunload":
                    self._asks_to_stay.set()
                else:
                    self._is_settled.set()
            case "Page.javascriptDialogClosed":
                self._dialog = None
                self.dialog_type = None
                self._asks_to_stay.clear()
            case _:
                pass

    def on_crash(self, reason: str) -> None:
        """Stop waiting for the page to load: it has crashed."""
        self._crash = reason
        self._is_settled.set()

    async def address(self) -> str:
        reply = await self._connection.call(
            "Target.getTargetInfo", {"targetId": self.target}
        )
        return str(reply["targetInfo"]["url"])

    async def go(self, url: str, *, is_touched: bool = True) -> None:
        """Navigate to a URL and wait until it is loaded, and painted if it is to be touched.

        Raises ControllerError with the browser's reason.
        """
        async with self._going:
            await self.leave_dialog()
            self._is_settled.clear()

            reply = await self._navigate(url)
            if "errorText" in reply:
                raise ControllerError(
                    f"{_shown(url)} cannot be opened: {reply['errorText']}"
                )

            if "loaderId" in reply:  # otherwise only the fragment changes
                await self._loaded(url)
                if is_touched:
                    await self._painted()

    async def start_with(self, script: str) -> None:
        """Run this script before every document from now on, instead of the previous one."""
        previous, self._script = self._script, None
        if previous:
            await self.call(
                "Page.removeScriptToEvaluateOnNewDocument", {"identifier": previous}
            )

        reply = await self.call(
            "Page.addScriptToEvaluateOnNewDocument", {"source": script}
        )
        self._script = reply["identifier"]

    async def leave(self, url: str) -> None:
        """Navigate to a URL like `go`, for a page without anything to touch; clear the history and the session storage.

        Raises ControllerError if the page does not answer, for example because it opens a dialog after the other.
        """
        await self.leave_dialog()
        try:
            await self._forget_visit(_UNLOAD_SECONDS)
        # A script runs forever: the page could not be unloaded either.
        except ControllerError:
            await self.call("Runtime.terminateExecution", limit_seconds=_UNLOAD_SECONDS)
            await self._forget_visit(_UNLOAD_SECONDS)

        await self.go(url, is_touched=False)
        await self.call("Page.resetNavigationHistory")

    async def hide(self) -> None:
        """Hide the page: it is notified, and its timers stop. Raises ControllerError while a dialog is open."""
        # The emulated focus keeps a page visible.
        await self._call_unless_dialog(
            "Emulation.setFocusEmulationEnabled", {"enabled": False}
        )
        await self._call_unless_dialog("Page.setWebLifecycleState", {"state": "frozen"})

    async def reveal(self) -> None:
        """Show the page again."""
        await self.call("Page.setWebLifecycleState", {"state": "active"})
        await self.call("Emulation.setFocusEmulationEnabled", {"enabled": True})

    async def forget(self, origins: Collection[str], *, keep_others: bool) -> None:
        """Clear the stored data of these origins: cookies, databases, service workers."""
        # Before version 156, Chromium clears the session storage of a hidden origin only for "*".
        cleared = origins if keep_others else [_EVERY_ORIGIN]
        for origin in cleared:
            await self.call(
                "Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "all"}
            )

        reply = await self.call("Network.getCookies", {"urls": list(origins)})
        for cookie in reply["cookies"]:
            identity = {name: cookie[name] for name in ("name", "domain", "path")}
            await self.call("Network.deleteCookies", identity)

    async def screenshot(self) -> bytes:
        """Return a screenshot of the page as JPEG."""
        async with self._going:  # screenshots are impossible during navigation
            for _ in range(_SCREENSHOT_TRIES):
                # During a screenshot, the browser resets the scale of the page: a tap
                # would fall beside what it aims at.
                async with self._connection.without_input():
                    screenshot = await self._captured()

                if screenshot:
                    return screenshot

        raise ControllerError("no screenshot of the page: it navigated each time")

    async def rotate(self, screen: Screen) -> None:
        """Rotate the page's screen."""
        await self._call_unless_dialog(
            "Emulation.setDeviceMetricsOverride", screen.metrics()
        )
        self.screen = screen

    async def tap(self, x: float, y: float) -> None:
        """Tap a point, in CSS pixels; while a dialog is open, any tap accepts it."""
        if self._dialog is not None:
            await self._close_dialog(accept=True)
            return

        for kind, points in (("touchStart", [{"x": x, "y": y}]), ("touchEnd", [])):
            await self.call(
                "Input.dispatchTouchEvent", {"type": kind, "touchPoints": points}
            )

    async def _captured(self) -> bytes | None:
        """Return a screenshot, None if the page navigated meanwhile: then the browser may never respond."""
        self._has_navigated.clear()
        capture = self._call_unless_dialog(
            "Page.captureScreenshot",
            {"format": "jpeg", "quality": _JPEG_QUALITY, "optimizeForSpeed": True},
        )
        async with _until(self._has_navigated, capture) as (capturing, navigating):
            if not capturing.done():
                return None

            try:
                reply = await capturing
            except RefusedError:  # no frame was drawn yet
                await asyncio.wait({navigating}, timeout=_DRAW_SECONDS)
                return None
            return base64.b64decode(reply["data"])

    async def _loaded(self, url: str) -> None:
        try:
            async with asyncio.timeout(LOAD_SECONDS):
                await self._is_settled.wait()
        except TimeoutError as error:
            raise ControllerError(
                f"{_shown(url)} was not loaded within {LOAD_SECONDS:g} s"
            ) from error

        if self._crash:
            raise ControllerError(f"{_shown(url)} was not loaded: {self._crash}")

    async def _painted(self) -> None:
        """Wait until the page is painted: from then on the browser maps taps by the page's scale.

        Before that, it maps them by the scale of the previous page.
        """
        if self._dialog is not None:
            return

        self._is_settled.clear()
        expression = "new Promise(shown => requestAnimationFrame(() => requestAnimationFrame(shown)))"

        showing = self.call(
            "Runtime.evaluate", {"expression": expression, "awaitPromise": True}
        )
        async with _until(
            self._is_settled, showing, limit_seconds=_UNLOAD_SECONDS
        ) as tasks:
            pass  # a dialog opened, or another page loads

        await asyncio.gather(*tasks, return_exceptions=True)

    async def _navigate(self, url: str) -> Mapping[str, Any]:
        """Navigate to a URL, and accept a beforeunload dialog."""
        navigation = self.call("Page.navigate", {"url": url})
        async with _until(self._asks_to_stay, navigation) as (navigating, _):
            if not navigating.done():
                await self.leave_dialog()

            return await navigating

    async def _forget_visit(self, limit_seconds: float) -> None:
        # On a page without storage, this throws in the page, and nothing needs clearing.
        await self.call(
            "Runtime.evaluate",
            {"expression": "window.name = ''; sessionStorage.clear()"},
            limit_seconds=limit_seconds,
        )

    async def _call_unless_dialog(
        self, method: str, params: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Execute a command that hangs while a dialog is open. Raises ControllerError if one is."""
        try:
            self._refuse_in_dialog()
            return await self.call(method, params, limit_seconds=_DRAWN_SECONDS)
        except ControllerError:
            self._refuse_in_dialog()  # for a dialog that opened meanwhile
            raise

    def _refuse_in_dialog(self) -> None:
        if self._dialog is not None:
            raise ControllerError(
                f"a dialog of the page is open: {_shown(self._dialog)}"
            )

    async def leave_dialog(self) -> None:
        """Close an open dialog because its page is left: without consent, except to leaving."""
        await self._close_dialog(accept=self.dialog_type == "beforeunload")

    async def _close_dialog(self, *, accept: bool) -> None:
        if self._dialog is not None:
            await self.call("Page.handleJavaScriptDialog", {"accept": accept})


@asynccontextmanager
async def _until(
    event: asyncio.Event,
    work: Coroutine[Any, Any, _Result],
    *,
    limit_seconds: float | None = None,
) -> AsyncGenerator[tuple[asyncio.Task[_Result], asyncio.Task[bool]]]:
    """Wait until the work is done or the event is set; cancel both at the end of the block."""
    tasks = asyncio.create_task(work), asyncio.create_task(event.wait())
    try:
        await asyncio.wait(
            tasks, return_when=asyncio.FIRST_COMPLETED, timeout=limit_seconds
        )
        yield tasks
    finally:
        for task in tasks:
            task.cancel()


def origin_of(address: str) -> str:
    """Return the origin of a URL, which owns its storage."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}"


def _shown(text: str) -> str:
    return Redactor().text(text)
