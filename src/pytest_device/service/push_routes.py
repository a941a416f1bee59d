"""The endpoints of a device's push subscriptions, for the servers that send messages to its apps: RFC 8030."""

from uuid import uuid4

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from pytest_device.errors import ControllerError
from pytest_device.service.devices.chromium import Chromium
from pytest_device.service.devices.web_push import PushRefusedError
from pytest_device.service.keys import Keys
from pytest_device.service.runners.base import Runner

_PATH = "/web-push/{session_id}/{key}/{subscription}"


def route(runner: Runner, keys: Keys) -> Route:
    """Return the route below ``Keys.url("web-push", …)``; a message is delivered at once, whatever its TTL."""

    async def receive(request: Request) -> Response:
        session_id, key, name = map(str, request.path_params.values())
        device = runner.record(session_id).device
        if not isinstance(device, Chromium) or not keys.fits(
            "web-push", session_id, key
        ):
            return JSONResponse({"message": "no such subscription"}, 404)
        try:
            await device.receive(name, request.headers, await request.body())
        except PushRefusedError as error:
            return JSONResponse({"message": str(error)}, error.status)
        except ControllerError as error:
            return JSONResponse({"message": str(error)}, 500)
        message = f"{request.url}/messages/{uuid4()}"
        return Response(status_code=201, headers={"Location": message, "TTL": "0"})

    return Route(_PATH, receive, methods=["POST"])
