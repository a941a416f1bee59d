"""A browser that is a session's device: the apps on it, what is in front, what its screen shows."""

import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlsplit

from pytest_device.errors import ControllerError
from pytest_device.service.apps.base import App
from pytest_device.service.devices.base import AppState, Orientation, Tools
from pytest_device.service.devices.browser import Browser, browsing
from pytest_device.service.devices.console import Line
from pytest_device.service.devices.links import WEB_SCHEMES, address_in, app_for, is_within, parts_of
from pytest_device.service.devices.page import Page, origin_of
from pytest_device.service.devices.profiles import Profile
from pytest_device.service.devices.tabs import Tabs, tabs_of
from pytest_device.service.runners.guard import Guard
from pytest_device.service.runners.program import first
from pytest_device.spec import Platform

KIND: Final = "chromium"
UNNAMED: Final = "app"
"""The id of an app that has none."""

Serve = Callable[[Path], AbstractAsyncContextManager[str]]
"""Serves a web build; the value is its address."""

_CAPABILITIES: Final[Mapping[Platform, tuple[str, str]]] = {
    Platform.ANDROID: ("Android", "UiAutomator2"),
    Platform.IOS: ("iOS", "XCUITest"),
}
_HOME: Final = (
    "<!doctype html><meta charset=utf-8><meta name=viewport content='width=device-width'><title>Home</title>"
    "<style>body{{margin:0;height:100vh;display:grid;place-items:center;font:16px system-ui;"
    "color:#e6e9ef;background:#20242c}}</style><p>{name}"
)


@dataclass(frozen=True, slots=True)
class _Installed:
    """An app that can be launched; ``stack`` ends what serves it."""

    base: str
    scheme: str | None
    stack: AsyncExitStack


class Chromium:
    """The device, see ``devices.base.Device``. Made by ``booted``."""

    kind = KIND

    def __init__(self, browser: Browser, tabs: Tabs, profile: Profile, serve: Serve, chromedriver: Path | None) -> None:
        self._browser = browser
        self._tabs = tabs
        self._profile = profile
        self._serve = serve
        self._chromedriver = chromedriver
        self._apps: dict[str, _Installed] = {}
        self._home = "data:text/html," + quote(_HOME.format(name=escape(profile.name)))

    @property
    def name(self) -> str:
        """The phone that it passes for."""
        return self._profile.name

    @property
    def platform(self) -> Platform:
        """That of the phone."""
        return self._profile.platform

    @property
    def tools(self) -> Tools:
        """The debugging port, and what Appium is told."""
        platform_name, automation_name = _CAPABILITIES[self.platform]
        return Tools(
            {
                "platformName": platform_name,
                "appium:automationName": automation_name,
                "appium:udid": f"chromium-cdp-{self._browser.port}",  # as argent calls it
            },
            debugging_port=self._browser.port,
            environ={"PYTEST_DEVICE_CHROMEDRIVER": str(self._chromedriver)} if self._chromedriver else {},
        )

    @property
    def lines(self) -> Sequence[Line]:
        """The last that the pages have logged, the oldest first."""
        return self._tabs.console.lines

    async def install(self, app: App) -> str:
        """Install a web app, served from its directory or elsewhere, in the place of one with its id; return its id."""
        application_id = app.application_id or UNNAMED
        await self.remove(application_id)
        async with AsyncExitStack() as stack:
            base = await stack.enter_async_context(self._serve(_web_build(app.path))) if app.path else app.url
            if base is None or urlsplit(base).scheme not in WEB_SCHEMES:
                raise ControllerError(f"{base} is no address of a web app: it starts with https:// or http://")
            self._apps[application_id] = _Installed(base, app.scheme, stack.pop_all())
        return application_id

    async def launch(self, application_id: str, arguments: Sequence[str] = ()) -> None:
        """Start an app anew, its arguments in ``window.launchArguments``; or leave it in front where it is."""
        app = self._app(application_id)
        if not arguments and await self._front() == application_id:
            return
        await self.go_home()
        await (await self._tabs.main()).start_with(_arguments_script(app.base, arguments))
        await self._show(app.base)

    async def open_url(self, url: str, application_id: str | None = None) -> None:
        """Open a web address or a deep link, the latter in the app it belongs to or in the one named."""
        if application_id is not None:
            await self._show(address_in(self._app(application_id).base, url))
        elif parts_of(url).scheme in WEB_SCHEMES:
            await self._show(url)
        else:
            schemes = {name: app.scheme for name, app in self._apps.items()}
            owner = app_for(url, schemes, await self._front())
            await self._show(address_in(self._apps[owner].base, url))

    async def terminate(self, application_id: str) -> bool:
        """Show the home screen in the place of an app, and of what it has opened; False when it was not shown."""
        if application_id not in {await self._front(), await self._at(await self._tabs.main())}:
            return False
        await self.go_home()
        return True

    async def remove(self, application_id: str) -> bool:
        """Remove an app with its state; False when it was not there."""
        if application_id not in self._apps:
            return False
        await self.clear(application_id)
        await self._apps.pop(application_id).stack.aclose()
        return True

    async def clear(self, application_id: str | None = None) -> None:
        """Forget what an app, or every app, has stored, and all that is no app's, and show the home screen."""
        cleared = [self._app(application_id).base] if application_id else [app.base for app in self._apps.values()]
        if application_id is None or application_id in {await self._front(), await self._at(await self._tabs.main())}:
            await self.go_home()
        origins = {origin_of(base) for base in cleared}
        others = {origin_of(app.base) for app in self._apps.values()} - origins
        origins |= self._tabs.visited - others  # nobody can name a page that an app has led to
        await (await self._tabs.main()).forget(origins, keep_others=bool(others))
        self._tabs.visited -= origins

    async def apps(self) -> Mapping[str, AppState]:
        """Tell the installed apps; the one that is not in front does not run."""
        front = await self._front()
        return {name: AppState.FOREGROUND if name == front else AppState.NOT_RUNNING for name in self._apps}

    async def screenshot(self) -> bytes:
        """Return what the screen shows, as JPEG."""
        return await (await self._tabs.front()).picture()

    async def tap(self, x: float, y: float) -> None:
        """Touch a point of the screen; while a dialog is open any touch accepts it."""
        width, height = self._tabs.screen.size
        await (await self._tabs.front()).tap(x * width, y * height)

    async def orientation(self) -> Orientation:
        """Tell how the screen is held."""
        return self._tabs.screen.orientation

    async def rotate(self, orientation: Orientation) -> None:
        """Turn the screen."""
        await self._tabs.hold(orientation)

    async def ended(self) -> str:
        """Wait until the browser has ended or a page of it has crashed; return which and why."""
        return await first(self._browser.ended(), self._tabs.crashed())

    async def close(self) -> None:
        """End what serves the apps."""
        for app in self._apps.values():
            await app.stack.aclose()
        self._apps.clear()

    async def go_home(self) -> None:
        """Show the home screen, with nothing behind it."""
        await self._tabs.close_others()
        if await (await self._tabs.main()).address() != self._home:
            await (await self._tabs.main()).leave(self._home)

    async def close_others(self) -> None:
        """Close the pages that were opened beside the one that shows the apps."""
        await self._tabs.close_others()

    def _app(self, application_id: str) -> _Installed:
        if application_id not in self._apps:
            known = ", ".join(self._apps) or "none"
            raise ControllerError(f"{application_id} is not installed on {self.name}; installed: {known}")
        return self._apps[application_id]

    async def _front(self) -> str | None:
        """Return the app whose page is shown; of several that live in each other's folders, the innermost."""
        return await self._at(await self._tabs.front())

    async def _at(self, page: Page) -> str | None:
        address = await page.address()
        fitting = [(app.base, name) for name, app in self._apps.items() if is_within(app.base, address)]
        return max(fitting, key=lambda app: len(app[0]))[1] if fitting else None

    async def _show(self, address: str) -> None:
        await self._tabs.close_others()
        try:
            await (await self._tabs.main()).go(address)
        except ControllerError:
            await self.go_home()  # the browser's own page of errors is no app
            raise


@asynccontextmanager
async def booted(
    profile: Profile,
    *,
    programs: tuple[Path, Path | None],
    directory: Path,
    environ: Mapping[str, str],
    guard: Guard,
    serve: Serve,
) -> AsyncGenerator[Chromium, None]:
    """Run a browser that passes for a phone, all it writes below a directory; ``programs`` are it and its driver.

    At the end of the block it has ended. Raises ControllerError when it does not come up, OSError when a place cannot
    be made.
    """
    program, chromedriver = programs
    size = (profile.width, profile.height)
    async with (
        browsing(program, size=size, directory=directory, environ=environ, guard=guard) as browser,
        tabs_of(browser.url, profile) as tabs,
    ):
        device = Chromium(browser, tabs, profile, serve, chromedriver)
        try:
            await device.go_home()
            yield device
        finally:
            await device.close()


def _web_build(path: Path) -> Path:
    if not (path / "index.html").is_file():
        raise ControllerError(
            f"{path.name} is no web build: the device on this machine is a browser, "
            "which needs a directory with an index.html"
        )
    return path


def _arguments_script(base: str, arguments: Sequence[str]) -> str:
    given = json.dumps({"origin": origin_of(base), "arguments": list(arguments)})
    return f"(app => {{ if (location.origin === app.origin) window.launchArguments = app.arguments }})({given})"
