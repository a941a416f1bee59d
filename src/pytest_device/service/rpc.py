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
_PLATFORMS: Final = frozenset(("platform", "lockPlatform"))
_PHONES: Final = frozenset(str(platform) for platform in Platform)
_MOBILE: Final = "mobile"
_FAILED: Final = -32000


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
        done = await _done_by_device(request, device)
    except ControllerError as error:
        data = {"code": "COMMAND_FAILED", "message": str(error)}
        return _answer(
            request, {"error": {"code": _FAILED, "message": str(error), "data": data}}
        )
    if done:
        return _answer(request, {"result": {"ok": True, "data": {"message": done}}})
    return json.dumps(request.call).encode()


def _read(body: bytes) -> _Request | None:
    try:
        call = json.loads(body)
    except (ValueError, RecursionError):
        return None
    params = _dict(_dict(call).get("params"))
    flags = params.setdefault("flags", {}) if params else None
    return (
        _Request(_dict(call), params, cast("dict[str, Any]", flags))
        if isinstance(flags, dict)
        else None
    )


def _texts(value: object) -> Sequence[str]:
    return (
        [one for one in cast("list[object]", value) if isinstance(one, str)]
        if isinstance(value, list)
        else []
    )


def _dict(value: object) -> dict[str, Any]:
    """Return a JSON object, an empty one for anything else."""
    return (
        cast("dict[str, Any]", value) if isinstance(value, dict) else dict[str, Any]()
    )


def _is_permitted(request: _Request, headers: Mapping[str, str], token: str) -> bool:
    """Return whether the request has the token, in one of the fields where the daemon accepts it."""
    given = (
        headers.get("authorization", "").removeprefix("Bearer "),
        headers.get("x-agent-device-token", ""),
        str(request.params.get("token", "")),
    )
    return any(
        hmac.compare_digest(one.encode(errors="replace"), token.encode())
        for one in given
    )


def _change_platform(request: _Request) -> None:
    """Replace the platform wherever the request names one: for itself, for a lock, in steps of a batch."""
    left: list[object] = [request.params]
    while left:
        match left.pop():
            case dict() as fields:  # pyright: ignore[reportUnknownVariableType]
                _change(cast("dict[str, Any]", fields))
                left += cast("dict[str, Any]", fields).values()
            case list() as several:  # pyright: ignore[reportUnknownVariableType]
                left += cast("list[object]", several)
            case _:
                pass
    if request.params.get("command") == "open":
        request.flags["platform"] = _PLATFORM
    if request.flags.get("target") == _MOBILE:
        del request.flags["target"]


def _change(fields: dict[str, Any]) -> None:
    for name in _PLATFORMS & fields.keys():
        if isinstance(fields[name], str) and fields[name] in _PHONES:
            fields[name] = _PLATFORM


async def _done_by_device(request: _Request, device: Device) -> str:
    """Do the device's part; return a message if nothing is left for the daemon."""
    match request.params.get("command"), request.positionals:
        case "open", [target, *more]:
            await _open(device, target, more[0] if more else None, request.flags)
            # The page is already open when the daemon opens it.
            request.params["positionals"] = (
                [await device.address()] if isinstance(device, Chromium) else []
            )
        case "close", [target] if target in await device.apps():
            await device.terminate(target)
            request.params["positionals"] = []
        case "settings", ["clear-app-state", *app]:
            await device.clear(app[0] if app else None)
            return f"Cleared the state of {app[0] if app else 'every app'}"
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
    apps, relaunch, arguments = (
        await device.apps(),
        flags.pop("relaunch", False),
        flags.pop("launchArgs", None),
    )
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


def _answer(request: _Request, outcome: Mapping[str, Any]) -> Response:
    return JSONResponse({"jsonrpc": "2.0", "id": request.call.get("id"), **outcome})
