"""The HTTP interface of a session's device, for the Appium driver of this package."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, cast, get_args

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from pytest_device.errors import ControllerError
from pytest_device.service.apps.builds import Builds
from pytest_device.service.apps.source import Sources
from pytest_device.service.devices.base import Device, Orientation
from pytest_device.service.devices.chromium import Chromium
from pytest_device.service.keys import Keys
from pytest_device.service.replies import RefusalError, invalid, object_in
from pytest_device.service.runners.base import Runner

Directory = Callable[[str], Path]
"""Returns the directory that a session's apps are unpacked to, by session ID."""
Note = Callable[[str, str], None]
"""Adds an entry to a session's timeline, by session ID."""

_PATH: Final = "/devices/{session_id}/{key}"


@dataclass(frozen=True, slots=True)
class _Command:
    """A request: its device, and the fields of its body. Fields of another type raise RefusalError."""

    device: Device
    sources: Sources
    fields: Mapping[str, object]

    def text(self, name: str) -> str:
        value = self.text_or_none(name)
        if value is None:
            raise invalid(f"{name} is missing")
        return value

    def text_or_none(self, name: str) -> str | None:
        value = self.fields.get(name)
        if value is None or isinstance(value, str):
            return value
        raise invalid(f"{name} must be a string")

    def texts(self, name: str) -> Sequence[str]:
        value = self.fields.get(name, [])
        if not isinstance(value, list):
            raise invalid(f"{name} must be a list of strings")
        return [str(item) for item in cast("list[object]", value)]


_Handler = Callable[[_Command], Awaitable[object]]


def routes(
    runner: Runner, keys: Keys, *, directory: Directory, note: Note
) -> Sequence[Route]:
    """Return the routes below ``Keys.url("devices", …)``. A wrong key, or a session without a device, gets status 404.

    A failure of the device gets 500, an invalid request 400, with the reason as ``message``.

    Arguments:
        runner: Has the devices.
        keys: Checks the keys of the URLs.
        directory: Returns the directory that a session's apps are unpacked to.
        note: Adds an entry to a session's timeline.
    """

    def endpoint(
        result_field: str, handler: _Handler
    ) -> Callable[[Request], Awaitable[Response]]:
        async def respond(request: Request) -> Response:
            session_id = str(request.path_params["session_id"])
            device = runner.record(session_id).device
            if device is None or not keys.fits(
                "devices", session_id, request.path_params["key"]
            ):
                return JSONResponse({"message": "no such device"}, 404)

            sources = Sources(
                directory(session_id),
                device.kind,
                Builds(None),  # the client names files and URLs, never builds
                lambda text: note(session_id, text),
            )
            try:
                fields = object_in(await request.body() or b"{}")
                result = await handler(_Command(device, sources, fields))
            except RefusalError as error:
                return JSONResponse({"message": str(error)}, error.status)
            except ControllerError as error:
                return JSONResponse({"message": str(error)}, 500)

            if isinstance(result, bytes):
                return Response(result, media_type="application/octet-stream")
            return JSONResponse({result_field: result} if result_field else {})

        return respond

    return [
        Route(f"{_PATH}/{name}", endpoint(result_field, handler), methods=[method])
        for (method, name), (result_field, handler) in _HANDLERS.items()
    ]


async def _install(command: _Command) -> Mapping[str, object]:
    app = await command.sources.at(command.text("app").removeprefix("file://"))
    requested_id = command.text_or_none("applicationId")
    if requested_id:
        app = replace(app, application_id=requested_id)

    device = command.device
    is_clear = isinstance(device, Chromium) and device.has(app)
    return {"applicationId": await device.install(app), "isClear": is_clear}


async def _rotate(command: _Command) -> None:
    orientation = command.text("orientation")
    valid = get_args(Orientation)
    if orientation not in valid:
        raise invalid(
            f"orientation must be one of {', '.join(valid)}, not {orientation!r}"
        )
    await command.device.rotate(cast("Orientation", orientation))


def _for_browser(do: Callable[[Chromium], Awaitable[object]]) -> _Handler:
    """Handle a command for the pages of a browser; other devices ignore it."""

    async def handle(command: _Command) -> object:
        if not isinstance(command.device, Chromium):
            return None
        return await do(command.device)

    return handle


def _for_notification_center(
    do: Callable[[Chromium, _Command], Awaitable[object]],
) -> _Handler:
    """Handle a command for the notifications of a browser; refuse it for other devices, whose Appium drivers do it."""

    async def handle(command: _Command) -> object:
        if not isinstance(command.device, Chromium):
            raise invalid(
                f"{command.device.name} has no notification center of its own"
            )
        return await do(command.device, command)

    return handle


async def _notifications(device: Chromium, _command: _Command) -> object:
    return {"shown": await device.notifications(), "address": await device.address()}


async def _log(command: _Command) -> Sequence[Mapping[str, object]]:
    lines = command.device.lines if isinstance(command.device, Chromium) else ()
    return [
        {"timestamp": round(line.at * 1000), "level": line.level, "message": line.text}
        for line in lines
    ]


_HANDLERS: Final[Mapping[tuple[str, str], tuple[str, _Handler]]] = {
    ("POST", "install"): ("installed", _install),
    ("POST", "launch"): (
        "",
        lambda command: command.device.launch(
            command.text("applicationId"), command.texts("arguments")
        ),
    ),
    ("POST", "open-url"): (
        "",
        lambda command: command.device.open_url(
            command.text("url"), command.text_or_none("applicationId")
        ),
    ),
    ("POST", "terminate"): (
        "done",
        lambda command: command.device.terminate(command.text("applicationId")),
    ),
    ("POST", "remove"): (
        "done",
        lambda command: command.device.remove(command.text("applicationId")),
    ),
    ("POST", "clear"): (
        "",
        lambda command: command.device.clear(command.text_or_none("applicationId")),
    ),
    ("GET", "apps"): ("apps", lambda command: command.device.apps()),
    ("GET", "bases"): ("bases", _for_browser(lambda device: device.bases())),
    ("GET", "orientation"): (
        "orientation",
        lambda command: command.device.orientation(),
    ),
    ("POST", "orientation"): ("", _rotate),
    ("POST", "close-others"): ("", _for_browser(lambda device: device.close_others())),
    ("POST", "open-overlay"): ("", _for_browser(lambda device: device.open_overlay())),
    ("POST", "remove-overlay"): (
        "",
        _for_browser(lambda device: device.remove_overlay()),
    ),
    ("POST", "background"): ("", _for_browser(lambda device: device.background())),
    ("POST", "foreground"): ("", _for_browser(lambda device: device.foreground())),
    ("GET", "crash"): ("crash", _for_browser(lambda device: device.crash())),
    ("GET", "screenshot"): ("", lambda command: command.device.screenshot()),
    ("GET", "log"): ("lines", _log),
    ("POST", "push"): (
        "",
        _for_notification_center(
            lambda device, command: device.push(
                command.text("data"), command.text_or_none("applicationId")
            )
        ),
    ),
    ("GET", "notifications"): (
        "notifications",
        _for_notification_center(_notifications),
    ),
    ("POST", "answer-notification"): (
        "",
        _for_notification_center(
            lambda device, command: device.answer_notification(
                command.text("key"),
                command.text_or_none("action"),
                command.text_or_none("text"),
            )
        ),
    ),
    ("POST", "dismiss-notification"): (
        "",
        _for_notification_center(
            lambda device, command: device.dismiss_notification(command.text("key"))
        ),
    ),
}
"""By method and path: the field of the response that holds the command's result, and the command."""
