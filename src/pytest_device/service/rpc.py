"""Translates requests of agent-device's clients for a phone into requests for the browser that emulates it.

The daemon drives the browser as its platform ``web``, which knows URLs only: the device handles apps, deep links and
app states. A request without the daemon's token is forwarded unchanged, and the daemon refuses it.
"""

import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from starlette.responses import JSONResponse, Response

from pytest_device.errors import ControllerError
from pytest_device.service.devices.base import AppState, Device
from pytest_device.service.devices.chromium import Chromium
from pytest_device.service.devices.links import parts_of
from pytest_device.spec import Platform

_PLATFORM: Final = "web"
"""The daemon's name for a browser."""
_PLATFORM_FIELDS: Final = ("platform", "lockPlatform")
_PHONE_PLATFORMS: Final = frozenset(str(platform) for platform in Platform)
_MOBILE_TARGET: Final = "mobile"
"""A flag of the clients that the daemon refuses on its platform ``web``."""
_FAILED: Final = -32000
"""The daemon's code for every failed command; JSON-RPC leaves the codes from -32099 to -32000 to servers."""


@dataclass(frozen=True, slots=True)
class _Request:
    """A parsed request; its parts are changed in place."""

    call: dict[str, Any]
    params: dict[str, Any]
    flags: dict[str, Any]

    @property
    def positionals(self) -> Sequence[str]:
        return _texts(self.params.get("positionals"))


def concerns(method: str, path: str, device: Device) -> bool:
    """Return whether a request must be translated."""
    return (method, path) == ("POST", "rpc") and device.tools.debugging_port is not None


async def translated(
    body: bytes, headers: Mapping[str, str], device: Device, token: str
) -> bytes | Response:
    """Do the device's part of a request; return the rest for the daemon, or the response if nothing is left."""
    request = _read(body)
    if request is None or not _is_permitted(request, headers, token):
        return body

    _change_platform(request)
    try:
        message = await _run_on_device(request, device)
    except ControllerError as error:
        data = {"code": "COMMAND_FAILED", "message": str(error)}
        failure = {"code": _FAILED, "message": str(error), "data": data}
        return _reply(request, {"error": failure})

    if message:
        return _reply(request, {"result": {"ok": True, "data": {"message": message}}})
    return json.dumps(request.call).encode()


def _read(body: bytes) -> _Request | None:
    try:
        call = json.loads(body)
    except (ValueError, RecursionError):
        return None

    fields = _dict(call)
    params = _dict(fields.get("params"))
    if not params:
        return None

    flags = params.setdefault("flags", {})
    if not isinstance(flags, dict):
        return None
    return _Request(fields, params, cast("dict[str, Any]", flags))


def _texts(value: object) -> Sequence[str]:
    """Return the strings in a JSON array, none for anything else."""
    if not isinstance(value, list):
        return []
    return [item for item in cast("list[object]", value) if isinstance(item, str)]


def _dict(value: object) -> dict[str, Any]:
    """Return a JSON object, an empty one for anything else."""
    if not isinstance(value, dict):
        return {}
    return cast("dict[str, Any]", value)


def _is_permitted(request: _Request, headers: Mapping[str, str], token: str) -> bool:
    """Return whether the request has the token, in one of the fields where the daemon accepts it."""
    candidates = (
        headers.get("authorization", "").removeprefix("Bearer "),
        headers.get("x-agent-device-token", ""),
        str(request.params.get("token", "")),
    )
    return any(
        hmac.compare_digest(candidate.encode(errors="replace"), token.encode())
        for candidate in candidates
    )


def _change_platform(request: _Request) -> None:
    """Replace the platform wherever the request names one: for itself, for a lock, in steps of a batch."""
    # A list instead of recursion: a client may nest deeper than Python's stack.
    unvisited: list[object] = [request.params]
    while unvisited:
        match unvisited.pop():
            case dict() as fields:  # pyright: ignore[reportUnknownVariableType]
                _replace_platform(cast("dict[str, Any]", fields))
                unvisited += cast("dict[str, Any]", fields).values()
            case list() as items:  # pyright: ignore[reportUnknownVariableType]
                unvisited += cast("list[object]", items)
            case _:
                pass

    if request.params.get("command") == "open":
        request.flags["platform"] = _PLATFORM
    if request.flags.get("target") == _MOBILE_TARGET:
        del request.flags["target"]


def _replace_platform(fields: dict[str, Any]) -> None:
    for name in _PLATFORM_FIELDS:
        platform = fields.get(name)
        if isinstance(platform, str) and platform in _PHONE_PLATFORMS:
            fields[name] = _PLATFORM


async def _run_on_device(request: _Request, device: Device) -> str:
    """Do the device's part; return a message if nothing is left for the daemon."""
    match request.params.get("command"), request.positionals:
        case "open", [target, *rest]:
            link = rest[0] if rest else None
            await _open(device, target, link, request.flags)
            # The page is already open when the daemon opens it.
            request.params["positionals"] = (
                [await device.address()] if isinstance(device, Chromium) else []
            )
        case "close", [target] if target in await device.apps():
            await device.terminate(target)
            request.params["positionals"] = []
        case "settings", ["clear-app-state"]:
            await device.clear(None)
            return "Cleared the state of every app"
        case "settings", ["clear-app-state", app, *_]:
            await device.clear(app)
            return f"Cleared the state of {app}"
        case "push", _:
            raise ControllerError(
                "the local device receives push messages in Appium sessions only"
            )
        case "test", _:
            raise ControllerError(
                "agent-device tests no scripts on its platform web, as which it drives the local device: replay each one"
            )
        case _:
            pass
    return ""


async def _open(
    device: Device, target: str, link: str | None, flags: dict[str, Any]
) -> None:
    """Open an app or a URL; handles and removes flags that the daemon accepts for apps only."""
    relaunch = flags.pop("relaunch", False)
    arguments = flags.pop("launchArgs", None)

    apps = await device.apps()
    if target not in apps:
        if not parts_of(target).scheme:
            raise ControllerError(
                f"{target} is not installed here; installed: {', '.join(apps) or 'no app'}"
            )
        await device.open_url(target)
        return

    if relaunch and apps[target] is AppState.FOREGROUND:
        await device.terminate(target)
    await device.launch(target, _texts(arguments))
    if link:
        await device.open_url(link, target)


def _reply(request: _Request, outcome: Mapping[str, Any]) -> Response:
    return JSONResponse({"jsonrpc": "2.0", "id": request.call.get("id"), **outcome})
