"""The device of a session over HTTP, for the Appium driver of this package."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, Protocol, cast, get_args, runtime_checkable

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from pytest_device.errors import ControllerError
from pytest_device.service.apps.builds import Builds
from pytest_device.service.apps.source import Sources
from pytest_device.service.devices.base import Device, Orientation
from pytest_device.service.devices.console import Line
from pytest_device.service.keys import Keys
from pytest_device.service.runners.base import Runner

Directory = Callable[[str], Path]
"""Returns the directory that the apps of a session are unpacked to, by its id."""
Note = Callable[[str, str], None]
"""Adds an entry to the timeline of a session, by its id."""

_PATH: Final = "/devices/{session_id}/{key}"
_NOT_FOUND: Final = 404
_INVALID: Final = 400
_REFUSED: Final = 500


@runtime_checkable
class Logging(Protocol):
    """A device that keeps the console of its apps."""

    @property
    def lines(self) -> Sequence[Line]:
        """The last lines, the oldest first."""
        ...


@runtime_checkable
class Tabbed(Protocol):
    """A device whose apps can open more pages and dialogs, be hidden, and crash."""

    @property
    def crash(self) -> str | None:
        """How the app in front has crashed, None if it has not."""
        ...

    async def background(self) -> None:
        """Put the app in front in the background."""
        ...

    async def dialog_type(self) -> str | None:
        """Return the type of the open dialog: alert, confirm, prompt or beforeunload."""
        ...

    async def foreground(self) -> None:
        """Bring the app in the background to the front again."""
        ...

    async def close_others(self) -> None:
        """Close all pages except the one that shows the apps."""
        ...


class _InvalidError(Exception):
    """The request is invalid."""


class _Command:
    """A request: the device it is for, and the fields of its body."""

    def __init__(self, device: Device, sources: Sources, fields: Mapping[str, object]) -> None:
        self.device = device
        self.sources = sources
        self._fields = fields

    def text(self, name: str) -> str:
        """Return a required text."""
        value = self.text_or_none(name)
        if value is None:
            raise _InvalidError(f"{name} is missing")
        return value

    def text_or_none(self, name: str) -> str | None:
        """Return an optional text."""
        value = self._fields.get(name)
        if value is None or isinstance(value, str):
            return value
        raise _InvalidError(f"{name} must be a text")

    def texts(self, name: str) -> Sequence[str]:
        """Return an optional list of texts."""
        value = self._fields.get(name, [])
        if not isinstance(value, list):
            raise _InvalidError(f"{name} must be a list of texts")
        return [str(item) for item in cast("list[object]", value)]


_Answer = Mapping[str, object] | Response
_Handler = Callable[[_Command], Awaitable[_Answer]]


def routes(runner: Runner, keys: Keys, *, directory: Directory, note: Note) -> Sequence[Route]:
    """Return the routes below ``Keys.url("devices", …)``. A wrong key and a session without a device answer 404.

    A failure of the device answers 500, and an invalid request 400, with the reason as ``message``.
    """

    def endpoint(handler: _Handler) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            session_id = str(request.path_params["session_id"])
            device = runner.device(session_id)
            if device is None or not keys.fits("devices", session_id, request.path_params["key"]):
                return _refusal(_NOT_FOUND, "no such device")
            sources = Sources(directory(session_id), device.kind, Builds(None), lambda text: note(session_id, text))
            try:
                answered = await handler(_Command(device, sources, await _fields(request)))
                return answered if isinstance(answered, Response) else JSONResponse(answered)
            except _InvalidError as error:
                return _refusal(_INVALID, str(error))
            except ControllerError as error:
                return _refusal(_REFUSED, str(error))

        return answer

    return [
        Route(f"{_PATH}/{name}", endpoint(handler), methods=[method]) for (method, name), handler in _HANDLERS.items()
    ]


async def _fields(request: Request) -> Mapping[str, object]:
    body = await request.body()
    try:
        fields: object = json.loads(body or b"{}")
    except (ValueError, RecursionError) as error:
        raise _InvalidError(f"the body is not JSON: {error}") from error
    if not isinstance(fields, dict):
        raise _InvalidError("the body must be a JSON object")
    return cast("dict[str, object]", fields)


def _refusal(status: int, message: str) -> Response:
    return JSONResponse({"message": message}, status)


async def _install(command: _Command) -> _Answer:
    app = await command.sources.at(command.text("app").removeprefix("file://"))
    named = command.text_or_none("applicationId")
    return {"applicationId": await command.device.install(replace(app, application_id=named or app.application_id))}


async def _launch(command: _Command) -> _Answer:
    await command.device.launch(command.text("applicationId"), command.texts("arguments"))
    return {}


async def _open_url(command: _Command) -> _Answer:
    await command.device.open_url(command.text("url"), command.text_or_none("applicationId"))
    return {}


async def _terminate(command: _Command) -> _Answer:
    return {"done": await command.device.terminate(command.text("applicationId"))}


async def _remove(command: _Command) -> _Answer:
    return {"done": await command.device.remove(command.text("applicationId"))}


async def _clear(command: _Command) -> _Answer:
    await command.device.clear(command.text_or_none("applicationId"))
    return {}


async def _apps(command: _Command) -> _Answer:
    return {"apps": {name: int(state) for name, state in (await command.device.apps()).items()}}


async def _orientation(command: _Command) -> _Answer:
    return {"orientation": await command.device.orientation()}


async def _rotate(command: _Command) -> _Answer:
    wanted = command.text("orientation")
    if wanted not in (known := get_args(Orientation)):
        raise _InvalidError(f"orientation must be one of {', '.join(known)}, not {wanted!r}")
    await command.device.rotate(cast("Orientation", wanted))
    return {}


async def _close_others(command: _Command) -> _Answer:
    if isinstance(command.device, Tabbed):
        await command.device.close_others()
    return {}


async def _background(command: _Command) -> _Answer:
    if isinstance(command.device, Tabbed):
        await command.device.background()
    return {}


async def _foreground(command: _Command) -> _Answer:
    if isinstance(command.device, Tabbed):
        await command.device.foreground()
    return {}


async def _dialog(command: _Command) -> _Answer:
    return {"type": await command.device.dialog_type() if isinstance(command.device, Tabbed) else None}


async def _crash(command: _Command) -> _Answer:
    return {"crash": command.device.crash if isinstance(command.device, Tabbed) else None}


async def _screenshot(command: _Command) -> _Answer:
    return Response(await command.device.screenshot(), media_type="application/octet-stream")


async def _log(command: _Command) -> _Answer:
    lines = command.device.lines if isinstance(command.device, Logging) else ()
    return {
        "lines": [{"timestamp": round(line.at * 1000), "level": line.level, "message": line.text} for line in lines]
    }


_HANDLERS: Final[Mapping[tuple[str, str], _Handler]] = {
    ("POST", "install"): _install,
    ("POST", "launch"): _launch,
    ("POST", "open-url"): _open_url,
    ("POST", "terminate"): _terminate,
    ("POST", "remove"): _remove,
    ("POST", "clear"): _clear,
    ("GET", "apps"): _apps,
    ("GET", "orientation"): _orientation,
    ("POST", "orientation"): _rotate,
    ("POST", "close-others"): _close_others,
    ("POST", "background"): _background,
    ("POST", "foreground"): _foreground,
    ("GET", "crash"): _crash,
    ("GET", "dialog"): _dialog,
    ("GET", "screenshot"): _screenshot,
    ("GET", "log"): _log,
}
"""The commands by method and path."""
