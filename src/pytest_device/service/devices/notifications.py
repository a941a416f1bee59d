"""Notification center of a browser device: the notifications of its apps and the user's responses."""

import asyncio
import base64
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Final

from pytest_device.errors import ControllerError
from pytest_device.service.devices.cdp import Connection, Event, Message
from pytest_device.service.devices.web_push import (
    PushRefusedError,
    Subscription,
    Subscriptions,
)

BINDING: Final = "__pytestDeviceCall"
SCRIPT: Final = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
MAX_SHOWN: Final = 100
"""Maximum number of notifications shown, as on a phone; older ones are removed."""
MAX_PAYLOAD_BYTES: Final = 4096
"""Maximum size of a push message, see RFC 8030, section 7.2."""
_PERMISSION: Final = {"permission": {"name": "notifications"}}

_WORKER_SECONDS: Final = 2.0
"""Timeout for the app to register and start its service worker."""

Show = Callable[[str], Awaitable[None]]
"""Callback that opens a URL in the app."""


@dataclass(slots=True)
class _Workers:
    """Service workers reported by the browser, by registration ID."""

    registrations: dict[str, Mapping[str, Any]] = field(
        default_factory=dict[str, Mapping[str, Any]]
    )
    versions: dict[str, Mapping[str, Any]] = field(
        default_factory=dict[str, Mapping[str, Any]]
    )
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def on_message(self, message: Message) -> None:
        params = message["params"]
        match message["method"]:
            case "ServiceWorker.workerRegistrationUpdated":
                self.registrations |= {
                    registration["registrationId"]: registration
                    for registration in params["registrations"]
                }
            case "ServiceWorker.workerVersionUpdated":
                self.versions |= {
                    version["registrationId"]: version
                    for version in params["versions"]
                    if version["status"] == "activated"
                }
            case _:
                pass

        self.changed.set()

    def of(self, address: str) -> str | None:
        """Return the ID of the registration with the longest scope that matches a URL."""
        scopes = {
            name: registration["scopeURL"]
            for name, registration in self.registrations.items()
            if not registration["isDeleted"] and name in self.versions
        }
        matching = [name for name, scope in scopes.items() if address.startswith(scope)]
        return max(matching, key=lambda name: len(scopes[name]), default=None)

    def running(self, registration: str) -> str | None:
        """Return the target ID of a registration's worker if it is running."""
        version = self.versions.get(registration, {})
        if version.get("runningStatus") != "running":
            return None
        return version.get("targetId")


class NotificationCenter:
    """Notifications shown, oldest first; ``on_event`` must receive the binding calls of pages."""

    def __init__(self, connection: Connection, show: Show) -> None:
        self._connection = connection
        self._show = show
        self.subscriptions = Subscriptions()
        self._shown: dict[str, Mapping[str, Any]] = {}
        self._keys = count(1)
        self._workers: dict[str, str] = {}
        """Debugging sessions of workers, by target ID; attached workers keep running."""
        self._permitted: set[str] = set()
        self._root: str | None = None
        """Separate browser session; otherwise page sessions attached here would be treated as new pages."""
        self._tasks: set[asyncio.Task[None]] = set()

    def shown(self) -> list[Mapping[str, Any]]:
        """Return the notifications with ``key``, ``title``, ``options`` and ``scope``."""
        return list(self._shown.values())

    async def forget(self, origins: set[str]) -> None:
        """Remove the notifications and reset the permissions of origins."""
        for origin in self._permitted & origins:
            await self._permit(origin, "prompt")

        self._permitted -= origins
        prefixes = tuple(f"{origin}/" for origin in origins)
        self.subscriptions.forget(*prefixes)
        self._shown = {
            key: notification
            for key, notification in self._shown.items()
            if not notification["scope"].startswith(prefixes)
        }

    async def push(self, target: str, address: str, data: str) -> None:
        """Deliver a message to the service worker of the app at a URL, through a page's debugging session.

        Raises ControllerError without a service worker or for a message of more than 4,096 bytes.
        """
        if len(data.encode()) > MAX_PAYLOAD_BYTES:
            raise ControllerError(
                f"a message must have at most {MAX_PAYLOAD_BYTES} bytes"
            )

        async with self._working(target, address) as (page, workers, registration):
            await self._worker(page, workers, registration)
            scope = workers.registrations[registration]["scopeURL"]
            origin = "/".join(scope.split("/")[:3])
            params = {"origin": origin, "registrationId": registration, "data": data}
            await self._connection.call(
                "ServiceWorker.deliverPushMessage", params, session=page
            )

    async def receive(
        self, target: str, subscription: Subscription, token: str, body: bytes
    ) -> None:
        """Decrypt a message of a sender in the worker that it is for, and deliver it.

        Raises PushRefusedError, and ControllerError without the worker.
        """
        encoded = base64.urlsafe_b64encode(body).decode().rstrip("=")
        async with self._working(target, subscription.scope) as (
            page,
            workers,
            registration,
        ):
            session = await self._worker(page, workers, registration)
            arguments = _as_arguments(subscription.keys, token, encoded)
            params = {
                "expression": f"__pytestDevice.received({arguments})",
                "awaitPromise": True,
                "returnByValue": True,
            }
            reply = await self._connection.call(
                "Runtime.evaluate", params, session=session
            )

        outcome: Mapping[str, Any] = reply["result"]["value"]
        if "problem" in outcome:
            raise PushRefusedError(outcome["status"], outcome["problem"])

        await self.push(target, subscription.scope, outcome["data"])

    async def answer(
        self, target: str, key: str, action: str | None, text: str | None
    ) -> None:
        """Tap a notification or one of its actions. Raises ControllerError for an unknown action or unexpected text."""
        notification = self._notification(key)
        if action is not None:
            _check_action(notification, action, text)
        elif text is not None:
            raise ControllerError("a tap takes no text: name an action that does")

        del self._shown[key]
        await self._fire(target, "notificationclick", notification, action or "", text)

    async def dismiss(self, target: str, key: str) -> None:
        """Dismiss a notification as a user would. Raises ControllerError if it is not shown."""
        notification = self._notification(key)
        del self._shown[key]
        await self._fire(target, "notificationclose", notification, "", None)

    def on_event(self, event: Event) -> None:
        """Start handling a request from a page or worker."""
        task = asyncio.create_task(self._do(event))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _notification(self, key: str) -> Mapping[str, Any]:
        if key not in self._shown:
            available = ", ".join(self._shown) or "none"
            raise ControllerError(
                f"no notification {key} in the list, available: {available}"
            )
        return self._shown[key]

    async def _do(self, event: Event) -> None:
        call: Mapping[str, Any] = json.loads(event.params["payload"])

        # If the app can't be shown, its code must still get a reply.
        value: object = None
        with suppress(ControllerError):
            value = await self._value(call)

        with suppress(ControllerError):  # the page or worker was closed
            expression = f"__pytestDevice.answer({call['id']}, {json.dumps(value)})"
            params = {
                "expression": expression,
                "contextId": event.params["executionContextId"],
            }
            await self._connection.call(
                "Runtime.evaluate", params, session=event.session
            )

    async def _value(self, call: Mapping[str, Any]) -> object:
        match call["what"]:
            case "show":
                self._add(call)
            case "list":
                return [
                    notification
                    for notification in self._shown.values()
                    if notification["scope"] == call["scope"]
                ]
            case "close":
                self._shown.pop(call["key"], None)
            case "open":
                await self._show(call["url"])
            case "permission":
                await self._permit(call["origin"], "granted")
                return "granted"
            case _:
                return self.subscriptions.answer(call)

        return None

    async def _permit(self, origin: str, setting: str) -> None:
        self._permitted.add(origin)
        await self._connection.call(
            "Browser.setPermission",
            {**_PERMISSION, "setting": setting, "origin": origin},
        )

    def _add(self, call: Mapping[str, Any]) -> None:
        """Show a notification; it replaces one of the same app with the same tag."""
        tag, scope = call["options"].get("tag"), call["scope"]
        for key, notification in list(self._shown.items()):
            same_tag = tag and notification["options"].get("tag") == tag
            if same_tag and notification["scope"] == scope:
                del self._shown[key]

        while len(self._shown) >= MAX_SHOWN:
            oldest = next(iter(self._shown))
            del self._shown[oldest]

        key = str(next(self._keys))
        self._shown[key] = {
            "key": key,
            "title": call["title"],
            "options": call["options"],
            "scope": scope,
        }

    async def _fire(
        self,
        target: str,
        event: str,
        notification: Mapping[str, Any],
        action: str,
        text: str | None,
    ) -> None:
        async with self._working(target, notification["scope"]) as (
            page,
            workers,
            registration,
        ):
            session = await self._worker(page, workers, registration)
            arguments = _as_arguments(event, notification, action, text)
            params = {
                "expression": f"__pytestDevice.answered({arguments})",
                "awaitPromise": True,
            }

            reply = await self._connection.call(
                "Runtime.evaluate", params, session=session
            )
            if "exceptionDetails" in reply:
                exception = reply["exceptionDetails"].get("exception", {})
                thrown = exception.get("description", "an exception")
                raise ControllerError(
                    f"{event} failed in the app's service worker: {thrown}"
                )

    @asynccontextmanager
    async def _working(
        self, target: str, address: str
    ) -> AsyncGenerator[tuple[str, _Workers, str]]:
        """Yield a page's debugging session, the workers, and the registration ID for a URL."""
        workers = _Workers()
        page = await self._attach(target)
        self._connection.subscribe(page, workers.on_message)

        try:
            await self._connection.call("ServiceWorker.enable", session=page)
            registration = await _until(
                workers,
                lambda: workers.of(address),
                f"{address} has no active service worker: a push message needs one",
            )
            yield page, workers, registration
        finally:
            self._connection.subscribe(page, None)
            with suppress(ControllerError):
                await self._connection.call(
                    "Target.detachFromTarget", {"sessionId": page}, session=self._root
                )

    async def _worker(self, page: str, workers: _Workers, registration: str) -> str:
        """Return the debugging session of a registration's worker, starting the worker if necessary."""
        if workers.running(registration) is None:
            scope = {"scopeURL": workers.registrations[registration]["scopeURL"]}
            await self._connection.call(
                "ServiceWorker.startWorker", scope, session=page
            )

        target = await _until(
            workers,
            lambda: workers.running(registration),
            "the app's service worker did not start",
        )
        if target not in self._workers:
            session = await self._attach(target)
            self._connection.subscribe(
                session, lambda message: self._on_worker_message(session, message)
            )
            await self._connection.call(
                "Runtime.addBinding", {"name": BINDING}, session=session
            )
            await self._connection.call(
                "Runtime.evaluate", {"expression": SCRIPT}, session=session
            )
            self._workers[target] = session

        return self._workers[target]

    async def _attach(self, target: str) -> str:
        if self._root is None:
            browser = await self._connection.call("Target.attachToBrowserTarget")
            self._root = str(browser["sessionId"])
            self._connection.subscribe(self._root, lambda _message: None)

        attached = await self._connection.call(
            "Target.attachToTarget",
            {"targetId": target, "flatten": True},
            session=self._root,
        )
        return str(attached["sessionId"])

    def _on_worker_message(self, session: str, message: Message) -> None:
        if message["method"] == "Runtime.bindingCalled":
            self.on_event(Event(message["method"], message["params"], session))


async def _until(
    workers: _Workers, find: Callable[[], str | None], missing: str
) -> str:
    """Wait until a function finds something in what the browser reports. Raises ControllerError with ``missing``."""
    try:
        async with asyncio.timeout(_WORKER_SECONDS):
            result = find()
            while result is None:
                workers.changed.clear()
                await workers.changed.wait()
                result = find()
            return result
    except TimeoutError:
        raise ControllerError(missing) from None


def _as_arguments(*values: object) -> str:
    """Return values as the arguments of a call in JavaScript."""
    return ", ".join(json.dumps(value) for value in values)


def _check_action(
    notification: Mapping[str, Any], action: str, text: str | None
) -> None:
    actions = {
        offered["action"]: offered
        for offered in notification["options"].get("actions", [])
    }
    if action not in actions:
        raise ControllerError(
            f"the notification has no action {action}, available: {', '.join(actions) or 'none'}"
        )

    needs_text = actions[action].get("type") == "text"
    if needs_text and text is None:
        raise ControllerError(f"the action {action} needs text")
    if text is not None and not needs_text:
        raise ControllerError(f"the action {action} takes no text")
