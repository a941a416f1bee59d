"""What agent-device's clients say to a phone, said to the browser that passes for it.

The daemon drives the browser as its platform ``web``, which knows addresses only: apps, deep links and app states are
the device's. A request without the daemon's token is left as it is, for the daemon to refuse.
"""

import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

import httpx

from pytest_device.errors import ControllerError
from pytest_device.service.devices.base import AppState, Device
from pytest_device.service.devices.links import parts_of
from pytest_device.spec import Platform

_PLATFORM: Final = "web"
_PLATFORMS: Final = frozenset(("platform", "lockPlatform"))
_PHONES: Final = frozenset(str(platform) for platform in Platform)
_MOBILE: Final = "mobile"
_FAILED: Final = -32000
_HOST: Final = "127.0.0.1"
_ANSWER_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Browser:
    """The device that is a browser, and what asks it which page it shows."""

    device: Device
    http: httpx.AsyncClient


@dataclass(frozen=True, slots=True)
class Said:
    """What is to be passed on to the daemon, or what is to be answered in its place."""

    body: bytes = b""
    answer: bytes = b""


@dataclass(frozen=True, slots=True)
class _Request:
    """A request that could be read; its parts are changed in place."""

    call: dict[str, Any]
    params: dict[str, Any]
    flags: dict[str, Any]

    @property
    def positionals(self) -> Sequence[str]:
        return _texts(self.params.get("positionals"))


def concerns(method: str, path: str, device: Device) -> bool:
    """Tell whether a request is one to be said in other words."""
    return (method, path) == ("POST", "rpc") and device.tools.debugging_port is not None


async def said_to_browser(body: bytes, headers: Mapping[str, str], browser: Browser, token: str) -> Said:
    """Carry out on the device what is the device's, and return the rest of the request in the browser's words."""
    request = _read(body)
    if request is None or not _is_permitted(request, headers, token):
        return Said(body)
    _change_platform(request)
    try:
        done = await _done_by_device(request, browser)
    except ControllerError as error:
        return Said(answer=_refused(request, str(error)))
    return Said(answer=_succeeded(request, done)) if done else Said(json.dumps(request.call).encode())


def _read(body: bytes) -> _Request | None:
    try:
        call = json.loads(body)
    except (ValueError, RecursionError):
        return None
    params = _dict(_dict(call).get("params"))
    flags = params.setdefault("flags", {}) if params else None
    return _Request(_dict(call), params, cast("dict[str, Any]", flags)) if isinstance(flags, dict) else None


def _texts(value: object) -> Sequence[str]:
    return [one for one in cast("list[object]", value) if isinstance(one, str)] if isinstance(value, list) else []


def _dict(value: object) -> dict[str, Any]:
    """Return a JSON object itself, an empty one in the place of anything else."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else dict[str, Any]()


def _is_permitted(request: _Request, headers: Mapping[str, str], token: str) -> bool:
    """Tell whether the request has the token, at one of the places where the daemon looks for it."""
    given = (
        headers.get("authorization", "").removeprefix("Bearer "),
        headers.get("x-agent-device-token", ""),
        str(request.params.get("token", "")),
    )
    return any(hmac.compare_digest(one.encode(errors="replace"), token.encode()) for one in given)


def _change_platform(request: _Request) -> None:
    """Change the platform wherever the request names one: for itself, in what it is locked to, in steps of a batch."""
    left: list[object] = [request.params]
    while left:
        match left.pop():
            case dict() as place:  # pyright: ignore[reportUnknownVariableType]
                _change(cast("dict[str, Any]", place))
                left += cast("dict[str, Any]", place).values()
            case list() as several:  # pyright: ignore[reportUnknownVariableType]
                left += cast("list[object]", several)
            case _:
                pass
    if request.params.get("command") == "open":
        request.flags["platform"] = _PLATFORM
    if request.flags.get("target") == _MOBILE:
        del request.flags["target"]


def _change(place: dict[str, Any]) -> None:
    for name in _PLATFORMS & place.keys():
        if isinstance(place[name], str) and place[name] in _PHONES:
            place[name] = _PLATFORM


async def _done_by_device(request: _Request, browser: Browser) -> str:
    """Do what is the device's; return what was done when nothing is left for the daemon."""
    device = browser.device
    match request.params.get("command"), request.positionals:
        case "open", [target, *more]:
            await _open(device, target, more[0] if more else None, request.flags)
            request.params["positionals"] = [await _address(browser)]
        case "close", [target] if target in await device.apps():
            await device.terminate(target)
            request.params["positionals"] = []
        case "settings", ["clear-app-state", *app]:
            await device.clear(app[0] if app else None)
            return f"Cleared the state of {app[0] if app else 'every app'}"
        case _:
            pass
    return ""


async def _open(device: Device, target: str, link: str | None, flags: dict[str, Any]) -> None:
    """Open an app or an address; what the daemon takes for apps only is done then, and not left among the flags."""
    apps, relaunch, arguments = await device.apps(), flags.pop("relaunch", False), flags.pop("launchArgs", None)
    if target not in apps:
        if not parts_of(target).scheme:
            raise ControllerError(f"{target} is not installed here; installed: {', '.join(apps) or 'no app'}")
        await device.open_url(target)
        return
    if relaunch and apps[target] is AppState.FOREGROUND:
        await device.terminate(target)
    await device.launch(target, _texts(arguments))
    if link:
        await device.open_url(link, target)


async def _address(browser: Browser) -> str:
    """Return the address of the page that the browser shows: told to open it once more, the daemon finds it open."""
    try:
        url = f"http://{_HOST}:{browser.device.tools.debugging_port}/json/list"
        targets = (await browser.http.get(url, timeout=_ANSWER_SECONDS)).json()
    except (httpx.TransportError, ValueError) as error:
        raise ControllerError(f"the browser of this session does not answer: {type(error).__name__}") from error
    return next(str(target["url"]) for target in targets if target["type"] == "page")


def _succeeded(request: _Request, message: str) -> bytes:
    return _answer(request, {"result": {"ok": True, "data": {"message": message}}})


def _refused(request: _Request, message: str) -> bytes:
    data = {"code": "COMMAND_FAILED", "message": message}
    return _answer(request, {"error": {"code": _FAILED, "message": message, "data": data}})


def _answer(request: _Request, outcome: Mapping[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": request.call.get("id"), **outcome}).encode()
