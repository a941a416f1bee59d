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
        session_id = request.path_params["session_id"]
        is_permitted = keys.fits("web-push", session_id, request.path_params["key"])
        device = runner.record(session_id).device
        if not is_permitted or not isinstance(device, Chromium):
            return JSONResponse({"message": "no such subscription"}, 404)

        try:
            await device.receive(
                request.path_params["subscription"],
                request.headers,
                await request.body(),
            )
        except PushRefusedError as error:
            return JSONResponse({"message": str(error)}, error.status)
        except ControllerError as error:
            return JSONResponse({"message": str(error)}, 500)

        # RFC 8030, 5.2: the TTL in the response is the one applied; 0, since no message is kept.
        message_url = f"{request.url}/messages/{uuid4()}"
        return Response(status_code=201, headers={"Location": message_url, "TTL": "0"})

    return Route(_PATH, receive, methods=["POST"])
