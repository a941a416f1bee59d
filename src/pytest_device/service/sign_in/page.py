"""Fills in the form of a sign-in page, and says why a page can't be used."""

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, Final

from pytest_device.errors import ControllerError
from pytest_device.oauth import is_redirect
from pytest_device.redact import MASK
from pytest_device.service.devices.cdp import Connection, Event

_FORM: Final = Path(__file__).with_name("form.js").read_text("utf-8")
_POLL_SECONDS: Final = 0.1
_SETTLED_SECONDS: Final = 0.4
"""Time without requests and changes after which a page is taken for complete: scripts may replace its form."""
_BUSY_SECONDS: Final = 5.0
"""Time after which a form is filled in although its page never comes to rest: a picture may hang, a clock may tick."""
_UNCLEAR_SECONDS: Final = 4.0
"""Time without changes after which a page that shows nothing to act on is given up: it may forward by itself."""
_ENTER_SECONDS: Final = 1.5
"""Time without any effect of the Enter key after which the button is clicked."""
_TEXT_LENGTH: Final = 160
_CLIENT_ERROR: Final = 400
_SERVER_ERROR: Final = 500
_LASTING: Final = ("WebSocket", "EventSource", "Ping", "Media")
"""Types of requests that say nothing about whether a page is complete."""


class RefusedError(Exception):
    """The page can't be used as it is: an account, a client or the provider needs another setting."""


class PageError(Exception):
    """The provider failed; later it may not."""


class _Sent(Enum):
    """What was filled in when the form was last sent."""

    NOTHING = ""
    USER = "user name"
    PASSWORD = "user name and password"  # noqa: S105  # words for a message


@dataclass(frozen=True, slots=True)
class _PageContent:
    """What the page shows; the names are those of form.js."""

    state: str
    address: str
    title: str
    text: str
    alert: str
    username: bool
    password: bool
    code: bool
    captcha: bool
    buttons: list[str]
    secure: bool

    def quoted(self, password: str) -> str:
        """Return the page's title and message, without the password, for an error."""
        message = self.alert or self.text
        if self.title and message and self.title != message:
            text = f"{self.title}: {message}"
        else:
            text = self.title or message or "an empty page"

        if password:
            text = text.replace(password, MASK)
        if len(text) > _TEXT_LENGTH:
            text = f"{text[:_TEXT_LENGTH]}…"
        return f"{self.address} shows {text!r}"


async def signed_in(
    connection: Connection,
    *,
    url: str,
    redirect_uri: str,
    user: str,
    password: str,
    limit_seconds: float,
) -> str:
    """Open a page in a new browser context, sign the user in, and return the URL of the redirect, which is not loaded.

    The context keeps nothing on disk. Raises RefusedError, PageError, ControllerError.
    """
    async with _opened(connection, redirect_uri) as page:
        form = _Form(page, user, password)
        try:
            async with asyncio.timeout(limit_seconds):
                await page.call("Page.navigate", {"url": url})
                while page.redirect is None:
                    await form.step()
                    await asyncio.sleep(_POLL_SECONDS)
        except TimeoutError:
            last = f": {form.last.quoted(password)}" if form.last else ""
            raise PageError(
                f"no redirect to {redirect_uri} within {limit_seconds:g} s{last}"
            ) from None

        return page.redirect


class _Form:
    """Decides what to do next on the page, by what it shows and what was sent before."""

    def __init__(self, page: "_Page", user: str, password: str) -> None:
        self._page = page
        self._user = user
        self._password = password
        self._sent = _Sent.NOTHING
        self._sent_on: tuple[int, _PageContent] | None = None
        """The document and its content when the form was sent."""
        self._sent_at = 0.0
        self._has_clicked = False
        self.last: _PageContent | None = None
        self._changed_at = time.monotonic()
        self._fields: tuple[object, ...] = ()
        """The document and the fields that it shows."""
        self._fields_at = self._changed_at

    async def step(self) -> None:
        """Read the page, and act on it once it is complete. Raises RefusedError, PageError."""
        if self._page.problem:
            raise PageError(self._page.problem)

        shown = await self._page.shown()
        now = time.monotonic()
        if shown is None or shown != self.last:
            self._changed_at = now
        if shown is None:
            return

        self.last = shown
        fields = (self._page.documents, shown.username, shown.password, shown.code)
        if fields != self._fields:
            self._fields = fields
            self._fields_at = now

        quiet_seconds = now - max(self._changed_at, self._page.busy_until())
        if shown.state == "complete" and quiet_seconds >= _SETTLED_SECONDS:
            await self._act(shown, quiet_seconds)
        elif self._can_fill_in(shown) and now - self._fields_at >= _BUSY_SECONDS:
            self._refuse_challenge(shown, has_form=True)
            await self._fill_in(shown)

    def _can_fill_in(self, shown: _PageContent) -> bool:
        if shown.state == "loading":
            return False

        match self._sent:
            case _Sent.NOTHING:
                return shown.username or shown.password
            case _Sent.USER:
                return shown.password
            case _Sent.PASSWORD:
                return False

    async def _act(self, shown: _PageContent, quiet_seconds: float) -> None:
        """Send the form, wait, or say why the page can't be used."""
        is_unchanged = self._sent_on == (self._page.documents, shown)
        # A slow provider has not refused: sending the form again could lock the account.
        if is_unchanged and self._page.has_open_request(self._sent_at):
            return
        if is_unchanged and quiet_seconds < _UNCLEAR_SECONDS:
            if quiet_seconds >= _ENTER_SECONDS and not self._has_clicked:
                self._has_clicked = True
                await self._page.click_button()
            return

        has_form = shown.username or shown.password
        self._refuse_challenge(shown, has_form=has_form)
        if self._can_fill_in(shown):
            await self._fill_in(shown)
        elif has_form:
            raise RefusedError(
                f"the page did not accept the {self._sent.value}: {shown.quoted(self._password)}"
            )
        else:
            self._explain(shown, quiet_seconds)

    def _refuse_challenge(self, shown: _PageContent, *, has_form: bool) -> None:
        """Raise RefusedError for what only a person can answer.

        A captcha beside a form may be one that most users never see: it counts once the form was sent in vain.
        """
        if shown.code:
            raise RefusedError(
                "the page asks for a one-time code (a second factor): use a user without one. "
                + shown.quoted(self._password)
            )
        if shown.captcha and (self._sent is not _Sent.NOTHING or not has_form):
            raise RefusedError(
                "the page shows a captcha: turn it off for tests at the provider. "
                + shown.quoted(self._password)
            )

    def _explain(self, shown: _PageContent, quiet_seconds: float) -> None:
        """Raise an error for a page without a form, unless it may go on by itself."""
        status = self._page.status
        if status >= _SERVER_ERROR:
            raise PageError(
                f"an error page with status {status}: {shown.quoted(self._password)}"
            )
        if status >= _CLIENT_ERROR:
            raise RefusedError(
                f"an error page with status {status}: {shown.quoted(self._password)}"
            )
        if quiet_seconds < _UNCLEAR_SECONDS:
            return

        if self._sent is _Sent.PASSWORD and shown.buttons:
            choices = ", ".join(repr(button) for button in shown.buttons)
            raise RefusedError(
                f"after the password, the page asks for a decision ({choices}), such as consent: make it once by hand, "
                f"or turn it off for the client at the provider. {shown.quoted(self._password)}"
            )
        raise RefusedError(
            f"no sign-in form on the page, and no redirect. {shown.quoted(self._password)}"
        )

    async def _fill_in(self, shown: _PageContent) -> None:
        # Over http, everyone on the way could read the password.
        if not shown.secure:
            raise RefusedError(
                f"the form at {shown.address} is not sent over https: the password was not typed"
            )

        if shown.username and self._sent is _Sent.NOTHING:
            await self._page.type_into("username", self._user)
            self._sent = _Sent.USER
        if shown.password:
            await self._page.type_into("password", self._password)
            self._sent = _Sent.PASSWORD

        # Read after typing: a page may react to that, and only a change after the Enter key counts.
        self._has_clicked = False
        filled_in = await self._page.shown()
        self._sent_on = (self._page.documents, filled_in or shown)
        self._sent_at = time.monotonic()
        await self._page.press_enter()


@dataclass(slots=True)
class _Page:
    """The page, and what its events say."""

    connection: Connection
    target: str
    session: str
    redirect_uri: str
    redirect: str | None = None
    problem: str = ""
    """Why the page could not be loaded."""
    status: int = 0
    """HTTP status of the document."""
    documents: int = 0
    """Number of documents so far."""
    _requests: dict[str, float] = field(default_factory=dict[str, float])
    """Open requests, with the time of their start."""
    _document: str = ""
    """The request of the document."""
    _last_request: float = 0.0

    async def call(
        self, method: str, params: Mapping[str, Any] | None = None
    ) -> Mapping[str, Any]:
        return await self.connection.call(method, params, session=self.session)

    async def shown(self) -> _PageContent | None:
        """Return what the page shows, None while it navigates."""
        try:
            description = await self._evaluated("describe")
        except ControllerError:
            return None
        return _PageContent(**description) if description else None

    async def type_into(self, name: str, text: str) -> None:
        """Replace the text of a field, as a keyboard does."""
        if not await self._evaluated(name):
            raise PageError(f"the field for the {name} has disappeared")
        await self.call("Input.insertText", {"text": text})

    async def press_enter(self) -> None:
        """Send the form whose field has the focus."""
        key = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13}
        await self.call(
            "Input.dispatchKeyEvent", {"type": "keyDown", "text": "\r", **key}
        )
        await self.call("Input.dispatchKeyEvent", {"type": "keyUp", **key})

    async def click_button(self) -> None:
        """Click the button that sends the form, if there is one."""
        center = await self._evaluated("button")
        if not center:
            return

        x, y = center
        for kind in ("mousePressed", "mouseReleased"):
            await self.call(
                "Input.dispatchMouseEvent",
                {"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1},
            )

    def busy_until(self) -> float:
        """Return the time until which the page was loading, now if it still is."""
        now = time.monotonic()
        if any(now - start < _BUSY_SECONDS for start in self._requests.values()):
            return now
        return self._last_request

    def has_open_request(self, since: float) -> bool:
        """Return whether a request that was sent since then has no response yet."""
        return any(start >= since for start in self._requests.values())

    def on_event(self, event: Event) -> None:
        params = event.params
        match event.method:
            case "Fetch.requestPaused":
                self._on_paused(params)
            case "Page.frameRequestedNavigation" if params["frameId"] == self.target:
                if is_redirect(params["url"], self.redirect_uri):
                    self.redirect = params["url"]
            case "Page.frameNavigated" if "parentId" not in params["frame"]:
                self.documents += 1
            case "Page.javascriptDialogOpening":
                self._send("Page.handleJavaScriptDialog", {"accept": True})
            case "Network.requestWillBeSent":
                self._on_request(params)
            case "Network.loadingFinished" | "Network.loadingFailed":
                self._on_response(params)
            case _:
                pass

    def _on_request(self, params: Mapping[str, Any]) -> None:
        if params.get("type") not in _LASTING:
            self._requests[params["requestId"]] = time.monotonic()

        if params.get("type") == "Document" and params.get("frameId") == self.target:
            self._document = params["requestId"]
            self.problem = ""

    def _on_response(self, params: Mapping[str, Any]) -> None:
        self._requests.pop(params["requestId"], None)
        self._last_request = time.monotonic()

        is_document = params["requestId"] == self._document
        if is_document and "errorText" in params and not params.get("canceled"):
            self.problem = f"the page can't be loaded: {params['errorText']}"

    def _on_paused(self, params: Mapping[str, Any]) -> None:
        """Continue a request, or end it if it is the redirect, which is for the app, not for a server."""
        is_page = params.get("frameId") == self.target  # not a frame in it
        if is_page and "responseStatusCode" in params:
            self.status = int(params["responseStatusCode"])

        if is_page:
            for url in (params["request"]["url"], _location(params)):
                if is_redirect(url, self.redirect_uri):
                    self.redirect = url
                    self._send(
                        "Fetch.failRequest",
                        {"requestId": params["requestId"], "errorReason": "Aborted"},
                    )
                    return

        self._send("Fetch.continueRequest", {"requestId": params["requestId"]})

    def _send(self, method: str, params: Mapping[str, Any]) -> None:
        command = {"method": method, "params": params, "sessionId": self.session}
        self.connection.forward(command, lambda _reply: None)

    async def _evaluated(self, function: str) -> Any:
        """Return what a function of form.js returns."""
        reply = await self.call(
            "Runtime.evaluate",
            {"expression": f"({_FORM})({function!r})", "returnByValue": True},
        )
        return reply["result"].get("value")


def _location(params: Mapping[str, Any]) -> str:
    """Return the Location header of a paused response, empty if there is none."""
    for header in params.get("responseHeaders") or ():
        if header["name"].lower() == "location":
            return str(header["value"])
    return ""


@asynccontextmanager
async def _opened(connection: Connection, redirect_uri: str) -> AsyncGenerator[_Page]:
    """Open an empty page in a browser context of its own, which has no files."""
    context = await connection.call("Target.createBrowserContext")
    created = await connection.call(
        "Target.createTarget",
        {"url": "about:blank", "browserContextId": context["browserContextId"]},
    )
    target = str(created["targetId"])
    attached = await connection.call(
        "Target.attachToTarget", {"targetId": target, "flatten": True}
    )

    page = _Page(connection, target, str(attached["sessionId"]), redirect_uri)
    connection.on_event = page.on_event
    for domain in ("Page", "Network", "Runtime"):
        await page.call(f"{domain}.enable")

    # Providers refuse browsers whose user agent says that no person uses them.
    version = await connection.call("Browser.getVersion")
    user_agent = str(version["userAgent"]).replace("Headless", "")
    await page.call("Network.setUserAgentOverride", {"userAgent": user_agent})
    # Without focus, the page of a browser without a window gets no keyboard events.
    await page.call("Emulation.setFocusEmulationEnabled", {"enabled": True})

    # Both stages: a redirect to a custom scheme is in a response, and never becomes a request.
    documents = [
        {"resourceType": "Document", "requestStage": stage}
        for stage in ("Request", "Response")
    ]
    await page.call("Fetch.enable", {"patterns": documents})

    yield page
    # Not closed: the browser ends now.
