"""Simulated devices: apply the rules of the service without real programs."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from pytest_device.service.devices.base import capabilities
from pytest_device.service.runners.base import GONE, Booting, Record, Runner, Running
from pytest_device.spec import Platform, SessionType

PATH: Final = "/simulated"
"""Path prefix of the simulated sessions' controllers."""

_HEALTH: Final[Mapping[str, Mapping[str, Any]]] = {
    "health": {"ok": True},
    "status": {
        "value": {
            "ready": True,
            "message": "a simulated controller only answers health checks",
        }
    },
    "tools": {"tools": []},
}


BootSeconds = Callable[[Mapping[str, Any]], float]
"""Returns the boot time of the device for a create request."""


class SimulatedRunner(Runner):
    """Pretends to boot devices. For tests and measurements of the service's own rules, never for a user's tests.

    No program runs: the connection details have the document's shape and host names that never resolve.

    Arguments:
        clock: Returns Unix seconds.
        boot_seconds: The time after which a device is ready, or a function that returns it for the body of a request,
            since boot times depend on the kind of device.
        base_url: The URL of the service; the URLs of controllers then lead to ``routes``, which only answer health
            checks.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float],
        boot_seconds: float | BootSeconds = 0.0,
        base_url: str | None = None,
    ) -> None:
        self._clock = clock
        self._boot_seconds = boot_seconds
        self._base_url = base_url
        self._records: dict[str, tuple[Record, float]] = {}
        """With the time when each is ready."""

    def start(self, session_id: str, request: Mapping[str, Any]) -> None:
        seconds = self._boot_seconds
        if callable(seconds):
            seconds = seconds(request)
        record = Record(session_id, request, self._clock)
        self._records[session_id] = record, self._clock() + seconds

    def record(self, session_id: str) -> Record:
        """Return the state of the session, which is ready as soon as the clock says so."""
        if session_id not in self._records:
            return Record(session_id, {}, boot=GONE)

        record, ready_at = self._records[session_id]
        if isinstance(record.boot, Booting) and self._clock() >= ready_at:
            host = f"https://{session_id}.simulated.invalid"
            controller = host
            if self._base_url is not None:
                controller = f"{self._base_url}{PATH}/{session_id}"
            preview = {"webPreviewUrl": f"{host}/preview"}
            record.boot = Running(_remote_config(record, controller, preview))

        return record

    def routes(self) -> Sequence[Route]:
        """Return the health checks of the simulated controllers."""

        async def respond(request: Request) -> Response:
            is_known = request.path_params["session_id"] in self._records
            health = _HEALTH.get(request.path_params["check"])
            if health is None or not is_known:
                return JSONResponse({"error": "no such controller"}, 404)
            return JSONResponse(health)

        return (Route(f"{PATH}/{{session_id}}/{{check}}", respond, methods=["GET"]),)

    def stop(self, session_id: str) -> None:
        self._records.pop(session_id, None)

    async def close(self) -> None:
        self._records.clear()


def _remote_config(
    record: Record, address: str, preview: Mapping[str, str]
) -> Mapping[str, Any]:
    match record.type:
        case SessionType.AGENT_DEVICE:
            token = f"simulated-agent-device-{record.id}"
            return {
                "agentDeviceRemoteSessionUrl": address,
                "agentDeviceRemoteSessionToken": token,
                **preview,
            }
        case SessionType.ARGENT:
            return {
                "toolsUrl": address,
                "toolsAuthToken": f"simulated-argent-{record.id}",
                **preview,
            }
        case SessionType.APPIUM:
            # The preview is optional for this type: this lets clients test a session without one.
            return {
                "appiumUrl": address,
                "capabilities": capabilities(
                    Platform(record.request["platform"]), record.id
                ),
            }
        case SessionType.WEB_PREVIEW_ONLY | SessionType.SERVE_SIM:
            return preview
