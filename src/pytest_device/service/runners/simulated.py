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
    """Pretends to boot devices, each ready ``boot_seconds`` after its start by ``clock`` (Unix seconds).

    ``boot_seconds`` may be a function of the request's body, since boot times depend on the kind of device. No program
    runs: the connection details have the document's shape and host names that never resolve; with a ``base_url``, those
    of the controllers lead to ``routes``, which only answer health checks. For tests and measurements of the service's
    own rules, never for a user's tests.
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
        seconds = (
            self._boot_seconds(request)
            if callable(self._boot_seconds)
            else self._boot_seconds
        )
        record = Record(session_id, request, self._clock)
        self._records[session_id] = record, self._clock() + seconds

    def record(self, session_id: str) -> Record:
        """Return the state of the session, which is ready as soon as the clock says so."""
        record, ready_at = self._records.get(
            session_id, (Record(session_id, {}, boot=GONE), 0.0)
        )
        if isinstance(record.boot, Booting) and self._clock() >= ready_at:
            preview = f"https://{session_id}.simulated.invalid"
            controller = (
                preview
                if self._base_url is None
                else f"{self._base_url}{PATH}/{session_id}"
            )
            record.boot = Running(
                _remote_config(
                    record, controller, {"webPreviewUrl": f"{preview}/preview"}
                )
            )

        return record

    def routes(self) -> Sequence[Route]:
        """Return the health checks of the simulated controllers."""

        async def answer(request: Request) -> Response:
            alive = request.path_params["session_id"] in self._records
            words = _HEALTH.get(request.path_params["question"]) if alive else None
            return JSONResponse(
                words or {"error": "no such controller"}, 200 if words else 404
            )

        return (Route(f"{PATH}/{{session_id}}/{{question}}", answer, methods=["GET"]),)

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
