"""A browser as a session's device: its apps, the app in front, its screen."""

import json
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

from pytest_device.errors import ControllerError
from pytest_device.service.apps.builds import App
from pytest_device.service.apps.site import serving
from pytest_device.service.devices.base import (
    AppState,
    Expect,
    Facts,
    Orientation,
    Tools,
    capabilities,
)
from pytest_device.service.devices.browser import KIND as _KIND
from pytest_device.service.devices.browser import Browser, browsing
from pytest_device.service.devices.console import Line
from pytest_device.service.devices.links import (
    WEB_SCHEMES,
    address_in,
    app_for,
    is_within,
    parts_of,
)
from pytest_device.service.devices.notifications import NotificationCenter
from pytest_device.service.devices.page import Page, origin_of
from pytest_device.service.devices.profiles import Profile
from pytest_device.service.devices.relay import relaying, reserved
from pytest_device.service.devices.tabs import Tabs, tabs_of
from pytest_device.service.logs import Log
from pytest_device.service.programs.guard import Guard
from pytest_device.service.programs.program import first

KIND: Final = _KIND
UNNAMED: Final = "app"
"""ID of an app without an ID of its own."""

_HOME: Final = (
    "<!doctype html><html data-home><meta charset=utf-8><meta name=viewport content='width=device-width'>"
    "<title>Home</title>"
    "<style>body{{margin:0;height:100vh;display:grid;place-items:center;font:16px system-ui;"
    "color:#e6e9ef;background:#20242c}}</style><p>{name}"
)


@dataclass(frozen=True, slots=True)
class _Installed:
    """An installed app.

    Attributes:
        base: The URL of its first page.
        scheme: The scheme of its deep links, None if unknown.
        build: The directory or the URL that it was installed from.
        stack: Stops the server of its files.
    """

    base: str
    scheme: str | None
    build: tuple[Path | None, str | None]
    stack: AsyncExitStack


class Chromium:
    """A device, see ``devices.base.Device``. Created by ``booted``."""

    kind = KIND

    def __init__(
        self, browser: Browser, tabs: Tabs, profile: Profile, tools: Tools
    ) -> None:
        self.tools = tools
        self._browser = browser
        self._tabs = tabs
        self.name = profile.name
        self.platform = profile.platform
        self._apps: dict[str, _Installed] = {}
        self._center = NotificationCenter(browser.connection, self._show)
        tabs.on_call = self._center.on_event
        self._home = "data:text/html," + quote(_HOME.format(name=escape(profile.name)))

    @property
    def lines(self) -> Sequence[Line]:
        return self._tabs.console.lines

    async def install(self, app: App) -> str:
        """Install a web app from a directory or URL, replacing one with the same ID; return its ID.

        The same build keeps its server, and so its origin, but not its data.
        """
        application_id = app.application_id or UNNAMED
        if self.has(app):
            await self.clear(application_id)
            return application_id

        await self.remove(application_id)
        async with AsyncExitStack() as stack:
            if app.path:
                base = await stack.enter_async_context(serving(_web_build(app.path)))
            else:
                base = str(app.url)
            if urlsplit(base).scheme not in WEB_SCHEMES:
                raise ControllerError(
                    f"{base} is not the URL of a web app: it must start with https:// or http://"
                )

            build = (app.path, app.url)
            self._apps[application_id] = _Installed(
                base, app.scheme, build, stack.pop_all()
            )

        return application_id

    def has(self, app: App) -> bool:
        """Return whether the same build is installed already: then an installation only clears its data."""
        before = self._apps.get(app.application_id or UNNAMED)
        if before is None:
            return False

        return before.build == (app.path, app.url) and before.scheme == app.scheme

    async def launch(self, application_id: str, arguments: Sequence[str] = ()) -> None:
        """Restart an app with arguments in ``window.launchArguments``; without any, keep it in front if it is there."""
        app = self._app(application_id)
        running = {await self._front(), await self._behind()}
        if application_id in running and not arguments:
            await self._tabs.uncover()
            return

        await self.go_home()
        main = await self._tabs.main()
        await main.start_with(_arguments_script(app.base, arguments))
        await self._show(app.base)

    async def open_url(self, url: str, application_id: str | None = None) -> None:
        if application_id is not None:
            await self._show(address_in(self._app(application_id).base, url))
        elif parts_of(url).scheme in WEB_SCHEMES:
            await self._show(url)
        else:
            schemes = {name: app.scheme for name, app in self._apps.items()}
            owner = app_for(url, schemes, await self._front())
            await self._show(address_in(self._apps[owner].base, url))

    async def terminate(self, application_id: str) -> bool:
        """Close an app and the pages that it opened, and show the home screen; return False if it was not shown."""
        if application_id not in await self._open_apps():
            return False

        await self.go_home()
        return True

    async def remove(self, application_id: str) -> bool:
        if application_id not in self._apps:
            return False

        await self.clear(application_id)
        await self._apps.pop(application_id).stack.aclose()
        return True

    async def clear(self, application_id: str | None = None) -> None:
        """Clear the stored data of one or all apps, and of pages outside of apps; show the home screen."""
        apps = (
            list(self._apps.values())
            if application_id is None
            else [self._app(application_id)]
        )
        if application_id is None or application_id in await self._open_apps():
            await self.go_home()

        origins = {origin_of(app.base) for app in apps}
        others = {origin_of(app.base) for app in self._apps.values()} - origins
        # With the origins that an app navigated to, which a test cannot name.
        cleared = origins | (self._tabs.visited - others)
        main = await self._tabs.main()
        await main.forget(cleared, keep_others=bool(others))
        await self._center.forget(cleared)
        self._tabs.visited -= cleared

    async def apps(self) -> Mapping[str, AppState]:
        """Return the installed apps; only the one in front runs, the one in the background is suspended."""
        states = {
            await self._behind(): AppState.BACKGROUND,
            await self._front(): AppState.FOREGROUND,
        }
        return {name: states.get(name, AppState.NOT_RUNNING) for name in self._apps}

    async def bases(self) -> Mapping[str, str]:
        """Return the address that the pages of each installed app begin with."""
        return {name: app.base for name, app in self._apps.items()}

    async def screenshot(self) -> bytes:
        page = await self._tabs.front()
        return await page.screenshot()

    async def tap(self, x: float, y: float) -> None:
        """Tap a point of the screen; while a dialog is open, any tap accepts it."""
        width, height = self._tabs.screen.size
        page = await self._tabs.front()
        await page.tap(x * width, y * height)

    async def orientation(self) -> Orientation:
        return self._tabs.screen.orientation

    async def rotate(self, orientation: Orientation) -> None:
        await self._tabs.rotate(orientation)

    async def ended(self) -> str:
        """Wait until the browser exits or its home screen crashes; return the reason. Apps may crash."""
        return await first(self._browser.ended(), self._tabs.crashed())

    async def close(self) -> None:
        """Stop serving the apps."""
        for app in self._apps.values():
            await app.stack.aclose()

        self._apps.clear()

    async def go_home(self) -> None:
        """Show the home screen, without history."""
        self._tabs.crash = None
        await self._tabs.close_others()

        main = await self._tabs.main()
        if await main.address() == self._home:
            return

        try:
            await main.leave(self._home)
        except ControllerError:
            main = await self._tabs.replace_main()
            await main.leave(self._home)

    async def background(self) -> None:
        """Move the app in front to the background: the home screen covers it, and its timers stop."""
        await self._tabs.cover(self._home)

    async def foreground(self) -> None:
        """Bring the app in the background to the front again."""
        await self._tabs.uncover()

    async def address(self) -> str:
        """Return the URL of the page in front."""
        page = await self._tabs.app_page()
        return await page.address()

    async def crash(self) -> str | None:
        """Return how the app in front crashed, until an app or the home screen is shown."""
        return self._tabs.crash

    async def push(self, data: str, application_id: str | None = None) -> None:
        """Deliver a web push to an app, by default the one in front, even if it is closed."""
        receiver = application_id or await self._front() or await self._behind()
        if receiver is None:
            if not self._apps:
                raise ControllerError(f"no app is installed on {self.name}")
            receiver = next(iter(self._apps))

        address = f"{self._app(receiver).base.rstrip('/')}/"
        main = await self._tabs.main()
        await self._center.push(main.target, address, data)

    def accept_pushes(self, url: str) -> None:
        """Set the URL below which the endpoints of new push subscriptions are."""
        self._center.subscriptions.url = url

    async def receive(
        self, subscription: str, headers: Mapping[str, str], body: bytes
    ) -> None:
        """Deliver the message that a sender posted to a subscription's endpoint. Raises PushRefusedError."""
        accepted, token = self._center.subscriptions.accepted(
            subscription, headers, body, time.time()
        )
        main = await self._tabs.main()
        await self._center.receive(main.target, accepted, token, body)

    async def notifications(self) -> Sequence[Mapping[str, Any]]:
        """Return the notification list."""
        return self._center.shown()

    async def answer_notification(
        self, key: str, action: str | None = None, text: str | None = None
    ) -> None:
        """Tap a notification or one of its actions, bringing a background app to the front."""
        await self._tabs.uncover()
        main = await self._tabs.main()
        await self._center.answer(main.target, key, action, text)

    async def dismiss_notification(self, key: str) -> None:
        main = await self._tabs.main()
        await self._center.dismiss(main.target, key)

    async def close_others(self) -> None:
        await self._tabs.close_others()

    def _app(self, application_id: str) -> _Installed:
        if application_id not in self._apps:
            known = ", ".join(self._apps) or "none"
            raise ControllerError(
                f"{application_id} is not installed on {self.name}; installed: {known}"
            )

        return self._apps[application_id]

    async def open_overlay(self) -> None:
        """Open an empty page over the app, for views that the app's page cannot draw."""
        await self._tabs.open_overlay()

    async def remove_overlay(self) -> None:
        await self._tabs.remove_overlay()

    async def _open_apps(self) -> set[str | None]:
        """Return the apps of the page in front and of the first page, which may have opened it."""
        return {await self._front(), await self._at(await self._tabs.main())}

    async def _front(self) -> str | None:
        """Return the app whose page is shown; of nested apps, the innermost."""
        return await self._at(await self._tabs.app_page())

    async def _behind(self) -> str | None:
        """Return the app in the background."""
        page = self._tabs.behind()
        return await self._at(page) if page else None

    async def _at(self, page: Page) -> str | None:
        """Return the app that a page's URL belongs to; of nested apps, the innermost."""
        address = await page.address()
        matching = [
            name for name, app in self._apps.items() if is_within(app.base, address)
        ]
        return max(matching, key=lambda name: len(self._apps[name].base), default=None)

    async def _show(self, address: str) -> None:
        self._tabs.crash = None
        await self._tabs.close_others()

        main = await self._tabs.main()
        try:
            await main.go(address)
        except ControllerError:
            await self.go_home()  # the browser's own error page is not an app
            raise


@asynccontextmanager
async def booted(
    profile: Profile,
    *,
    programs: tuple[Path, Path | None],
    directory: Path,
    environ: Mapping[str, str],
    guard: Guard,
    log: Log,
    expect: Expect | None = None,
) -> AsyncGenerator[Chromium, None]:
    """Run a browser that emulates a phone; it is stopped at the end of the block.

    Arguments:
        profile: The phone.
        programs: The browser, and the chromedriver for Appium.
        directory: Gets the browser's files.
        environ: The environment of the browser.
        guard: Stops the browser if this process is killed.
        log: Called with a line for a retried start.
        expect: Called before the start, with the port that leads to the browser once it is up: slow programs can start
            beside it.

    Raises:
        ControllerError: The browser does not start.
        OSError: A directory cannot be created.
    """
    program, chromedriver = programs
    size = (profile.width, profile.height)

    with reserved() as listener:
        port = listener.getsockname()[1]
        environ_of_controllers: dict[str, str] = {}
        if chromedriver:
            environ_of_controllers["PYTEST_DEVICE_CHROMEDRIVER"] = str(chromedriver)
        tools = Tools(
            # Argent's name for it.
            capabilities(profile.platform, f"chromium-cdp-{port}"),
            debugging_port=port,
            environ=environ_of_controllers,
        )

        if expect:
            expect(Facts(profile.name, profile.platform, tools))

        async with (
            browsing(
                program,
                size=size,
                directory=directory,
                environ=environ,
                guard=guard,
                log=log,
            ) as browser,
            tabs_of(browser.connection, profile) as tabs,
            relaying(browser.connection, tabs.targets, listener),
        ):
            device = Chromium(browser, tabs, profile, tools)
            try:
                await device.go_home()
                yield device
            finally:
                await device.close()


def _web_build(path: Path) -> Path:
    if not (path / "index.html").is_file():
        raise ControllerError(
            f"{path.name} is not a web build: the device on this machine is a browser, "
            "which needs a directory with an index.html"
        )
    return path


def _arguments_script(base: str, arguments: Sequence[str]) -> str:
    # The script runs on every page from now on, and the arguments are for this app only.
    app = json.dumps({"origin": origin_of(base), "arguments": list(arguments)})
    return f"(app => {{ if (location.origin === app.origin) window.launchArguments = app.arguments }})({app})"
