"""The device of a session over HTTP, for the Appium driver that this package brings."""

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
"""The directory of a session by its id: what an app is unpacked to lies there."""
Note = Callable[[str, str], None]
"""Takes the id of a session and what was downloaded for it."""

_PATH: Final = "/devices/{session_id}/{key}"
_NOT_FOUND: Final = 404
_INVALID: Final = 400
_REFUSED: Final = 500


@runtime_checkable
class Logging(Protocol):
    """A device that keeps what its apps log."""

    @property
    def lines(self) -> Sequence[Line]:
        """The last lines, the oldest first."""
        ...


@runtime_checkable
class Tabbed(Protocol):
    """A device whose apps open pages beside their own."""

    async def close_others(self) -> None:
        """Close the pages that were opened beside the one that shows the apps."""
        ...


class _InvalidError(Exception):
    """The request is not one that can be carried out."""


class _Asked:
    """One request: the device it is for, and the fields of its body."""

    def __init__(self, device: Device, sources: Sources, fields: Mapping[str, object]) -> None:
        self.device = device
        self.sources = sources
        self._fields = fields

    def text(self, name: str) -> str:
        """Return a field that must be there."""
        value = self.text_or_none(name)
        if value is None:
            raise _InvalidError(f"{name} is missing")
        return value

    def text_or_none(self, name: str) -> str | None:
        """Return a field that may be there."""
        value = self._fields.get(name)
        if value is None or isinstance(value, str):
            return value
        raise _InvalidError(f"{name} must be a text")

    def texts(self, name: str) -> Sequence[str]:
        """Return a field that is a list of texts, empty when it is missing."""
        value = self._fields.get(name, [])
        if not isinstance(value, list):
            raise _InvalidError(f"{name} must be a list of texts")
        return [str(item) for item in cast("list[object]", value)]


_Answer = Mapping[str, object] | Response
_Handler = Callable[[_Asked], Awaitable[_Answer]]


def routes(runner: Runner, keys: Keys, *, directory: Directory, note: Note) -> Sequence[Route]:
    """Return the routes below ``Keys.url("devices", …)``. A wrong key and a session without a device answer 404.

    What the device cannot do answers 500, and what is no sensible request 400, with the reason as ``message``.
    """

    def endpoint(handler: _Handler) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            session_id = str(request.path_params["session_id"])
            device = runner.device(session_id)
            if device is None or not keys.fits("devices", session_id, request.path_params["key"]):
                return _refusal(_NOT_FOUND, "there is no such device")
            sources = Sources(directory(session_id), device.kind, Builds(None), lambda text: note(session_id, text))
            try:
                answered = await handler(_Asked(device, sources, await _fields(request)))
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


async def _install(asked: _Asked) -> _Answer:
    app = await asked.sources.at(asked.text("app").removeprefix("file://"))
    named = asked.text_or_none("applicationId")
    return {"applicationId": await asked.device.install(replace(app, application_id=named or app.application_id))}


async def _launch(asked: _Asked) -> _Answer:
    await asked.device.launch(asked.text("applicationId"), asked.texts("arguments"))
    return {}


async def _open_url(asked: _Asked) -> _Answer:
    await asked.device.open_url(asked.text("url"), asked.text_or_none("applicationId"))
    return {}


async def _terminate(asked: _Asked) -> _Answer:
    return {"done": await asked.device.terminate(asked.text("applicationId"))}


async def _remove(asked: _Asked) -> _Answer:
    return {"done": await asked.device.remove(asked.text("applicationId"))}


async def _clear(asked: _Asked) -> _Answer:
    await asked.device.clear(asked.text_or_none("applicationId"))
    return {}


async def _apps(asked: _Asked) -> _Answer:
    return {"apps": {name: int(state) for name, state in (await asked.device.apps()).items()}}


async def _orientation(asked: _Asked) -> _Answer:
    return {"orientation": await asked.device.orientation()}


async def _rotate(asked: _Asked) -> _Answer:
    wanted = asked.text("orientation")
    if wanted not in (known := get_args(Orientation)):
        raise _InvalidError(f"orientation must be one of {', '.join(known)}, not {wanted!r}")
    await asked.device.rotate(cast("Orientation", wanted))
    return {}


async def _close_others(asked: _Asked) -> _Answer:
    if isinstance(asked.device, Tabbed):
        await asked.device.close_others()
    return {}


async def _screenshot(asked: _Asked) -> _Answer:
    return Response(await asked.device.screenshot(), media_type="application/octet-stream")


async def _log(asked: _Asked) -> _Answer:
    lines = asked.device.lines if isinstance(asked.device, Logging) else ()
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
    ("GET", "screenshot"): _screenshot,
    ("GET", "log"): _log,
}
"""What can be asked of a device."""
